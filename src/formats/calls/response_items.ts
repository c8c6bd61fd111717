/**
 * The output items of OpenAI's Responses and Realtime.
 *
 * @module
 */

import { markCutOff } from "./cut_off.ts";
import { CUSTOM_TOOL } from "./function_calls.ts";
import { calledName, given, isRecord, type JsonRecord, type Shape, textOf } from "./shape.ts";
import type { WireCall } from "./types.ts";

/** Whether an item asks for something that the host runs. */
export function isCallItem(item: JsonRecord): boolean {
  return item["type"] === "function_call" || item["type"] === "custom_tool_call";
}

/** Reads a response, the event that carries one, a list of items, or one item. */
export function readItems(shape: Shape, response: unknown): readonly WireCall[] {
  if (Array.isArray(response)) return itemsOf(shape, response, "");
  const top = shape.record(response, "", "a response or a list of output items");
  if (given(top, "response")) {
    return outputOf(shape, shape.record(top["response"], "/response"), "/response");
  }
  if (given(top, "item")) return itemOf(shape.record(top["item"], "/item"));
  if (isCallItem(top)) return itemOf(top);
  if (top["type"] === "response.function_call_arguments.done") {
    return itemOf({ ...top, type: "function_call" });
  }
  if (given(top, "output")) return outputOf(shape, top, "");
  throw shape.wrong("", 'an object with "output", "response" or "item", or an output item');
}

function outputOf(shape: Shape, response: JsonRecord, at: string): readonly WireCall[] {
  const output = shape.optionalList(response["output"], `${at}/output`);
  const calls = itemsOf(shape, output, `${at}/output`);
  const last = output.at(-1);
  // An item says itself whether it is whole, but not on every server.
  return response["status"] === "incomplete" && isRecord(last) && isCallItem(last) &&
      !given(last, "status")
    ? markCutOff(calls, "length")
    : calls;
}

function itemsOf(shape: Shape, list: readonly unknown[], at: string): readonly WireCall[] {
  return list.flatMap((item, index) => itemOf(shape.record(item, `${at}/${index}`)));
}

function itemOf(raw: JsonRecord): readonly WireCall[] {
  if (!isCallItem(raw)) return [];
  const custom = raw["type"] === "custom_tool_call";
  return [{
    id: textOf(raw["call_id"]) ?? textOf(raw["id"]),
    ...calledName(raw["name"]),
    namespace: textOf(raw["namespace"]),
    input: custom ? raw["input"] : raw["arguments"],
    raw,
    cutOff: raw["status"] === "incomplete",
    ...(custom ? { refusal: CUSTOM_TOOL } : {}),
  }];
}
