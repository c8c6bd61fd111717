/**
 * The query of `GET /tools`: pages of the tools that it selects, finds or exports. A page is made once
 * for as long as the tools stay the same.
 *
 * @module
 */

import { searchToolsetAsync } from "../../registry/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import { describeTool, type Tool } from "../../tool/mod.ts";
import { showThrough } from "./bridge.ts";
import type { ExportPage, FormatService } from "./format_service.ts";
import { createPageCache, type ListCache } from "./list_cache.ts";
import { type Page, pageOf } from "./page.ts";
import { type ListingQuery, readListingQuery } from "./query.ts";
import type { ToolRequest } from "./request.ts";
import { RequestError } from "./responses.ts";

/** Options for {@linkcode queryPages}. */
export interface QueryPagesOptions {
  /** The formats of `?format=…`, made by `serveFormats`. @default {none} */
  readonly formats?: FormatService | undefined;
  /** Makes the bridge of `?bridge=1`: `createToolBridge`. @default {none} */
  readonly bridge?: ((toolset: Toolset) => Toolset) | undefined;
  /** @ignore The cache of the pages, for other routes that have pages. */
  readonly pages?: ListCache<Page>;
}

/**
 * Makes the pages of `serveListing` that read the query of a request: filters, search, paging and
 * format.
 */
export function queryPages(
  options: QueryPagesOptions = {},
): (request: ToolRequest) => Page | Promise<Page> {
  const { formats, bridge, pages = createPageCache() } = options;
  const show = showThrough(bridge);
  return ({ raw, toolset }) => {
    const query = readListingQuery(raw.url);
    // The same array for as long as the members and their availability stay the same.
    const listed = toolset.available();
    return pages.of(listed, query.key, () => {
      const { selection } = query;
      if (!query.bridge) return makePage(toolset, listed, query, formats?.exportPage);
      // The query selects tools behind the bridge; the bridge's own tools are always there.
      const shown = show(selection === undefined ? toolset : toolset.narrow(selection), true);
      const whole = { ...query, selection: undefined };
      return makePage(shown, shown.available(), whole, formats?.exportPage);
    });
  };
}

/**
 * Makes the page that a query asks for. A search may wait for its index.
 *
 * @param toolset What the caller sees.
 * @param listed Those of it that are available now.
 * @param exportPage Makes the page of an export; without it, there are none.
 * @throws {RequestError} If the cursor is not one that a page gave, or there is no such format.
 */
function makePage(
  toolset: Toolset,
  listed: readonly Tool[],
  query: ListingQuery,
  exportPage: ExportPage | undefined,
): Page | Promise<Page> {
  const { selection, format, search } = query;
  let shown = toolset;
  let tools = listed;
  if (selection !== undefined) {
    // Not kept: clients choose how many queries there are.
    shown = toolset.narrow(selection);
    // By id: the query may name another reader of the descriptions.
    const isListed = new Set(listed.map(({ id }) => id));
    tools = shown.tools.filter(({ id }) => isListed.has(id));
  }
  if (format === undefined) {
    return search === undefined ? listingPage(tools, query) : searchPage(shown, search, query);
  }
  if (exportPage === undefined) {
    throw new RequestError("This server exports no formats: its owner sets the option formats");
  }
  // A bridge has more to export than it lists.
  if (search === undefined) return exportPage(shown.bridge === undefined ? tools : shown, query);
  const { minScore, tokens } = query;
  // A budget takes as many as there is room for.
  const limit = tokens === undefined ? query.limit : tools.length;
  return searchToolsetAsync(shown, search, { limit, minScore })
    .then((found) => exportPage(tools, query, found));
}

function listingPage(tools: readonly Tool[], { limit, cursor }: ListingQuery): Page {
  const start = cursor === undefined ? 0 : indexAfter(tools, readCursor(cursor, "after"));
  const page = tools.slice(start, start + limit);
  const last = page.at(-1);
  const isMore = last !== undefined && start + limit < tools.length;
  return pageOf({
    tools: page.map(describeTool),
    nextCursor: isMore ? writeCursor("after", last.id) : undefined,
  });
}

async function searchPage(
  toolset: Toolset,
  search: string,
  { limit, cursor, minScore }: ListingQuery,
): Promise<Page> {
  const start = cursor === undefined ? 0 : offset(readCursor(cursor, "offset"));
  const end = start + limit;
  // One more than the page, to know whether there is a next one.
  const found = await searchToolsetAsync(toolset, search, { limit: end + 1, minScore });
  return pageOf({
    tools: found.slice(start, end).map(describeTool),
    nextCursor: found.length > end ? writeCursor("offset", String(end)) : undefined,
  });
}

/** The index of the first tool after `id`, which may be gone by now. */
function indexAfter(tools: readonly Tool[], id: string): number {
  const index = tools.findIndex((tool) => tool.id > id);
  return index === -1 ? tools.length : index;
}

function offset(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw badCursor();
}

function writeCursor(kind: "after" | "offset", value: string): string {
  return btoa(`${kind} ${value}`).replaceAll("+", "-").replaceAll("/", "_")
    .replaceAll("=", "");
}

function readCursor(cursor: string, kind: "after" | "offset"): string {
  let text = "";
  try {
    text = atob(cursor.replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    // Falls through: it does not begin with the kind.
  }
  if (!text.startsWith(`${kind} `)) throw badCursor();
  return text.slice(kind.length + 1);
}

function badCursor(): RequestError {
  return new RequestError(
    'Query parameter "cursor" must be the nextCursor of a page of the same query',
  );
}
