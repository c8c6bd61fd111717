/**
 * `GET /metrics`: what the calls of the caller's tools came to.
 *
 * @module
 */

import type { Answer } from "../exchange.ts";
import { refuseQuery } from "../query.ts";
import { json } from "../responses.ts";
import type { ToolService } from "../service.ts";

/** What the calls of the caller's tools came to. */
export function showMetrics({ dispatcher }: ToolService): Answer {
  return (c, { toolset }) => {
    refuseQuery(new URL(c.req.url).searchParams);
    const { tools, ...totals } = dispatcher.metrics();
    const visible = tools.filter(({ id }) => toolset.has(id));
    // Totals count the calls of hidden tools too, so only their owner's view has them.
    return json(visible.length === tools.length ? { ...totals, tools } : { tools: visible });
  };
}
