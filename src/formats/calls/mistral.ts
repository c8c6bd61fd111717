/**
 * Mistral.
 *
 * @module
 */

import { plainText } from "./answer.ts";
import { readFunctionCalls } from "./function_calls.ts";
import { Shape } from "./shape.ts";
import { streamFunctionCalls } from "./streams/function_calls.ts";
import type { Answer, AnsweredCall, CallFormat, WireCall } from "./types.ts";

/** The message that answers one call. */
export interface MistralToolMessage {
  role: "tool";
  tool_call_id: string;
  name: string;
  content: string;
}

// Read calls

const SHAPE = new Shape("a Mistral response");

function read(response: unknown): readonly WireCall[] {
  return readFunctionCalls(SHAPE, response);
}

// Write results

function write(call: AnsweredCall, answer: Answer): MistralToolMessage {
  return {
    role: "tool",
    tool_call_id: call.callId,
    name: call.wireName,
    content: plainText(answer),
  };
}

// Notes

/** A completion, a choice, a message, a list of calls, or one call; as sent or as the SDK has it. */
export const MISTRAL_CALLS: CallFormat<MistralToolMessage, MistralToolMessage> = {
  title: "a Mistral response",
  read,
  write,
  gather: (parts) => parts,
  stream: streamFunctionCalls,
  notes: [
    "Arguments are read as text and as an object: Mistral sends both.",
    "Messages are as the API takes them; the SDK wants toolCallId for tool_call_id.",
    "A failure is text, beginning with its code: a tool message has no mark for it.",
  ],
};
