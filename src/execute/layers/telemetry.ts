/**
 * Runs each call inside a span of the host's telemetry.
 *
 * @module
 */

import type { Layer, Outcome } from "../layer.ts";
import { type CallTelemetry, traced } from "../telemetry.ts";

/** A layer that traces calls. What `port` throws is reported, and the call runs without a span. */
export function telemetry(port: CallTelemetry): Layer {
  return {
    name: "telemetry",
    stage: "call",
    for: (tool) => (call, next) => {
      const { callId, options: { sessionId, trace } } = call;
      return traced<Outcome>(
        port,
        { tool, callId, sessionId, headers: trace?.headers },
        trace,
        () => next(call),
        (error) => call.report("telemetry", error),
      );
    },
  };
}
