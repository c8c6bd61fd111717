/**
 * `GET /tools` and `GET /tools/:id`: what a caller sees.
 *
 * @module
 */

import { describeTool, type Tool } from "../../tool/mod.ts";
import { type Page, pageOf, pageResponse } from "./page.ts";
import type { HttpPart } from "./part.ts";
import { refuseQuery } from "./refuse_query.ts";
import type { ToolRequest } from "./request.ts";
import { noSuchTool, problemResponse } from "./responses.ts";

/** Options for {@linkcode serveListing}. */
export interface ListingOptions {
  /**
   * Returns the page of a request to `GET /tools`: `queryPages(…)` reads filters, search and paging from
   * its query.
   *
   * @default {one page with all of the caller's tools; a query is refused}
   */
  readonly pageOf?: (request: ToolRequest) => Page | Promise<Page>;
}

/** The part that lists the caller's tools: `GET /tools` and `GET /tools/:id`. */
export function serveListing(options: ListingOptions = {}): HttpPart {
  const { pageOf = wholeListing() } = options;
  return () => ({
    routes: [
      {
        method: "GET",
        path: "/tools",
        answer: (request) => {
          const page = pageOf(request);
          return page instanceof Promise
            ? page.then((made) => pageResponse(request.raw, made))
            : pageResponse(request.raw, page);
        },
      },
      { method: "GET", path: "/tools/:id", answer: showTool },
    ],
  });
}

/** Pages with all tools, each made once for a list of tools. */
function wholeListing(): (request: ToolRequest) => Page {
  const pages = new WeakMap<readonly Tool[], Page>();
  return ({ raw, toolset }) => {
    refuseQuery(raw.url);
    // The same array for as long as the members and their availability stay the same.
    const tools = toolset.available();
    let page = pages.get(tools);
    if (page === undefined) pages.set(tools, page = pageOf({ tools: tools.map(describeTool) }));
    return page;
  };
}

/** One of the caller's tools, also one that is not available now and so not listed. */
function showTool({ raw, toolset, param: id }: ToolRequest): Response {
  refuseQuery(raw.url);
  const tool = toolset.get(id);
  return tool === undefined
    ? problemResponse(noSuchTool(id))
    : pageResponse(raw, pageOf(describeTool(tool)));
}
