/**
 * Events of Bedrock's ConverseStream.
 *
 * @module
 */

import { isCutOff } from "../cut_off.ts";
import { parsed } from "../input.ts";
import { isRecord, type JsonRecord, textOf } from "../shape.ts";
import type { StreamedParts, StreamFormat, StreamStep } from "../types.ts";

/** The tool use in a member of an event, and the key of its block. */
function useIn(event: JsonRecord, field: string): { use: JsonRecord | undefined; key: string } {
  const { contentBlockIndex, [field]: inner } = event;
  const use = isRecord(inner) ? inner["toolUse"] : undefined;
  return { use: isRecord(use) ? use : undefined, key: String(contentBlockIndex) };
}

function steps(event: JsonRecord): readonly StreamStep[] {
  const { contentBlockStart, contentBlockDelta, contentBlockStop, messageStop } = event;
  if (isRecord(contentBlockStart)) {
    const { use, key } = useIn(contentBlockStart, "start");
    if (use === undefined || use["type"] === "server_tool_use") return [];
    return [{ type: "open", key, id: textOf(use["toolUseId"]), name: textOf(use["name"]) }];
  }
  if (isRecord(contentBlockDelta)) {
    const { use, key } = useIn(contentBlockDelta, "delta");
    return use === undefined ? [] : [{ type: "text", key, text: textOf(use["input"]) ?? "" }];
  }
  if (isRecord(contentBlockStop)) {
    return [{ type: "close", key: String(contentBlockStop["contentBlockIndex"]) }];
  }
  if (isRecord(messageStop)) {
    return [{ type: "finish", cutOff: isCutOff(messageStop["stopReason"]) }];
  }
  return [];
}

function rebuild({ id, name, text }: StreamedParts): unknown {
  return { toolUse: { ...(id === undefined ? {} : { toolUseId: id }), name, input: parsed(text) } };
}

/** How Bedrock streams calls. */
export function streamConverse(): StreamFormat {
  return { steps, rebuild };
}
