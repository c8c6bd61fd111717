/**
 * The parts of a handler. Each one is a feature in a file of its own: a handler without it neither
 * loads nor runs it.
 *
 * @module
 */

import type { RequestAnswer, ServerHooks, ToolServer } from "./request.ts";

/** A route for callers that the server admits. */
export interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  /**
   * The path. It has at most one parameter, which is a whole segment: `/tools/:id/execute`. The answer
   * finds the value in `request.param`.
   */
  readonly path: string;
  readonly answer: RequestAnswer;
}

/** A route whose answer does not depend on the caller, and for which nobody has to be authorized. */
export interface PublicRoute {
  readonly method: "GET";
  readonly path: string;
  readonly answerPublic: (request: Request) => Response;
  /**
   * True for a route that also answers requests to other hosts than `allowedHosts`.
   *
   * @default {false}
   */
  readonly anyHost?: boolean;
}

/** The additions of a part to its server. */
export interface PartHooks extends ServerHooks {
  readonly routes?: readonly (Route | PublicRoute)[];
}

/**
 * A part of a handler. It is called once for each handler.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { composeToolHandler, type HttpPart } from "@plue/tools/hono";
 *
 * const serveCount: HttpPart = () => ({
 *   routes: [{
 *     method: "GET",
 *     path: "/count",
 *     answer: ({ toolset }) => Response.json({ count: toolset.tools.length }),
 *   }],
 * });
 * const registry = new ToolRegistry({ tools: [{ name: "ping", description: "Answers." }] });
 * const { fetch } = composeToolHandler(registry, { parts: [serveCount] });
 *
 * const response = await fetch(new Request("http://localhost/count"));
 * assert.deepEqual(await response.json(), { count: 1 });
 * ```
 */
export type HttpPart = (server: ToolServer) => PartHooks;

/**
 * Installs parts in a server.
 *
 * @returns Their routes.
 */
export function installParts(
  server: ToolServer,
  parts: readonly HttpPart[],
): readonly (Route | PublicRoute)[] {
  return parts.flatMap((part) => {
    const { routes = [], ...hooks } = part(server);
    server.install(hooks);
    return routes;
  });
}
