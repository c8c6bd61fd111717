/**
 * Tools over HTTP, on every runtime that has `fetch`. The routes are thin: `ToolServer` decides what a
 * caller sees, and the dispatcher what a call does.
 */

import { ToolDispatcher } from "../../execute/mod.ts";
import { Hono } from "hono/tiny";
import type { Registry } from "../../registry/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import { type Check, checkFlag, checkFunction } from "../../tool/mod.ts";
import {
  bridgeByQuery,
  checkExplorer,
  checkObject,
  checkOptions,
  type ExplorerPage,
  type FormatService,
  HTTP_CHECKS,
  type HttpOptions,
  type HttpPart,
  type ProtectedResource,
  queryPages,
  RoutedServer,
  runTasks,
  serveCalls,
  serveEvents,
  serveExecution,
  serveExplanations,
  serveExplorer,
  serveHealth,
  serveListing,
  serveMetrics,
  serveProtectedResource,
  serveTurns,
  sharedParts,
  streamCall,
  ToolServer,
} from "../http/mod.ts";

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
   * The providers' formats, made by `serveFormats`, for `GET /tools?format=…`, `POST
   * /dispatch/:target` and `GET /openapi.json`. By default, these are not served.
   */
  readonly formats?: FormatService;
  /**
   * The page at `GET /`, for people: `explorer` of `@plue/tools/explorer`. It is passed as a value
   * so that bundles without it stay small. The page is public; it reads the other routes as the
   * caller whose token the user pasted.
   */
  readonly explorer?: ExplorerPage;
  /**
   * Makes the bridge of a caller's tools, for requests with `bridge=1`: `createToolBridge` of
   * `@plue/tools/finding`, or a function that calls it with options. By default, such requests are
   * rejected.
   */
  readonly bridge?: (toolset: Toolset) => Toolset;
  /**
   * How clients get a token (RFC 9728), served at `/.well-known/oauth-protected-resource`. The
   * handler must then be at the root of its host.
   */
  readonly protectedResource?: ProtectedResource;
}

/** The check of each option; `satisfies` keeps the table complete. */
const CHECKS = {
  ...HTTP_CHECKS,
  openExplain: checkFlag,
  formats: checkObject,
  explorer: checkExplorer,
  bridge: checkFunction,
  protectedResource: checkObject,
} satisfies { readonly [Option in keyof ToolHandlerOptions]-?: Check };

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
 * @param options The rights of callers, and the routes that are served.
 * @returns A Hono app: mount it with `app.route()`, or serve its `fetch`.
 * @throws {TypeError} If an option is unknown or wrong.
 */
export function createToolHandler(
  source: Registry | Toolset,
  options: ToolHandlerOptions = {},
): Hono {
  checkOptions("create a tool handler", options, CHECKS);
  const server = new ToolServer(source, options, {
    everyone: { explain: options.openExplain ?? false },
    createDispatcher: (own) => new ToolDispatcher(source, own),
  });
  const routes = new RoutedServer(server, partsOf(options));
  const { around } = server;
  const app = new Hono();
  if (around !== undefined) {
    app.use("*", async (c, next) => {
      const response = await around(c.req.raw, async () => {
        await next();
        return c.res;
      });
      if (response !== c.res) c.res = response;
    });
  }
  if (server.preflight !== undefined) {
    app.options("*", (c, next) => routes.answer(c) ?? next());
  }
  for (const path of routes.paths) {
    const { param } = path;
    app.all(path.path, (c) => path.answer(c, param === undefined ? "" : c.req.param(param)));
  }
  app.notFound((c) => routes.answerNone(c.req.raw));
  app.onError((error, c) => server.open(c.req.raw, () => server.problemOf(error)));
  // Hono's context and router take a sixth of the time of a call. They are for other routes, and for an
  // app that this one is mounted in.
  app.fetch = routes.fetchWith(app.fetch);
  return app;
}

function partsOf(options: ToolHandlerOptions): readonly HttpPart[] {
  const { bridge, explorer, formats, protectedResource } = options;
  return [
    ...sharedParts(options),
    serveExecution({
      startTask: options.tasks && runTasks,
      streamCall,
      toolsetOf: bridgeByQuery(bridge),
    }),
    serveListing({ pageOf: queryPages({ formats, bridge }) }),
    serveExplanations(),
    serveCalls(),
    serveEvents(),
    serveMetrics(),
    ...(formats === undefined ? [] : [serveTurns(formats, bridge)]),
    ...(protectedResource === undefined ? [] : [serveProtectedResource(protectedResource)]),
    ...(explorer === undefined ? [] : [serveExplorer(explorer)]),
    serveHealth(),
  ];
}
