/**
 * Tools over HTTP, on every runtime that has `fetch`. The routes are thin: `ToolServer` decides what a
 * caller sees, and the dispatcher what a call does.
 *
 * @module
 */

import type { Context } from "hono";
import { Hono } from "hono/tiny";
import type { Registry } from "../../registry/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import { type Check, checkFlag, checkFunction } from "../../tool/mod.ts";
import {
  checkCount,
  checkObject,
  checkOptions,
  createPageCache,
  HTTP_CHECKS,
  type HttpOptions,
  json,
  metadataPaths,
  methodNotAllowed,
  type Problem,
  problemResponse,
  type ProtectedResource,
  resourceMetadata,
  ToolServer,
  withHeaders,
} from "../http/mod.ts";
import { cancelCall, continueCall, listCalls, showCall } from "./calls.ts";
import { abortExecution, executeTool } from "./execute_tool.ts";
import { checkExplorer, type ExplorerPage, explorerResponse } from "./explorer_page.ts";
import { explainTool, explainTools, followTools, listTools, showTool } from "./list_tools.ts";
import { type FormatService, type Route, showThrough } from "./route.ts";
import { showMetrics } from "./metrics.ts";

/** Options for {@linkcode createToolHandler}. */
export interface ToolHandlerOptions extends HttpOptions {
  /**
   * Lets every caller ask why a tool is hidden, and so learn that it exists. With `authorize`, the
   * `explain` of each caller decides instead.
   *
   * @default {false}
   */
  readonly openExplain?: boolean;
  /**
   * How many clients may follow `GET /events` at once. More are answered 503.
   *
   * @default {1_024}
   */
  readonly maxEventStreams?: number;
  /**
   * How many of them one principal may have; callers without a principal share theirs. Without
   * `authorize`, callers cannot be told apart, and this is not used.
   *
   * @default {a sixteenth of maxEventStreams}
   */
  readonly maxEventStreamsPerPrincipal?: number;
  /**
   * The providers' formats, made by `serveFormats`, for `GET /tools?format=…`,
   * `POST /dispatch/:target` and `GET /openapi.json`. Absent: these are not served.
   */
  readonly formats?: FormatService;
  /**
   * The page that `GET /` answers, for people: `explorer` of `@plue/tools/explorer`. It is handed in
   * so that a bundle without it is not larger. The page itself is public; what it shows, it asks of
   * the other routes, as the caller whose token was pasted into it.
   */
  readonly explorer?: ExplorerPage;
  /**
   * Makes the bridge of a caller's tools, for requests with `bridge=1`: `createToolBridge` of
   * `@plue/tools/finding`, or a function that calls it with options. Absent: such requests are
   * refused.
   */
  readonly bridge?: (toolset: Toolset) => Toolset;
  /**
   * How clients get a token (RFC 9728), served at `/.well-known/oauth-protected-resource`. The
   * handler must then be at the root of its host.
   */
  readonly protectedResource?: ProtectedResource;
}

/** What each option must be; `satisfies` keeps the table complete. */
const CHECKS = {
  ...HTTP_CHECKS,
  openExplain: checkFlag,
  maxEventStreams: checkCount,
  maxEventStreamsPerPrincipal: checkCount,
  formats: checkObject,
  explorer: checkExplorer,
  bridge: checkFunction,
  protectedResource: checkObject,
} satisfies { readonly [Option in keyof ToolHandlerOptions]-?: Check };

const NO_ROUTE: Problem = {
  status: 404,
  code: "not_found",
  detail: "There is no such route",
};

/**
 * Serves tools over HTTP.
 *
 * | route | answers |
 * |---|---|
 * | `GET /tools` | the caller's tools; filters, search and paging by query; `format` for a provider's shape |
 * | `GET /tools/:id` | one of them |
 * | `GET /tools/:id/explain` | whether the caller sees a tool, and why not |
 * | `GET /explain` | the same for each tool, without the steps |
 * | `POST /tools/:id/execute` | the result of a call: `{"arguments": {…}}`; with `Accept: text/event-stream` what happens meanwhile too |
 * | `POST /executions/:callId/abort` | aborts one of the caller's calls that run in this process |
 * | `GET /events` | how the caller's tools change, as an event stream |
 * | `GET /metrics` | what the calls of the caller's tools came to |
 * | `POST /dispatch/:target` | the messages to send back for a provider's response (with `formats`) |
 * | `GET /openapi.json` | the service in OpenAPI 3.1, with the caller's tools (with `formats`) |
 * | `GET /healthz` | that the server is up |
 * | `GET /` | a page to look at the tools and to call them (with `explorer`) |
 *
 * With the option `bridge`, `bridge=1` lists, exports and calls the tools through a bridge.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, ToolRegistry } from "@plue/tools";
 * import { createToolHandler } from "@plue/tools/hono";
 *
 * const registry = new ToolRegistry({
 *   tools: [
 *     defineTool({
 *       name: "double",
 *       description: "Doubles a number.",
 *       risk: "safe",
 *       parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
 *       execute: ({ n }) => n * 2,
 *     }),
 *   ],
 * });
 * const app = createToolHandler(registry, {
 *   authorize: (request) =>
 *     request.headers.get("authorization") === "Bearer sesame"
 *       ? { role: "control" }
 *       : new Response(null, { status: 401 }),
 * });
 *
 * const response = await app.request("http://localhost/tools/double/execute", {
 *   method: "POST",
 *   headers: { authorization: "Bearer sesame", "content-type": "application/json" },
 *   body: JSON.stringify({ arguments: { n: 21 } }),
 * });
 * assert.equal((await response.json()).content, 42);
 * ```
 *
 * @param source A registry, which is followed as it changes, or a toolset.
 * @param options Who may do what.
 * @returns A Hono app: mount it with `app.route()`, or serve its `fetch`.
 * @throws {TypeError} If an option is unknown or wrong.
 */
