/**
 * One request and its server. `ToolServer` is the way in: it checks the host and the origin, asks
 * who calls, counts the request and finds the caller's toolset. `ToolRequest` is what it then hands
 * on, and all that Hono's routes and MCP know of the request.
 *
 * @module
 */

import type { CallTasks } from "../../execute/durable/mod.ts";
import { type DispatchContext, ToolDispatcher } from "../../execute/mod.ts";
import type { ToolRegistry } from "../../registry/mod.ts";
import { Toolset } from "../../select/mod.ts";
import {
  atOnce,
  callHook,
  isObject,
  NO_LOG,
  refuse,
  systemClock,
  type Tool,
  type ToolResult,
} from "../../tool/mod.ts";
import { BodyReader, requireJson } from "./body.ts";
import { type Cors, createCors } from "./cors.ts";
import { defaultHeartbeatMs, StreamSlots } from "./event_stream.ts";
import { createGuard } from "./guard.ts";
import { type Caller, ownerToolset, ToolsetNarrower } from "./identity.ts";
import {
  createObserver,
  type RecordedCall,
  recordOf,
  type RequestObserver,
  type RequestRecord,
} from "./observe.ts";
import type { HttpOptions } from "./options.ts";
import {
  copyOf,
  type Header,
  isResponse,
  type Problem,
  problemOfThrown,
  problemResponse,
  withHeaders,
} from "./responses.ts";
import { createRateLimiter, type RateLimiter } from "./rate_limit.ts";
import { RunningCalls } from "./running_calls.ts";
import { IS_BUN } from "./runtime.ts";

/** What a runtime hands over for one request. A context of Hono fits as it is. */
export interface RequestContext {
  readonly req: {
    readonly raw: Request;
    /** Reads the body where something before this may have read it already. */
    text?(): Promise<string>;
  };
  /** Is given to `authorize`. */
  readonly env: unknown;
  /** Has `waitUntil` on Workers. Hono throws where the runtime has none. */
  readonly executionCtx: unknown;
}

/** Answers a request whose caller is known. */
export type RequestAnswer = (request: ToolRequest) => Response | Promise<Response>;

/** What a server may be told besides the options that all protocols have. */
export interface ToolServerDefaults {
  /** The caller where there is no `authorize`. @default {{}} */
  readonly everyone?: Caller;
  /** How many streams may be open at once. @default {1_024} */
  readonly maxStreams?: number | undefined;
  /** How many of them one principal may have. @default {a sixteenth of them} */
  readonly maxStreamsPerPrincipal?: number | undefined;
  /** Makes the bridge through which callers have their tools. @default {no bridge} */
  readonly bridge?: ((toolset: Toolset) => Toolset) | undefined;
}

const EXECUTION_CLOSED: Problem = {
  status: 403,
  code: "execution_closed",
  detail: "This server lists tools and does not execute them: its owner sets authorize, or " +
    "openExecution: true, to open execution",
};

/**
 * What the requests of one handler or endpoint share.
 *
 * A protocol makes one server, and answers each request through it:
 *
 * ```ts ignore
 * const server = new ToolServer(source, options, { maxStreams: options.maxSubscriptions });
 *
 * // `context` is Hono's, or `{ req: { raw: request }, env, executionCtx }`.
 * return server.answer(context, "/mcp", async (request) => {
 *   const body = await request.readJson();
 *   const refused = await request.charge(callsIn(body) - 1);
 *   if (refused !== undefined) return refused;
 *   const running = server.running.begin({ principal: request.caller.principal, callId }, raw);
 *   const call = request.beginCall(toolId, callId);
 *   const context = { ...request.hostContext(), signal: running.signal };
 *   const work = request.dispatcher.dispatch(…, context);
 *   request.keepAlive(work);
 *   call.end(await work);
 *   running.end();
 *   return json(…);
 * });
 * ```
 *
 * What the answer throws becomes a problem. The headers of CORS, rate limits and traces are put on
 * the response. With `observe`, wrap the call: `server.observe(raw, () => server.answer(…))`.
 */
