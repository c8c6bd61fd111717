/**
 * Parts of the AI SDK's `fullStream`.
 *
 * @module
 */

import type { StreamFormat } from "../types.ts";

/** How the AI SDK streams calls: the part `tool-call` has all that `tool-input-*` said before. */
export function streamToolCallParts(): StreamFormat {
  let count = 0;
  return {
    steps: (event) => {
      if (event["type"] === "finish" || event["type"] === "finish-step") {
        return [{ type: "finish", cutOff: false }];
      }
      if (event["type"] !== "tool-call" || event["providerExecuted"] === true) return [];
      return [{ type: "whole", key: `${count++}`, raw: event }];
    },
    rebuild: () => undefined,
  };
}
