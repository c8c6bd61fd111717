/**
 * Cohere, version 2 of its API.
 *
 * @module
 */

import { readFunctionCalls } from "./function_calls.ts";
import { Shape } from "./shape.ts";
import { streamCohere } from "./streams/cohere.ts";
import type { Answer, AnsweredCall, CallFormat, WireCall } from "./types.ts";

/** The message that answers one call. */
export interface CohereToolMessage {
  role: "tool";
  tool_call_id: string;
  content: { type: "document"; document: { data: string } }[];
}

// Read calls

const SHAPE = new Shape("a Cohere response");

function read(response: unknown): readonly WireCall[] {
  return readFunctionCalls(SHAPE, response);
}

// Write results

function write(call: AnsweredCall, answer: Answer): CohereToolMessage {
  const data = answer.ok
    ? answer.text
    : JSON.stringify({ error: answer.text, code: answer.error.code });
  return {
    role: "tool",
    tool_call_id: call.callId,
    content: [{ type: "document", document: { data } }],
  };
}

// Notes

/** A response, a message, a list of calls, or one call; as sent or as the SDK has it. */
export const COHERE_CALLS: CallFormat<CohereToolMessage, CohereToolMessage> = {
  title: "a Cohere response",
  read,
  write,
  gather: (parts) => parts,
  stream: streamCohere,
  notes: [
    "A result is one document, which citations can name.",
    "Messages are as the API takes them; the SDK wants toolCallId for tool_call_id.",
    'A failure is a document with "error" and "code".',
  ],
};
