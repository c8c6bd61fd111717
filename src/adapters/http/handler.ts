/** Makes a handler of HTTP requests from parts, and has the options that all protocols share. */

import type { Registry } from "../../registry/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import * as check from "../../tool/mod.ts";
import { attemptOr, fail, isFunction, isListOf } from "../../tool/mod.ts";
import { type ObserveOptions, observeRequests } from "./observe.ts";
import { checkObject, checkOptions, SERVER_CHECKS, type ServerOptions } from "./options.ts";
import { allowCrossOrigin } from "./origins.ts";
import { limitRate, type RateLimitOptions } from "./rate_limit.ts";
import {
  type HttpPart,
  type PublicRoute,
  type RequestContext,
  type Route,
  ToolServer,
} from "./request.ts";
import { methodNotAllowed, type Problem, problemResponse, withHeaders } from "./responses.ts";

export interface HttpOptions extends ServerOptions {
  /** The limit on the requests of one caller. A turn counts each of its calls. @default {no limit} */
  readonly rateLimit?: RateLimitOptions;
  /** Traces, measures and logs requests. `GET /metrics` works without it. */
  readonly observe?: ObserveOptions;
  /** True if pages of the origins in `allowedOrigins` may read the responses. @default {false} */
  readonly cors?: boolean;
}

export const HTTP_CHECKS: { readonly [Option in keyof HttpOptions]-?: check.Check } = {
  ...SERVER_CHECKS,
  rateLimit: checkObject,
  observe: checkObject,
  cors: check.checkFlag,
};

export function sharedParts(
  { observe, cors, rateLimit, tasks, taskAfterMs }: HttpOptions,
): readonly HttpPart[] {
  if (taskAfterMs !== undefined && tasks === undefined) {
    fail("serve tools", "taskAfterMs has no effect without tasks");
  }
  return [
    ...(observe === undefined ? [] : [observeRequests(observe)]),
    ...(cors === true ? [allowCrossOrigin()] : []),
    ...(rateLimit === undefined ? [] : [limitRate(rateLimit)]),
  ];
}

/** Options for {@linkcode composeToolHandler}. */
export interface ComposedHandlerOptions extends ServerOptions {
  /** Functions that add routes and hooks, such as `serveListing()` and `serveExecution()`. */
  readonly parts: readonly HttpPart[];
}

export const checkParts: check.Check<readonly HttpPart[]> = check.createCheck(
  "a list of parts, such as serveListing()",
  (value): value is readonly HttpPart[] =>
    isListOf(value, (part): part is HttpPart => isFunction(part)),
);

const CHECKS = {
  ...SERVER_CHECKS,
  parts: checkParts,
} satisfies { readonly [Option in keyof ComposedHandlerOptions]-?: check.Check };

/** A handler of requests. Workers, Deno and Bun can serve it directly. */
export interface HttpHandler {
  /**
   * Answers a request.
   *
   * @param env The runtime's second argument, which `authorize` receives.
   * @param executionCtx The execution context of Workers.
   */
  fetch(request: Request, env?: unknown, executionCtx?: unknown): Response | Promise<Response>;
}

/**
 * Serves tools over HTTP with the given parts, and without Hono. A bundle contains only these parts,
 * while `createToolHandler` contains all parts.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { composeToolHandler, serveExecution, serveListing } from "@plue/tools/hono";
 *
 * const registry = new ToolRegistry({ tools: [{ name: "ping", description: "Answers." }] });
 * const parts = [serveExecution(), serveListing()];
 * const handler = composeToolHandler(registry, { openExecution: true, parts });
 * // `export default handler` on Workers and Bun, `Deno.serve(handler.fetch)`.
 *
 * const response = await handler.fetch(new Request("http://localhost/tools"));
 * assert.equal((await response.json()).tools[0].id, "ping");
 * ```
 *
 * @param source A registry, which is followed as it changes, or a toolset.
 * @throws {TypeError} If an option is unknown or wrong.
 */
export function composeToolHandler(
  source: Registry | Toolset,
  options: ComposedHandlerOptions,
): HttpHandler {
  checkOptions("compose a tool handler", options, CHECKS);
  const routes = new RoutedServer(new ToolServer(source, options), options.parts);
  return { fetch: routes.fetchWith((raw) => routes.answerNone(raw)) };
}

const NO_ROUTE: Problem = { status: 404, code: "not_found", detail: "There is no such route" };

export class RoutedServer {
  readonly server: ToolServer;
  readonly paths: readonly RoutedPath[];
  readonly #ordered: readonly RoutedPath[];

