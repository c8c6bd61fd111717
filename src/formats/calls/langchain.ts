/**
 * LangChain JS.
 *
 * @module
 */

import { markCutOff } from "./cut_off.ts";
import { calledName, given, isRecord, type JsonRecord, noCall, Shape, textOf } from "./shape.ts";
import { streamToolCallChunks } from "./streams/tool_call_chunks.ts";
import type { Answer, AnsweredCall, CallFormat, WireCall } from "./types.ts";

// A type, not an interface: LangChain's own has an index signature.
/** The fields of the message that answers one call: a message as it is, or for `new ToolMessage`. */
export type LangChainToolMessage = {
  type: "tool";
  tool_call_id: string;
  name: string;
  content: string;
  status: "success" | "error";
};

// Read calls

const SHAPE = new Shape("a LangChain message");

function read(response: unknown): readonly WireCall[] {
  if (Array.isArray(response)) return callsOf(response, "");
  const top = SHAPE.record(response, "", "a message or a list of calls");
  // A message that was written as JSON has its fields in `kwargs`.
  const kwargs = isRecord(top["kwargs"]);
  const at = kwargs ? "/kwargs" : "";
  const message = kwargs ? SHAPE.record(top["kwargs"], at) : top;
  const fields = ["tool_calls", "invalid_tool_calls"];
  if (fields.some((field) => given(message, field))) {
    const [calls = [], invalid = []] = fields.map((field) =>
      callsOf(SHAPE.optionalList(message[field], `${at}/${field}`), `${at}/${field}`)
    );
    // LangChain completes arguments that were cut off, so that they look whole.
    return [...markCutOff(calls, stopReason(message)), ...invalid];
  }
  if (given(message, "content")) return [];
  if (given(message, "args")) return [callOf(message)];
  throw SHAPE.wrong("", 'an object with "tool_calls" or "content", or a call');
}

function callsOf(list: readonly unknown[], at: string): readonly WireCall[] {
  return list.map((item, index) => {
    if (!isRecord(item) && at !== "") return noCall(item);
    return callOf(SHAPE.record(item, `${at}/${index}`));
  });
}

function callOf(raw: JsonRecord): WireCall {
  return {
    id: textOf(raw["id"]),
    // The model of an invalid call may have left the name out.
    ...calledName(raw["name"]),
    input: raw["args"],
    raw,
  };
}

/** Why the model stopped: each provider's package says it in its own words, or not at all. */
export function stopReason(message: JsonRecord): string | undefined {
  for (const holder of ["response_metadata", "additional_kwargs"]) {
    const fields = message[holder];
    if (!isRecord(fields)) continue;
    for (const field of ["finish_reason", "stop_reason", "finishReason", "stopReason"]) {
      const reason = textOf(fields[field]);
      if (reason !== undefined) return reason;
    }
  }
  return undefined;
}

// Write results

function write(call: AnsweredCall, answer: Answer): LangChainToolMessage {
  return {
    type: "tool",
    tool_call_id: call.callId,
    name: call.wireName,
    content: answer.text,
    status: answer.ok ? "success" : "error",
  };
}

// Notes

/** An `AIMessage`, also as JSON, a list of calls, or one call. */
export const LANGCHAIN_CALLS: CallFormat<LangChainToolMessage, LangChainToolMessage> = {
  title: "a LangChain message",
  read,
  write,
  gather: (parts) => parts,
  stream: () => streamToolCallChunks(stopReason),
  notes: [
    "Calls in invalid_tool_calls are read too, so that each call is answered; they come last.",
    "The last call of a message that the token limit cut off is refused, if the message says so.",
    "In a stream that says no reason why the model stopped, the end of the stream counts as one.",
    "A message is as chat models take it, and as the fields of new ToolMessage().",
  ],
};
