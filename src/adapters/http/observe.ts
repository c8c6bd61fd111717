/** Logs and traces requests (`telemetry` traces calls), and serves `/metrics` and `/healthz`. */

import type { TaskQueue, TaskQueueState } from "../../execute/durable/mod.ts";
import type { DispatcherMetrics, ToolMetrics, TraceParent } from "../../execute/mod.ts";
import { callHook, checkFunction, systemClock } from "../../tool/mod.ts";
import { untilRead } from "./event_stream.ts";
import { checkOptions, parseUrl } from "./options.ts";
import { type HttpPart, type ToolRequest, type ToolServer, withAllLayers } from "./request.ts";
import { chooseType, json, refuseQuery, UNCACHED_HEADERS, withHeaders } from "./responses.ts";
import { type AccessCall, records, type RequestObserver, RequestRecord } from "./running_calls.ts";

/** A version after 00 may have more fields. */
const HEADER = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NO_TRACE = "0".repeat(32);
const NO_SPAN = "0".repeat(16);

export function readTraceParent(header: string | null): TraceParent | undefined {
  if (header === null || header.length > 512) return undefined;
  const [, version, traceId, spanId, flags = "", rest] = HEADER.exec(header.trim()) ?? [];
  if (traceId === undefined || traceId === NO_TRACE) return undefined;
  if (spanId === undefined || spanId === NO_SPAN) return undefined;
  if (version === "ff" || version === "00" && rest !== undefined) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function writeTraceParent({ traceId, spanId, sampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

/** A new span in the trace of `parent`; without a parent, in a new trace that is not recorded. */
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

/** One request, for an access log. Omits query, headers and body, which may contain secrets. */
export interface AccessEntry {
  /** The arrival of the request, in milliseconds since 1970. */
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

/** Options for {@linkcode observeRequests}. */
export interface ObserveOptions {
  /** Is called after the response to every request. Its errors go to the handler's log. */
  access?(entry: AccessEntry): void;
}

/**
 * Makes the part that traces, measures and logs requests. The response has the `traceparent` of a
 * traced call, otherwise of a new span in the trace of the request. If one handler passes a request to
 * another, the request is observed once.
 *
 * @throws {TypeError} If an option is unknown or wrong.
 */
export function observeRequests(options: ObserveOptions): HttpPart {
  checkOptions("observe requests", options, { access: checkFunction });
  const access = options.access?.bind(options);
  return (server) => {
    const onError = (error: unknown): void => server.log(error);
    const around: RequestObserver = async (request, answer) => {
      if (records.has(request)) return await answer();
      const time = systemClock.timestamp();
      // The clock of the calls, so that a request never seems shorter than its calls.
      const began = systemClock.now();
      const record = new RequestRecord();
      records.set(request, record);
      const { method, url, headers } = request;
      let response = await answer();
      const { span } = record;
      // The telemetry may have ids that the header `traceparent` cannot express.
      const parent = (span && readTraceParent(writeTraceParent(span))) ??
        nextTraceParent(readTraceParent(headers.get("traceparent")));
      response = withHeaders(response, [["traceparent", writeTraceParent(parent)]]);
      const type = response.body && response.headers.get("content-type");
      if (record.ended === undefined && type?.startsWith("text/event-stream")) {
        ({ response, ended: record.ended } = untilRead(response));
      }
      const { status } = response;
      const report = (): void => {
        const { route, principal, calls } = record;
        const entry: AccessEntry = {
          time,
          method,
          // A request with two hosts has no valid URL.
          path: parseUrl(url)?.pathname ?? "",
          route,
          status,
          durationMs: systemClock.now() - began,
          traceId: parent.traceId,
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

const TYPES = ["application/json", "text/plain"] as const;

/** Makes the part that shows the metrics of the caller's tools: `GET /metrics`. */
export function serveMetrics(): HttpPart {
  return (server) => {
    const dispatcher = withAllLayers(server.dispatcher, "serveMetrics()");
    const readQueue = queueReader(server);
    const answer = async (request: ToolRequest): Promise<Response> =>
      showMetrics(
        request,
        dispatcher.metrics(),
        request.caller.explain === true ? await readQueue() : undefined,
      );
    return { routes: [{ method: "GET", path: "/metrics", answer }] };
  };
}

/** The time for which the state of the queue is cached, in milliseconds. */
const QUEUE_MS = 5_000;

function queueReader(server: ToolServer): () => Promise<TaskQueueState | undefined> {
  let readAt = -Infinity;
  let state: TaskQueueState | undefined;
  return async () => {
    const { tasks } = server;
    // Not `instanceof`, because it would add the queue to every bundle.
    if (tasks === undefined || !("state" in tasks)) return undefined;
    if (systemClock.now() - readAt < QUEUE_MS) return state;
    readAt = systemClock.now();
    try {
      return state = await (tasks as TaskQueue).state();
    } catch (error) {
      server.log(error);
      return state = undefined;
    }
  };
}

/**
 * The metrics of the caller's tools, in JSON or in text for Prometheus. Queued calls and calls of
 * unknown tools belong to no tool, and a task may belong to another caller: only callers with access to
 * hidden tools see these metrics. No caller sees the ids of tasks.
 */
function showMetrics(
  { raw, server, caller, toolset }: ToolRequest,
  { since, tools, queued, unknownTool }: DispatcherMetrics,
  queue: TaskQueueState | undefined,
): Response {
  refuseQuery(raw.url);
  const seen = tools.filter(({ id }) => toolset.has(id));
  const running = queue?.running.map(({ id: _, ...task }) => task) ?? [];
  const totals = caller.explain !== true ? undefined : {
    ...{ queued, unknownTool, ...(queue && { queue: { ...queue, running } }) },
    ...server.metrics,
  };
  if (chooseType(raw.headers.get("accept"), TYPES) === "text/plain") {
    return new Response(metricsText(seen, totals), {
      headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8", ...UNCACHED_HEADERS },
    });
  }
  const sum = (field: "calls" | "failed" | "inFlight"): number =>
    seen.reduce((total, tool) => total + tool[field], 0);
  const sums = { calls: sum("calls"), failed: sum("failed"), inFlight: sum("inFlight") };
  return json({ since, ...sums, ...totals, tools: seen });
}

interface Totals extends Pick<DispatcherMetrics, "queued" | "unknownTool"> {
  readonly queue?: Omit<TaskQueueState, "running"> & { readonly running: readonly unknown[] };
}

type Sample = readonly [suffix: string, value: number, label?: string];
type Family = readonly [
  name: string,
  type: "counter" | "gauge" | "summary",
  help: string,
  samples: (tool: ToolMetrics) => readonly Sample[],
];

function counted(type: Family[1], name: string, field: CountField, help: string): Family {
  return [name, type, help, (tool) => [["", tool[field]]]];
}

type CountField = "calls" | "suspended" | "replayed" | "aliased" | "inFlight" | "abandoned";

/** The metrics of each tool. Metrics whose names end in "_seconds" are in seconds. */
const FAMILIES: readonly Family[] = [
  counted("counter", "calls", "calls", "Calls that have ended."),
  [
    "failures",
    "counter",
    "Calls that failed, by the code of the failure.",
    ({ errors }) => Object.entries(errors).map(([code, count]) => ["", count, `code="${code}"`]),
  ],
  counted("counter", "suspended", "suspended", "Calls that ended because they wait for answers."),
  counted("counter", "replayed", "replayed", "Calls that got the result of an earlier call."),
  counted("counter", "aliased", "aliased", "Calls that named the tool by one of its aliases."),
  counted("gauge", "in_flight", "inFlight", "Calls that have begun and not ended."),
  counted("gauge", "abandoned", "abandoned", "Tools that still run after their calls have ended."),
  [
    "last_run_timestamp_seconds",
    "gauge",
    "The time at which the last call ended.",
    ({ lastRun }) => lastRun === null ? [] : [["", lastRun / 1000]],
  ],
  [
    "duration_seconds",
    "summary",
    "The durations of calls, without replayed ones.",
    ({ duration, calls, replayed }) =>
      duration === null ? [] : [
        ["", duration.p50Ms / 1000, 'quantile="0.5"'],
        ["", duration.p95Ms / 1000, 'quantile="0.95"'],
        ["", duration.p99Ms / 1000, 'quantile="0.99"'],
        ["_sum", duration.totalMs / 1000],
        ["_count", calls - replayed],
      ],
  ],
];

/** Writes metrics in the text format of Prometheus. Tool ids and codes need no escapes. */
function metricsText(tools: readonly ToolMetrics[], totals: Totals | undefined): string {
  const lines: string[] = [];
  const head = (name: string, type: string, help: string): void => {
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  };
  for (const [name, type, help, samplesOf] of FAMILIES) {
    const family = `plue_tool_${name}${type === "counter" ? "_total" : ""}`;
    head(family, type, help);
    for (const tool of tools) {
      for (const [suffix, value, label] of samplesOf(tool)) {
        const more = label === undefined ? "" : `,${label}`;
        lines.push(`${family}${suffix}{tool="${tool.id}"${more}} ${value}`);
      }
    }
  }
  for (const [name, type, help, value] of totals === undefined ? [] : totalsOf(totals)) {
    head(name, type, help);
    lines.push(`${name} ${value}`);
  }
  return `${lines.join("\n")}\n`;
}

/** The metrics that belong to no tool. */
function totalsOf({ queued, unknownTool, queue }: Totals) {
  return [
    ["plue_calls_queued", "gauge", "Calls that wait for a slot.", queued],
    ["plue_calls_unknown_tool_total", "counter", "Calls of unknown tools.", unknownTool],
    ...(queue === undefined ? [] : [
      ["plue_tasks_waiting", "gauge", "Tasks that wait for a process.", queue.waiting],
      ["plue_tasks_oldest_seconds", "gauge", "Age of the oldest one.", queue.oldestMs / 1000],
      ["plue_tasks_running", "gauge", "Tasks that processes run.", queue.running.length],
      ["plue_tasks_dead", "gauge", "Tasks that failed in all their attempts.", queue.dead],
    ] as const),
  ] as const;
}

/** Makes the part that answers health checks, for any host name: `GET /healthz`. */
export function serveHealth(): HttpPart {
  const answerPublic = (): Response => json({ status: "ok" });
  return () => ({ routes: [{ method: "GET", path: "/healthz", answerPublic, anyHost: true }] });
}
