/**
 * Events of Cohere's chat stream.
 *
 * @module
 */

import { isCutOff } from "../cut_off.ts";
import { isRecord, type JsonRecord, textOf } from "../shape.ts";
import type { StreamFormat, StreamStep } from "../types.ts";
import { rebuild } from "./function_calls.ts";

/** The one call that an event is about. */
function callIn(event: JsonRecord): JsonRecord {
  const delta = isRecord(event["delta"]) ? event["delta"] : {};
  const message = isRecord(delta["message"]) ? delta["message"] : {};
  const call = message["tool_calls"] ?? message["toolCalls"];
  return isRecord(call) ? call : {};
}

function steps(event: JsonRecord): readonly StreamStep[] {
  const key = String(event["index"]);
  const call = callIn(event);
  const called = isRecord(call["function"]) ? call["function"] : {};
  const text: StreamStep = { type: "text", key, text: textOf(called["arguments"]) ?? "" };
  switch (event["type"]) {
    case "tool-call-start": {
      const [id, name] = [textOf(call["id"]), textOf(called["name"])];
      return [{ type: "open", key, id, name }, text];
    }
    case "tool-call-delta":
      return [text];
    case "tool-call-end":
      return [{ type: "close", key }];
    case "message-end": {
      const delta = isRecord(event["delta"]) ? event["delta"] : {};
      return [{
        type: "finish",
        cutOff: isCutOff(delta["finish_reason"] ?? delta["finishReason"]),
      }];
    }
    default:
      return [];
  }
}

/** How Cohere streams calls. */
export function streamCohere(): StreamFormat {
  return { steps, rebuild };
}
