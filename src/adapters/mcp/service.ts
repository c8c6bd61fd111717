/**
 * What every request of an MCP endpoint begins with: may it come in, who calls, and what does that
 * caller see. Then the SDK answers it.
 *
 * @module
 */

import { createMcpHandler, readRequestBody } from "@modelcontextprotocol/server";
import { ToolDispatcher } from "../../execute/mod.ts";
import type { ToolRegistry } from "../../registry/mod.ts";
import { Toolset } from "../../select/mod.ts";
import { createGuard } from "../hono/guard.ts";
import { type Caller, ownerToolset, selectionOfCaller, ToolsetNarrower } from "../hono/identity.ts";
import { type Problem, problemResponse } from "../hono/problem.ts";
import { createRateLimiter, type RateLimiter } from "../hono/rate_limit.ts";
import { isResponse } from "../hono/responses.ts";
import { type McpEndpointOptions, type McpLimits, readMcpOptions } from "./endpoint_options.ts";
import type { McpExecutionContext } from "./endpoint.ts";
import { observeCall } from "./observe_call.ts";
import { ListChangedBus, listChangedStream } from "./list_changed.ts";
import { ListingWatch } from "./listing_watch.ts";
import { RegistryServer, type ServerParts, serverParts } from "./registry_server.ts";
import { cancelledIn, isInitialize, isJson, readJson, targetOf } from "./request.ts";
import { SessionCalls } from "./session_calls.ts";
import { McpToolLists } from "./tool_list.ts";
import { type McpVisit, sessionOf, withSession } from "./visit.ts";

/** What every request of one endpoint shares. */
export class McpService {
  readonly #source: ToolRegistry | Toolset;
  readonly #options: McpEndpointOptions;
  readonly #limits: McpLimits;
  readonly #guard: (request: Request) => Problem | undefined;
  readonly #owned: () => Toolset;
  readonly #narrower: ToolsetNarrower = new ToolsetNarrower();
  readonly #dispatcher: ToolDispatcher;
  readonly #views = new WeakMap<Toolset, ToolDispatcher>();
  readonly #calls: SessionCalls = new SessionCalls();
  readonly #lists: McpToolLists;
  readonly #parts: ServerParts;
  readonly #rateLimiter: RateLimiter | undefined;
  readonly #responseMode: "auto" | "sse";
  #watches = 0;

