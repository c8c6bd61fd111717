/**
 * Records calls as spans and metrics of OpenTelemetry, by its conventions for generative AI
 * (`execute_tool`). The API is a parameter, so that this file imports no package.
 *
 * @module
 */

import type {
  CallSpan,
  CallTelemetry,
  CallTrace,
  ObservedCall,
  TraceHeaders,
  TraceParent,
} from "../../execute/mod.ts";
import { assertSync, defined, type ToolResult } from "../../tool/mod.ts";

export type { CallSpan, CallTelemetry, CallTrace, ObservedCall, TraceHeaders, TraceParent };

type Attributes = { [name: string]: string };

/** The part of a span that is used. */
export interface OpenTelemetrySpan {
  spanContext(): {
    readonly traceId: string;
    readonly spanId: string;
    readonly traceFlags: number;
  };
  setAttribute(name: string, value: string): unknown;
  setStatus(status: { code: number }): unknown;
  end(endTime: number): void;
}

/** The part of the module `@opentelemetry/api` that is used. `Context` is opaque. */
export interface OpenTelemetryApi<
  Context = unknown,
  Span extends OpenTelemetrySpan = never,
> {
  readonly context: {
    active(): Context;
    with<Result>(context: Context, work: () => Result): Result;
  };
  readonly propagation: {
    extract(
      context: Context,
      carrier: TraceHeaders,
      getter: {
        get(carrier: TraceHeaders, key: string): string | undefined;
        keys(carrier: TraceHeaders): string[];
      },
    ): Context;
  };
  readonly trace: {
    getTracer(name: string): {
      startSpan(
        name: string,
        options: { attributes: Attributes; kind: number; startTime: number },
        context: Context,
      ): Span;
    };
    getSpan(context: Context): Span | undefined;
    setSpan(context: Context, span: Span): Context;
  };
  readonly metrics: {
    getMeter(name: string): {
      createHistogram(
        name: string,
        options: {
          unit: string;
          description: string;
          advice: { explicitBucketBoundaries: number[] };
        },
      ): { record(value: number, attributes: Attributes): void };
    };
  };
}

const SCOPE = "@plue/tools";
/** `SpanKind.INTERNAL` and `SpanStatusCode.ERROR`: enumerations of the API, which is not imported. */
const INTERNAL = 0;
const ERROR = 2;

/** The boundaries that the conventions recommend for durations, in seconds. */
const BUCKETS = [
  ...[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64],
  ...[1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
];

const GETTER = {
  get: (headers: TraceHeaders, key: string): string | undefined =>
    assertSync(headers.get(key)) ?? undefined,
  keys: (headers: TraceHeaders): string[] => [...assertSync(headers.keys())],
};

/**
 * Observes the calls of a dispatcher with OpenTelemetry. Each call has a span `execute_tool
 * <tool>`, in the active trace or in the call's `trace` (over HTTP and MCP, the trace of the
 * request). The histogram is `gen_ai.execute_tool.duration`. The names follow OpenTelemetry's
 * conventions for generative AI, which are in development.
 *
 * Neither arguments nor results are recorded.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import * as api from "@opentelemetry/api";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { openTelemetry } from "@plue/tools/telemetry";
 *
 * const registry = new ToolRegistry({
 *   tools: [{ name: "ping", description: "Answers.", execute: () => "pong" }],
 * });
 * const dispatcher = new ToolDispatcher(registry, { telemetry: openTelemetry(api) });
 * assert((await dispatcher.dispatch({ name: "ping" })).ok);
 * // Over HTTP: createToolHandler(registry, { dispatcher })
 * ```
 *
 * @param api The module `@opentelemetry/api`, with an SDK registered.
 */
export function openTelemetry<Context, Span extends OpenTelemetrySpan>(
  api: OpenTelemetryApi<Context, Span>,
): CallTelemetry {
  const tracer = api.trace.getTracer(SCOPE);
  const durations = api.metrics.getMeter(SCOPE).createHistogram(
    "gen_ai.execute_tool.duration",
    {
      unit: "s",
      description: "The duration of tool calls.",
      advice: { explicitBucketBoundaries: BUCKETS },
    },
  );
  return {
    place: () => placeOf(api.trace.getSpan(api.context.active())),
    begin({ tool, callId, sessionId, headers }: ObservedCall): CallSpan {
      const startTime = Date.now();
      const active = api.context.active();
      // If a span is active, the request is traced already, and its headers were read.
      const parent = headers !== undefined && api.trace.getSpan(active) === undefined
        ? api.propagation.extract(active, headers, GETTER)
        : active;
      const common: Attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool.id,
        "gen_ai.tool.type": "function",
      };
      const span = tracer.startSpan(`execute_tool ${tool.id}`, {
        kind: INTERNAL,
        startTime,
        attributes: {
          ...common,
          "gen_ai.tool.description": tool.description,
          "gen_ai.tool.call.id": callId,
          ...defined({ "gen_ai.conversation.id": sessionId }),
        },
      }, parent);
      const context = api.trace.setSpan(parent, span);
      return {
        place: placeOf(span),
        run: (work) => api.context.with(context, work),
        end(result: ToolResult) {
          // A call that waits for answers has not failed.
          const hasFailed = !result.ok && result.error.code !== "input_required";
          const failed: Attributes = hasFailed ? { "error.type": result.error.code } : {};
          if (hasFailed) {
            span.setAttribute("error.type", result.error.code);
            span.setStatus({ code: ERROR });
          }
          span.end(startTime + result.durationMs);
          durations.record(result.durationMs / 1000, { ...common, ...failed });
        },
      };
    },
  };
}

/** The position of a span in its trace. Without an SDK, spans have no trace. */
function placeOf(span: OpenTelemetrySpan | undefined): TraceParent | undefined {
  if (span === undefined) return undefined;
  const { traceId, spanId, traceFlags } = span.spanContext();
  return /^0*$/.test(traceId) ? undefined : { traceId, spanId, sampled: (traceFlags & 1) === 1 };
}
