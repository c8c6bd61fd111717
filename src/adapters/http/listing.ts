/** Lists the tools that a caller sees: `GET /tools`, `GET /tools/:id`, and explanations. */

import { searchToolsetAsync } from "../../registry/mod.ts";
import { explainTool, type Toolset } from "../../select/mod.ts";
import { assertSync, attemptOr, describeTool, fail, once, type Tool } from "../../tool/mod.ts";
import * as pages from "./pages.ts";
import { type ListingQuery, type Page, pageOf, pageResponse } from "./pages.ts";
import type { HttpPart, Route, ToolRequest, ToolServer } from "./request.ts";
import { json, noSuchTool, problemResponse, refuseQuery, RequestError } from "./responses.ts";

export type MakeBridge = (toolset: Toolset) => Toolset;

export type ShowTools = (toolset: Toolset, throughBridge: boolean) => Toolset;

export function showThrough(bridge: MakeBridge | undefined): ShowTools {
  const bridgeTo = bridge && bridgeOnce(bridge);
  return (toolset, throughBridge) => {
    if (!throughBridge) return toolset;
    if (bridgeTo !== undefined) return bridgeTo(toolset);
    throw new RequestError("This server has no bridge: the option bridge is not set");
  };
}

/**
 * Makes the function for the tools of a call whose request may have the query `bridge=1`.
 *
 * @param bridge Makes the bridge to a toolset: `createToolBridge`. Without it, requests for a
 * bridge are rejected.
 */
export function bridgeByQuery(bridge?: MakeBridge): (request: ToolRequest) => Toolset {
  const show = showThrough(bridge);
  return ({ raw: { url }, toolset }) =>
    url.includes("?") ? show(toolset, pages.readBridgeQuery(url)) : toolset;
}

/** Calls `make` once for each toolset. If `make` throws, the request fails. */
export function bridgeOnce(make: MakeBridge): MakeBridge {
  const bridges = new WeakMap<Toolset, Toolset>();
  return (toolset) =>
    once(bridges, toolset, () => {
      const bridge = assertSync(make(toolset));
      // The bridge to another toolset might reach tools that are hidden from this caller.
      if (bridge?.bridge?.target === (toolset.bridge?.target ?? toolset)) return bridge;
      fail("make a bridge", "the function must return a bridge to the given toolset");
    });
}

/** The formats of a handler. Made by `serveFormats`. */
export interface FormatService {
  /** @ignore Exports tools. `ranked` has the tools that match the query's words, best first. */
  exportPage(tools: readonly Tool[] | Toolset, query: ListingQuery, ranked?: readonly Tool[]): Page;
  /** @ignore Returns the routes of the formats. */
  routes(server: ToolServer, show: ShowTools): readonly Route[];
}

/**
 * Makes the part for the routes of the formats: `POST /dispatch/:target` and `GET /openapi.json`.
 *
 * @param formats `serveFormats(…)`.
 * @param bridge Makes the bridge of `?bridge=1`: `createToolBridge`. @default {none}
 */
export function serveTurns(formats: FormatService, bridge?: MakeBridge): HttpPart {
  return (server) => ({ routes: formats.routes(server, showThrough(bridge)) });
}

/** Options for {@linkcode serveListing}. */
export interface ListingOptions {
  /**
   * Returns the page of a request to `GET /tools`: `queryPages(…)` reads filters, search and paging from
   * its query.
   *
   * @default {one page with all of the caller's tools; a query is rejected}
   */
  readonly pageOf?: (request: ToolRequest) => Page | Promise<Page>;
}

/** Makes the part that lists the caller's tools: `GET /tools` and `GET /tools/:id`. */
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

/** Returns the page with all tools of a list. The page is created once per list. */
function wholeListing(): (request: ToolRequest) => Page {
  const pages = new WeakMap<readonly Tool[], Page>();
  return ({ raw, toolset }) => {
    refuseQuery(raw.url);
    // The array is the same as long as the members and their availability do not change.
    const tools = toolset.available();
    return once(pages, tools, () => pageOf({ tools: tools.map(describeTool) }));
  };
}

