/** The handler's calls as OpenTelemetry's own SDK records them. */

import * as api from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  InMemorySpanExporter,
  SimpleSpanProcessor,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { assert, assertEquals } from "@std/assert";
import { afterAll, beforeEach, describe, it } from "bun:test";
import { createToolHandler, serveFormats } from "../../src/adapters/hono/mod.ts";
import { openTelemetry } from "../../src/adapters/telemetry/mod.ts";
import * as formats from "../../src/formats/mod.ts";
import { defineTool, ToolDispatcher, ToolRegistry } from "../../mod.ts";

const spans = new InMemorySpanExporter();
const tracing = new TracerProvider({
  spanProcessors: [new SimpleSpanProcessor({ exporter: spans })],
});
const measured = new InMemoryMetricExporter(AggregationTemporality.DELTA);
const metering = new MeterProvider({
  readers: [
    new PeriodicExportingMetricReader({ exporter: measured, exportIntervalMillis: 3_600_000 }),
  ],
});
api.trace.setGlobalTracerProvider(tracing);
api.metrics.setGlobalMeterProvider(metering);
api.propagation.setGlobalPropagator(new W3CTraceContextPropagator());
api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());

const registry = new ToolRegistry({
  tools: [
    defineTool({
      name: "nest",
      description: "Does work that is traced itself.",
      async execute() {
        await null;
        api.trace.getTracer("test").startSpan("inner").end();
        return "done";
      },
    }),
    defineTool({
      name: "talk",
      description: "Yields, and works in between.",
      async *execute() {
        yield 1;
        api.trace.getTracer("test").startSpan("inner").end();
        return "done";
      },
    }),
    defineTool({
      name: "fail",
      description: "Fails.",
      execute: () => {
        throw new Error("no");
      },
    }),
  ],
});
const dispatcher = new ToolDispatcher(registry, { telemetry: openTelemetry(api) });
const app = createToolHandler(registry, {
  openExecution: true,
  formats: serveFormats(formats),
  dispatcher,
  observe: {},
});

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";

const run = (id: string, headers: Record<string, string> = {}): Promise<Response> =>
  Promise.resolve(app.request(`http://localhost/tools/${id}/execute`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ callId: "c1", sessionId: "s1" }),
  }));

const named = (name: string) => {
  const found = spans.getFinishedSpans().find((span) => span.name === name);
  assert(found !== undefined, name);
  return found;
};

