/**
 * `GET /tools`, `GET /tools/:id`: what a caller sees. `GET /explain`, `GET /tools/:id/explain`: why.
 * `GET /events`: how that changes.
 *
 * @module
 */

import { type ToolExplanation, Toolset } from "../../select/mod.ts";
import type { Tool } from "../../tool/mod.ts";
import {
  EVENT_STREAM_HEADERS,
  eventStream,
  frame,
  json,
  type ListCache,
  type ListingChange,
  ListingWatch,
  makePage,
  noSuchTool,
  type Page,
  pageResponse,
  type Problem,
  problemResponse,
  readFilters,
  readListingQuery,
  refuseQuery,
  toolPage,
  type ToolRequest,
} from "../http/mod.ts";
import type { FormatService, RouteAnswer, ShowTools } from "./route.ts";

/** The caller's tools: filters, search, paging and format by query. */
export function listTools(
  pages: ListCache<Page>,
  formats: FormatService | undefined,
  show: ShowTools,
): RouteAnswer {
  return async ({ raw, toolset }) => {
    const query = readListingQuery(raw.url);
    // The same array for as long as the members and their availability stay the same.
    const listed = toolset.available();
    const page = await pages.of(
      listed,
      query.key,
      () => {
        const { bridge, selection } = query;
        if (!bridge) return makePage(toolset, listed, query, formats?.exportPage);
        // What the query selects is behind the bridge; the bridge's own tools are always there.
        const shown = show(selection === undefined ? toolset : toolset.narrow(selection), bridge);
        const whole = { ...query, selection: undefined };
        return makePage(shown, shown.available(), whole, formats?.exportPage);
      },
    );
    return pageResponse(raw, page);
  };
}

/** One of the caller's tools, also one that is not available now and so not listed. */
export const showTool: RouteAnswer = ({ raw, toolset }, c) => {
  refuseQuery(raw.url);
  const id = c.req.param("id") ?? "";
  const tool = toolset.get(id);
  return tool === undefined ? problemResponse(noSuchTool(id)) : pageResponse(raw, toolPage(tool));
};

/** Whether the caller sees a tool, and why not. */
export const explainTool: RouteAnswer = (request, c) => {
  const id = c.req.param("id") ?? "";
  const asked = toolsetAskedFor(request);
  // An explanation says that a hidden tool exists: only some callers may learn that.
  if (request.caller.explain !== true && !request.toolset.has(id)) {
    return problemResponse(noSuchTool(id));
  }
  return json(asked.explain(id));
};

/**
 * Whether the caller sees each tool, and why not, without the steps that `explainTool` shows: for a
 * table of tools. Callers that may not learn of hidden tools are told of their own tools only.
 */
export const explainTools: RouteAnswer = (request) => {
  const { caller, toolset, server } = request;
  const asked = toolsetAskedFor(request);
  const tools = caller.explain === true
    ? server.source.tools
    : toolset.tools.filter(({ id }) => toolset.has(id));
  const words = (lists: (tool: Tool) => readonly string[] | undefined): readonly string[] =>
    caller.explain === true ? [...new Set(tools.flatMap((tool) => lists(tool) ?? []))].sort() : [];
  return json({
    roles: words(({ roles }) => roles),
    scopes: words(({ scopes }) => scopes),
    tools: tools.map(({ id, risk }) => ({ ...briefly(asked.explain(id)), risk })),
  });
};

function briefly({ steps: _, ...explanation }: ToolExplanation): Omit<ToolExplanation, "steps"> {
  return explanation;
}

/**
 * What the caller sees of the tools that the query asks for. A role and scopes in the query of a
 * caller that may learn of hidden tools stand for those of another caller.
 */
function toolsetAskedFor({ raw, server, caller, toolset }: ToolRequest): Toolset {
  const { selection } = readFilters("an explanation", raw.url);
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

/** It does not say whose streams they are: the caller must not learn how many others there are. */
export const TOO_MANY: Problem = {
  status: 503,
  code: "overloaded",
  detail: "Cannot follow the tools: too many streams are open",
  headers: { "retry-after": "60" },
};

/**
 * Streams `added`, `removed` and `updated` events, each `{"type", "id"}`. The client follows from
 * the moment that it has the headers: what it lists after that is not older than the first event.
 */
export const followTools: RouteAnswer = (request) => {
  const { raw, caller, server } = request;
  refuseQuery(raw.url);
  // A toolset does not change. 204 tells an EventSource not to come again.
  if (server.source instanceof Toolset) return new Response(null, { status: 204 });
  // Hono answers HEAD with this route and drops the body: a stream would never be closed.
  if (raw.method === "HEAD") return new Response(null, { headers: EVENT_STREAM_HEADERS });
  const release = server.streams.take(caller.principal);
  if (release === undefined) return problemResponse(TOO_MANY);
  const watch = new ListingWatch({
    registry: server.source,
    list: () => request.toolsetNow().available(),
    expiresAt: caller.expiresAt,
    onStop: release,
  });
  let waiting: readonly ListingChange[] = [];
  let next = 0;
  let count = 0;
  const { response, ended } = eventStream({
    async next() {
      try {
        if (next === waiting.length) {
          waiting = await watch.changes();
          next = 0;
        }
        const change = waiting[next++];
        return change && frame(count++, change.type, change);
      } catch (error) {
        server.log(error);
        return void watch.stop();
      }
    },
    cancel: () => Promise.resolve(watch.stop()),
  }, { heartbeatMs: server.heartbeatMs, signal: raw.signal });
  request.streamsUntil(ended);
  return response;
};
