/**
 * The edge service, the same on every runtime: tools over HTTP, for MCP clients and in the
 * providers' formats.
 *
 * Callers with the token may list and call. If no token is configured, all callers may list, but
 * not call.
 */

import type { Hono } from "hono";
import { ToolDispatcher, ToolRegistry } from "../../mod.ts";
import {
  type AccessEntry,
  bearerAuth,
  createToolHandler,
  MemoryRateLimitStore,
  type RateLimitStore,
  serveFormats,
} from "../../src/adapters/hono/mod.ts";
import { createMcpEndpoint } from "../../src/adapters/mcp/mod.ts";
import * as formats from "../../src/formats/mod.ts";
import { edgeTools } from "./tools.ts";

const registry = new ToolRegistry({ tools: edgeTools });
// A worker may generate code while its module loads, but not during a request.
registry.compile();

/** Options for {@linkcode createEdgeApp}. */
export interface EdgeAppOptions {
  /** The token of `Authorization: Bearer …`: 16 or more visible characters. */
  readonly token: string | undefined;
  /**
   * The maximum number of requests per minute.
   *
   * @default {600}
   */
  readonly requestsPerMinute?: number;
  /** Counts requests. @default {each process counts its own} */
  readonly rateLimits?: RateLimitStore;
  /**
   * Receives an entry for each request.
   *
   * @default {prints a line of JSON}
   */
  readonly access?: (entry: AccessEntry) => void;
}

/**
 * Makes the app.
 *
 * @throws {TypeError} If the token is too weak.
 */
export function createEdgeApp(options: EdgeAppOptions): Hono {
  const {
    token = "",
    requestsPerMinute = 600,
    rateLimits = new MemoryRateLimitStore(),
    access = (entry) => console.log(JSON.stringify(entry)),
  } = options;
  /** The same access, limits and metrics over HTTP and over MCP. */
  const shared = {
    selection: { maxRisk: "low" },
    // The platform routes only its own names to this app, and the token authorizes callers.
    allowedHosts: "any",
    dispatcher: new ToolDispatcher(registry, { onError: ({ error }) => console.error(error) }),
    rateLimit: {
      limit: requestsPerMinute,
      windowMs: 60_000,
      store: rateLimits,
    },
    observe: { access },
    onError: (error: unknown) => console.error(error),
    ...(token === "" ? {} : {
      authorize: bearerAuth({ tokens: new Map([[token, { principal: "edge" }]]) }),
    }),
  } as const;
  const mcp = createMcpEndpoint(registry, { ...shared, name: "plue-edge" });
  const app = createToolHandler(registry, {
    ...shared,
    formats: serveFormats(formats, { openapi: { title: "plue on the edge" } }),
  });
  app.all("/mcp", mcp.handle);
  return app;
}
