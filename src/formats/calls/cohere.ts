/**
 * Cohere, version 2 of its API.
 *
 * @module
 */

import { readFunctionCalls } from "./function_calls.ts";
import { isRecord, Shape } from "./shape.ts";
import { streamCohere } from "./streams/cohere.ts";
import type { Answer, AnsweredCall, CallFormat, WireCall } from "./types.ts";

/** The message that answers one call. */
export interface CohereToolMessage {
  role: "tool";
  tool_call_id: string;
  content: CohereToolContent[];
}

/** An object as a document, which citations can name; anything else as text. */
export type CohereToolContent =
  | { type: "document"; document: { data: { [key: string]: unknown } } }
  | { type: "text"; text: string };

// Read calls

const SHAPE = new Shape("a Cohere response");

function read(response: unknown): readonly WireCall[] {
  return readFunctionCalls(SHAPE, response);
}

// Write results

function write(call: AnsweredCall, answer: Answer): CohereToolMessage {
  const data = answer.ok ? answer.value : { error: answer.text, code: answer.error.code };
  const content: CohereToolContent = isRecord(data)
    ? { type: "document", document: { data: { ...data } } }
    : { type: "text", text: answer.text };
  return { role: "tool", tool_call_id: call.callId, content: [content] };
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
    "An object is sent as a document, which citations can name; other values as text.",
    "Messages are as the API takes them; the SDK wants toolCallId for tool_call_id.",
    'A failure is a document with "error" and "code".',
  ],
};
