/** How an agent loop uses the clients of providers: their requests, responses and streams. */

import type { DecodedCall, Target, TargetName } from "../../formats/mod.ts";
import { ANTHROPIC, ANTHROPIC_STRICT } from "../../formats/providers/anthropic.ts";
import { BEDROCK, BEDROCK_STRICT } from "../../formats/providers/bedrock.ts";
import { GEMINI, GEMINI_TYPED, VERTEX } from "../../formats/providers/gemini.ts";
import { MISTRAL, OPENAI_CHAT, OPENAI_CHAT_STRICT } from "../../formats/providers/openai_chat.ts";
import {
  OPENAI_RESPONSES,
  OPENAI_RESPONSES_STRICT,
} from "../../formats/providers/openai_responses.ts";
import { attemptOr, fail, isObject } from "../../tool/mod.ts";

/** A target whose client a loop can use. */
export type ClientTarget = Exclude<
  Extract<
    TargetName,
    "openai" | "vertex" | "mistral" | `${"openai." | "anthropic" | "gemini" | "bedrock"}${string}`
  >,
  "openai.realtime"
>;

/** The client's functions for whole and for streamed responses. */
type PathsOf<Target extends ClientTarget> = Target extends `anthropic${string}`
  ? ["messages.create", "messages.create"]
  : Target extends `openai.responses${string}` ? ["responses.create", "responses.create"]
  : Target extends `gemini${string}` | "vertex"
    ? ["models.generateContent", "models.generateContentStream"]
  : Target extends `bedrock${string}` ? ["converse", "converseStream"]
  : Target extends "mistral" ? ["chat.complete", "chat.stream"]
  : ["chat.completions.create", "chat.completions.create"];

type Member<Part, Path extends string> = Path extends `${infer Name}.${infer Rest}`
  ? Name extends keyof Part ? Member<Part[Name], Rest> : never
  : Path extends keyof Part ? Part[Path]
  : never;

type FunctionOf<Client, Target extends ClientTarget> = Member<Client, PathsOf<Target>[0]>;

/** The body of a request. TypeScript infers the last overload, for streamed and whole responses. */
type BodyOf<Client, Target extends ClientTarget> = FunctionOf<Client, Target> extends
  (body: infer Body, ...rest: never[]) => unknown ? Body : never;

type AnswerOf<Function> = Function extends (...args: never[]) => infer Answer
  ? [Answer] extends [void] ? FirstAnswerOf<Function> : Awaited<Answer>
  : never;

/** The return type of Bedrock's functions, whose other two overloads take a callback. */
type FirstAnswerOf<Function> = Function extends
  { (...args: never[]): Promise<infer Answer>; (...args: never[]): void; (...args: never[]): void }
  ? Answer
  : never;

/** The client's own request. Its tools are sent in addition to plue's. */
export type ClientRequest<Client, Target extends ClientTarget> = Omit<
  BodyOf<Client, Target>,
  "stream"
>;

/** The client's response. */
export type ResponseOf<Client, Target extends ClientTarget> = Exclude<
  AnswerOf<FunctionOf<Client, Target>>,
  AsyncIterable<unknown>
>;

/** An event of the client's stream. */
export type EventOf<Client, Target extends ClientTarget> =
  AnswerOf<Member<Client, PathsOf<Target>[1]>> extends infer Answer
    ? Answer extends AsyncIterable<infer Event> | { readonly stream?: AsyncIterable<infer Event> }
      ? Event
    : never
    : never;

/** A message, or an item, of the client's conversation. */
export type MessageIn<Client, Target extends ClientTarget> = BodyOf<Client, Target> extends
  infer Body ? "messages" extends keyof Body ? ItemOf<Body["messages"]>
  : "contents" extends keyof Body
    ? Extract<ItemOf<Body["contents"]>, { readonly parts?: readonly unknown[] }>
  : "input" extends keyof Body ? ItemOf<Body["input"]>
  : never
  : never;

type ItemOf<List> = Extract<List, readonly unknown[]>[number];

type Json = { readonly [field: string]: unknown };

