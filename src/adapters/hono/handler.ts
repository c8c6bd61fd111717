/**
 * Tools over HTTP: listing, search, explanation, execution, metrics, on every runtime that has
 * `fetch`. The routes are thin: what a caller sees is decided in `identity.ts`, what a call does
 * in the dispatcher.
 *
 * @module
 */

import type { Context } from "hono";
import { Hono } from "hono/tiny";
import { bodyLimit } from "hono/body-limit";
import { ToolDispatcher, type ToolDispatcherOptions } from "../../execute/mod.ts";
import type { ToolRegistry } from "../../registry/mod.ts";
import { type Selection, Toolset } from "../../select/mod.ts";
import { EnvelopeError, readEnvelope } from "./envelope.ts";
import { createGuard, type GuardOptions } from "./guard.ts";
import {
  type Authorize,
  type Caller,
  ownerToolset,
  selectionOfCaller,
  ToolsetNarrower,
} from "./identity.ts";
import { isCurrent, type Page, PageCache, toolPage } from "./listing.ts";
import {
  badRequest,
  noSuchTool,
  type Problem,
  problemOfFailure,
  problemResponse,
} from "./problem.ts";
import { QueryError, readListingQuery, refuseQuery } from "./query.ts";

/** Options for {@linkcode createToolHandler}. */
export interface ToolHandlerOptions extends GuardOptions {
  /** What is served of the source, before anything that a caller may see of it. */
  readonly selection?: Selection;
  /** Decides who calls, and so what that caller sees. */
  readonly authorize?: Authorize;
  /**
   * Lets callers execute although there is no `authorize`: for servers that only their own user
   * can reach.
   *
   * @default {false}
   */
  readonly openExecution?: boolean;
  /**
   * Lets every caller ask why a tool is hidden, and so learn that it exists. With `authorize`, a
   * caller's own `explain` says so.
   *
   * @default {false}
   */
  readonly openExplain?: boolean;
  /** Runs the calls. Absent: one is made of `dispatch`. */
  readonly dispatcher?: ToolDispatcher;
  /** Options for the dispatcher that is made. */
  readonly dispatch?: ToolDispatcherOptions;
  /**
   * How large a request's body may be, in bytes.
   *
   * @default {1_114_112}
   */
  readonly maxBodyBytes?: number;
  /**
   * Is told what was thrown while answering, by tools too unless `dispatch` has an `onError` of its
   * own, for the log. The client is told nothing of it.
   */
  onError?(error: unknown): void;
}

/** Who calls, and what that caller sees. */
interface Visit {
  readonly caller: Caller;
  readonly toolset: Toolset;
}

type Answer = (c: Context, visit: Visit) => Response | Promise<Response>;

/** The dispatcher's own bound on arguments, and room for the envelope. */
const MAX_BODY_BYTES = 1_114_112;

const OPTIONS: ReadonlySet<string> = new Set(
  Object.keys(
    {
      selection: 0,
      authorize: 0,
      openExecution: 0,
      openExplain: 0,
      dispatcher: 0,
      dispatch: 0,
      maxBodyBytes: 0,
      onError: 0,
      allowedHosts: 0,
      allowedOrigins: 0,
    } satisfies Record<keyof ToolHandlerOptions, 0>,
  ),
);