describe("openTelemetry()", () => {
  beforeEach(() => spans.reset());
  afterAll(async () => {
    await metering.shutdown();
    await tracing.shutdown();
  });

  it("records a span by the conventions, in the trace of the request", async () => {
    const response = await run("nest", { traceparent: `00-${TRACE}-${PARENT}-01` });
    await response.text();
    const span = named("execute_tool nest");
    assertEquals(span.kind, api.SpanKind.INTERNAL);
    assertEquals(span.attributes, {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "nest",
      "gen_ai.tool.type": "function",
      "gen_ai.tool.description": "Does work that is traced itself.",
      "gen_ai.tool.call.id": "c1",
      "gen_ai.conversation.id": "s1",
    });
    assertEquals(span.status.code, api.SpanStatusCode.UNSET);
    const { traceId, spanId } = span.spanContext();
    assertEquals([traceId, span.parentSpanContext?.spanId], [TRACE, PARENT]);
    assertEquals(response.headers.get("traceparent"), `00-${TRACE}-${spanId}-01`);
  });

  for (
    const [id, accept] of [["nest", "application/json"], ["talk", "text/event-stream"]] as const
  ) {
    it(`makes what a tool traces a part of its call, answered as ${accept}`, async () => {
      await (await run(id, { accept })).text();
      const call = named(`execute_tool ${id}`).spanContext();
      const inner = named("inner");
      assertEquals(inner.spanContext().traceId, call.traceId);
      assertEquals(inner.parentSpanContext?.spanId, call.spanId);
    });
  }

  it("prefers the span that is active already", async () => {
    const outer = api.trace.getTracer("test").startSpan("outer");
    await api.context.with(
      api.trace.setSpan(api.context.active(), outer),
      async () => (await run("nest", { traceparent: `00-${TRACE}-${PARENT}-01` })).text(),
    );
    outer.end();
    assertEquals(named("execute_tool nest").parentSpanContext?.spanId, outer.spanContext().spanId);
  });

  it("returns the position of the active span", () => {
    const telemetry = openTelemetry(api);
    assertEquals(telemetry.place?.(), undefined);
    const outer = api.trace.getTracer("test").startSpan("outer");
    const { traceId, spanId } = outer.spanContext();
    api.context.with(
      api.trace.setSpan(api.context.active(), outer),
      () => assertEquals(telemetry.place?.(), { traceId, spanId, sampled: true }),
    );
    outer.end();
  });

  it("records failures by their code, without the thrown error", async () => {
    await (await run("fail")).text();
    const span = named("execute_tool fail");
    assertEquals(span.status, { code: api.SpanStatusCode.ERROR });
    assertEquals(span.attributes["error.type"], "threw");
    assertEquals(span.events, []);
  });

  it("records the calls of a turn", async () => {
    await app.request("http://localhost/dispatch/openai.chat", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        role: "assistant",
        tool_calls: ["nest", "fail"].map((name, index) => ({
          id: `call_${index}`,
          type: "function",
          function: { name, arguments: "{}" },
        })),
      }),
    });
    const call = named("execute_tool nest");
    assertEquals(call.attributes["gen_ai.tool.call.id"], "call_0");
    // Spans of the tool belong to its own call, not to the turn or another call.
    assertEquals(named("inner").parentSpanContext?.spanId, call.spanContext().spanId);
    assertEquals(named("execute_tool fail").attributes["error.type"], "threw");
  });

  it("records a script's calls, in the trace that their context names or that is active", async () => {
    const headers = new Map([["traceparent", `00-${TRACE}-${PARENT}-01`]]);
    await dispatcher.dispatch({ name: "nest" }, { trace: { headers } });
    const span = named("execute_tool nest");
    assertEquals([span.spanContext().traceId, span.parentSpanContext?.spanId], [TRACE, PARENT]);
    assertEquals(named("inner").parentSpanContext?.spanId, span.spanContext().spanId);
    spans.reset();
    const outer = api.trace.getTracer("test").startSpan("outer");
    await api.context.with(
      api.trace.setSpan(api.context.active(), outer),
      () => dispatcher.dispatch({ name: "nest" }, { trace: { headers } }),
    );
    outer.end();
    assertEquals(named("execute_tool nest").parentSpanContext?.spanId, outer.spanContext().spanId);
  });

  it("records a call that is rejected before its tool runs", async () => {
    await dispatcher.dispatch({ name: "nest", arguments: { no: 1 } });
    assertEquals(named("execute_tool nest").attributes["error.type"], "invalid_arguments");
  });

  it("ends a span no earlier than it begins", async () => {
    await (await run("nest")).text();
    const { startTime, endTime } = named("execute_tool nest");
    assert(
      endTime[0] > startTime[0] || (endTime[0] === startTime[0] && endTime[1] >= startTime[1]),
    );
  });

  it("measures durations in seconds", async () => {
    await metering.forceFlush();
    const metrics = measured.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics)
      .flatMap((scope) => scope.metrics);
    const durations = metrics.find(({ descriptor }) =>
      descriptor.name === "gen_ai.execute_tool.duration"
    );
    assert(durations !== undefined);
    assertEquals(durations.descriptor.unit, "s");
    const failed = durations.dataPoints.find(({ attributes }) =>
      attributes["gen_ai.tool.name"] === "fail"
    );
    assertEquals(failed?.attributes, {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "fail",
      "gen_ai.tool.type": "function",
      "error.type": "threw",
    });
    const { count, sum = 0 } = failed?.value as { count: number; sum?: number };
    assertEquals([count, sum < 60], [2, true]);
  });
});