export interface ClientFormat {
  readonly whole: string;
  readonly streamed?: string;
  readonly conversation: "messages" | "input" | "contents";
  /** The field of a request with the tools and their settings. By default, the request itself. */
  readonly holder?: "config" | "toolConfig";
  /** Renames the fields of settings and messages as the client does. */
  rename?(record: object): object;
  /** Returns the model's message, in the form of the conversation. */
  messages(response: Json): readonly unknown[];
  assemble(): {
    push(event: Json): void;
    /** Returns the response with its calls, or `undefined` if the stream broke off. */
    end(calls: readonly DecodedCall[]): Json | undefined;
  };
  /** Returns true if the provider has paused its turn, which the next request resumes. */
  paused?(response: Json): boolean;
  carried?(response: Json): Json | undefined;
}

function objectsIn(list: unknown): readonly Json[] {
  return Array.isArray(list) ? list.filter(isObject) : [];
}

// OpenAI Chat Completions, and Mistral

/** The fields of a delta that are not concatenated. */
const APART: ReadonlySet<string> = new Set(["role", "tool_calls", "toolCalls", "function_call"]);

/** @param reason The name of the finish reason, which the two clients write differently. */
function chatFormat(
  callsName: string,
  reason: string,
): Pick<ClientFormat, "conversation" | "messages" | "assemble"> {
  return {
    conversation: "messages",
    messages({ choices }) {
      const [first] = objectsIn(choices);
      if (first === undefined) fail("read the response", '"/choices" must have a choice');
      return [first["message"]];
    },
    assemble() {
      let top: Json | undefined;
      let finish: unknown = null;
      let message: Json = { role: "assistant", content: null };
      return {
        push(event) {
          // Mistral's client wraps each chunk.
          const chunk = isObject(event["data"]) ? event["data"] : event;
          // Only the last chunk has the usage.
          const known = Object.entries(chunk).filter(([, value]) => value !== null);
          top = { ...top, ...Object.fromEntries(known) };
          const choice = objectsIn(chunk["choices"]).find(({ index }) => (index ?? 0) === 0);
          finish = choice?.[reason] ?? finish;
          const fields = Object.entries(Object(choice?.["delta"])).filter(([name]) =>
            !APART.has(name)
          );
          message = joined(message, Object.fromEntries(fields)) as Json;
        },
        end(calls) {
          // The last chunk of a response has the finish reason.
          if (top === undefined || finish === null) return undefined;
          const made = calls.map(({ raw, callId }) => ({ ...Object(raw), id: callId }));
          const whole = made.length === 0 ? message : { ...message, [callsName]: made };
          return {
            ...top,
            object: "chat.completion",
            choices: [{ index: 0, message: whole, [reason]: finish }],
          };
        },
      };
    },
  };
}

const CHAT: ClientFormat = {
  ...chatFormat("tool_calls", "finish_reason"),
  whole: "chat.completions.create",
};

const MISTRAL_CHAT: ClientFormat = {
  ...chatFormat("toolCalls", "finishReason"),
  whole: "chat.complete",
  streamed: "chat.stream",
  rename: (record) =>
    Object.fromEntries(
      Object.entries(record).map(([name, value]) => [
        name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
        value,
      ]),
    ),
};

/** Adds a delta to a value: texts and lists are concatenated, and members of objects are joined. */
function joined(before: unknown, delta: unknown): unknown {
  if (delta === null || delta === undefined || delta === "") return before ?? delta;
  if (typeof before === "string" && typeof delta === "string") return before + delta;
  if (Array.isArray(before)) {
    // Mistral sends thoughts as lists, and the text after them as texts.
    return before.concat(typeof delta === "string" ? { type: "text", text: delta } : delta);
  }
  if (!isObject(before) || !isObject(delta)) return delta;
  const members = Object.entries(delta).map(([name, part]) => [name, joined(before[name], part)]);
  return { ...before, ...Object.fromEntries(members) };
}

// OpenAI Responses

const ENDS = new Set<unknown>(["response.completed", "response.incomplete", "response.failed"]);

