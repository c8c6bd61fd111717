/**
 * What the requests of an MCP endpoint share: each begins with the caller, and what that caller
 * sees. Plain calls are answered here, and the SDK answers the rest.
 *
 * @module
 */

import { createMcpHandler } from "@modelcontextprotocol/server";
import type { ToolRegistry } from "../../registry/mod.ts";
import { Toolset } from "../../select/mod.ts";
import { Access } from "../hono/access.ts";
import { Exchange } from "../hono/exchange.ts";
import type { Caller } from "../hono/identity.ts";
import { createObserver, exchangeOf, type RequestObserver } from "../hono/observe.ts";
import { problemResponse } from "../hono/problem.ts";
import { isResponse, json } from "../hono/responses.ts";
import { isWorkers } from "../hono/runtime.ts";
import { StreamSlots } from "../hono/stream_slots.ts";
import { nextTraceParent, readTraceParent } from "../hono/traceparent.ts";
import { type McpEndpointOptions, type McpLimits, readMcpOptions } from "./endpoint_options.ts";
import type { McpExecutionContext } from "./endpoint.ts";
import { streamIfLate } from "./late_stream.ts";
import { ListChangedBus, listChangedStream } from "./list_changed.ts";
import { ListingWatch } from "./listing_watch.ts";
import { answerPlainCall, plainCallOf } from "./plain_call.ts";
import { Reading } from "./reading.ts";
import { refusalOf, specRefusalOf } from "./refusal.ts";
import { RegistryServer, type ServerParts, serverParts } from "./registry_server.ts";
import {
  cancelledIn,
  isInitialize,
  isJson,
  isListen,
  readJson,
  readText,
  requestsIn,
  targetOf,
  traceParentOf,
} from "./request.ts";
import { SessionCalls } from "./session_calls.ts";
import { McpToolLists } from "./tool_list.ts";
import { type McpVisit, sessionOf, withSession } from "./visit.ts";

/** What every request of one endpoint shares. */
export class McpService {
  readonly #access: Access;
  readonly #limits: McpLimits;
  readonly #calls: SessionCalls = new SessionCalls();
  readonly #lists: McpToolLists;
  readonly #parts: ServerParts;
  readonly #observer: RequestObserver | undefined;
  readonly #slots: StreamSlots;
  readonly #log: (error: unknown) => void;

