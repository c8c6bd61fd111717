/**
 * `GET /metrics`: what the calls of the caller's tools came to.
 *
 * @module
 */

import { chooseType } from "../accept.ts";
import type { Answer } from "../exchange.ts";
import { metricsText } from "../prometheus.ts";
import { refuseQuery } from "../query.ts";
import { json } from "../responses.ts";
import type { ToolService } from "../service.ts";

const TYPES = [
  "application/json",
  "text/plain",
  "application/openmetrics-text",
] as const;

/**
 * What the calls of the caller's tools came to: JSON, or text for Prometheus, as asked. The sums are
 * over those tools too. What belongs to no tool, the calls that wait and those of unknown tools, is
 * for callers who may know of hidden ones: it counts what others do.
 */
export function showMetrics({ access: { dispatcher } }: ToolService): Answer {
  return (c, { caller, toolset }) => {
    refuseQuery(c.req.url);
    const { since, tools, queued, unknownTool } = dispatcher.metrics();
    const seen = tools.filter(({ id }) => toolset.has(id));
    const totals = caller.explain === true ? { queued, unknownTool } : undefined;
    const type = chooseType(c.req.header("accept"), TYPES);
    if (type === "application/json") {
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
    const { body, contentType } = metricsText({ tools: seen, totals }, type);
    return new Response(body, {
      headers: { "content-type": contentType, "cache-control": "no-store" },
    });
  };
}
