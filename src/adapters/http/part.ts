/**
 * The parts of a handler. Each one is a feature in a file of its own: a handler without it neither
 * loads nor runs it.
 *
 * @module
 */

import type { RequestObserver } from "./observe.ts";
import type { RateLimiter } from "./rate_limit.ts";
import type { ToolRequest, ToolServer } from "./request.ts";
import type { Header } from "./responses.ts";

/** Answers a request whose caller is known. What it throws becomes a problem. */
export type RequestAnswer = (request: ToolRequest) => Response | Promise<Response>;

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

/** What a part adds to its server. */
export interface PartHooks {
  readonly routes?: readonly (Route | PublicRoute)[];
  /** Surrounds the answer to every request, also to those that no route answers. */
  readonly around?: RequestObserver;
  /** Returns headers for every response to a request. */
  readonly headers?: (request: Request) => readonly Header[];
  /** Answers the preflight requests of browsers, whatever their path. */
  readonly preflight?: (request: Request) => Response;
  /** Counts the requests and calls of a caller, and refuses those that are too many. */
  readonly charge?: RateLimiter;
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