/** Shows one of the caller's tools, even if it is unavailable now and therefore not listed. */
function showTool({ raw, toolset, param: id }: ToolRequest): Response {
  refuseQuery(raw.url);
  const tool = toolset.get(id);
  return tool === undefined
    ? problemResponse(noSuchTool(id))
    : pageResponse(raw, pageOf(describeTool(tool)));
}

/** Options for {@linkcode queryPages}. */
export interface QueryPagesOptions {
  /** The formats of `?format=…`, made by `serveFormats`. @default {none} */
  readonly formats?: FormatService | undefined;
  /** Makes the bridge of `?bridge=1`: `createToolBridge`. @default {none} */
  readonly bridge?: MakeBridge | undefined;
}

/** Makes `pageOf` of `serveListing`, for queries with filters, search, paging and format. */
export function queryPages(
  options: QueryPagesOptions = {},
): (request: ToolRequest) => Page | Promise<Page> {
  const { formats, bridge } = options;
  const show = showThrough(bridge);
  return ({ raw, server, toolset }) => {
    const query = pages.readListingQuery(raw.url);
    const listed = toolset.available();
    return pages.pagesOf(server).of(listed, query.key, () => {
      const { selection } = query;
      if (!query.bridge) return makePage(toolset, listed, query, formats);
      // The query selects the bridge's target tools; the bridge's own tools always remain.
      const shown = show(selection === undefined ? toolset : toolset.narrow(selection), true);
      const whole = { ...query, selection: undefined };
      return makePage(shown, shown.available(), whole, formats);
    });
  };
}

/** Makes the page of a query. A search may wait for its index. */
function makePage(
  toolset: Toolset,
  listed: readonly Tool[],
  query: ListingQuery,
  formats: FormatService | undefined,
): Page | Promise<Page> {
  const { selection, format, search } = query;
  let shown = toolset;
  let tools = listed;
  if (selection !== undefined) {
    // The toolset is not cached, because clients choose the number of queries.
    shown = toolset.narrow(selection);
    // The tools are compared by id, because the query may select other descriptions of them.
    const isListed = new Set(listed.map(({ id }) => id));
    tools = shown.tools.filter(({ id }) => isListed.has(id));
  }
  // The tools that run programs have an index of their own.
  const searched = query.bridge ? shown : shown.bridge?.target ?? shown;
  if (format === undefined) {
    return search === undefined ? listingPage(tools, query) : searchPage(searched, search, query);
  }
  if (formats === undefined) {
    throw new RequestError("This server has no formats: the option formats is not set");
  }
  // Not `tools`, because a bridge exports more tools than it lists.
  if (search === undefined) {
    return formats.exportPage(shown.bridge === undefined ? tools : shown, query);
  }
  const { minScore, tokens } = query;
  // With a budget of tokens, the budget limits the number of tools.
  const limit = tokens === undefined ? query.limit : tools.length;
  return searchToolsetAsync(searched, search, { limit, minScore })
    .then((found) => formats.exportPage(tools, query, found));
}

function listingPage(tools: readonly Tool[], { limit, cursor }: ListingQuery): Page {
  const page = pageAfter(tools, cursor, limit);
  if (page === undefined) throw badCursor();
  return pageOf({
    tools: tools.slice(page.start, page.end).map(describeTool),
    nextCursor: page.nextCursor,
  });
}

/**
 * Returns a page of a list in order of id; `undefined` if the cursor is invalid. A cursor is the id
 * before the page: tools that are added or removed in the meantime neither repeat nor hide others.
 */
