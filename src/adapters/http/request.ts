/**
 * A server and its requests. `ToolServer` checks the host and the origin, authorizes the caller, counts
 * the request and finds the caller's toolset. Routes and MCP receive a `ToolRequest`.
 */

import type { CallTasks } from "../../execute/durable/mod.ts";
import {
  type DispatchContext,
  Dispatcher,
  type DispatcherOptions,
  type ToolDispatcher,
} from "../../execute/mod.ts";
import type { Registry } from "../../registry/mod.ts";
import { Toolset } from "../../select/mod.ts";
import * as check from "../../tool/mod.ts";
import { isFunction, isObject, once } from "../../tool/mod.ts";
import { BodyReader, type BodySource, requireJson } from "./body.ts";
import {
  type Caller,
  checkAnswered,
  ownerToolset,
  ToolsetNarrower,
  withTenant,
} from "./identity.ts";
import type { ServerOptions } from "./options.ts";
import { createGuard } from "./origins.ts";
import type { RateLimiter } from "./rate_limit.ts";
import {
  records,
  type RequestCall,
  type RequestObserver,
  type RequestRecord,
  RunningCalls,
} from "./running_calls.ts";
import * as responses from "./responses.ts";
import { type Header, problemResponse } from "./responses.ts";
import { DEFAULT_HEARTBEAT_MS, IS_BUN, isBunServer, keepOpen } from "./runtime.ts";

/** The arguments of a runtime for one request, such as a context of Hono. */
export interface RequestContext {
  readonly req: BodySource;
  readonly env: unknown;
  /** Has `waitUntil` on Workers. Hono throws on other runtimes. */
  readonly executionCtx: unknown;
}

/** Responds to a request whose caller is known. An error becomes a problem. */
export type RequestAnswer = (request: ToolRequest) => Response | Promise<Response>;

/** A route for callers that the server admits. */
export interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  /**
   * The path. It has at most one parameter, a whole segment such as `:id` in `/tools/:id/execute`, whose
   * value is `request.param`.
   */
  readonly path: string;
  readonly answer: RequestAnswer;
}

/** A route whose response does not depend on the caller, and which needs no authorization. */
export interface PublicRoute {
  readonly method: "GET";
  readonly path: string;
  readonly answerPublic: (request: Request) => Response;
  /** True for a route that also answers requests to other hosts. @default {false} */
  readonly anyHost?: boolean;
}

/** The hooks that a part adds to its server. */
export interface PartHooks {
  readonly routes?: readonly (Route | PublicRoute)[];
  /** Called for every request, even if no route matches, with a function that makes the response. */
  readonly around?: RequestObserver;
  /** Returns headers for every response to a request. */
  readonly headers?: (request: Request) => readonly Header[];
  /** Answers the preflight requests of browsers, whatever their path. */
  readonly preflight?: (request: Request) => Response;
  /** Counts the requests and calls of a caller, and rejects them beyond the limit. */
  readonly charge?: RateLimiter;
  /** Members of `GET /metrics`, for callers with `explain`. */
  readonly metrics?: object;
}

/** A part of a handler: a function that returns routes and hooks, called once per handler. */
export type HttpPart = (server: ToolServer) => PartHooks;

/** Settings of a protocol. */
export interface ServerSetup {
  /** The caller without `authorize`. @default {{}} */
  readonly everyone?: Caller;
  readonly bridge?: ((toolset: Toolset) => Toolset) | undefined;
  /** Creates the dispatcher if the options have none. @default {one without layers} */
  readonly createDispatcher?: (options: DispatcherOptions) => Dispatcher;
}

/** Returns the dispatcher, for a part that needs the layers of `ToolDispatcher`. */
export function withAllLayers(dispatcher: Dispatcher, part: string): ToolDispatcher {
  // Not `instanceof`, because it would add all layers to every bundle.
  return "dispatchAll" in dispatcher
    ? dispatcher as ToolDispatcher
    : check.fail(`use ${part}`, "the dispatcher must be a ToolDispatcher");
}

const EXECUTION_CLOSED: responses.Problem = {
  status: 403,
  code: "execution_closed",
  detail: "This server only lists tools: neither authorize nor openExecution is set",
};

/** Stored by source: a call may outlive its handler, and be aborted by another one. */
const RUNNING = new WeakMap<Registry | Toolset, RunningCalls>();

