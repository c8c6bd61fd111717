/**
 * The Gemini API, with JSON Schema or typed parameters, and Vertex AI.
 *
 * @module
 */

import type { JsonValue } from "../../tool/mod.ts";
import { calledName, given, isRecord, type JsonRecord, noCall, Shape, textOf } from "./shape.ts";
import { streamResponses } from "./streams/responses.ts";
import type { Answer, AnsweredCall, CallFormat, WireCall } from "./types.ts";

/** The part that answers one call. */
export interface GeminiFunctionResponse {
  functionResponse: {
    /** The id of the call, if it had one. */
    id?: string;
    name: string;
    response: { output: JsonValue } | { error: string };
  };
}

/** The content with the answers to all calls of a response. */
export interface GeminiToolContent {
  role: "user";
  parts: GeminiFunctionResponse[];
}

// Read calls

const SHAPE = new Shape("a Gemini response");

function read(response: unknown): readonly WireCall[] {
  if (Array.isArray(response)) return partsOf(response, "");
  const top = SHAPE.record(response, "", "a response, a content or a list of parts");
  if (Array.isArray(top["candidates"])) {
    const [first] = top["candidates"];
    return first === undefined
      ? []
      : contentOf(SHAPE.record(first, "/candidates/0")["content"], "/candidates/0/content");
  }
  if (given(top, "content")) return contentOf(top["content"], "/content");
  if (given(top, "parts")) return contentOf(top, "");
  if (given(top, "functionCall")) return partsOf([top], "");
  if (isRecord(top["toolCall"])) {
    const calls = SHAPE.list(top["toolCall"]["functionCalls"], "/toolCall/functionCalls");
    return calls.map((call, index) =>
      isRecord(call) ? callOf(call, `/toolCall/functionCalls/${index}`) : noCall(call)
    );
  }
  // A response whose prompt was blocked, an event of a live session, a chunk that only counts.
  const fields = ["promptFeedback", "usageMetadata", "serverContent", "finishReason", "role"];
  if (fields.some((field) => given(top, field))) return [];
  throw SHAPE.wrong(
    "",
    'an object with "candidates", "content", "parts", "functionCall" or "toolCall"',
  );
}

function contentOf(value: unknown, at: string): readonly WireCall[] {
  if (value === undefined || value === null) return [];
  const content = SHAPE.record(value, at);
  return partsOf(SHAPE.optionalList(content["parts"], `${at}/parts`), `${at}/parts`);
}

function partsOf(list: readonly unknown[], at: string): readonly WireCall[] {
  return list.flatMap((item, index) => {
    const here = `${at}/${index}`;
    const part = SHAPE.record(item, here);
    if (given(part, "functionCall")) return [callOf(part["functionCall"], `${here}/functionCall`)];
    // A list of calls, as the SDK's `functionCalls` has it.
    return isCall(part) ? [callOf(part, here)] : [];
  });
}

function isCall(part: JsonRecord): boolean {
  return typeof part["name"] === "string" && !given(part, "functionResponse");
}

function callOf(value: unknown, at: string): WireCall {
  const raw = SHAPE.record(value, at);
  const parts = given(raw, "partialArgs") || raw["willContinue"] === true;
  return {
    id: textOf(raw["id"]),
    ...calledName(raw["name"]),
    input: raw["args"],
    raw,
    ...(parts ? { refusal: "its arguments are streamed in parts, which is not supported" } : {}),
  };
}

// Write results

function write(call: AnsweredCall, answer: Answer): GeminiFunctionResponse {
  const id = isRecord(call.raw) ? textOf(call.raw["id"]) : undefined;
  return {
    functionResponse: {
      ...(id === undefined ? {} : { id }),
      name: call.wireName,
      response: answer.ok
        ? { output: hasReference(answer.value) ? answer.text : answer.value }
        : { error: answer.text },
    },
  };
}

/** Gemini takes a `$ref` anywhere in a response for a pointer to a part, and refuses the request. */
function hasReference(value: JsonValue): boolean {
  const open: JsonValue[] = [value];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (typeof at !== "object" || at === null) continue;
    if (Object.hasOwn(at, "$ref")) return true;
    for (const inner of Object.values(at)) open.push(inner);
  }
  return false;
}

function gather(parts: readonly GeminiFunctionResponse[]): readonly GeminiToolContent[] {
  return [{ role: "user", parts: [...parts] }];
}

// Notes

/** A response, a candidate, a content, a list of parts, one part, or a live `toolCall`. */
export const GEMINI_CALLS: CallFormat<GeminiFunctionResponse, GeminiToolContent> = {
  title: "a Gemini response",
  read,
  write,
  gather,
  stream: streamResponses(read, ["candidates", "toolCall"]),
  notes: [
    "All answers go into one content: Gemini wants as many answers as calls.",
    "Send the model's own parts back with their thoughtSignature.",
    'A result with a "$ref" in it is sent as text: as a value, Gemini would refuse the request.',
    "Of several candidates, the first is read: the others are other continuations.",
    "Arguments that are streamed in parts (Vertex, streamFunctionCallArguments) are refused.",
  ],
};