/**
 * Serves tools over HTTP.
 *
 * | route | answers |
 * |---|---|
 * | `GET /tools` | the caller's tools; filters, search and paging by query |
 * | `GET /tools/:id` | one of them |
 * | `GET /tools/:id/explain` | whether the caller sees a tool, and why not |
 * | `POST /tools/:id/execute` | the result of a call: `{"arguments": {…}}` |
 * | `GET /metrics` | what the calls of the caller's tools came to |
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
  for (const name of Object.keys(options)) {
    if (!OPTIONS.has(name)) {
      throw new TypeError(`Cannot create a tool handler: "${name}" is not an option`);
    }
  }
  const { authorize, openExecution = false, openExplain = false } = options;
  const { maxBodyBytes = MAX_BODY_BYTES } = options;
  if (!(Number.isSafeInteger(maxBodyBytes) && maxBodyBytes > 0)) {
    throw new TypeError(
      "Cannot create a tool handler: maxBodyBytes must be a whole number above 0",
    );
  }
  const guard = createGuard(options);
  // Nobody said who calls: then a registry's tools for certain roles and scopes are for nobody.
  const owned = ownerToolset(
    source,
    authorize === undefined && !(source instanceof Toolset)
      ? { role: null, scopes: [], ...options.selection }
      : options.selection,
  );
  const narrower = new ToolsetNarrower();
  const pages = new PageCache();
  const dispatcher = options.dispatcher ?? new ToolDispatcher(source, {
    onError: ({ error }) => options.onError?.(error),
    ...options.dispatch,
  });
  const views = new WeakMap<Toolset, ToolDispatcher>();

  function report(error: unknown): Response {
    try {
      options.onError?.(error);
    } catch {
      // A log that fails must not change the answer.
    }
    return problemResponse({
      status: 500,
      code: "internal",
      detail: "The server could not answer this request",
    });
  }

  async function visit(request: Request): Promise<Visit | Response> {
    if (authorize === undefined) return { caller: { explain: openExplain }, toolset: owned() };
    const caller = await authorize(request);
    // By shape: a Response may come from another realm or polyfill.
    if (isResponse(caller)) return caller;
    return { caller, toolset: narrower.narrow(owned(), selectionOfCaller(caller)) };
  }

  /** What every route but the health check begins with. */
  function route(answer: Answer): (c: Context) => Promise<Response> {
    return async (c) => {
      const stopped = guard(c.req.raw);
      if (stopped !== undefined) return problemResponse(stopped);
      try {
        const entered = await visit(c.req.raw);
        return isResponse(entered) ? entered : await answer(c, entered);
      } catch (error) {
        if (error instanceof QueryError || error instanceof EnvelopeError) {
          return problemResponse(badRequest(error.message));
        }
        return report(error);
      }
    };
  }

  const app = new Hono();

  app.get(
    "/tools",
    route((c, { toolset }) => {
      const query = readListingQuery(new URL(c.req.url).searchParams);
      const { selection } = query;
      const shown = selection === undefined ? toolset : narrower.narrow(toolset, selection);
      return pageResponse(c, pages.page(shown, query));
    }),
  );

  app.get(
    "/tools/:id",
    route((c, { toolset }) => {
      refuseQuery(new URL(c.req.url).searchParams);
      const id = toolIdOf(c);
      const tool = toolset.get(id);
      return tool === undefined || !toolset.isAvailable(tool)
        ? problemResponse(noSuchTool(id))
        : pageResponse(c, toolPage(tool));
    }),
  );

  app.get(
    "/tools/:id/explain",
    route((c, { caller, toolset }) => {
      refuseQuery(new URL(c.req.url).searchParams);
      const id = toolIdOf(c);
      // An explanation names hidden tools: only for callers who may know of them.
      if (caller.explain !== true && !toolset.has(id)) return problemResponse(noSuchTool(id));
      return json(toolset.explain(id));
    }),
  );

  app.post(
    "/tools/:id/execute",
    route(async (c, { caller, toolset }) => {
      refuseQuery(new URL(c.req.url).searchParams);
      if (authorize === undefined && !openExecution) return problemResponse(EXECUTION_CLOSED);
      const id = toolIdOf(c);
      const contentType = c.req.header("content-type") ?? "";
      if (!/^application\/json\s*(;|$)/i.test(contentType)) {
        return problemResponse(NOT_JSON);
      }
      // Taken before the body is limited: that may put another request in this one's place.
      const { signal } = c.req.raw;
      return await limited(c, maxBodyBytes, async () => {
        const call = readEnvelope(await c.req.text(), c.req.raw.headers);
        const callId = call.callId ?? crypto.randomUUID();
        let view = views.get(toolset);
        if (view === undefined) views.set(toolset, view = dispatcher.withToolset(toolset));
        const result = await view.dispatch(
          { name: id, arguments: call.arguments, callId },
          {
            sessionId: call.sessionId,
            messageId: call.messageId,
            idempotencyKey: call.idempotencyKey,
            principal: caller.principal,
            signal,
          },
        );
        if (result.ok) return json({ callId, ...result });
        return problemResponse(
          result.error.code === "unknown_tool" ? noSuchTool(id) : problemOfFailure(result, callId),
        );
      });
    }),
  );

  app.get(
    "/metrics",
    route((c, { toolset }) => {
      refuseQuery(new URL(c.req.url).searchParams);
      const { tools, ...totals } = dispatcher.metrics();
      const visible = tools.filter(({ id }) => toolset.has(id));
      // Totals count the calls of hidden tools too, so only their owner's view has them.
      return json(visible.length === tools.length ? { ...totals, tools } : { tools: visible });
    }),
  );

  app.get("/healthz", () => json({ status: "ok" }));

  for (const path of ["/tools", "/tools/:id", "/tools/:id/explain", "/metrics", "/healthz"]) {
    app.all(path, () => methodNotAllowed("GET, HEAD"));
  }
  app.all("/tools/:id/execute", () => methodNotAllowed("POST"));
  app.notFound(() =>
    problemResponse({ status: 404, code: "not_found", detail: "There is no such route" })
  );
  app.onError((error) => report(error));
  return app;
}

const EXECUTION_CLOSED: Problem = {
  status: 403,
  code: "execution_closed",
  detail: "This server lists tools and does not execute them: its owner sets authorize, or " +
    "openExecution: true, to open execution",
};

const NOT_JSON: Problem = {
  status: 415,
  code: "unsupported_media_type",
  detail: 'The body must be JSON, with the header "content-type: application/json"',
};

function methodNotAllowed(allow: string): Response {
  return problemResponse({
    status: 405,
    code: "method_not_allowed",
    detail: `This route takes ${allow}`,
    headers: { allow },
  });
}

/** Answers with `answer`, or says that the body is too large before it is read whole. */
async function limited(
  c: Context,
  maxSize: number,
  answer: () => Promise<Response>,
): Promise<Response> {
  let response: Response | undefined;
  const stopped = await bodyLimit({
    maxSize,
    onError: () =>
      problemResponse({
        status: 413,
        code: "payload_too_large",
        detail: `The body must have at most ${maxSize} bytes`,
      }),
  })(c, async () => {
    response = await answer();
  });
  return response ?? stopped as Response;
}

function isResponse(value: Visit | Caller | Response): value is Response {
  return typeof value === "object" && value !== null && "headers" in value && "status" in value;
}

function toolIdOf(c: Context): string {
  return c.req.param("id") ?? "";
}

function pageResponse(c: Context, page: Page): Response {
  const headers = {
    etag: page.etag,
    "cache-control": "private, no-cache",
    // Who calls decides what is listed.
    vary: "authorization, origin",
  };
  return isCurrent(c.req.raw.headers.get("if-none-match"), page.etag)
    ? new Response(null, { status: 304, headers })
    : new Response(page.body, { headers: { ...headers, "content-type": "application/json" } });
}

function json(value: unknown): Response {
  return new Response(JSON.stringify(value), {
    headers: { "content-type": "application/json", "cache-control": "no-store" },
  });
}
