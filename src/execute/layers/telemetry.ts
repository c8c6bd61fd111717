/** Runs each call inside a span of the host's telemetry. */

import { assertSync, callHook } from "../../tool/mod.ts";
import { type Call, type Layer, type Next, note, type Outcome } from "../layer.ts";
import type { CallSpan, CallTelemetry } from "../ports.ts";

/**
 * Creates a layer that runs each call inside a span. Errors of the port are reported to `onError`,
 * and the call runs without a span. Stage `call`.
 *
 * @param port Begins the spans: `openTelemetry` of `@plue/tools/telemetry`, or your own.
 */
export function telemetry(port: CallTelemetry): Layer {
  const spans: WeakMap<Call, CallSpan> = new WeakMap();
  return {
    name: "telemetry",
    stage: "call",
    for: () => (call, next) => runInSpan(port, spans, call, next),
    observe: () => ({ ended: (call, result) => guard(call, () => spans.get(call)?.end(result)) }),
  };
}

function runInSpan(
  port: CallTelemetry,
  spans: WeakMap<Call, CallSpan>,
  call: Call,
  next: Next,
): Outcome {
  const { tool, callId, options: { sessionId, trace } } = call;
  guard(call, () => {
    const span = assertSync(port.begin({ tool, callId, sessionId, headers: trace?.headers }));
    const { place } = span;
    spans.set(call, span);
    if (place === undefined) return;
    note(call, place);
    return trace?.began?.(place);
  });
  let outcome: Outcome | undefined;
  // The work runs exactly once, even if the span fails.
  const work = (): Outcome => outcome ??= next(call);
  guard(call, () => spans.get(call)?.run(work));
  return work();
}

function guard(call: Call, use: () => unknown): void {
  callHook(use, (error) => call.report("telemetry", error));
}
