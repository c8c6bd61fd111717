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

/** Who made a call: the model, or a program that it wrote. */
export type OpenAiCaller = { type: "direct" } | { type: "program"; caller_id: string };

/** The item that answers one call: of a function, or the refusal of a custom tool. */
export type OpenAiResponsesOutput =
  | { type: "function_call_output"; call_id: string; output: string; caller?: OpenAiCaller }
  | { type: "custom_tool_call_output"; call_id: string; output: string; caller?: OpenAiCaller };

// Read calls

const SHAPE = new Shape("an OpenAI Responses response");

function read(response: unknown): readonly WireCall[] {
  return readItems(SHAPE, response);
}

// Write results

function write(call: AnsweredCall, answer: Answer): OpenAiResponsesOutput {
  const raw = isRecord(call.raw) ? call.raw : {};
  const parts = {
    call_id: call.callId,
    // A program that knows the schema parses the output: a text is JSON too, then.
    output: answer.ok && answer.typed ? JSON.stringify(answer.value) : plainText(answer),
    // It is repeated word for word, also if it is of a kind that is newer than this file.
    ...(isRecord(raw["caller"]) ? { caller: raw["caller"] as unknown as OpenAiCaller } : {}),
  };
  return raw["type"] === "custom_tool_call"
    ? { type: "custom_tool_call_output", ...parts }
    : { type: "function_call_output", ...parts };
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
    "The result of a tool whose result schema was sent is JSON, also if it is a text.",
    "The caller of a call is repeated, which calls made by a program need.",
    "Calls of custom tools are refused: an export has functions only.",
    "Calls that OpenAI runs itself (mcp_call, web_search_call and so on) are not for you.",
  ],
};