export class ToolServer {
  readonly source: ToolRegistry | Toolset;
  readonly dispatcher: ToolDispatcher;
  /** The calls that run, for another request to abort. */
  readonly running: RunningCalls = new RunningCalls();
  /** The places for streams of changes. */
  readonly streams: StreamSlots;
  /** Whether callers have to say who they are. */
  readonly authorizes: boolean;
  /** Why no one may execute tools, if so. */
  readonly executionClosed: Problem | undefined;
  readonly heartbeatMs: number;
  /** Runs calls as tasks; `undefined` where there are none. */
  readonly tasks: CallTasks | undefined;
  /** After how long a call becomes a task. */
  readonly taskAfterMs: number | undefined;
  readonly body: BodyReader;
  readonly cors: Cors | undefined;
  /** Observes a request while it is answered; `undefined` if `observe` is not set. */
  readonly observe: RequestObserver | undefined;
  readonly #options: HttpOptions;
  readonly #everyone: Caller;
  readonly #guard: (request: Request) => Problem | undefined;
  /** Whether something has to be awaited before a request can be answered. */
  readonly #asksFirst: boolean;
  readonly #ownerToolset: () => Toolset;
  readonly #narrower: ToolsetNarrower = new ToolsetNarrower();
  readonly #bridgeTo: ((toolset: Toolset) => Toolset) | undefined;
  readonly #rateLimiter: RateLimiter | undefined;
  readonly #views = new WeakMap<Toolset, ToolDispatcher>();