/** The state that the requests of one handler or endpoint share. Each request passes through `answer`. */
export class ToolServer {
  readonly source: Registry | Toolset;
  readonly dispatcher: Dispatcher;
  readonly running: RunningCalls;
  /** True if the server has `authorize`. */
  readonly authorizes: boolean;
  readonly allowedOrigins: readonly string[];
  /** The reason why no caller may execute tools, if there is one. */
  readonly executionClosed: responses.Problem | undefined;
  readonly heartbeatMs: number;
  /** True if calls are traced. */
  readonly traces: boolean;
  readonly body: BodyReader;
  readonly tasks: CallTasks | undefined;
  readonly taskAfterMs: number | undefined;
  readonly maxStreams: number;
  readonly maxStreamsPerPrincipal: number;
  /** The members of `GET /metrics` that the installed parts add. */
  readonly metrics: object = {};
  /** The hooks of the installed parts. */
  around: RequestObserver | undefined;
  preflight: PartHooks["preflight"];
  readonly #options: ServerOptions;
  readonly #everyone: Caller;
  readonly #guard: (request: Request) => responses.Problem | undefined;
  readonly #ownerToolset: () => Toolset;
  readonly #narrower: ToolsetNarrower = new ToolsetNarrower();
  readonly #shown: (toolset: Toolset) => Toolset;
  readonly #headers: NonNullable<PartHooks["headers"]>[] = [];
  readonly #limiters: RateLimiter[] = [];
  readonly #views = new WeakMap<Toolset, Dispatcher>();

