/** Tools over HTTP, on every runtime that has `fetch`. */

import { ToolDispatcher } from "../../execute/mod.ts";
import { Hono } from "hono/tiny";
import type { Registry } from "../../registry/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import { type Check, checkFlag, checkFunction, createCheck, isObject } from "../../tool/mod.ts";
import * as http from "../http/mod.ts";
import type { ExplorerPage } from "../http/mod.ts";

const checkExplorer: Check<ExplorerPage> = /* @__PURE__ */ createCheck(
  "the explorer of @plue/tools/explorer",
  (value): value is ExplorerPage =>
    isObject(value) &&
    ["html", "policy", "etag"].every((field) => typeof value[field] === "string"),
);

/**
 * Makes the part that shows the tools to people: `GET /`. The page is public. It reads the tools from
 * the other routes, with the token that the user pastes.
 *
 * @param page `explorer` of `@plue/tools/explorer`.
 * @throws {TypeError} If `page` is another value.
 */
export function serveExplorer(page: ExplorerPage): http.HttpPart {
  const { html: body, policy, etag } = checkExplorer("serve the explorer", page, "the page");
  const answerPublic = (request: Request): Response =>
    http.responseWithEtag(request, { body, etag }, "text/html; charset=utf-8", {
      "cache-control": "no-cache",
      "content-security-policy": policy,
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
    });
  return () => ({ routes: [{ method: "GET", path: "/", answerPublic }] });
}

/** Options for {@linkcode createToolHandler}. */
export interface ToolHandlerOptions extends http.HttpOptions {
  /**
   * True to explain hidden tools to every caller, which reveals that these tools exist. With
   * `authorize`, this option is not used: the field `explain` of a caller decides.
   *
   * @default {false}
   */
  readonly openExplain?: boolean;
  /**
   * The providers' formats, made by `serveFormats`, for `GET /tools?format=…`, `POST
   * /dispatch/:target` and `GET /openapi.json`. By default, these are not served.
   */
  readonly formats?: http.FormatService;
  /**
   * The page at `GET /`, for people: `explorer` of `@plue/tools/explorer`. The page is public; it reads
   * the other routes with the token that the user pastes.
   */
  readonly explorer?: ExplorerPage;
  /**
   * Makes the bridge through which all callers use their tools, such as
   * `(toolset) => codeTool(toolset, options)`. By default, callers list their tools themselves.
   */
  readonly tools?: (toolset: Toolset) => Toolset;
  /**
   * Makes the bridge of a caller's tools, for requests with `bridge=1`: `createToolBridge` of
   * `@plue/tools/finding`. By default, such requests are rejected.
   */
  readonly bridge?: (toolset: Toolset) => Toolset;
  /** The journal whose records callers with `explain` may read at `GET /journal`: `journal()`. */
  readonly journal?: http.JournalReader;
  /** The metadata for clients that need a token (RFC 9728). See `serveProtectedResource`. */
  readonly protectedResource?: http.ProtectedResource;
  /** Your own parts: functions that add routes and hooks. @default {[]} */
  readonly parts?: readonly http.HttpPart[];
}

const CHECKS = {
  ...http.HTTP_CHECKS,
  openExplain: checkFlag,
  formats: http.checkObject,
  explorer: checkExplorer,
  tools: checkFunction,
  bridge: checkFunction,
  journal: http.having("records", "a journal"),
  protectedResource: http.checkObject,
  parts: http.checkParts,
} satisfies { readonly [Option in keyof ToolHandlerOptions]-?: Check };

/**
 * Serves tools over HTTP.
 *
 * The guide `docs/http.md` lists the routes. With the option `bridge`, `bridge=1` in a query
 * lists, exports and calls the tools through a bridge.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { createToolHandler } from "@plue/tools/hono";
 *
 * const registry = new ToolRegistry({
 *   tools: [{ name: "ping", description: "Answers.", execute: () => "pong" }],
 * });
 * const app = createToolHandler(registry, {
 *   authorize: (request) =>
 *     request.headers.get("authorization") === "Bearer sesame"
 *       ? { role: "control" }
 *       : new Response(null, { status: 401 }),
 * });
 *
 * const response = await app.request("http://localhost/tools/ping/execute", {
 *   method: "POST",
 *   headers: { authorization: "Bearer sesame", "content-type": "application/json" },
 * });
 * assert.equal((await response.json()).content, "pong");
 * ```
 *
 * @param source A registry, which is followed as it changes, or a toolset.
 * @returns A Hono app: mount it with `app.route()`, or serve its `fetch`.
 * @throws {TypeError} If an option is unknown or wrong.
 */
export function createToolHandler(
  source: Registry | Toolset,
  options: ToolHandlerOptions = {},
): Hono {
  http.checkOptions("create a tool handler", options, CHECKS);
  const server = new http.ToolServer(source, options, {
    everyone: { explain: options.openExplain ?? false },
    bridge: options.tools && http.bridgeOnce(options.tools),
    createDispatcher: (own) => new ToolDispatcher(source, own),
  });
  const routes = new http.RoutedServer(server, partsOf(options));
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
  // Known routes skip Hono, which takes a sixth of a call's time. Hono answers all other requests.
  app.fetch = routes.fetchWith(app.fetch);
  return app;
}

function partsOf(options: ToolHandlerOptions): readonly http.HttpPart[] {
  const { bridge, explorer, formats, journal, parts = [], protectedResource } = options;
  return [
    ...http.sharedParts(options),
    http.serveExecution({
      startTask: options.tasks && http.runTasks,
      streamCall: http.streamCall,
      toolsetOf: http.bridgeByQuery(bridge),
    }),
    http.serveListing({ pageOf: http.queryPages({ formats, bridge }) }),
    http.serveExplanations(),
    http.serveCalls(),
    http.serveEvents(),
    http.serveMetrics(),
    ...(formats === undefined ? [] : [http.serveTurns(formats, bridge)]),
    ...(journal === undefined ? [] : [http.serveJournal(journal)]),
    ...(protectedResource === undefined ? [] : [http.serveProtectedResource(protectedResource)]),
    ...(explorer === undefined ? [] : [serveExplorer(explorer)]),
    http.serveHealth(),
    ...parts,
  ];
}
