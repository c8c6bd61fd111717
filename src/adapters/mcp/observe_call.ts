/**
 * Calls under observation: what observes must not change what is observed.
 *
 * @module
 */

import {
  type CallSpan,
  type CallTelemetry,
  type ObservedCall,
  unobserved,
} from "../hono/telemetry.ts";

/**
 * Begins to observe a call.
 *
 * @param onError Is told what the telemetry throws; the call goes on without it.
 */
export function observeCall(
  telemetry: CallTelemetry | undefined,
  call: ObservedCall,
  onError: (error: unknown) => void,
): CallSpan {
  if (telemetry === undefined) return unobserved;
  try {
    const span = telemetry.begin(call);
    return {
      place: span.place,
      run: (work) => span.run(work),
      end(result) {
        try {
          span.end(result);
        } catch (error) {
          onError(error);
        }
      },
    };
  } catch (error) {
    onError(error);
    return unobserved;
  }
}

const TRACE_FIELDS = ["traceparent", "tracestate", "baggage"] as const;

/**
 * The headers of a call. MCP carries the trace that a request belongs to in its `_meta`, which wins
 * over the headers: a proxy may have put its own there.
 */
export function tracedHeaders(
  headers: Headers,
  meta: { readonly [key: string]: unknown } | undefined,
): Headers {
  const given = TRACE_FIELDS.filter((field) => typeof meta?.[field] === "string");
  if (given.length === 0) return headers;
  const traced = new Headers(headers);
  for (const field of given) {
    try {
      traced.set(field, String(meta?.[field]));
    } catch {
      // It is not what a header can hold, and so no trace.
    }
  }
  return traced;
}
