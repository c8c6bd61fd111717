/**
 * Which calls continue a suspended one. The request of such a call is created from its ticket.
 *
 * @module
 */

import type { ToolCall } from "./request.ts";
import type { Resumption } from "./suspension.ts";

const resumptions: WeakMap<ToolCall, Resumption> = new WeakMap();

/** Remembers that the request of this resumption continues a suspended call. */
export function rememberResumption(resumption: Resumption): ToolCall {
  resumptions.set(resumption.call, resumption);
  return resumption.call;
}

/** How a suspended call continues; `undefined` for a new call. */
export function resumptionOf(request: ToolCall): Resumption | undefined {
  return resumptions.get(request);
}

/** True if the call continues a suspended one. */
export function isResumed(request: ToolCall): boolean {
  return resumptions.has(request);
}