export function pageAfter(
  list: readonly { readonly id: string }[],
  cursor: string | undefined,
  size: number,
): { readonly start: number; readonly end: number; readonly nextCursor?: string } | undefined {
  const after = cursor === undefined ? "" : readCursor(cursor, "after");
  if (after === undefined) return undefined;
  const found = after === "" ? 0 : list.findIndex(({ id }) => id > after);
  const start = found === -1 ? list.length : found;
  const end = Math.min(start + size, list.length);
  const last = end < list.length ? list[end - 1] : undefined;
  return { start, end, ...(last && { nextCursor: writeCursor("after", last.id) }) };
}

async function searchPage(
  toolset: Toolset,
  search: string,
  { limit, cursor, minScore }: ListingQuery,
): Promise<Page> {
  const start = Number(cursor === undefined ? 0 : readCursor(cursor, "offset"));
  if (!(start < MAX_OFFSET)) throw badCursor();
  const end = start + limit;
  // One tool more than the page shows means that there is a next page.
  const found = await searchToolsetAsync(toolset, search, { limit: end + 1, minScore });
  return pageOf({
    tools: found.slice(start, end).map(describeTool),
    nextCursor: found.length > end ? writeCursor("offset", String(end)) : undefined,
  });
}

const MAX_OFFSET = 1_000_000;

function writeCursor(kind: keyof typeof CURSOR, value: string): string {
  return btoa(`${kind} ${value}`).replaceAll("+", "-").replaceAll("/", "_")
    .replaceAll("=", "");
}

function readCursor(cursor: string, kind: keyof typeof CURSOR): string | undefined {
  const decode = (): string => atob(cursor.replaceAll("-", "+").replaceAll("_", "/"));
  return CURSOR[kind].exec(attemptOr("", decode))?.[1];
}

const CURSOR = { after: /^after ([\w.:-]{1,257})$/, offset: /^offset (\d{1,6})$/ };

function badCursor(): RequestError {
  return new RequestError(
    'Query parameter "cursor" must be "nextCursor" of a page of the same query',
  );
}

/** Makes the part that explains which tools a caller sees: `GET /explain`, `GET /tools/:id/explain`. */
export function serveExplanations(): HttpPart {
  return () => ({
    routes: [
      { method: "GET", path: "/tools/:id/explain", answer: explainOne },
      { method: "GET", path: "/explain", answer: explainTools },
    ],
  });
}

function explainOne(request: ToolRequest): Response {
  const { param: id } = request;
  const toolset = explainedToolset(request);
  // An explanation reveals that a hidden tool exists.
  if (request.caller.explain !== true && !request.toolset.has(id)) {
    return problemResponse(noSuchTool(id));
  }
  return json(toolset.explain(id, explainTool));
}

/** Explains each tool, without the steps; hidden tools only for callers with access to them. */
function explainTools(request: ToolRequest): Response {
  const { caller, toolset, server } = request;
  const explained = explainedToolset(request);
  const tools = caller.explain === true
    ? server.source.tools
    : toolset.tools.filter(({ id }) => toolset.has(id));
  const words = (lists: (tool: Tool) => readonly string[] | undefined): readonly string[] =>
    caller.explain === true ? [...new Set(tools.flatMap((tool) => lists(tool) ?? []))].sort() : [];
  return json({
    roles: words(({ roles }) => roles),
    scopes: words(({ scopes }) => scopes),
    tools: tools.map(({ id, risk }) => {
      const { steps: _, ...explanation } = explained.explain(id, explainTool);
      return { ...explanation, risk };
    }),
  });
}

/**
 * Returns the caller's tools that the query selects. For callers with access to hidden tools, a role
 * and scopes in the query replace their own.
 */
function explainedToolset({ raw, server, caller, toolset }: ToolRequest): Toolset {
  const { selection } = pages.readFilters("an explanation", raw.url);
  if (selection === undefined) return toolset;
  const { role, scopes, ...rest } = selection;
  if (caller.explain !== true || (role === undefined && scopes === undefined)) {
    return toolset.narrow(selection);
  }
  const other = {
    role: role ?? caller.role,
    scopes: scopes === undefined ? caller.scopes : [...scopes],
  };
  return server.toolsetAs(caller, other).narrow(rest);
}
