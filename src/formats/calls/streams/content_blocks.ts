/**
 * Events of Anthropic Messages.
 *
 * @module
 */

import { isCutOff } from "../cut_off.ts";
import { parsed } from "../input.ts";
import { isRecord, type JsonRecord, textOf } from "../shape.ts";
import type { StreamedParts, StreamFormat, StreamStep } from "../types.ts";

function steps(event: JsonRecord): readonly StreamStep[] {
  const key = String(event["index"]);
  const { content_block: block, delta } = event;
  switch (event["type"]) {
    case "content_block_start":
      if (!isRecord(block) || block["type"] !== "tool_use") return [];
      return [
        { type: "open", key, id: textOf(block["id"]), name: textOf(block["name"]), start: block },
        // A block may come with its input, and then has no deltas.
        ...(isRecord(block["input"]) && Object.keys(block["input"]).length > 0
          ? [{ type: "input", key, text: JSON.stringify(block["input"]) } as const]
          : []),
      ];
    case "content_block_delta":
      // Blocks of other types have deltas of other types.
      return isRecord(delta) && delta["type"] === "input_json_delta"
        ? [{ type: "text", key, text: textOf(delta["partial_json"]) ?? "" }]
        : [];
    case "content_block_stop":
      return [{ type: "close", key }];
    case "message_delta": {
      const reason = isRecord(delta) ? delta["stop_reason"] : undefined;
      if (typeof reason !== "string") return [];
      return [{ type: "finish", cutOff: isCutOff(reason) }];
    }
    case "message_stop":
      return [{ type: "finish", cutOff: false }];
    default:
      return [];
  }
}

function rebuild({ id, name, text, start }: StreamedParts): unknown {
  return {
    ...(isRecord(start) ? start : { type: "tool_use" }),
    ...(id === undefined ? {} : { id }),
    name,
    input: parsed(text),
  };
}

/** How Anthropic streams calls. */
export function streamContentBlocks(): StreamFormat {
  return { steps, rebuild };
}
