/**
 * `GET /tools`, `GET /tools/:id`, `GET /tools/:id/explain`: what a caller sees.
 *
 * @module
 */

import type { Answer } from "../exchange.ts";
import { PageCache, toolPage } from "../listing.ts";
import { noSuchTool, problemResponse } from "../problem.ts";
import { readListingQuery, refuseQuery } from "../query.ts";
import { json, pageResponse } from "../responses.ts";
import type { ToolService } from "../service.ts";

/** The caller's tools: filters, search, paging and format by query. */
export function listTools({ access, options }: ToolService): Answer {
  const pages = new PageCache(options.formats);
  return (c, { toolset }) => {
    const query = readListingQuery(c.req.url);
    return pageResponse(c, pages.page(access.narrow(toolset, query.selection), query));
  };
}

/** One of the caller's tools; also one that is not listed because it is not available just now. */
export const showTool: Answer = (c, { toolset }) => {
  refuseQuery(c.req.url);
  const id = c.req.param("id") ?? "";
  const tool = toolset.get(id);
  return tool === undefined ? problemResponse(noSuchTool(id)) : pageResponse(c, toolPage(tool));
};

/** Whether the caller sees a tool, and why not. */
export const explainTool: Answer = (c, { caller, toolset }) => {
  refuseQuery(c.req.url);
  const id = c.req.param("id") ?? "";
  // An explanation names hidden tools: only for callers who may know of them.
  if (caller.explain !== true && !toolset.has(id)) {
    return problemResponse(noSuchTool(id));
  }
  return json(toolset.explain(id));
};
