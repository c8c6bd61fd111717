/**
 * Calls in traces: the caller's span is the parent of the worker's. Both are their dispatchers'.
 *
 * @module
 */

import type { CallTelemetry, CallTrace } from "../../execute/mod.ts";
import { readTraceParent, writeTraceParent } from "../http/mod.ts";
import { atOnce, callHook, type HookLog, isObject } from "../../tool/mod.ts";

/** Whether a value is what `openTelemetry` makes. */
export function isTelemetry(value: unknown): value is CallTelemetry {
  return isObject(value) && typeof value["begin"] === "function";
}

/** The place in a trace of the call that runs now, as W3C's `traceparent` has it. */
export function placeNow(telemetry: CallTelemetry | undefined, log: HookLog): string | undefined {
  let trace: string | undefined;
  callHook(() => {
    const place = atOnce(telemetry?.place?.());
    const header = place && writeTraceParent(place);
    // Telemetry may have made it up in another form.
    if (header && readTraceParent(header)) trace = header;
  }, log);
  return trace;
}

/** The trace that a call came with, for the worker's dispatcher. */
export function traceOf(trace: string | undefined): CallTrace | undefined {
  return trace === undefined ? undefined : { headers: new Map([["traceparent", trace]]) };
}