  /**
   * @throws {TypeError} If an option is wrong.
   * @throws {RangeError} If a number is out of range.
   */
  constructor(
    source: ToolRegistry | Toolset,
    options: HttpOptions,
    defaults: ToolServerDefaults = {},
  ) {
    const { authorize, openExecution = false, selection, rateLimit, cors, observe } = options;
    this.source = source;
    this.#options = options;
    this.#everyone = defaults.everyone ?? {};
    this.#bridgeTo = defaults.bridge && bridgeOnce(defaults.bridge);
    this.#guard = createGuard(options);
    this.cors = cors && createCors(cors === true ? {} : cors, options.allowedOrigins ?? []);
    this.observe = observe && createObserver(observe, (error) => this.log(error));
    this.authorizes = authorize !== undefined;
    this.#asksFirst = [authorize, rateLimit, observe].some(Boolean);
    this.executionClosed = authorize === undefined && !openExecution ? EXECUTION_CLOSED : undefined;
    this.#rateLimiter = rateLimit && createRateLimiter(rateLimit);
    // Without authorize, no caller has a role or a scope: a registry's tools that want one are left
    // out. A toolset is served as its owner made it.
    this.#ownerToolset = ownerToolset(
      source,
      authorize === undefined && !(source instanceof Toolset)
        ? { ...selection, role: selection?.role ?? null, scopes: selection?.scopes ?? [] }
        : selection,
    );
    this.dispatcher = options.dispatcher ?? new ToolDispatcher(source, {
      onError: ({ error }) => this.log(error),
      ...options.dispatch,
    });
    this.tasks = options.tasks;
    this.taskAfterMs = options.taskAfterMs;
    this.heartbeatMs = options.heartbeatMs ?? defaultHeartbeatMs();
    // The dispatcher's own bound on arguments, with room for the envelope.
    this.body = new BodyReader({
      maxBytes: options.maxBodyBytes ?? 1_114_112,
      timeoutMs: options.bodyTimeoutMs ?? 30_000,
    });
    // Without authorize all callers are one principal, which may have all places.
    this.streams = new StreamSlots(
      defaults.maxStreams ?? 1_024,
      authorize === undefined ? Infinity : defaults.maxStreamsPerPrincipal,
    );
  }

  /**
   * Answers a request: lets it in, or says why not, and has `answer` do the rest.
   *
   * @param route As the access log names it: `/tools/:id`.
   */
  answer(
    context: RequestContext,
    route: string,
    answer: RequestAnswer,
  ): Response | Promise<Response> {
    const { raw } = context.req;
    const record = recordOf(raw);
    if (record !== undefined) record.route = route;
    const headers: Header[] = this.cors === undefined ? [] : [...this.cors.headersFor(raw)];
    const refused = this.#guard(raw);
    if (refused !== undefined) return withHeaders(problemResponse(refused), headers);
    try {
      // Without a question to ask first, an answer that is ready costs no turn of the event loop.
      const response = this.#asksFirst
        ? this.#enter(context, record, headers)
          .then((entered) => isResponse(entered) ? entered : answer(entered))
        : answer(
          new ToolRequest(
            this,
            context,
            this.#everyone,
            this.toolsetOf(this.#everyone),
            record,
            headers,
          ),
        );
      if (!(response instanceof Promise)) return withHeaders(response, headers);
      return response.then(
        (settled) => withHeaders(settled, headers),
        (error: unknown) => withHeaders(this.problemOf(error), headers),
      );
    } catch (error) {
      return withHeaders(this.problemOf(error), headers);
    }
  }

  /** Answers a request without asking who calls: for what everyone may read. */
  answerPublic(request: Request, route: string | undefined, answer: () => Response): Response {
    const record = recordOf(request);
    if (record !== undefined && route !== undefined) record.route = route;
    const refused = this.#guard(request);
    return this.open(request, refused === undefined ? answer() : problemResponse(refused));
  }

  /** Adds the headers that let pages of allowed origins read a response. */
  open(request: Request, response: Response): Response {
    return this.cors?.open(request, response) ?? response;
  }

  /** The response for what was thrown while answering. The log is told, the client is not. */
  problemOf(error: unknown): Response {
    const problem = problemOfThrown(error);
    if (problem.status >= 500) this.log(error);
    return problemResponse(problem);
  }

  /** What a caller sees of the tools that there are now. */
  toolsetOf(caller: Caller): Toolset {
    const toolset = this.#options.authorize === undefined
      ? this.#ownerToolset()
      : this.#narrower.narrow(this.#ownerToolset(), caller);
    return this.#bridgeTo === undefined ? toolset : this.#bridgeTo(toolset);
  }

  /**
   * What a caller would see that has another role and other scopes: only for explanations, and only
   * to callers that may learn of hidden tools.
   */
  toolsetAs(caller: Caller, { role, scopes }: Pick<Caller, "role" | "scopes">): Toolset {
    const { authorize, selection } = this.#options;
    if (authorize !== undefined) {
      return this.#narrower.narrow(this.#ownerToolset(), { ...caller, role, scopes });
    }
    return this.source instanceof Toolset
      ? this.#ownerToolset().narrow({ role, scopes })
      : this.source.select({ ...selection, role: role ?? null, scopes: scopes ?? [] });
  }

  /** The dispatcher that runs only the tools of a toolset. */
  dispatcherOf(toolset: Toolset): ToolDispatcher {
    let view = this.#views.get(toolset);
    if (view === undefined) this.#views.set(toolset, view = this.dispatcher.withToolset(toolset));
    return view;
  }

  /** Counts requests or calls against a caller's rate; answers 429 if they are too many. */
  async charge(
    caller: Caller,
    request: Request,
    amount: number,
    answerHeaders: Header[],
  ): Promise<Response | undefined> {
    if (this.#rateLimiter === undefined || amount <= 0) return undefined;
    const { headers, problem } = await this.#rateLimiter(caller, request, amount);
    answerHeaders.push(...headers);
    return problem && problemResponse(problem);
  }

  /** Tells the owner's log. Does not throw. */
  log(error: unknown): void {
    callHook(() => this.#options.onError?.(error), NO_LOG);
  }

  async #enter(
    context: RequestContext,
    record: RequestRecord | undefined,
    headers: Header[],
  ): Promise<ToolRequest | Response> {
    const { raw } = context.req;
    const { authorize } = this.#options;
    const began = record && systemClock.now();
    const caller = authorize === undefined ? this.#everyone : await authorize(raw, context.env);
    if (record !== undefined && began !== undefined) {
      record.authorizeMs = systemClock.now() - began;
    }
    // The owner may send one response many times: this request's headers must not stay on it.
    if (isResponse(caller)) return copyOf(caller);
    if (record !== undefined) record.principal = caller.principal;
    return await this.charge(caller, raw, 1, headers) ??
      new ToolRequest(this, context, caller, this.toolsetOf(caller), record, headers);
  }
}

/**
 * Makes the bridge to each toolset once.
 *
 * @param make Makes a bridge. What it throws, or gives in place of one, fails the request.
 */
export function bridgeOnce(make: (toolset: Toolset) => Toolset): (toolset: Toolset) => Toolset {
  const bridges = new WeakMap<Toolset, Toolset>();
  return (toolset) => {
    let bridge = bridges.get(toolset);
    if (bridge === undefined) {
      bridge = atOnce(make(toolset));
      // The bridge to another toolset might reach what this caller must not.
      if (bridge?.bridge?.behind !== (toolset.bridge?.behind ?? toolset)) {
        refuse(
          "make a bridge",
          "the function must give the bridge to the toolset that it is given",
        );
      }
      bridges.set(toolset, bridge);
    }
    return bridge;
  };
}

/** What a call calls. */
export interface CallTarget {
  readonly toolId: string;
  /** Absent if there is no such tool. */
  readonly tool: Tool | undefined;
  /** The call named a bridge, and stands for a call of this tool. */
  readonly isLed: boolean;
}

/** What a call calls: through a bridge, the tool behind it. Logs and traces are about that. */
export function targetOf(
  toolset: Toolset,
  call: { readonly name: string; readonly arguments?: unknown },
): CallTarget {
  const { bridge } = toolset;
  const led = bridge?.lead(call);
  const { name } = led ?? call;
  const owner = led === undefined ? toolset : bridge?.behind;
  return {
    toolId: name,
    tool: owner?.resolve(name),
    isLed: led !== undefined && led !== call,
  };
}

/** A request that was let in: who calls, what the caller sees, and what is noted for the answer. */
export class ToolRequest {
  readonly server: ToolServer;
  readonly raw: Request;
  readonly caller: Caller;
  /** What the caller sees. All answers are made from this, and nothing else. */
  readonly toolset: Toolset;
  /** What the access log is told; `undefined` if nothing observes the request. */
  readonly record: RequestRecord | undefined;
  /** Headers for the answer. */
  readonly headers: Header[];
  readonly #context: RequestContext;

  /** @ignore Made by {@linkcode ToolServer.answer}. */
  constructor(
    server: ToolServer,
    context: RequestContext,
    caller: Caller,
    toolset: Toolset,
    record: RequestRecord | undefined,
    headers: Header[],
  ) {
    this.server = server;
    this.raw = context.req.raw;
    this.caller = caller;
    this.toolset = toolset;
    this.record = record;
    this.headers = headers;
    this.#context = context;
  }

  /** Runs what the caller sees. */
  get dispatcher(): ToolDispatcher {
    return this.server.dispatcherOf(this.toolset);
  }

  /** What the caller sees of the tools that there are now: for streams, which outlast a change. */
  toolsetNow(): Toolset {
    return this.server.toolsetOf(this.caller);
  }

  /**
   * The body, as text.
   *
   * @throws {ProblemError} If it is too large, or does not come in time.
   */
  readText(): Promise<string> {
    return this.#whileSilent(this.server.body.text(this.#context.req));
  }

  /**
   * The body, as JSON.
   *
   * @param empty What an empty body stands for; without it, an empty body is refused.
   * @throws {ProblemError} If it is too large, not JSON, or not declared to be.
   */
  readJson(empty?: unknown): Promise<unknown> {
    requireJson(this.raw.headers);
    return this.#whileSilent(this.server.body.json(this.#context.req, empty));
  }

  /** Lets the client be silent while its body arrives: Bun counts its own limit from the head on. */
  #whileSilent<Body>(body: Promise<Body>): Promise<Body> {
    if (!isBunServer(this.#context.env)) return body;
    const { timeoutMs } = this.server.body;
    this.#mayBeSilent(Math.min(Math.ceil(timeoutMs / 1_000) + 1, MAX_BUN_IDLE_S));
    return body.finally(() => this.#mayBeSilent(BUN_IDLE_S));
  }

  /**
   * Counts the calls of a request after its first, which was counted when it came in.
   *
   * @returns The answer if they are too many: then none may run.
   */
  charge(calls: number): Promise<Response | undefined> {
    return this.server.charge(this.caller, this.raw, calls, this.headers);
  }

  /**
   * What the server says of each call of this request: nothing of it is taken from a client's body.
   *
   * @param headers Name the trace.
   */
  hostContext(
    headers: Headers = this.raw.headers,
  ): Pick<DispatchContext, "principal" | "context" | "trace"> {
    const { record, caller: { principal, callContext: context } } = this;
    return {
      principal,
      context,
      trace: this.server.dispatcher.traces
        ? { headers, began: (place) => record?.began(place) }
        : undefined,
    };
  }

  /**
   * Begins a call for the access log.
   *
   * @param toolId As the caller wrote it.
   */
  beginCall(toolId: string, callId: string): RequestCall {
    const { record } = this;
    if (record === undefined) return UNOBSERVED;
    const entry = record.addCall(toolId, callId);
    return { end: (result) => noteEnd(record, entry, result) };
  }

  /** The answer is a stream, which has ended when `ended` resolves. */
  streamsUntil(ended: Promise<void>): void {
    if (this.record !== undefined) this.record.ended = ended;
    this.#waitUntil(ended);
  }

  /**
   * Lets a call go on that takes long. Bun would close a connection that is silent for ten seconds,
   * and Workers drop what is not handed to them, cleanups and all.
   *
   * @param work Must not reject.
   */
  keepAlive(work: Promise<unknown>): void {
    this.#mayBeSilent(0);
    void work.then(() => this.#mayBeSilent(BUN_IDLE_S));
    this.#waitUntil(work);
  }

  /** Lets work go on after the answer, where the platform would end it. */
  outlast(work: Promise<unknown>): void {
    this.#waitUntil(work);
  }

  /** Says how long Bun keeps the connection open without traffic; 0 stands for any time. */
  #mayBeSilent(seconds: number): void {
    const { env } = this.#context;
    if (isBunServer(env)) env.timeout(this.raw, seconds);
  }

  #waitUntil(work: Promise<unknown>): void {
    let context: unknown;
    try {
      context = this.#context.executionCtx;
    } catch {
      // Hono throws where the runtime has none: there, work goes on by itself.
      return;
    }
    if (hasWaitUntil(context)) context.waitUntil(work);
  }
}

/** One call of a request, while it runs. */
export interface RequestCall {
  /** Notes the result. Only the first one counts: a stream's reader may leave as it comes. */
  end(result: ToolResult): void;
}

const UNOBSERVED: RequestCall = { end() {} };

function noteEnd(record: RequestRecord, entry: RecordedCall, result: ToolResult): void {
  if (entry.outcome !== undefined) return;
  entry.outcome = result.ok ? "ok" : result.error.code;
  record.toolMs = Math.max(record.toolMs ?? 0, result.durationMs);
}

/** How long Bun lets a connection be silent, in seconds, unless it is told otherwise. */
const BUN_IDLE_S = 10;
/** The longest time that Bun accepts. */
const MAX_BUN_IDLE_S = 255;

/** Bun hands over its server, beside the request. */
function isBunServer(
  env: unknown,
): env is { timeout(request: Request, seconds: number): void } & Record<string, unknown> {
  return IS_BUN && isObject(env) && typeof env["timeout"] === "function" &&
    typeof env["requestIP"] === "function";
}

/** Bun hands over its server where Workers hand over a context, and others hand over nothing. */
function hasWaitUntil(context: unknown): context is { waitUntil(work: Promise<unknown>): void } {
  return typeof (context as { readonly waitUntil?: unknown } | null | undefined)?.waitUntil ===
    "function";
}