  /** @throws {TypeError | RangeError} If an option is invalid. */
  constructor(source: Registry | Toolset, options: ServerOptions, setup: ServerSetup = {}) {
    const { authorize, openExecution = false, selection } = options;
    this.source = source;
    this.running = once(RUNNING, source, () => new RunningCalls());
    this.#options = options;
    this.#everyone = setup.everyone ?? {};
    this.#shown = setup.bridge ?? ((toolset) => toolset);
    this.tasks = options.tasks;
    this.taskAfterMs = options.taskAfterMs;
    const { maxStreams = 1_024, maxStreamsPerPrincipal = Math.ceil(maxStreams / 16) } = options;
    this.maxStreams = maxStreams;
    // Without authorize, all callers are one principal.
    this.maxStreamsPerPrincipal = authorize === undefined ? Infinity : maxStreamsPerPrincipal;
    this.#guard = createGuard(options);
    this.allowedOrigins = options.allowedOrigins ?? [];
    this.authorizes = authorize !== undefined;
    this.executionClosed = authorize === undefined && !openExecution ? EXECUTION_CLOSED : undefined;
    // Without authorize, no caller has a role or a scope. A toolset has already decided about them.
    this.#ownerToolset = ownerToolset(
      source,
      authorize === undefined && !(source instanceof Toolset)
        ? { ...selection, role: selection?.role ?? null, scopes: selection?.scopes ?? [] }
        : selection,
    );
    if (options.dispatcher !== undefined && options.dispatch !== undefined) {
      check.fail("serve tools", "set dispatch or dispatcher, not both");
    }
    const { createDispatcher = (own) => new Dispatcher(source, own) } = setup;
    this.dispatcher = options.dispatcher ?? createDispatcher({
      onError: ({ error }) => this.log(error),
      ...options.dispatch,
    });
    this.traces = this.dispatcher.traces;
    this.heartbeatMs = options.heartbeatMs ?? DEFAULT_HEARTBEAT_MS;
    // The limit is the dispatcher's limit for arguments, plus space for the JSON around them.
    const { maxBodyBytes = 1_114_112, bodyTimeoutMs = 30_000 } = options;
    this.body = new BodyReader(maxBodyBytes, bodyTimeoutMs);
  }

  /** Installs a part, and returns its routes. `around` of an earlier part calls `around` of later ones. */
  install(part: HttpPart): readonly (Route | PublicRoute)[] {
    const { routes = [], around: inner, headers, preflight, charge, metrics } = part(this);
    const outer = this.around;
    const own = inner && this.#safely(inner);
    this.around = outer && own
      ? (request, answer) => outer(request, () => own(request, answer))
      : outer ?? own;
    this.preflight ??= preflight;
    if (headers !== undefined) this.#headers.push(headers);
    if (charge !== undefined) this.#limiters.push(charge);
    Object.assign(this.metrics, metrics);
    return routes;
  }

  /** Responds to an admitted request; rejects others. `route` is for the access log: `/tools/:id`. */
  answer(
    context: RequestContext,
    route: string,
    answer: RequestAnswer,
    param: string = "",
  ): Response | Promise<Response> {
    const { raw } = context.req;
    const record = records.get(raw);
    if (record !== undefined) record.route = route;
    let headers: Header[] = [];
    const failed = (error: unknown): Response =>
      responses.withHeaders(this.problemOf(error), headers);
    try {
      if (this.#headers.length > 0) headers = this.#headersFor(raw);
      const refused = this.#guard(raw);
      const entry = { context, record, headers, param, answer };
      const response = refused !== undefined
        ? problemResponse(refused)
        : this.#options.authorize === undefined
        ? this.#admit(entry, this.#everyone)
        : this.#authorize(entry, this.#options.authorize);
      // Returning a synchronous response directly saves a turn of the event loop.
      if (!(response instanceof Promise)) return this.#finish(response, headers);
      return response.then(
        (settled) =>
          headers.length === 0 && settled instanceof Response
            ? settled
            : this.#finish(settled, headers),
        failed,
      );
    } catch (error) {
      return failed(error);
    }
  }

  /** @throws {ProblemError} 403, if this server does not execute tools. */
  requireExecution(): void {
    if (this.executionClosed !== undefined) throw new responses.ProblemError(this.executionClosed);
  }

  /** Responds to a request without authorization, for public routes. */
  answerPublic(request: Request, route: string | undefined, answer: () => Response): Response {
    const record = records.get(request);
    if (record !== undefined && route !== undefined) record.route = route;
    const refused = this.#guard(request);
    return this.open(request, refused === undefined ? answer : () => problemResponse(refused));
  }

  /** Responds to a request to any host, without authorization. */
  open(request: Request, answer: () => Response): Response {
    try {
      return this.#finish(check.assertSync(answer()), this.#headersFor(request));
    } catch (error) {
      return this.problemOf(error);
    }
  }

  /** Returns the response for an error. Only a `ProblemError` is sent; statuses from 500 are logged. */
  problemOf(error: unknown): Response {
    const problem = responses.problemOfThrown(error);
    if (problem.status >= 500) this.log(error);
    return problemResponse(problem);
  }

  toolsetOf(caller: Caller): Toolset {
    return this.#shown(
      this.#options.authorize === undefined
        ? this.#ownerToolset()
        : this.#narrower.narrow(this.#ownerToolset(), caller),
    );
  }

  /** Returns the toolset of a caller with another role and scopes, for explanations only. */
  toolsetAs(caller: Caller, { role, scopes }: Pick<Caller, "role" | "scopes">): Toolset {
    const { authorize, selection } = this.#options;
    return this.#shown(
      authorize !== undefined
        ? this.#narrower.narrow(this.#ownerToolset(), { ...caller, role, scopes })
        : this.source instanceof Toolset
        ? this.#ownerToolset().narrow({ role, scopes })
        : this.source.select({ ...selection, role: role ?? null, scopes: scopes ?? [] }),
    );
  }

  /** Returns a dispatcher that runs only the tools of a toolset. */
  dispatcherOf(toolset: Toolset): Dispatcher {
    let view = this.#views.get(toolset);
    if (view === undefined) this.#views.set(toolset, view = this.dispatcher.withToolset(toolset));
    return view;
  }

  /** Counts requests or calls against a caller's rate; returns 429 if they are too many. */
  async charge(
    caller: Caller,
    request: Request,
    amount: number,
    answerHeaders: Header[],
  ): Promise<Response | undefined> {
    for (const limiter of amount > 0 ? this.#limiters : []) {
      const { headers, problem } = await limiter(caller, request, amount);
      answerHeaders.push(...headers);
      if (problem !== undefined) return problemResponse(problem);
    }
    return undefined;
  }

  /** Logs an error. Does not throw. */
  log(error: unknown): void {
    check.callHook(() => this.#options.onError?.(error), check.noop);
  }

  #finish(response: Response, headers: readonly Header[]): Response {
    const checked = responses.isResponse(response)
      ? response
      : this.problemOf(new TypeError("A part must return a Response"));
    return responses.withHeaders(checked, headers);
  }

  #headersFor(request: Request): Header[] {
    return this.#headers.flatMap((headers) => [...check.assertSync(headers(request))]);
  }

  #safely(around: RequestObserver): RequestObserver {
    return async (request, answer) => {
      try {
        return this.#finish(await around(request, answer), []);
      } catch (error) {
        return this.open(request, () => this.problemOf(error));
      }
    };
  }

  #authorize(
    entry: Entry,
    authorize: NonNullable<ServerOptions["authorize"]>,
  ): Response | Promise<Response> {
    const { context, record } = entry;
    const identify = (caller: Caller | Response): Response | Promise<Response> => {
      // `authorize` may return the same response for many requests, so headers are set on a copy.
      if (responses.isResponse(caller)) return responses.copyOf(caller);
      checkAnswered(caller);
      const named = withTenant(caller);
      if (record !== undefined) record.principal = named.principal;
      return this.#admit(entry, named);
    };
    const caller = authorize(context.req.raw, context.env);
    return check.isThenable(caller) ? Promise.resolve(caller).then(identify) : identify(caller);
  }

  #admit(entry: Entry, caller: Caller): Response | Promise<Response> {
    if (this.#limiters.length === 0) return entry.answer(new ToolRequest(this, entry, caller));
    const { context: { req: { raw } }, headers } = entry;
    return this.charge(caller, raw, 1, headers).then((refused) =>
      refused ?? entry.answer(new ToolRequest(this, entry, caller))
    );
  }
}

