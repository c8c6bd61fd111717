/**
 * OpenAI Responses, with namespaces and programmatic callers; and its strict mode.
 *
 * @module
 */

import { plainText } from "./answer.ts";
import { readItems } from "./response_items.ts";
import { isRecord, Shape } from "./shape.ts";
import { streamItems } from "./streams/response_items.ts";
import type { Answer, AnsweredCall, CallFormat, WireCall } from "./types.ts";

/** The item that answers one call. */
export interface OpenAiResponsesOutput {
  type: "function_call_output" | "custom_tool_call_output";
  call_id: string;
  output: string;
  /** Who called, as the call had it: programs are answered through it. */
  caller?: { [field: string]: unknown };
}

// Read calls

const SHAPE = new Shape("an OpenAI Responses response");

function read(response: unknown): readonly WireCall[] {
  return readItems(SHAPE, response);
}

// Write results

function write(call: AnsweredCall, answer: Answer): OpenAiResponsesOutput {
  const raw = isRecord(call.raw) ? call.raw : {};
  const caller = raw["caller"];
  return {
    type: raw["type"] === "custom_tool_call" ? "custom_tool_call_output" : "function_call_output",
    call_id: call.callId,
    output: plainText(answer),
    ...(isRecord(caller) ? { caller } : {}),
  };
}

// Notes

/** A response, the event `response.completed`, a list of output items, or one item. */
export const OPENAI_RESPONSES_CALLS: CallFormat<OpenAiResponsesOutput, OpenAiResponsesOutput> = {
  title: "an OpenAI Responses response",
  read,
  write,
  gather: (parts) => parts,
  maxCharacters: 10_485_760,
  stream: streamItems,
  notes: [
    "A failure is text, beginning with its code: an output item has no mark for it.",
    "The caller of a call is repeated, which calls made by a program need.",
    "Calls of custom tools are refused: an export has functions only.",
    "Calls that OpenAI runs itself (mcp_call, web_search_call and so on) are not for you.",
  ],
};
