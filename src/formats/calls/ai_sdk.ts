/**
 * The Vercel AI SDK.
 *
 * @module
 */

import type { JsonValue } from "../../tool/mod.ts";
import { markCutOff } from "./cut_off.ts";
import { calledName, given, isRecord, type JsonRecord, noCall, Shape, textOf } from "./shape.ts";
import { streamToolCallParts } from "./streams/tool_call_parts.ts";
import type { Answer, AnsweredCall, CallFormat, WireCall } from "./types.ts";

/** The part that answers one call. */
export interface AiSdkToolResult {
  type: "tool-result";
  toolCallId: string;
  toolName: string;
  output:
    | { type: "text"; value: string }
    | { type: "json"; value: JsonValue }
    | { type: "error-text"; value: string };
}

/** The message with the answers to all calls of a response. */
export interface AiSdkToolMessage {
  role: "tool";
  content: AiSdkToolResult[];
}

// Read calls

const SHAPE = new Shape("an AI SDK result");

function read(response: unknown): readonly WireCall[] {
  if (Array.isArray(response)) return partsOf(response, "");
  const top = SHAPE.record(response, "", "a result, a message or a list of parts");
  if (top["type"] === "tool-call") return partOf(top);
  for (const field of ["toolCalls", "content"]) {
    if (!given(top, field)) continue;
    // A message may be text alone.
    if (typeof top[field] === "string") return [];
    const calls = partsOf(SHAPE.list(top[field], `/${field}`), `/${field}`);
    return markCutOff(calls, top["finishReason"]);
  }
  throw SHAPE.wrong("", 'an object with "toolCalls" or "content", or a part of type "tool-call"');
}

function partsOf(list: readonly unknown[], at: string): readonly WireCall[] {
  return list.flatMap((item, index) => {
    if (!isRecord(item) && at === "/toolCalls") return [noCall(item)];
    return partOf(SHAPE.record(item, `${at}/${index}`));
  });
}

function partOf(raw: JsonRecord): readonly WireCall[] {
  if (raw["type"] !== "tool-call" || raw["providerExecuted"] === true) return [];
  return [{
    id: textOf(raw["toolCallId"]),
    ...calledName(raw["toolName"]),
    input: raw["input"],
    raw,
  }];
}

// Write results

function write(call: AnsweredCall, answer: Answer): AiSdkToolResult {
  const head = { type: "tool-result", toolCallId: call.callId, toolName: call.wireName } as const;
  if (!answer.ok) return { ...head, output: { type: "error-text", value: answer.text } };
  return typeof answer.value === "string"
    ? { ...head, output: { type: "text", value: answer.value } }
    : { ...head, output: { type: "json", value: answer.value } };
}

function gather(parts: readonly AiSdkToolResult[]): readonly AiSdkToolMessage[] {
  return [{ role: "tool", content: [...parts] }];
}

// Notes

/** A result with `toolCalls`, a message, a list of parts, or one part. */
export const AI_SDK_CALLS: CallFormat<AiSdkToolResult, AiSdkToolMessage> = {
  title: "an AI SDK result",
  read,
  write,
  gather,
  stream: streamToolCallParts,
  notes: [
    "All answers go into one tool message.",
    "Calls that the provider runs itself (providerExecuted) are not for you.",
    "The last call of a result that the token limit cut off is refused.",
    "The SDK runs tools that have an execute by itself; answer calls of the others.",
  ],
};
