/**
 * `GET /metrics`: the number, outcomes and durations of calls of the caller's tools. `GET /healthz`.
 *
 * @module
 */

import type { DispatcherMetrics, ToolMetrics } from "../../execute/mod.ts";
import type { HttpPart } from "./handler.ts";
import { type ToolRequest, withAllLayers } from "./request.ts";
import { chooseType, json, refuseQuery, SAFE_HEADERS } from "./responses.ts";

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

/** A metric with its samples. */
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

/** Writes the metrics. */
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
