/**
 * LangChain's `AIMessageChunk`.
 *
 * @module
 */

import { isCutOff } from "../cut_off.ts";
import { parsed } from "../input.ts";
import { isRecord, type JsonRecord, textOf } from "../shape.ts";
import type { StreamFormat, StreamStep } from "../types.ts";

/** How LangChain streams calls: `tool_call_chunks`, told apart by their index, or by their id. */
export function streamToolCallChunks(
  stopReason: (message: JsonRecord) => string | undefined,
): StreamFormat {
  let last = "";
  return {
    steps: (event) => {
      const kwargs = isRecord(event["kwargs"]) ? event["kwargs"] : event;
      const chunks = kwargs["tool_call_chunks"];
      const found = (Array.isArray(chunks) ? chunks : []).filter(isRecord).flatMap((chunk) => {
        const id = textOf(chunk["id"]);
        const index = chunk["index"];
        if (typeof index === "number" || typeof index === "string") last = `#${index}`;
        else if (id !== undefined) last = id;
        const key = last;
        const steps: StreamStep[] = [{ type: "open", key, id, name: textOf(chunk["name"]) }];
        if (typeof chunk["args"] === "string") {
          steps.push({ type: "text", key, text: chunk["args"] });
        }
        return steps;
      });
      const reason = stopReason(kwargs);
      if (reason !== undefined) found.push({ type: "finish", cutOff: isCutOff(reason) });
      return found;
    },
    rebuild: ({ id, name, text }) => ({
      type: "tool_call",
      ...(id === undefined ? {} : { id }),
      name,
      args: parsed(text),
    }),
    endsSilently: true,
  };
}
