/**
 * Observes requests: how long they took, how their calls ended, and their place in a trace. The calls
 * themselves are traced and measured by the dispatcher's `telemetry`. `GET /metrics`: the number,
 * outcomes and durations of calls of the caller's tools. `GET /healthz`.
 *
 * @module
 */

import type { DispatcherMetrics, ToolMetrics, TraceParent } from "../../execute/mod.ts";
import {
  atOnce,
  callHook,
  type Check,
  checkFlag,
  checkFunction,
  systemClock,
} from "../../tool/mod.ts";
import { untilRead } from "./event_stream.ts";
import type { HttpPart } from "./handler.ts";
import { checkOptions } from "./options.ts";
import { type ToolRequest, withAllLayers } from "./request.ts";
import { chooseType, json, refuseQuery, SAFE_HEADERS, withHeaders } from "./responses.ts";
import { type AccessCall, records, type RequestObserver, RequestRecord } from "./running_calls.ts";

/** Version 00. A later version may have more after another "-". */
const HEADER = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NO_TRACE = "0".repeat(32);
const NO_SPAN = "0".repeat(16);

/** Reads the header; `undefined` if it is malformed, as the specification requires. */
export function readTraceParent(header: string | null): TraceParent | undefined {
  if (header === null || header.length > 512) return undefined;
  const [, version, traceId, spanId, flags = "", rest] = HEADER.exec(header.trim()) ?? [];
  if (traceId === undefined || spanId === undefined || version === "ff") {
    return undefined;
  }
  if (traceId === NO_TRACE || spanId === NO_SPAN) return undefined;
  if (version === "00" && rest !== undefined) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** Writes the header. */
export function writeTraceParent({ traceId, spanId, sampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

/** A new place in the trace of `parent`; without one, in a new trace that is not recorded. */
export function nextTraceParent(parent: TraceParent | undefined): TraceParent {
  return {
    traceId: parent?.traceId ?? randomHex(16),
    spanId: randomHex(8),
    sampled: parent?.sampled ?? false,
  };
}

function randomHex(bytes: number): string {
  const values = crypto.getRandomValues(new Uint8Array(bytes));
  return [...values].map((value) => value.toString(16).padStart(2, "0")).join("");
}

/**
 * One request, for an access log. Queries, headers and bodies are omitted: they may contain
 * secrets.
 */
export interface AccessEntry {
  /** When the request came, in milliseconds since 1970. */
  readonly time: number;
  readonly method: string;
  readonly path: string;
  /** The route, such as `/tools/:id`; `undefined` if no route answered. */
  readonly route: string | undefined;
  readonly status: number;
  /** The time until the response was ready, or until an event stream had ended, in milliseconds. */
  readonly durationMs: number;
  readonly traceId: string;
  readonly principal: string | undefined;
  /** The calls of the request, in order: one call, or the calls of a turn. */
  readonly calls: readonly AccessCall[];
}

/** The observers of requests. */
export interface ObserveOptions {
  /**
   * True to send the durations of `authorize` and of the tool in `Server-Timing`. Every caller can
   * read them.
   *
   * @default {false}
   */
  readonly serverTiming?: boolean;
  /** Is called after the response to every request. Its errors go to the handler's log. */
  access?(entry: AccessEntry): void;
  /** Gives the time, in milliseconds since 1970. @default {Date.now} */
  readonly now?: () => number;
}

const CHECKS = {
  serverTiming: checkFlag,
  access: checkFunction,
  now: checkFunction,
} satisfies { readonly [Option in keyof ObserveOptions]-?: Check };

/**
 * The part that traces, measures and logs requests. The response gets the `traceparent` of the call if
 * the call is traced, otherwise a new one in the trace of the request. A request that one handler
 * passes to another is observed once.
 *
 * @throws {TypeError} If an option is unknown or wrong.
 */
export function observeRequests(options: ObserveOptions): HttpPart {
  const { serverTiming = false, now = Date.now } = checkOptions(
    "observe requests",
    options,
    CHECKS,
  );
  const access = options.access?.bind(options);
  return (server) => {
    const onError = (error: unknown): void => server.log(error);
    const around: RequestObserver = async (request, answer) => {
      if (records.has(request)) return await answer();
      const time = timeOf(now, onError);
      // The same clock measures calls, so a request does not seem shorter than its calls.
      const began = systemClock.now();
      const record = new RequestRecord();
      records.set(request, record);
      const { method, url, headers } = request;
      let response = await answer();
      const place = legalPlace(record.place) ??
        nextTraceParent(readTraceParent(headers.get("traceparent")));
      response = withHeaders(response, [
        ["traceparent", writeTraceParent(place)],
        ...(serverTiming
          ? [["server-timing", timing(record, systemClock.now() - began)] as const]
          : []),
      ]);
      if (record.ended === undefined && isEventStream(response)) {
        ({ response, ended: record.ended } = untilRead(response));
      }
      const { status } = response;
      const report = (): void => {
        const { route, principal, calls } = record;
        const entry: AccessEntry = {
          time,
          method,
          // A request that names two hosts has no URL; it is logged all the same.
          path: URL.canParse(url) ? new URL(url).pathname : "",
          route,
          status,
          durationMs: systemClock.now() - began,
          traceId: place.traceId,
          principal,
          calls,
        };
        callHook(() => access?.(entry), onError);
      };
      if (record.ended === undefined) report();
      else void record.ended.then(report);
      return response;
    };
    return { around };
  };
}

/** Returns the time. An observer never changes the response: a clock that fails is not used. */
function timeOf(now: () => unknown, onError: (error: unknown) => void): number {
  let time: unknown;
  callHook(() => time = atOnce(now()), onError);
  return typeof time === "number" ? time : Date.now();
}

/** Returns a position that the header can express; `undefined` if telemetry uses another form. */
function legalPlace(place: TraceParent | undefined): TraceParent | undefined {
  return place && readTraceParent(writeTraceParent(place));
}

function isEventStream({ headers, body }: Response): boolean {
  return body !== null && headers.get("content-type")?.startsWith("text/event-stream") === true;
}

function timing({ authorizeMs, toolMs }: RequestRecord, totalMs: number): string {
  return [["auth", authorizeMs], ["tool", toolMs], ["total", totalMs]]
    .flatMap(([name, ms]) => typeof ms === "number" ? [`${name};dur=${ms.toFixed(1)}`] : [])
    .join(", ");
}

const TYPES = [
  "application/json",
  "text/plain",
  "application/openmetrics-text",
] as const;

/** The part that shows the metrics of the caller's tools: `GET /metrics`. */
export function serveMetrics(): HttpPart {
  return ({ dispatcher }) => {
    const counted = withAllLayers(dispatcher, "serveMetrics()");
    return {
      routes: [{
        method: "GET",
        path: "/metrics",
        answer: (request) => showMetrics(request, counted.metrics()),
      }],
    };
  };
}

/**
 * The metrics of the caller's tools, in JSON or in text for Prometheus, as the client accepts. The
 * sums are over these tools only. Calls that wait and calls of unknown tools belong to no tool, and
 * count calls of others: they are for callers who may know of hidden tools.
 */
function showMetrics(
  { raw, caller, toolset }: ToolRequest,
  { since, tools, queued, unknownTool }: DispatcherMetrics,
): Response {
  refuseQuery(raw.url);
  const seen = tools.filter(({ id }) => toolset.has(id));
  const totals = caller.explain === true ? { queued, unknownTool } : undefined;
  const type = chooseType(raw.headers.get("accept"), TYPES);
  if (type !== "application/json") {
    const { body, contentType } = metricsText({ tools: seen, totals }, type);
    return new Response(body, {
      headers: { "content-type": contentType, "cache-control": "no-store", ...SAFE_HEADERS },
    });
  }
  const sum = (field: "calls" | "failed" | "inFlight"): number =>
    seen.reduce((total, tool) => total + tool[field], 0);
  return json({
    since,
    calls: sum("calls"),
    failed: sum("failed"),
    inFlight: sum("inFlight"),
    ...totals,
    tools: seen,
  });
}

/** The text formats: Prometheus, and OpenMetrics 1.0. */
export type MetricsTextType = "text/plain" | "application/openmetrics-text";

const CONTENT_TYPES = {
  "text/plain": "text/plain; version=0.0.4; charset=utf-8",
  "application/openmetrics-text": "application/openmetrics-text; version=1.0.0; charset=utf-8",
} as const satisfies Record<MetricsTextType, string>;

type Labels = readonly (readonly [name: string, value: string])[];
type Sample = readonly [suffix: string, labels: Labels, value: number];

interface Family {
  readonly name: string;
  readonly type: "counter" | "gauge" | "summary";
  readonly help: string;
  readonly unit?: "seconds";
  readonly samples: readonly Sample[];
}

/** The metrics of tools, and the totals that belong to no tool if the caller may see them. */
export interface ShownMetrics {
  readonly tools: readonly ToolMetrics[];
  readonly totals: Pick<DispatcherMetrics, "queued" | "unknownTool"> | undefined;
}

export function metricsText(
  metrics: ShownMetrics,
  type: MetricsTextType,
): { readonly body: string; readonly contentType: string } {
  const isOpen = type === "application/openmetrics-text";
  const lines: string[] = [];
  for (const { name, type, help, unit, samples } of familiesOf(metrics)) {
    // A counter's samples end in _total; only OpenMetrics leaves that out of its name.
    const family = type === "counter" && !isOpen ? `${name}_total` : name;
    lines.push(`# HELP ${family} ${help}`, `# TYPE ${family} ${type}`);
    if (isOpen && unit !== undefined) lines.push(`# UNIT ${family} ${unit}`);
    for (const [suffix, labels, value] of samples) {
      const text = labels.map(([label, text]) => `${label}="${escaped(text)}"`)
        .join(",");
      lines.push(`${name}${suffix}${text === "" ? "" : `{${text}}`} ${value}`);
    }
  }
  if (isOpen) lines.push("# EOF");
  return { body: `${lines.join("\n")}\n`, contentType: CONTENT_TYPES[type] };
}

function familiesOf({ tools, totals }: ShownMetrics): readonly Family[] {
  const each = (suffix: string, value: (tool: ToolMetrics) => number): readonly Sample[] =>
    tools.map((tool) => [suffix, [["tool", tool.id]], value(tool)]);
  const counter = (
    field: "calls" | "suspended" | "replayed" | "aliased",
    help: string,
  ): Family => ({
    name: `plue_tool_${field}`,
    type: "counter",
    help,
    samples: each("_total", (tool) => tool[field]),
  });
  return [
    counter("calls", "Calls that have ended."),
    {
      name: "plue_tool_failures",
      type: "counter",
      help: "Calls that failed, by the code of the failure.",
      samples: tools.flatMap(({ id, errors }) =>
        Object.entries(errors).map(([code, count]): Sample => [
          "_total",
          [["tool", id], ["code", code]],
          count,
        ])
      ),
    },
    counter("suspended", "Calls that ended because they wait for answers."),
    counter("replayed", "Calls that were answered with the result of an earlier one."),
    counter("aliased", "Calls that named the tool by one of its aliases."),
    {
      name: "plue_tool_in_flight",
      type: "gauge",
      help: "Calls that have begun and not ended.",
      samples: each("", ({ inFlight }) => inFlight),
    },
    {
      name: "plue_tool_abandoned",
      type: "gauge",
      help: "Tools that still run although their calls have ended.",
      samples: each("", ({ abandoned }) => abandoned),
    },
    {
      name: "plue_tool_last_run_timestamp_seconds",
      type: "gauge",
      unit: "seconds",
      help: "The time at which the last call ended.",
      samples: tools.flatMap(({ id, lastRun }): readonly Sample[] =>
        lastRun === null ? [] : [["", [["tool", id]], lastRun / 1000]]
      ),
    },
    {
      name: "plue_tool_duration_seconds",
      type: "summary",
      unit: "seconds",
      help: "The durations of calls, without replayed ones.",
      samples: tools.flatMap(({ id, calls, replayed, duration }) =>
        duration === null ? [] : durationSamples(id, calls - replayed, duration)
      ),
    },
    ...(totals === undefined ? [] : [
      {
        name: "plue_calls_queued",
        type: "gauge",
        help: "Calls that wait for their turn.",
        samples: [["", [], totals.queued]],
      },
      {
        name: "plue_calls_unknown_tool",
        type: "counter",
        help: "Calls that named no tool of their caller.",
        samples: [["_total", [], totals.unknownTool]],
      },
    ] satisfies readonly Family[]),
  ];
}

function durationSamples(
  id: string,
  count: number,
  duration: NonNullable<ToolMetrics["duration"]>,
): readonly Sample[] {
  const { p50Ms, p95Ms, p99Ms, totalMs } = duration;
  const tool = ["tool", id] as const;
  return [
    ["", [tool, ["quantile", "0.5"]], p50Ms / 1000],
    ["", [tool, ["quantile", "0.95"]], p95Ms / 1000],
    ["", [tool, ["quantile", "0.99"]], p99Ms / 1000],
    ["_sum", [tool], totalMs / 1000],
    ["_count", [tool], count],
  ];
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

/** The part that answers health checks, whatever host they name: `GET /healthz`. */
export function serveHealth(): HttpPart {
  return () => ({
    routes: [{
      method: "GET",
      path: "/healthz",
      answerPublic: () => json({ status: "ok" }),
      anyHost: true,
    }],
  });
}
