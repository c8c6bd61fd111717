/**
 * The message with `tool_calls` that OpenAI began, and that Mistral, Cohere and Ollama took over.
 *
 * @module
 */

import { markCutOff } from "./cut_off.ts";
import {
  calledName,
  given,
  isRecord,
  type JsonRecord,
  noCall,
  type Shape,
  textOf,
} from "./shape.ts";
import type { WireCall } from "./types.ts";

/** Why a call of a custom tool is refused. */
export const CUSTOM_TOOL =
  "it is a call of a custom tool, which takes text, and only functions were offered";

/** A member by its name on the wire, or as SDKs that write camel case name it. */
function member(record: JsonRecord, wire: string, sdk: string): string {
  return given(record, wire) || !given(record, sdk) ? wire : sdk;
}

/** Reads a whole response, a choice, a message, a list of calls, or one call. */
export function readFunctionCalls(shape: Shape, response: unknown): readonly WireCall[] {
  if (Array.isArray(response)) return callsOf(shape, response, "");
  const top = shape.record(response, "", "a response, a message or a list of calls");
  if (given(top, "choices")) {
    const [first] = shape.list(top["choices"], "/choices");
    return first === undefined
      ? []
      : choiceCalls(shape, shape.record(first, "/choices/0"), "/choices/0");
  }
  if (given(top, "message")) return choiceCalls(shape, top, "");
  if (given(top, "function") || top["type"] === "custom") return [callOf(top)];
  if (["role", "tool_calls", "toolCalls", "function_call"].some((field) => given(top, field))) {
    return messageCalls(shape, top, "");
  }
  throw shape.wrong("", 'an object with "choices", "message", "tool_calls" or "function"');
}

function choiceCalls(shape: Shape, choice: JsonRecord, at: string): readonly WireCall[] {
  const message = shape.record(choice["message"], `${at}/message`);
  const calls = messageCalls(shape, message, `${at}/message`);
  return markCutOff(calls, choice["finish_reason"] ?? choice["finishReason"]);
}

function messageCalls(shape: Shape, message: JsonRecord, at: string): readonly WireCall[] {
  const field = member(message, "tool_calls", "toolCalls");
  const calls = callsOf(
    shape,
    shape.optionalList(message[field], `${at}/${field}`),
    `${at}/${field}`,
  );
  if (!given(message, "function_call")) return calls;
  const here = `${at}/function_call`;
  const raw = shape.record(message["function_call"], here);
  return [...calls, functionOf(raw, undefined, raw)];
}

function callsOf(shape: Shape, list: readonly unknown[], at: string): readonly WireCall[] {
  return list.map((item, index) => {
    // A list that is the whole response may be anything; one in a message is of calls.
    if (!isRecord(item) && at !== "") return noCall(item);
    return callOf(shape.record(item, `${at}/${index}`));
  });
}

function callOf(raw: JsonRecord): WireCall {
  const id = textOf(raw["id"]);
  if (raw["type"] === "custom" && isRecord(raw["custom"])) {
    const { name, input } = raw["custom"];
    return { id, input, raw, refusal: CUSTOM_TOOL, name: calledName(name).name };
  }
  const called = raw["function"];
  return isRecord(called) ? functionOf(called, id, raw) : { id, ...noCall(raw) };
}

function functionOf(called: JsonRecord, id: string | undefined, raw: unknown): WireCall {
  return { id, ...calledName(called["name"]), input: called["arguments"], raw };
}