  /** @throws {TypeError} If an option is unknown or wrong. */
  constructor(source: ToolRegistry | Toolset, options: McpEndpointOptions) {
    const { name = "plue", version = "0.0.0", title, instructions, observe } = options;
    this.#limits = readMcpOptions(options);
    const access = new Access(source, options);
    this.#access = access;
    this.#log = (error) => access.log(error);
    this.#observer = observe && createObserver(observe, this.#log);
    const { maxSubscriptions, maxSubscriptionsPerPrincipal } = this.#limits;
    this.#slots = new StreamSlots(
      maxSubscriptions,
      options.authorize === undefined ? maxSubscriptions : maxSubscriptionsPerPrincipal,
    );
    this.#lists = new McpToolLists((message) => access.log(new TypeError(message)));
    this.#parts = serverParts({ name, version, ...(title === undefined ? {} : { title }) }, {
      instructions,
      ttlMs: this.#limits.ttlMs,
      pageSize: this.#limits.pageSize,
      follows: !(source instanceof Toolset),
    });
  }

  /** @param contextOf Looks up the execution context; is asked when there is work to hand over. */
  answer(request: Request, env: unknown, contextOf: () => unknown): Promise<Response> {
    const respond = async (exchange: Exchange): Promise<Response> => {
      exchange.route = "/mcp";
      const { cors } = this.#access;
      if (cors !== undefined) exchange.headers.push(...cors.headersFor(request));
      return exchange.finish(await this.#respond(request, exchange, env, contextOf));
    };
    return this.#observer?.(request, respond) ?? respond(exchangeOf(request) ?? new Exchange());
  }

  async #respond(
    request: Request,
    exchange: Exchange,
    env: unknown,
    contextOf: () => unknown,
  ): Promise<Response> {
    const { guard, cors } = this.#access;
    const stopped = guard(request);
    if (stopped !== undefined) return problemResponse(stopped);
    if (request.method === "OPTIONS" && cors !== undefined) return cors.preflight(request);
    try {
      const caller = await this.#access.enter(request, env, exchange);
      if (isResponse(caller)) return caller;
      if (request.method === "GET") return this.#follow(request, caller);
      return await this.#serve(request, this.#visit(request, caller, exchange, contextOf));
    } catch (error) {
      return this.#access.answerThrown(error);
    }
  }

  /** Reads a request, and answers it. */
  async #serve(request: Request, visit: McpVisit): Promise<Response> {
    const { maxBodyBytes } = this.#limits;
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
    const response = await this.#answer(request, visit, body, text);
    const trace = readTraceParent(traceParentOf(body));
    // A call that is traced has its own place in it.
    if (trace !== undefined) visit.exchange.place ??= nextTraceParent(trace);
    return response;
  }

  /** Answers what a request says as it is, or has the SDK answer it. */
  async #answer(
    request: Request,
    visit: McpVisit,
    body: unknown,
    text: string | undefined,
  ): Promise<Response> {
    const { heartbeatMs } = this.#limits;
    const { headers } = request;
    const version = headers.get("mcp-protocol-version");
    let refusal = body === undefined ? undefined : refusalOf(body, version);
    const call = refusal === undefined ? plainCallOf(body, headers) : undefined;
    if (call === undefined) refusal ??= specRefusalOf(body, version);
    if (refusal !== undefined) {
      const { status, id, error } = refusal;
      return json({ jsonrpc: "2.0", id, error }, status);
    }
    const { caller, exchange } = visit;
    const limited = await this.#access.charge(caller, request, exchange, requestsIn(body) - 1);
    if (limited !== undefined) return limited;
    for (const requestId of cancelledIn(body)) this.#cancel(visit, requestId);
    // Aborts when the client goes away: by the runtime's word, or by leaving a stream.
    const left = new AbortController();
    const { signal } = request;
    if (signal.aborted) left.abort(signal.reason);
    else signal.addEventListener("abort", () => left.abort(signal.reason), { once: true });
    const list = call && visit.list("modern");
    const work = call !== undefined && list?.hasHeaderless(call.params.name) === true
      ? answerPlainCall(visit, list, call, this.#parts.info, left.signal)
      : this.#hand(request, visit, { body, text, signal: left.signal });
    if (headers.get("accept")?.includes("text/event-stream") !== true) return await work;
    return await streamIfLate(work, {
      patienceMs: isWorkers() ? WORKERS_PATIENCE_MS : heartbeatMs,
      heartbeatMs,
      signal,
      onLeave: () => left.abort(new DOMException("The client is gone", "AbortError")),
      onError: this.#log,
    });
  }

  /** Hands a request to the SDK, with a server that knows its caller. */
  async #hand(request: Request, visit: McpVisit, { body, text, signal }: {
    readonly body: unknown;
    readonly text: string | undefined;
    readonly signal: AbortSignal;
  }): Promise<Response> {
    const { maxBodyBytes, heartbeatMs } = this.#limits;
    const { url, method, headers } = request;
    const release = isListen(body) ? this.#slots.take(visit.caller.principal) : undefined;
    let isFollowing = false;
    // A handler for this request alone: its bus is the caller's, which the SDK does not tell apart.
    const handler = createMcpHandler(
      ({ era }) => new RegistryServer(this.#parts, visit, era, body),
      {
        keepAliveMs: heartbeatMs,
        maxRequestBodySize: maxBodyBytes,
        maxSubscriptions: release === undefined ? 0 : 1,
        bus: new ListChangedBus(() => {
          isFollowing = true;
          return this.#watch(visit.caller, release);
        }, (error) => {
          if (error !== undefined) this.#log(error);
          void handler.close();
        }),
        onerror: this.#log,
      },
    );
    const given = new Request(url, {
      method,
      headers,
      signal,
      ...(body === undefined && text !== undefined ? { body: text } : {}),
    });
    let answer: Response;
    try {
      answer = await handler.fetch(given, { parsedBody: body });
    } finally {
      if (!isFollowing) release?.();
    }
    if (!answer.headers.has("cache-control")) answer.headers.set("cache-control", "no-store");
    const response = visit.reading.of(answer);
    return isInitialize(body) && response.ok ? withSession(response) : response;
  }

  /** The older clients' stream of changes. The SDK has none for servers without state. */
  #follow(request: Request, caller: Caller): Response {
    const accepts = request.headers.get("accept")?.includes("text/event-stream") === true;
    const release = accepts && !(this.#access.source instanceof Toolset)
      ? this.#slots.take(caller.principal)
      : undefined;
    if (release === undefined) {
      // What the protocol has clients take for "no such stream here", and go on without.
      return problemResponse({
        status: 405,
        code: "method_not_allowed",
        detail: "There is no stream here: send requests by POST",
        headers: { allow: "POST" },
      });
    }
    return listChangedStream(this.#watch(caller, release), {
      heartbeatMs: this.#limits.heartbeatMs,
      signal: request.signal,
      expiresAt: caller.expiresAt,
      onError: this.#log,
    }).response;
  }

  /** Aborts the call that a client of a session has cancelled. */
  #cancel({ session, caller: { principal } }: McpVisit, requestId: unknown): void {
    if (session === undefined) return;
    this.#calls.cancel({ principal, session, requestId });
  }

  #visit(
    request: Request,
    caller: Caller,
    exchange: Exchange,
    contextOf: () => unknown,
  ): McpVisit {
    const access = this.#access;
    const toolset = access.toolsetOf(caller);
    return {
      caller,
      exchange,
      toolset,
      list: (era) => this.#lists.of(toolset.available(), targetOf(era, request)),
      dispatcher: access.dispatcherOf(toolset),
      executionClosed: access.executionClosed,
      session: sessionOf(request),
      calls: this.#calls,
      headers: request.headers,
      reading: new Reading(),
      report: this.#log,
      observe: (call) => access.observe(call),
      keepAlive(work) {
        const context = contextOf();
        if (isExecutionContext(context)) context.waitUntil(work);
      },
    };
  }

  #watch(caller: Caller, release: (() => void) | undefined): ListingWatch {
    return new ListingWatch({
      // Only a registry is watched: the server of a toolset does not offer it.
      registry: this.#access.source as ToolRegistry,
      list: () => this.#access.toolsetOf(caller).available(),
      expiresAt: caller.expiresAt,
      onStop: () => release?.(),
    });
  }
}

/** Workers hand one over; Bun puts its server there, and others nothing. */
function isExecutionContext(value: unknown): value is McpExecutionContext {
  return typeof (value as Partial<McpExecutionContext> | null | undefined)?.waitUntil ===
    "function";
}

/** Elsewhere the runtime says when a client is gone, and only a long silence needs a stream. */
const WORKERS_PATIENCE_MS = 20;
