/**
 * The edge service, the same on every runtime: tools over HTTP, for MCP clients and in the
 * providers' formats, and who may call them.
 *
 * Whoever presents the token may list and call. Without a token being configured, everybody may
 * list, and nobody may call.
 *
 * @module
 */

import type { Hono } from "hono";
import { ToolDispatcher, ToolRegistry } from "../../mod.ts";
import {
  type AccessEntry,
  bearerAuth,
  createToolHandler,
  MemoryRateLimitStore,
  serveFormats,
} from "../../src/adapters/hono/mod.ts";
import { createMcpEndpoint } from "../../src/adapters/mcp/mod.ts";
import * as formats from "../../src/formats/mod.ts";
import { edgeTools } from "./tools.ts";

const registry = new ToolRegistry({ tools: edgeTools });
// A worker may generate code while its module loads, and not while it answers a request.
registry.compile();

/** Options for {@linkcode createEdgeApp}. */
export interface EdgeAppOptions {
  /** What callers must present as `Authorization: Bearer …`: 16 or more visible characters. */
  readonly token: string | undefined;
  /**
   * How many requests a minute may come; on Workers to each isolate, until a store that they share
   * is handed in.
   *
   * @default {600}
   */
  readonly requestsPerMinute?: number;
  /**
   * Is told of each request.
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
    access = (entry) => console.log(JSON.stringify(entry)),
  } = options;
  /** Who may do what: the same over HTTP and over MCP, counted and measured together. */
  const shared = {
    selection: { maxRisk: "low" },
    // The platform routes only its own names here, and what counts is the token, not the name.
    allowedHosts: "any",
    dispatcher: new ToolDispatcher(registry, { onError: ({ error }) => console.error(error) }),
    rateLimit: {
      limit: requestsPerMinute,
      windowMs: 60_000,
      store: new MemoryRateLimitStore(),
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
