/**
 * Calls in traces: the caller's span is the parent of the worker's.
 *
 * @module
 */

import type { CallSpan, CallTelemetry, TraceParent } from "../../execute/mod.ts";
import { writeTraceParent } from "../http/mod.ts";
import { atOnce, callHook, type HookLog, isObject, type Tool, ToolResult } from "../../tool/mod.ts";

/** Observes calls of one side. What telemetry does wrong goes to the log, and the call runs without. */
export interface Observer {
  readonly telemetry: CallTelemetry | undefined;
  readonly log: HookLog;
}

/** Whether a value is what `openTelemetry` makes. */
export function isTelemetry(value: unknown): value is CallTelemetry {
  return isObject(value) && typeof value["begin"] === "function";
}

/** The call that is observed. */
export interface ObservedRemoteCall {
  readonly tool: Tool;
  readonly callId: string;
  readonly sessionId: string | undefined;
  /** The place in a trace that the other side named, as W3C's `traceparent` has it. */
  readonly trace?: string | undefined;
}

/**
 * Runs a call inside a span.
 *
 * @param work Is given its place in the trace, for the next machine.
 */
export async function observeCall(
  { telemetry, log }: Observer,
  { tool, callId, sessionId, trace }: ObservedRemoteCall,
  work: (trace: string | undefined) => Promise<ToolResult>,
): Promise<ToolResult> {
  if (telemetry === undefined) return await work(trace);
  let span: CallSpan | undefined;
  let place: TraceParent | undefined;
  callHook(() => {
    const headers = new Headers(trace === undefined ? {} : { traceparent: trace });
    const begun = atOnce(telemetry.begin({ tool, callId, sessionId, headers }));
    place = begun.place;
    span = begun;
  }, log);
  let running: Promise<ToolResult> | undefined;
  const once = (): Promise<ToolResult> => running ??= work(place && writeTraceParent(place));
  callHook(async () => {
    try {
      await span?.run(once);
    } catch (error) {
      // What the work itself throws goes to the caller.
      if (running === undefined || await running.then(() => true, (thrown) => thrown !== error)) {
        throw error;
      }
    }
  }, log);
  let result: ToolResult | undefined;
  try {
    // Whatever the span made of the work, it is done once.
    return result = await once();
  } finally {
    const end = result ?? ToolResult.error("aborted", "The call was aborted");
    callHook(() => span?.end(end), log);
  }
}
