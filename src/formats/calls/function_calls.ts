/**
 * The message with `tool_calls` that OpenAI began, and that Mistral, Cohere and Ollama took over.
 *
 * @module
 */

import { markCutOff } from "./cut_off.ts";
import { given, isRecord, type JsonRecord, type Shape, textOf } from "./shape.ts";
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
  if (given(top, "function") || top["type"] === "custom") return [callOf(shape, top, "")];
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
  return [...calls, functionOf(shape, raw, here, undefined, raw)];
}

function callsOf(shape: Shape, list: readonly unknown[], at: string): readonly WireCall[] {
  return list.map((item, index) => {
    const here = `${at}/${index}`;
    return callOf(shape, shape.record(item, here), here);
  });
}

function callOf(shape: Shape, raw: JsonRecord, at: string): WireCall {
  const id = textOf(raw["id"]);
  if (raw["type"] === "custom" && isRecord(raw["custom"])) {
    const { name, input } = raw["custom"];
    return { id, name: shape.text(name, `${at}/custom/name`), input, raw, refusal: CUSTOM_TOOL };
  }
  return functionOf(
    shape,
    shape.record(raw["function"], `${at}/function`),
    `${at}/function`,
    id,
    raw,
  );
}

function functionOf(
  shape: Shape,
  called: JsonRecord,
  at: string,
  id: string | undefined,
  raw: unknown,
): WireCall {
  return { id, name: shape.text(called["name"], `${at}/name`), input: called["arguments"], raw };
}