export function createToolHandler(
  source: Registry | Toolset,
  options: ToolHandlerOptions = {},
): Hono {
  checkOptions("create a tool handler", options, CHECKS);
  const { formats, protectedResource, explorer } = options;
  const server = new ToolServer(source, options, {
    everyone: { explain: options.openExplain ?? false },
    maxStreams: options.maxEventStreams,
    maxStreamsPerPrincipal: options.maxEventStreamsPerPrincipal,
  });
  const pages = createPageCache();
  const show = showThrough(options.bridge);
  const app = new Hono();

  /** Adds a path. One entry for all methods keeps the list short that Hono's router walks. */
  function add(path: string, answers: Readonly<Record<string, Handler>>): void {
    const allow = Object.keys(answers).join(", ").replace("GET", "GET, HEAD");
    app.all(path, (c) => {
      const { raw } = c.req;
      const isHead = raw.method === "HEAD";
      const answer = answers[isHead ? "GET" : raw.method];
      const response = answer?.(c) ?? server.open(raw, methodNotAllowed(allow));
      return isHead ? headOf(response) : response;
    });
  }

  const { observe, cors } = server;
  if (observe !== undefined) {
    app.use("*", async (c, next) => {
      const response = await observe(c.req.raw, async () => {
        await next();
        return c.res;
      });
      if (response !== c.res) c.res = response;
    });
  }
  if (cors !== undefined) {
    app.options(
      "*",
      ({ req: { raw } }) => server.answerPublic(raw, undefined, () => cors.preflight(raw)),
    );
  }
  const routes: readonly Route[] = [
    ["GET", "/tools", listTools(pages, formats, show)],
    ["GET", "/tools/:id", showTool],
    ["GET", "/tools/:id/explain", explainTool],
    ["GET", "/explain", explainTools],
    ["POST", "/tools/:id/execute", executeTool(show)],
    ["POST", "/executions/:callId/abort", abortExecution],
    ["GET", "/calls", listCalls],
    ["GET", "/calls/:id", showCall],
    ["POST", "/calls/:id", continueCall],
    ["DELETE", "/calls/:id", cancelCall],
    ["GET", "/events", followTools],
    ["GET", "/metrics", showMetrics],
    ...(formats?.routes(server, pages, show) ?? []),
  ];
  const paths = new Map<string, Record<string, Handler>>();
  for (const [method, path, answer] of routes) {
    const answers = paths.get(path) ?? {};
    answers[method] = (c) => server.answer(c, path, (request) => answer(request, c));
    paths.set(path, answers);
  }
  for (const [path, answers] of paths) add(path, answers);
  if (protectedResource !== undefined) {
    const metadata = resourceMetadata(protectedResource);
    for (const path of metadataPaths(protectedResource.resource)) {
      add(path, { GET: (c) => server.answerPublic(c.req.raw, path, () => json(metadata)) });
    }
  }
  if (explorer !== undefined) {
    add("/", {
      GET: ({ req: { raw } }) =>
        server.answerPublic(raw, "/", () => explorerResponse(raw, explorer)),
    });
  }
  add("/healthz", { GET: (c) => server.open(c.req.raw, json({ status: "ok" })) });
  app.notFound((c) => {
    const response = server.open(c.req.raw, problemResponse(NO_ROUTE));
    return c.req.raw.method === "HEAD" ? headOf(response) : response;
  });
  app.onError((error, c) => server.open(c.req.raw, server.problemOf(error)));
  return app;
}

type Handler = (c: Context) => Response | Promise<Response>;

/**
 * The answer to HEAD: how long the body of GET is, and not the body. Without being told, servers
 * would say that it has no bytes.
 */
async function headOf(answer: Response | Promise<Response>): Promise<Response> {
  const response = await answer;
  // 304, or an event stream, which HEAD does not open.
  if (response.body === null) return response;
  const { status, headers } = response;
  const { byteLength } = await response.arrayBuffer();
  return withHeaders(new Response(null, { status, headers }), [
    ["content-length", String(byteLength)],
  ]);
}