  constructor(server: ToolServer, parts: readonly HttpPart[]) {
    this.server = server;
    const paths = new Map<string, RoutedPath>();
    for (const route of parts.flatMap((part) => server.install(part))) {
      const known = paths.get(route.path);
      if (known === undefined) paths.set(route.path, new RoutedPath(server, route));
      else known.add(route);
    }
    this.paths = [...paths.values()];
    // Most requests are calls, whose path has a parameter.
    this.#ordered = this.paths.toSorted((a, b) => Number(!a.param) - Number(!b.param));
  }

  answer(context: RequestContext): Response | Promise<Response> | undefined {
    const { raw } = context.req;
    const { preflight } = this.server;
    if (preflight !== undefined && raw.method === "OPTIONS") {
      return this.server.answerPublic(raw, undefined, () => preflight(raw));
    }
    const path = pathOf(raw.url);
    for (const routed of this.#ordered) {
      const param = routed.paramIn(path);
      if (param === undefined) continue;
      const decode = (): string => decodeURIComponent(param);
      return routed.answer(context, param.includes("%") ? attemptOr(param, decode) : param);
    }
    return undefined;
  }

  fetchWith(other: HttpHandler["fetch"]): HttpHandler["fetch"] {
    const { around } = this.server;
    return (raw, env, executionCtx) => {
      const context = { req: { raw }, env, executionCtx };
      return around === undefined
        ? this.answer(context) ?? other(raw, env, executionCtx)
        : around(raw, () => this.answer(context) ?? other(raw, env, executionCtx));
    };
  }

  answerNone(raw: Request): Response | Promise<Response> {
    const response = this.server.open(raw, () => problemResponse(NO_ROUTE));
    return raw.method === "HEAD" ? headOf(response) : response;
  }
}

export class RoutedPath {
  readonly path: string;
  readonly param: string | undefined;
  readonly #before: string;
  readonly #after: string;
  readonly #server: ToolServer;
  readonly #methods: Map<string, Route | PublicRoute> = new Map();

  constructor(server: ToolServer, route: Route | PublicRoute) {
    const { path } = route;
    const [before = "", param, after = ""] = path.split(/:(\w+)/);
    this.path = path;
    this.param = param;
    this.#before = before;
    this.#after = after;
    this.#server = server;
    this.add(route);
  }

  add(route: Route | PublicRoute): void {
    this.#methods.set(route.method, route);
  }

  /** Returns the encoded parameter in a path, `""` without one; `undefined` for other paths. */
  paramIn(path: string): string | undefined {
    if (this.param === undefined) return path === this.path ? "" : undefined;
    const before = this.#before;
    const after = this.#after;
    if (!path.startsWith(before) || !path.endsWith(after)) return undefined;
    const value = path.slice(before.length, path.length - after.length);
    return value === "" || value.includes("/") ? undefined : value;
  }

  answer(context: RequestContext, param?: string): Response | Promise<Response> {
    const { raw } = context.req;
    const isHead = raw.method === "HEAD";
    const route = this.#methods.get(isHead ? "GET" : raw.method);
    const response = route === undefined
      ? this.#server.open(raw, () => methodNotAllowed(this.#allow()))
      : "answer" in route
      ? this.#server.answer(context, this.path, route.answer, param)
      : this.#answerPublic(raw, route);
    return isHead ? headOf(response) : response;
  }

  #answerPublic(raw: Request, { answerPublic, anyHost }: PublicRoute): Response {
    return anyHost === true
      ? this.#server.open(raw, () => answerPublic(raw))
      : this.#server.answerPublic(raw, this.path, () => answerPublic(raw));
  }

  #allow(): string {
    return [...this.#methods.keys()].join(", ").replace("GET", "GET, HEAD");
  }
}

function pathOf(url: string): string {
  const start = url.indexOf("/", 8);
  const query = url.indexOf("?", start);
  const path = query === -1 ? url.slice(start) : url.slice(start, query);
  const hash = path.indexOf("#");
  return hash === -1 ? path : path.slice(0, hash);
}

/** The response to HEAD, with the length of the body of GET. Otherwise the runtime would send 0. */
async function headOf(answer: Response | Promise<Response>): Promise<Response> {
  const response = await answer;
  if (response.body === null) return response;
  const { status, headers } = response;
  const { byteLength } = await response.arrayBuffer();
  return withHeaders(new Response(null, { status, headers }), [
    ["content-length", String(byteLength)],
  ]);
}
