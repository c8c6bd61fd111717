/**
 * Serves tools over HTTP with Hono: Workers, Deno, Bun and Node.
 *
 * @module
 */

export { createGuard, type GuardOptions } from "./guard.ts";
export { createToolHandler } from "./handler.ts";
export type { Authorize, Caller } from "./identity.ts";
export type { ToolHandlerOptions } from "./options.ts";
export type { Problem, ProblemCode } from "./problem.ts";
