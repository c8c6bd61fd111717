/** How an agent loop uses the clients of providers: their requests, responses and streams. */

import type { DecodedCall, TargetName } from "../../formats/mod.ts";
import { attemptOr, fail, isObject } from "../../tool/mod.ts";

/** A target whose client a loop can use. */
export type ClientTarget =
  Extract<TargetName, "openai" | `openai.${string}` | `anthropic${string}`> extends infer Name
    ? Exclude<Name, "openai.realtime">
    : never;

type CreateOf<Client, Target extends ClientTarget> = Target extends `anthropic${string}`
  ? Client extends { readonly messages: { readonly create: infer Create } } ? Create : never
  : Target extends `openai.responses${string}`
    ? Client extends { readonly responses: { readonly create: infer Create } } ? Create : never
  : Client extends { readonly chat: { readonly completions: { readonly create: infer Create } } }
    ? Create
  : never;

/** The body of a request. TypeScript infers the last overload, for streamed and whole responses. */
type BodyOf<Client, Target extends ClientTarget> = CreateOf<Client, Target> extends
  (body: infer Body, ...rest: never[]) => unknown ? Body : never;

type AnswerOf<Client, Target extends ClientTarget> = CreateOf<Client, Target> extends
  (...args: never[]) => infer Answer ? Awaited<Answer> : never;

/** The client's own request. Its tools are sent in addition to plue's. */
export type ClientRequest<Client, Target extends ClientTarget> = Omit<
  BodyOf<Client, Target>,
  "stream"
>;

/** The client's response. */
export type ResponseOf<Client, Target extends ClientTarget> = Exclude<
  AnswerOf<Client, Target>,
  AsyncIterable<unknown>
>;

/** An event of the client's stream. */
export type EventOf<Client, Target extends ClientTarget> = AnswerOf<Client, Target> extends
  infer Answer ? Answer extends AsyncIterable<infer Event> ? Event : never
  : never;

/** A message, or an item, of the client's conversation. */
export type MessageIn<Client, Target extends ClientTarget> = BodyOf<Client, Target> extends
  infer Body ? Body extends { readonly messages: readonly (infer Message)[] } ? Message
  : Body extends { readonly input?: infer Input } ? Extract<Input, readonly unknown[]>[number]
  : never
  : never;

type Json = { readonly [field: string]: unknown };

interface Assembly {
  push(event: Json): void;
  /** Returns the response with its calls, or `undefined` if the stream broke off. */
  end(calls: readonly DecodedCall[]): Json | undefined;
}

export interface ClientFormat {
  /** The part of the client that sends requests. */
  readonly path: readonly string[];
  /** The field of a request that contains the conversation. */
  readonly conversation: "messages" | "input";
  /** Returns the model's message, in the form of the conversation. */
  said(response: Json): readonly unknown[];
  assemble(): Assembly;
  /** Returns true if the provider has paused its turn, which the next request resumes. */
  paused?(response: Json): boolean;
  /** Returns the fields that the next request must repeat. */
  carried?(response: Json): Json | undefined;
}

export function clientFormat(target: string): ClientFormat | undefined {
  if (target.startsWith("anthropic")) return MESSAGES;
  if (target.startsWith("openai.responses")) return RESPONSES;
  return target.startsWith("openai.chat") ? CHAT : undefined;
}

function objectsIn(list: unknown): readonly Json[] {
  return Array.isArray(list) ? list.filter(isObject) : [];
}

// OpenAI Chat Completions

/** The fields of a delta that are not concatenated. */
const APART: ReadonlySet<string> = new Set(["role", "tool_calls", "function_call"]);

