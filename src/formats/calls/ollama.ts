/**
 * Ollama.
 *
 * @module
 */

import { plainText } from "./answer.ts";
import { readFunctionCalls } from "./function_calls.ts";
import { Shape } from "./shape.ts";
import { streamResponses } from "./streams/responses.ts";
import type { Answer, AnsweredCall, CallFormat, WireCall } from "./types.ts";

/** The message that answers one call. */
export interface OllamaToolMessage {
  role: "tool";
  tool_name: string;
  content: string;
}

// Read calls

const SHAPE = new Shape("an Ollama response");

function read(response: unknown): readonly WireCall[] {
  return readFunctionCalls(SHAPE, response);
}

// Write results

function write(call: AnsweredCall, answer: Answer): OllamaToolMessage {
  return { role: "tool", tool_name: call.wireName, content: plainText(answer) };
}

// Notes

/** A response, a message, a list of calls, or one call. */
export const OLLAMA_CALLS: CallFormat<OllamaToolMessage, OllamaToolMessage> = {
  title: "an Ollama response",
  read,
  write,
  gather: (parts) => parts,
  stream: streamResponses(read, ["message"]),
  notes: [
    "Calls have no ids: answers belong to them by name and order.",
    "A failure is text, beginning with its code: a tool message has no mark for it.",
    "Each call comes whole in one chunk of a stream.",
  ],
};
