/**
 * Tools for MCP clients, on every runtime that has `fetch`. The SDK speaks the protocol; what a
 * caller sees is decided in `service.ts`, and what a call does in the dispatcher.
 *
 * @module
 */

import type { ToolRegistry } from "../../registry/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import type { McpEndpointOptions } from "./endpoint_options.ts";
import { McpService } from "./service.ts";

/** What Workers hand to a handler beside the request. */
export interface McpExecutionContext {
  waitUntil(work: Promise<unknown>): void;
}

/** What a handler of Hono is given, as far as it is needed here. */
export interface McpHandlerContext {
  readonly req: { readonly raw: Request };
  readonly env: unknown;
  /** May throw where the runtime has none. */
  readonly executionCtx: unknown;
}

/** An MCP server over HTTP: what Workers, Deno and Bun serve as it is. */
export interface McpEndpoint {
  /** Answers a request in a Hono app, on every runtime: `app.all("/mcp", mcp.handle)`. */
  readonly handle: (c: McpHandlerContext) => Promise<Response>;
  /**
   * Answers a request.
   *
   * @param env What the runtime hands over beside the request; `authorize` is given it.
   * @param context The execution context, where there is one: cleanups of a call whose client is
   * gone then run in Workers too.
   */
  fetch(request: Request, env?: unknown, context?: unknown): Promise<Response>;
}

/**
 * Serves tools to MCP clients, of revision 2026-07-28 and of those before it (2024-11-05 to
 * 2025-11-25).
 *
 * | MCP | what it is here |
 * |---|---|
 * | `tools/list` | the caller's toolset, in order of id, page by page |
 * | `tools/call` | the dispatcher; a failure is a result with `isError`, so that the model reads it |
 * | progress, log messages | `context.progress`, and `context.metadata` and what a generator yields |
 * | cancellation | the call's signal: the closed stream, or `notifications/cancelled` |
 * | `subscriptions/listen`, the older `GET` stream | says when the caller's list has changed |
 *
 * Tools whose ids MCP cannot spell (`chain:status`) get names that it can (`chain.status`).
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { createMcpEndpoint } from "@plue/tools/mcp";
 *
 * const registry = new ToolRegistry({
 *   tools: [{ name: "ping", description: "Answers.", risk: "safe", execute: () => "pong" }],
 * });
 * // `app.all("/mcp", mcp.handle)` in a Hono app.
 * const mcp = createMcpEndpoint(registry, { name: "example", openExecution: true });
 *
 * const response = await mcp.fetch(
 *   new Request("http://localhost/mcp", {
 *     method: "POST",
 *     headers: {
 *       "content-type": "application/json",
 *       accept: "application/json, text/event-stream",
 *       "mcp-protocol-version": "2025-11-25",
 *     },
 *     body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "ping" } }),
 *   }),
 * );
 * assert.match(await response.text(), /"text":"pong"/);
 * ```
 *
 * @param source A registry, which is followed as it changes, or a toolset.
 * @param options Who may do what.
 * @throws {TypeError} If an option is unknown or wrong.
 */
export function createMcpEndpoint(
  source: ToolRegistry | Toolset,
  options: McpEndpointOptions = {},
): McpEndpoint {
  const service = new McpService(source, options);
  return {
    fetch: (request, env, context) => service.answer(request, env, () => context),
    handle: (c) => service.answer(c.req.raw, c.env, () => executionContextOf(c)),
  };
}

function executionContextOf(c: McpHandlerContext): unknown {
  try {
    return c.executionCtx;
  } catch {
    // Hono throws where the runtime has none: there, work goes on by itself.
    return undefined;
  }
}
