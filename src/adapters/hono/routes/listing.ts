/**
 * `GET /tools`, `GET /tools/:id`, `GET /tools/:id/explain`: what a caller sees.
 *
 * @module
 */

import type { Answer } from "../exchange.ts";
import { makePage, toolPage } from "../listing.ts";
import { noSuchTool, problemResponse } from "../problem.ts";
import { readListingQuery, refuseQuery } from "../query.ts";
import { json, pageResponse } from "../responses.ts";
import type { ToolService } from "../service.ts";

/** The caller's tools: filters, search, paging and format by query. */
export function listTools({ options: { formats }, pages }: ToolService): Answer {
  return (c, { toolset }) => {
    const query = readListingQuery(c.req.url);
    // The same array for as long as the members and their availability stay the same.
    const listed = toolset.available();
    const page = pages.of(listed, query.key, () => makePage(toolset, listed, query, formats));
    return pageResponse(c, page);
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
