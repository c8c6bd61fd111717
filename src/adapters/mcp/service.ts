/**
 * What every request of an MCP endpoint begins with: may it come in, who calls, and what does that
 * caller see. Then the SDK answers it.
 *
 * @module
 */

import { createMcpHandler } from "@modelcontextprotocol/server";
import { ToolDispatcher } from "../../execute/mod.ts";
import type { ToolRegistry } from "../../registry/mod.ts";
import { Toolset } from "../../select/mod.ts";
import { createGuard } from "../hono/guard.ts";
import { type Caller, ownerToolset, selectionOfCaller, ToolsetNarrower } from "../hono/identity.ts";
import { type Problem, problemResponse } from "../hono/problem.ts";
import { createRateLimiter, type RateLimiter } from "../hono/rate_limit.ts";
import { isResponse, json } from "../hono/responses.ts";
import { type McpEndpointOptions, type McpLimits, readMcpOptions } from "./endpoint_options.ts";
import type { McpExecutionContext } from "./endpoint.ts";
import { observeCall } from "./observe_call.ts";
import { streamIfLate } from "./late_stream.ts";
import { ListChangedBus, listChangedStream } from "./list_changed.ts";
import { ListingWatch } from "./listing_watch.ts";
import { answerPlainCall, plainCallOf } from "./plain_call.ts";
import { refusalOf } from "./refusal.ts";
import { RegistryServer, type ServerParts, serverParts } from "./registry_server.ts";
import { cancelledIn, isInitialize, isJson, readJson, readText, targetOf } from "./request.ts";
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

  async #serve(request: Request, caller: Caller, context: unknown): Promise<Response> {
    const { maxBodyBytes, heartbeatMs } = this.#limits;
    const { headers } = request;
    let body: unknown;
    let text: string | undefined;
    if (request.method === "POST" && isJson(request)) {
      text = await readText(request, maxBodyBytes);
      if (text === undefined) {
        return problemResponse({
          status: 413,
          code: "payload_too_large",
          detail: `The body must have at most ${maxBodyBytes} bytes`,
        });
      }
      // What is not JSON is for the SDK to refuse.
      body = readJson(text);
    }
    if (body !== undefined) {
      const refusal = refusalOf(body, headers.get("mcp-protocol-version"));
      if (refusal !== undefined) {
        const { status, id, error } = refusal;
        return json({ jsonrpc: "2.0", id, error }, status);
      }
    }
    const visit = this.#visit(request, caller, context);
    for (const requestId of cancelledIn(body)) this.#cancel(visit, requestId);
    // Aborts when the client goes away: by the runtime's word, or by leaving a stream.
    const left = new AbortController();
    const { signal } = request;
    if (signal.aborted) left.abort(signal.reason);
    else signal.addEventListener("abort", () => left.abort(signal.reason), { once: true });
    const call = plainCallOf(body, headers);
    const list = call && visit.list("modern");
    const work = call !== undefined && list?.hasHeaderless(call.params.name) === true
      ? answerPlainCall(visit, list, call, this.#parts.info, left.signal)
      : this.#hand(request, visit, { body, text, signal: left.signal });
    if (headers.get("accept")?.includes("text/event-stream") !== true) return await work;
    return await streamIfLate(work, {
      heartbeatMs,
      signal,
      onLeave: () => left.abort(new DOMException("The client is gone", "AbortError")),
      onError: (error) => this.#report(error),
    });
  }

  /** Hands a request to the SDK, with a server that knows its caller. */
  async #hand(request: Request, visit: McpVisit, { body, text, signal }: {
    readonly body: unknown;
    readonly text: string | undefined;
    readonly signal: AbortSignal;
  }): Promise<Response> {
    const { maxBodyBytes, heartbeatMs, maxSubscriptions } = this.#limits;
    const { url, method, headers } = request;
    // A handler for this request alone: its bus is the caller's, which the SDK does not tell apart.
    const handler = createMcpHandler(
      ({ era }) => new RegistryServer(this.#parts, visit, era),
      {
        keepAliveMs: heartbeatMs,
        maxRequestBodySize: maxBodyBytes,
        maxSubscriptions: this.#watches < maxSubscriptions ? 1 : 0,
        bus: new ListChangedBus(() => this.#watch(visit.caller), (error) => {
          if (error !== undefined) this.#report(error);
          void handler.close();
        }),
        onerror: (error) => this.#report(error),
      },
    );
    const given = new Request(url, {
      method,
      headers,
      signal,
      ...(body === undefined && text !== undefined ? { body: text } : {}),
    });
    const response = await handler.fetch(given, { parsedBody: body });
    return isInitialize(body) && response.ok ? withSession(response) : response;
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
  #cancel({ session, caller: { principal } }: McpVisit, requestId: unknown): void {
    if (session === undefined) return;
    this.#calls.cancel({ principal, session, requestId });
  }

  #visit(request: Request, caller: Caller, context: unknown): McpVisit {
    const toolset = this.#toolsetOf(caller);
    const { authorize, openExecution = false } = this.#options;
    return {
      caller,
      toolset,
      list: (era) => this.#lists.of(toolset.available(), targetOf(era, request)),
      dispatcher: this.#dispatcherOf(toolset),
      executionClosed: authorize === undefined && !openExecution,
      session: sessionOf(request),
      calls: this.#calls,
      headers: request.headers,
      report: (error) => this.#report(error),
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
