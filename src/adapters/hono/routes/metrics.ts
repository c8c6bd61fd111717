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

/** What the calls of the caller's tools came to: JSON, or text for Prometheus, as asked. */
export function showMetrics({ dispatcher }: ToolService): Answer {
  return (c, { toolset }) => {
    refuseQuery(c.req.url);
    const { tools, ...totals } = dispatcher.metrics();
    const visible = tools.filter(({ id }) => toolset.has(id));
    // Totals count the calls of hidden tools too, so only their owner's view has them.
    const isWhole = visible.length === tools.length;
    const type = chooseType(c.req.header("accept"), TYPES);
    if (type === "application/json") {
      return json(isWhole ? { ...totals, tools } : { tools: visible });
    }
    const { body, contentType } = metricsText(
      { tools: visible, ...(isWhole ? { totals } : {}) },
      type,
    );
    return new Response(body, {
      headers: { "content-type": contentType, "cache-control": "no-store" },
    });
  };
}
