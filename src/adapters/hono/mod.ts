/**
 * Serves tools over HTTP with Hono: Workers, Deno, Bun and Node.
 *
 * @module
 */

export type { GuardOptions } from "./guard.ts";
export { createToolHandler, type ToolHandlerOptions } from "./handler.ts";
export type { Authorize, Caller } from "./identity.ts";