  constructor(source: ToolRegistry | Toolset, options: McpEndpointOptions) {
    const { name = "plue", version = "0.0.0", title, instructions } = options;
    this.#source = source;
    this.#options = options;
    this.#limits = readMcpOptions(options);
    this.#guard = createGuard(options);
    this.#rateLimiter = options.rateLimit && createRateLimiter(options.rateLimit);
    // Nobody said who calls: then a registry's tools for certain roles and scopes are for nobody.
    this.#owned = ownerToolset(
      source,
      options.authorize === undefined && !(source instanceof Toolset)
        ? {
          ...options.selection,
          role: options.selection?.role ?? null,
          scopes: options.selection?.scopes ?? [],
        }
        : options.selection,
    );
    this.#dispatcher = options.dispatcher ?? new ToolDispatcher(source, {
      onError: ({ error }) => this.#report(error),
      ...options.dispatch,
    });
    this.#lists = new McpToolLists((message) => this.#report(new TypeError(message)));
    this.#parts = serverParts({ name, version, ...(title === undefined ? {} : { title }) }, {
      instructions,
      ttlMs: this.#limits.ttlMs,
      pageSize: this.#limits.pageSize,
      follows: !(source instanceof Toolset),
    });
    // Workers notice only when they write that a client is gone, and only a stream can be written to.
    this.#responseMode = isWorkers() ? "sse" : "auto";
  }

  async answer(request: Request, context: unknown): Promise<Response> {
    const stopped = this.#guard(request);
    if (stopped !== undefined) return problemResponse(stopped);
    try {
      const { authorize } = this.#options;
      const caller: Caller | Response = authorize === undefined ? {} : await authorize(request);
      if (isResponse(caller)) return caller;
      const limited = await this.#rateLimiter?.(caller, request);
      if (limited?.problem !== undefined) {
        const { problem, headers } = limited;
        return problemResponse({
          ...problem,
          headers: { ...problem.headers, ...Object.fromEntries(headers) },
        });
      }
      if (request.method === "GET") return this.#follow(request, caller);
      return await this.#serve(request, caller, context);
    } catch (error) {
      this.#report(error);
      return problemResponse({
        status: 500,
        code: "internal",
        detail: "The server could not answer this request",
      });
    }
  }

  /** Hands a request to the SDK, with a server that knows its caller. */
  async #serve(request: Request, caller: Caller, context: unknown): Promise<Response> {
    const { maxBodyBytes, heartbeatMs, maxSubscriptions } = this.#limits;
    let given = request;
    let parsedBody: unknown;
    if (request.method === "POST" && isJson(request)) {
      const read = await readRequestBody(request, maxBodyBytes);
      if (read.tooLarge) {
        return problemResponse({
          status: 413,
          code: "payload_too_large",
          detail: `The body must have at most ${maxBodyBytes} bytes`,
        });
      }
      parsedBody = readJson(read.text);
      if (parsedBody === undefined) {
        // What is not JSON is for the SDK to refuse.
        const { url, method, headers } = request;
        given = new Request(url, { method, headers, body: read.text });
      }
    }
    const visit = this.#visit(request, caller, context);
    for (const requestId of cancelledIn(parsedBody)) this.#cancel(visit, requestId);
    // A handler for this request alone: its bus is the caller's, which the SDK does not tell apart.
    const handler = createMcpHandler(
      ({ era }) => {
        const { toolset } = visit;
        const target = targetOf(era, request);
        return new RegistryServer(this.#parts, {
          ...visit,
          list: () => this.#lists.of(toolset.available(), target),
        });
      },
      {
        responseMode: this.#responseMode,
        keepAliveMs: heartbeatMs,
        maxRequestBodySize: maxBodyBytes,
        maxSubscriptions: this.#watches < maxSubscriptions ? 1 : 0,
        bus: new ListChangedBus(() => this.#watch(caller), (error) => {
          if (error !== undefined) this.#report(error);
          void handler.close();
        }),
        onerror: (error) => this.#report(error),
      },
    );
    const response = await handler.fetch(given, { parsedBody });
    return isInitialize(parsedBody) && response.ok ? withSession(response) : response;
  }

  /** The older clients' stream of changes. The SDK has none for servers without state. */
  #follow(request: Request, caller: Caller): Response {
    const { heartbeatMs, maxSubscriptions } = this.#limits;
    const accepts = request.headers.get("accept")?.includes("text/event-stream") === true;
    if (!accepts || this.#source instanceof Toolset || this.#watches >= maxSubscriptions) {
      // What the protocol has clients take for "no such stream here", and go on without.
      return problemResponse({
        status: 405,
        code: "method_not_allowed",
        detail: "There is no stream here: send requests by POST",
        headers: { allow: "POST" },
      });
    }
    return listChangedStream(this.#watch(caller), {
      heartbeatMs,
      signal: request.signal,
      expiresAt: caller.expiresAt,
      onError: (error) => this.#report(error),
    }).response;
  }

  /** Aborts the call that a client of a session has cancelled. */
  #cancel({ session, caller: { principal } }: Omit<McpVisit, "list">, requestId: unknown): void {
    if (session === undefined) return;
    this.#calls.cancel({ principal, session, requestId });
  }

  #visit(request: Request, caller: Caller, context: unknown): Omit<McpVisit, "list"> {
    const toolset = this.#toolsetOf(caller);
    const { authorize, openExecution = false } = this.#options;
    return {
      caller,
      toolset,
      dispatcher: this.#dispatcherOf(toolset),
      executionClosed: authorize === undefined && !openExecution,
      session: sessionOf(request),
      calls: this.#calls,
      headers: request.headers,
      observe: (call) => observeCall(this.#options.telemetry, call, (error) => this.#report(error)),
      keepAlive(work) {
        if (isExecutionContext(context)) context.waitUntil(work);
      },
    };
  }

  /** What a caller sees of the owner's tools of this moment. */
  #toolsetOf(caller: Caller): Toolset {
    return this.#options.authorize === undefined
      ? this.#owned()
      : this.#narrower.narrow(this.#owned(), selectionOfCaller(caller));
  }

  #dispatcherOf(toolset: Toolset): ToolDispatcher {
    let view = this.#views.get(toolset);
    if (view === undefined) this.#views.set(toolset, view = this.#dispatcher.withToolset(toolset));
    return view;
  }

  #watch(caller: Caller): ListingWatch {
    this.#watches++;
    return new ListingWatch({
      // Only a registry is watched: the server of a toolset does not offer it.
      registry: this.#source as ToolRegistry,
      list: () => this.#toolsetOf(caller).available(),
      expiresAt: caller.expiresAt,
      onStop: () => void this.#watches--,
    });
  }

  #report(error: unknown): void {
    try {
      this.#options.onError?.(error);
    } catch {
      // A log that fails must not change the answer.
    }
  }
}

/** Workers hand one over; Bun puts its server there, and others nothing. */
function isExecutionContext(value: unknown): value is McpExecutionContext {
  return typeof (value as Partial<McpExecutionContext> | null | undefined)?.waitUntil ===
    "function";
}

function isWorkers(): boolean {
  const { navigator } = globalThis as { readonly navigator?: { readonly userAgent?: unknown } };
  return navigator?.userAgent === "Cloudflare-Workers";
}
