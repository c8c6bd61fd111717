/**
 * OpenAI Chat Completions, and its strict mode.
 *
 * @module
 */

import { plainText } from "./answer.ts";
import { readFunctionCalls } from "./function_calls.ts";
import { given, isRecord, Shape } from "./shape.ts";
import { streamFunctionCalls } from "./streams/function_calls.ts";
import type { Answer, AnsweredCall, CallFormat, WireCall } from "./types.ts";

/** The message that answers one call; `role: "function"` answers the legacy `function_call`. */
export type OpenAiChatToolMessage =
  | { role: "tool"; tool_call_id: string; content: string }
  | { role: "function"; name: string; content: string };

// Read calls

const SHAPE = new Shape("an OpenAI Chat response");

function read(response: unknown): readonly WireCall[] {
  return readFunctionCalls(SHAPE, response);
}

/** A `function_call` has its name and arguments where a tool call has `function`, and no id. */
function isLegacy(raw: unknown): boolean {
  return isRecord(raw) && !isRecord(raw["function"]) && !isRecord(raw["custom"]) &&
    !given(raw, "id") && !given(raw, "type");
}

// Write results

function write(call: AnsweredCall, answer: Answer): OpenAiChatToolMessage {
  const content = plainText(answer);
  return isLegacy(call.raw)
    ? { role: "function", name: call.wireName, content }
    : { role: "tool", tool_call_id: call.callId, content };
}

// Notes

/** A completion, a choice, a message, a list of calls, or one call. */
export const OPENAI_CHAT_CALLS: CallFormat<OpenAiChatToolMessage, OpenAiChatToolMessage> = {
  title: "an OpenAI Chat response",
  read,
  write,
  gather: (parts) => parts,
  stream: streamFunctionCalls,
  notes: [
    "Of several choices, the first is read: the others are other continuations.",
    "A failure is text, beginning with its code: a tool message has no mark for it.",
    "Calls of custom tools are refused: an export has functions only.",
  ],
};