const RESPONSES: ClientFormat = {
  whole: "responses.create",
  conversation: "input",
  messages: ({ output }) => objectsIn(output),
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
  whole: "messages.create",
  conversation: "messages",
  messages: ({ content }) => messageOf(content),
  assemble() {
    let message: Json | undefined;
    const blocks = new Map<unknown, { block: Json; input: string }>();
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

function addDelta(begun: { block: Json; input: string }, delta: Json): void {
  const { type: _type, partial_json, citation, ...texts } = delta;
  if (typeof partial_json === "string") begun.input += partial_json;
  const citations = citation === undefined ? {} : { citations: [citation] };
  begun.block = joined(begun.block, { ...texts, ...citations }) as Json;
}

/** Returns the message with blocks. The APIs reject empty texts, although models may write them. */
function messageOf(blocks: unknown): readonly unknown[] {
  const content = objectsIn(blocks).filter(({ text }) => text !== "");
  return content.length === 0 ? [] : [{ role: "assistant", content }];
}

/** Returns the input of a call; `{}` if it was cut off, and the call was rejected. */
function objectIn(text: string): Json {
  const value: unknown = attemptOr({}, () => JSON.parse(text));
  return isObject(value) ? value : {};
}

// Gemini

const CONTENTS: ClientFormat = {
  whole: "models.generateContent",
  streamed: "models.generateContentStream",
  conversation: "contents",
  holder: "config",
  messages({ candidates }) {
    const content = objectsIn(candidates)[0]?.["content"];
    return Array.isArray(Object(content).parts) ? [content] : [];
  },
  assemble() {
    let last: Json | undefined;
    let candidate: Json = {};
    const parts: unknown[] = [];
    return {
      push(chunk) {
        const [first = {}] = objectsIn(chunk["candidates"]);
        parts.push(...objectsIn(Object(first["content"]).parts));
        candidate = { ...candidate, ...first };
        last = chunk;
      },
      end() {
        if ((candidate["finishReason"] ?? last?.["promptFeedback"]) === undefined) return undefined;
        const whole = { ...candidate, content: { role: "model", parts } };
        // The prototype has the getters of the client's response.
        const prototype: object = Object.getPrototypeOf(last);
        return Object.assign(Object.create(prototype), last, { candidates: [whole] });
      },
    };
  },
};

// Bedrock Converse

const CONVERSE: ClientFormat = {
  whole: "converse",
  streamed: "converseStream",
  conversation: "messages",
  holder: "toolConfig",
  messages: ({ output }) => messageOf(Object(output).message?.content),
  assemble() {
    let top: Json = {};
    const blocks = new Map<unknown, unknown>();
    return {
      push({ contentBlockStart, contentBlockDelta, messageStop, metadata }) {
        const { contentBlockIndex: at, start, delta } = Object(
          contentBlockStart ?? contentBlockDelta,
        );
        if (at !== undefined) blocks.set(at, joined(blocks.get(at) ?? {}, start ?? delta));
        top = { ...top, ...Object(messageStop), ...Object(metadata) };
      },
      end() {
        const content = [...blocks.values()].map(converseBlock);
        return top["stopReason"] === undefined
          ? undefined
          : { ...top, output: { message: { role: "assistant", content } } };
      },
    };
  },
};

/** Returns the block of a message that was streamed in another form. */
function converseBlock(streamed: unknown): object {
  const { toolUse, reasoningContent, citation: _citation, ...block } = Object(streamed);
  if (toolUse) return { toolUse: { ...toolUse, input: objectIn(toolUse.input ?? "") } };
  if (reasoningContent === undefined) return block;
  const isText = reasoningContent.redactedContent === undefined;
  return { reasoningContent: isText ? { reasoningText: reasoningContent } : reasoningContent };
}

export const CLIENTS: {
  readonly [Name in ClientTarget]: readonly [target: Target, format: ClientFormat];
} = {
  "anthropic": [ANTHROPIC, MESSAGES],
  "anthropic.strict": [ANTHROPIC_STRICT, MESSAGES],
  "bedrock": [BEDROCK, CONVERSE],
  "bedrock.strict": [BEDROCK_STRICT, CONVERSE],
  "gemini": [GEMINI, CONTENTS],
  "gemini.typed": [GEMINI_TYPED, CONTENTS],
  "mistral": [MISTRAL, MISTRAL_CHAT],
  "openai": [OPENAI_CHAT, CHAT],
  "openai.chat": [OPENAI_CHAT, CHAT],
  "openai.chat.strict": [OPENAI_CHAT_STRICT, CHAT],
  "openai.responses": [OPENAI_RESPONSES, RESPONSES],
  "openai.responses.strict": [OPENAI_RESPONSES_STRICT, RESPONSES],
  "openai.strict": [OPENAI_CHAT_STRICT, CHAT],
  "vertex": [VERTEX, CONTENTS],
};
