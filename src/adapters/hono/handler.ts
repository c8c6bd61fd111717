/**
 * Tools over HTTP, on every runtime that has `fetch`. The routes are thin: what a caller sees is
 * decided in `access.ts`, what a call does in the dispatcher.
 *
 * @module
 */

import { Hono } from "hono/tiny";
import type { ToolRegistry } from "../../registry/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import type { Route } from "./formats.ts";
import type { ToolHandlerOptions } from "./options.ts";
import { type Problem, problemResponse } from "./problem.ts";
import { metadataPaths, resourceMetadata } from "./protected_resource.ts";
import { json, methodNotAllowed, withHead } from "./responses.ts";
import { followTools } from "./routes/events.ts";
import { abortExecution, executeTool } from "./routes/execution.ts";
import { explainTool, listTools, showTool } from "./routes/listing.ts";
import { showMetrics } from "./routes/metrics.ts";
import { ToolService } from "./service.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

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
 * | `POST /tools/:id/execute` | the result of a call: `{"arguments": {…}}`; with `Accept: text/event-stream` what happens meanwhile too |
 * | `POST /executions/:callId/abort` | aborts one of the caller's calls that run in this process |
 * | `GET /events` | how the caller's tools change, as an event stream |
 * | `GET /metrics` | what the calls of the caller's tools came to |
 * | `POST /dispatch/:target` | the messages to send back for a provider's response (with `formats`) |
 * | `GET /openapi.json` | the service in OpenAPI 3.1, with the caller's tools (with `formats`) |
 * | `GET /healthz` | that the server is up |
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
  source: ToolRegistry | Toolset,
  options: ToolHandlerOptions = {},
): Hono {
  const service = new ToolService(source, options);
  const { formats, protectedResource } = options;
  const app = new Hono();
  const { observer, preflight } = service;
  /** Says which method a route takes. One handler per request keeps Hono on its short way. */
  function refuseOthers(path: string, method: "GET" | "POST"): void {
    const others = METHODS.filter((other) => other !== method);
    const allow = method === "GET" ? "GET, HEAD" : method;
    app.on(others, path, withHead((c) => service.open(c, methodNotAllowed(allow))));
  }
  if (observer !== undefined) app.use("*", observer);
  if (preflight !== undefined) app.options("*", preflight);
  const routes: readonly Route[] = [
    ["GET", "/tools", listTools(service)],
    ["GET", "/tools/:id", showTool],
    ["GET", "/tools/:id/explain", explainTool],
    ["POST", "/tools/:id/execute", executeTool(service)],
    ["POST", "/executions/:callId/abort", abortExecution(service)],
    ["GET", "/events", followTools(service)],
    ["GET", "/metrics", showMetrics(service)],
    ...(formats?.routes(service) ?? []),
  ];
  for (const [method, path, answer] of routes) {
    const handle = service.route(path, answer);
    app.on(method, path, method === "GET" ? withHead(handle) : handle);
    refuseOthers(path, method);
  }
  if (protectedResource !== undefined) {
    const metadata = resourceMetadata(protectedResource);
    for (const path of metadataPaths(protectedResource.resource)) {
      app.get(path, withHead(service.publicRoute(path, () => json(metadata))));
      refuseOthers(path, "GET");
    }
  }
  app.get("/healthz", withHead((c) => service.open(c, json({ status: "ok" }))));
  refuseOthers("/healthz", "GET");
  app.notFound(withHead((c) => service.open(c, problemResponse(NO_ROUTE))));
  app.onError((error, c) => service.open(c, service.access.answerThrown(error)));
  return app;
}