const CHAT: ClientFormat = {
  path: ["chat", "completions"],
  conversation: "messages",
  said({ choices }) {
    const [first] = objectsIn(choices);
    if (first === undefined) fail("read the response", '"/choices" must have a choice');
    return [first["message"]];
  },
  assemble() {
    let top: Json | undefined;
    let finish_reason: unknown = null;
    const message: Record<string, unknown> = { role: "assistant", content: null };
    return {
      push(chunk) {
        top = { ...top, ...definedIn(chunk) };
        const choice = objectsIn(chunk["choices"]).find(({ index }) => (index ?? 0) === 0);
        finish_reason = choice?.["finish_reason"] ?? finish_reason;
        if (!isObject(choice?.["delta"])) return;
        for (const [field, value] of Object.entries(choice["delta"])) {
          if (APART.has(field) || value === null) continue;
          const before = message[field];
          if (typeof value === "string") message[field] = `${before ?? ""}${value}`;
          // Some servers send lists of thoughts, which the next request must repeat.
          else if (Array.isArray(value) && Array.isArray(before)) before.push(...value);
          else message[field] = Array.isArray(value) ? [...value] : value;
        }
      },
      end(calls) {
        // The last chunk of a response has the finish reason.
        if (top === undefined || finish_reason === null) return undefined;
        const tool_calls = calls.map(({ raw, callId }) => ({ ...Object(raw), id: callId }));
        const said = tool_calls.length === 0 ? message : { ...message, tool_calls };
        return {
          ...top,
          object: "chat.completion",
          choices: [{ index: 0, message: said, finish_reason }],
        };
      },
    };
  },
};

/** Returns the members that are not `null`: only the last chunk has the usage. */
function definedIn(record: Json): Json {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null));
}

// OpenAI Responses

const ENDS: ReadonlySet<unknown> = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
]);

const RESPONSES: ClientFormat = {
  path: ["responses"],
  conversation: "input",
  said: ({ output }) => objectsIn(output),
  assemble() {
    const items: unknown[] = [];
    let response: Json | undefined;
    return {
      push(event) {
        if (event["type"] === "response.output_item.done") items.push(event["item"]);
        if (ENDS.has(event["type"]) && isObject(event["response"])) response = event["response"];
      },
      end: () =>
        // Some servers omit the items in the last event.
        response !== undefined && objectsIn(response["output"]).length === 0
          ? { ...response, output: items }
          : response,
    };
  },
};

// Anthropic Messages

const MESSAGES: ClientFormat = {
  path: ["messages"],
  conversation: "messages",
  said(response) {
    // The API rejects requests with an empty text, although a model may write one.
    const content = objectsIn(response["content"]).filter(({ type, text }) =>
      type !== "text" || text !== ""
    );
    return content.length === 0 ? [] : [{ role: "assistant", content }];
  },
  assemble() {
    let message: Json | undefined;
    const blocks = new Map<unknown, { block: Record<string, unknown>; input: string }>();
    return {
      push(event) {
        const { index, delta } = event;
        if (isObject(event["message"])) message = event["message"];
        if (isObject(event["content_block"])) {
          blocks.set(index, { block: { ...event["content_block"] }, input: "" });
        }
        if (!isObject(delta)) return;
        const begun = blocks.get(index);
        if (event["type"] === "message_delta") {
          const usage = { ...Object(message?.["usage"]), ...Object(event["usage"]) };
          message = { ...message, ...delta, usage };
        } else if (begun !== undefined) addDelta(begun, delta);
      },
      end: () =>
        message && {
          ...message,
          content: [...blocks.values()].map(({ block, input }) =>
            input === "" ? block : { ...block, input: objectIn(input) }
          ),
        },
    };
  },
  paused: ({ stop_reason }) => stop_reason === "pause_turn",
  // Calls by the provider's code execution continue in the same container.
  carried: ({ container }) =>
    isObject(container) && typeof container["id"] === "string"
      ? { container: container["id"] }
      : undefined,
};

/** Adds a delta to a block: appends each text to the block's text of the same name. */
function addDelta(begun: { block: Record<string, unknown>; input: string }, delta: Json): void {
  const { block } = begun;
  const { type: _type, partial_json, citation, ...texts } = delta;
  if (typeof partial_json === "string") begun.input += partial_json;
  if (citation !== undefined) block["citations"] = [...objectsIn(block["citations"]), citation];
  for (const [field, text] of Object.entries(texts)) {
    if (typeof text === "string") block[field] = `${block[field] ?? ""}${text}`;
  }
}

/** Returns the input of a call; `{}` if it was cut off, and the call was rejected. */
function objectIn(text: string): Json {
  const value: unknown = attemptOr({}, () => JSON.parse(text));
  return isObject(value) ? value : {};
}
