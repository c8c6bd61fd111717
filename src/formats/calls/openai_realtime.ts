/**
 * OpenAI Realtime.
 *
 * @module
 */

import { plainText } from "./answer.ts";
import { readItems } from "./response_items.ts";
import { Shape } from "./shape.ts";
import { streamItems } from "./streams/response_items.ts";
import type { Answer, AnsweredCall, CallFormat, WireCall } from "./types.ts";

/** The event that answers one call. A `response.create` has to follow the last one. */
export interface OpenAiRealtimeEvent {
  type: "conversation.item.create";
  item: { type: "function_call_output"; call_id: string; output: string };
}

// Read calls

const SHAPE = new Shape("an OpenAI Realtime response");

function read(response: unknown): readonly WireCall[] {
  return readItems(SHAPE, response);
}

// Write results

function write(call: AnsweredCall, answer: Answer): OpenAiRealtimeEvent {
  return {
    type: "conversation.item.create",
    item: { type: "function_call_output", call_id: call.callId, output: plainText(answer) },
  };
}

// Notes

/** The event `response.done` or `response.output_item.done`, a response, a list of items, or one item. */
export const OPENAI_REALTIME_CALLS: CallFormat<OpenAiRealtimeEvent, OpenAiRealtimeEvent> = {
  title: "an OpenAI Realtime response",
  read,
  write,
  gather: (parts) => parts,
  stream: streamItems,
  notes: [
    "The messages are events; send response.create after the last one.",
    "A failure is text, beginning with its code: an output item has no mark for it.",
  ],
};