interface Entry {
  readonly context: RequestContext;
  readonly record: RequestRecord | undefined;
  readonly headers: Header[];
  readonly param: string;
  readonly answer: RequestAnswer;
}

/** An admitted request. */
export class ToolRequest {
  readonly server: ToolServer;
  readonly raw: Request;
  readonly caller: Caller;
  /** The caller's tools. Every response uses only this toolset. */
  readonly toolset: Toolset;
  /** The record for the access log; `undefined` if nothing observes the request. */
  readonly record: RequestRecord | undefined;
  /** Headers for the response. */
  readonly headers: Header[];
  /** The value of the parameter in the route's path, decoded; empty without a parameter. */
  readonly param: string;
  readonly #context: RequestContext;

  /** @ignore Made by {@linkcode ToolServer.answer}. */
  constructor(server: ToolServer, entry: Entry, caller: Caller) {
    this.server = server;
    this.raw = entry.context.req.raw;
    this.caller = caller;
    this.toolset = server.toolsetOf(caller);
    this.record = entry.record;
    this.headers = entry.headers;
    this.param = entry.param;
    this.#context = entry.context;
  }

  /** Runs the caller's tools. */
  get dispatcher(): Dispatcher {
    return this.server.dispatcherOf(this.toolset);
  }

  /** Returns the caller's current toolset; `toolset` is from the start of the request. */
  toolsetNow(): Toolset {
    return this.server.toolsetOf(this.caller);
  }

  /**
   * The body, as JSON.
   *
   * @param empty The value of an empty body. By default, an empty body is rejected.
   * @throws {ProblemError} If the body is too large, late, not JSON, or not declared as JSON.
   */
  readJson(empty?: unknown): Promise<unknown> {
    requireJson(this.raw.headers);
    return this.readBody(empty);
  }

  /** The body as JSON, even without the content type. Throws as {@linkcode readJson}. */
  readBody(empty?: unknown): Promise<unknown> {
    const { env, req } = this.#context;
    const onSlow = IS_BUN && isBunServer(env)
      ? (body: Promise<unknown>) => keepOpen(env, req.raw, body)
      : undefined;
    return this.server.body.json(req, empty, onSlow);
  }

  /**
   * Counts the further calls of a request; the first was counted at admission.
   *
   * @returns The response that rejects the request if there are too many calls: no call may run then.
   */
  charge(calls: number): Promise<Response | undefined> {
    return this.server.charge(this.caller, this.raw, calls, this.headers);
  }

  /** Returns the server's part of each call's context, without data of the client's body. */
  hostContext(): Pick<DispatchContext, "principal" | "context" | "trace"> {
    const { caller: { principal, callContext: context }, raw: { headers } } = this;
    return { principal, context, trace: this.traceOf(headers) };
  }

  /** The trace of a call; `undefined` if calls are not traced. */
  traceOf(headers: Headers): DispatchContext["trace"] {
    const { record, server } = this;
    return server.traces ? { headers, began: (place) => record?.began(place) } : undefined;
  }

  /** Begins a call for the access log. */
  beginCall(toolId: string, callId: string): RequestCall {
    return this.record?.addCall(toolId, callId) ?? UNOBSERVED;
  }

  /** Marks the response as a stream, which has ended when `ended` resolves. */
  streamsUntil(ended: Promise<void>): void {
    if (this.record !== undefined) this.record.ended = ended;
    this.outlast(ended);
  }

  /**
   * Keeps the connection and the work of a long call alive. Short calls do not need it and would pay
   * for it: on some platforms, Hono throws an error when the platform's context is read.
   *
   * @param work Must not reject.
   */
  keepAlive(work: Promise<unknown>): void {
    const { env } = this.#context;
    if (IS_BUN && isBunServer(env)) keepOpen(env, this.raw, work);
    this.outlast(work);
  }

  /**
   * Continues work, such as cleanups, after the response, where the platform would end it.
   *
   * @param work A function is called only on such a platform.
   */
  outlast(work: Promise<unknown> | (() => Promise<unknown>)): void {
    // Hono throws if the runtime has no context. On such runtimes, work continues by itself.
    const context = check.attemptOr(undefined, () => this.#context.executionCtx);
    // On Bun this is Bun's server, without `waitUntil`.
    if (isObject(context) && isFunction(context["waitUntil"])) {
      const platform = context as unknown as { waitUntil(work: Promise<unknown>): void };
      platform.waitUntil(typeof work === "function" ? work() : work);
    }
  }
}

export const UNOBSERVED: RequestCall = { end() {} };
