/**
 * Events of OpenAI's Responses and Realtime.
 *
 * @module
 */

import { isCallItem } from "../response_items.ts";
import { isRecord, type JsonRecord, textOf } from "../shape.ts";
import type { StreamedParts, StreamFormat, StreamStep } from "../types.ts";

/** An item is known by its place in the output: servers may give it another id in each event. */
function keyOf(event: JsonRecord): string {
  const index = event["output_index"];
  return typeof index === "number" ? `#${index}` : String(textOf(event["item_id"]) ?? "");
}

function steps(event: JsonRecord): readonly StreamStep[] {
  const { type, item, response } = event;
  const key = keyOf(event);
  switch (type) {
    case "response.output_item.added":
      if (!isRecord(item) || !isCallItem(item)) return [];
      return [{
        type: "open",
        key,
        id: textOf(item["call_id"]),
        name: textOf(item["name"]),
        start: item,
      }];
    case "response.function_call_arguments.delta":
      return [{ type: "text", key, text: textOf(event["delta"]) ?? "" }];
    case "response.function_call_arguments.done":
      return typeof event["arguments"] === "string"
        ? [{ type: "input", key, text: event["arguments"] }]
        : [];
    case "response.output_item.done":
      // An item that is whole stands as it came, whatever its deltas said.
      return isRecord(item) && isCallItem(item) ? [{ type: "whole", key, raw: item }] : [];
    case "response.completed":
    case "response.incomplete":
    case "response.failed":
    case "response.done":
      return [
        ...(isRecord(response) ? outputSteps(response["output"]) : []),
        { type: "finish", cutOff: !isComplete(type, response) },
      ];
    default:
      return [];
  }
}

/** The last event has all items: those whose own events were missed are read from it. */
function outputSteps(output: unknown): readonly StreamStep[] {
  if (!Array.isArray(output)) return [];
  return output.flatMap((item: unknown, index): readonly StreamStep[] =>
    isRecord(item) && isCallItem(item) ? [{ type: "whole", key: `#${index}`, raw: item }] : []
  );
}

function isComplete(type: unknown, response: unknown): boolean {
  if (type !== "response.done") return type === "response.completed";
  return !isRecord(response) || (response["status"] ?? "completed") === "completed";
}

function rebuild({ id, name, text, start }: StreamedParts): unknown {
  return {
    ...(isRecord(start) ? start : { type: "function_call" }),
    ...(id === undefined ? {} : { call_id: id }),
    name,
    arguments: text,
    status: "completed",
  };
}

/** How Responses and Realtime stream calls. */
export function streamItems(): StreamFormat {
  return { steps, rebuild };
}
