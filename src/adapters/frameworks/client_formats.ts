/**
 * What a loop must know of a client besides its calls: where its requests are made, what the model
 * said in a response, and how a streamed response is put together.
 *
 * @module
 */

import type { DecodedCall, TargetName } from "../../formats/mod.ts";
import { isObject, refuse } from "../../tool/mod.ts";

/** A target whose client a loop can use. */
export type ClientTarget =
  Extract<TargetName, "openai" | `openai.${string}` | `anthropic${string}`> extends infer Name
    ? Exclude<Name, "openai.realtime">
    : never;

/** The function that makes a request, of the part of the client that a target names. */
type CreateOf<Client, Target extends ClientTarget> = Target extends `anthropic${string}`
  ? Client extends { readonly messages: { readonly create: infer Create } } ? Create : never
  : Target extends `openai.responses${string}`
    ? Client extends { readonly responses: { readonly create: infer Create } } ? Create : never
  : Client extends { readonly chat: { readonly completions: { readonly create: infer Create } } }
    ? Create
  : never;

/** The body that a client takes. Of overloads, TypeScript infers the last, which takes both. */
type BodyOf<Client, Target extends ClientTarget> = CreateOf<Client, Target> extends
  (body: infer Body, ...rest: never[]) => unknown ? Body : never;

type AnswerOf<Client, Target extends ClientTarget> = CreateOf<Client, Target> extends
  (...args: never[]) => infer Answer ? Awaited<Answer> : never;

/** What a loop is given: the client's own request. Its tools are sent beside plue's. */
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

/** Puts the events of one response together. */
interface Assembly {
  push(event: Json): void;
  /** The response, with the calls that were read from the same events; `undefined`: it broke off. */
  end(calls: readonly DecodedCall[]): Json | undefined;
}

/** A client, as a loop sees it. */
export interface ClientFormat {
  /** The part of the client that makes requests. */
  readonly path: readonly string[];
  /** The field of a request that has the conversation. */
  readonly conversation: "messages" | "input";
  /** What the model said, as the conversation has it. */
  said(response: Json): readonly unknown[];
  assemble(): Assembly;
  /** Whether the provider stopped in the middle of its turn, and goes on when it is asked again. */
  paused?(response: Json): boolean;
  /** What the next request must repeat of a response. */
  carried?(response: Json): Json | undefined;
}

/** The client that a target is for; `undefined` if there is none. */
export function clientFormat(target: string): ClientFormat | undefined {
  if (target.startsWith("anthropic")) return MESSAGES;
  if (target.startsWith("openai.responses")) return RESPONSES;
  return target.startsWith("openai.chat") ? CHAT : undefined;
}

function objectsIn(list: unknown): readonly Json[] {
  return Array.isArray(list) ? list.filter(isObject) : [];
}

// OpenAI Chat Completions

/** The fields of a delta that are not texts to be joined. */
const APART: ReadonlySet<string> = new Set(["role", "tool_calls", "function_call"]);

const CHAT: ClientFormat = {
  path: ["chat", "completions"],
  conversation: "messages",
  said({ choices }) {
    const [first] = objectsIn(choices);
    if (first === undefined) refuse("read the response", '"/choices" must have a choice');
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
          // Some servers send lists of thoughts, which have to come back.
          else if (Array.isArray(value) && Array.isArray(before)) before.push(...value);
          else message[field] = Array.isArray(value) ? [...value] : value;
        }
      },
      end(calls) {
        // The last chunk of an answer has the reason why it ended.
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

/** The members that are not `null`: the last chunk has the usage, the others have none. */
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
        // Some servers leave the items out of the last event.
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
    // A request with an empty text is refused, though a model may have written one.
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
  // Calls made by the provider's code execution go on in its container.
  carried: ({ container }) =>
    isObject(container) && typeof container["id"] === "string"
      ? { container: container["id"] }
      : undefined,
};

/** Adds a delta to a block: its texts to those of the block, under the same name. */
function addDelta(begun: { block: Record<string, unknown>; input: string }, delta: Json): void {
  const { block } = begun;
  const { type: _type, partial_json, citation, ...texts } = delta;
  if (typeof partial_json === "string") begun.input += partial_json;
  if (citation !== undefined) block["citations"] = [...objectsIn(block["citations"]), citation];
  for (const [field, text] of Object.entries(texts)) {
    if (typeof text === "string") block[field] = `${block[field] ?? ""}${text}`;
  }
}

/** The input of a call. One that was cut off has none, and its call is refused. */
function objectIn(text: string): Json {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
