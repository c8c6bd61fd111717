/**
 * What every route begins with: may this request come in, who calls, and what does that caller see.
 *
 * @module
 */

import type { Context, MiddlewareHandler } from "hono";
import { ToolDispatcher } from "../../execute/mod.ts";
import type { ToolRegistry } from "../../registry/mod.ts";
import { Toolset } from "../../select/mod.ts";
import { type BodyReader, createBodyReader } from "./body.ts";
import { type Cors, createCors } from "./cors.ts";
import { type Answer, Exchange, type Visit } from "./exchange.ts";
import { createGuard } from "./guard.ts";
import { type Caller, ownerToolset, selectionOfCaller, ToolsetNarrower } from "./identity.ts";
import { createObserver, exchangeOf } from "./observe.ts";
import { type HandlerLimits, readOptions, type ToolHandlerOptions } from "./options.ts";
import { type Problem, problemOfThrown, problemResponse } from "./problem.ts";
import { createRateLimiter, type RateLimiter } from "./rate_limit.ts";
import { isResponse } from "./responses.ts";
import { RunningCalls } from "./running_calls.ts";
import { type CallSpan, observeCall, type ObservedCall } from "./telemetry.ts";

const EXECUTION_CLOSED: Problem = {
  status: 403,
  code: "execution_closed",
  detail: "This server lists tools and does not execute them: its owner sets authorize, or " +
    "openExecution: true, to open execution",
};

/** The parts of one handler that its routes share. */
export class ToolService {
  readonly source: ToolRegistry | Toolset;
  readonly options: ToolHandlerOptions;
  readonly limits: HandlerLimits;
  readonly dispatcher: ToolDispatcher;
  readonly withBody: BodyReader;
  /** The calls that run for this handler's clients. */
  readonly running: RunningCalls = new RunningCalls();
  readonly narrower: ToolsetNarrower = new ToolsetNarrower();
  readonly #guard: (request: Request) => Problem | undefined;
  readonly #owned: () => Toolset;
  readonly #cors: Cors | undefined;
  readonly #rateLimiter: RateLimiter | undefined;
  /** Who calls where nobody is asked. */
  readonly #everyone: Caller;
  /** Whether something is to be found out about a caller, or noted, before the answer. */
  readonly #asksFirst: boolean;
  readonly #views = new WeakMap<Toolset, ToolDispatcher>();

  /** @throws {TypeError} If an option is unknown or wrong. */
  constructor(source: ToolRegistry | Toolset, options: ToolHandlerOptions) {
    this.source = source;
    this.options = options;
    this.limits = readOptions(options);
    this.withBody = createBodyReader(this.limits.maxBodyBytes);
    this.#guard = createGuard(options);
    const { cors, rateLimit, allowedOrigins = [] } = options;
    this.#cors = cors && createCors(cors === true ? {} : cors, allowedOrigins);
    this.#everyone = { explain: options.openExplain ?? false };
    this.#asksFirst = [options.authorize, rateLimit, options.observe].some(Boolean);
    this.#rateLimiter = rateLimit && createRateLimiter(rateLimit);
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
    this.dispatcher = options.dispatcher ?? new ToolDispatcher(source, {
      onError: ({ error }) => options.onError?.(error),
      ...options.dispatch,
    });
  }

  /** Makes the handler of a route: the answer, once it is known who calls. */
  route(path: string, answer: Answer): (c: Context) => Response | Promise<Response> {
    return (c) => {
      const exchange = this.#exchangeOf(c, path);
      const stopped = this.#guard(c.req.raw);
      if (stopped !== undefined) return exchange.finish(problemResponse(stopped));
      try {
        // Where there is nobody to ask, an answer that is at hand takes no turn of the queue.
        const response = this.#asksFirst
          ? this.#enter(c, exchange)
            .then((visit) => isResponse(visit) ? visit : answer(c, visit))
          : answer(c, { caller: this.#everyone, toolset: this.#owned(), exchange });
        if (!(response instanceof Promise)) return exchange.finish(response);
        return response.catch((error: unknown) => this.report(error))
          .then((whole) => exchange.finish(whole));
      } catch (error) {
        return exchange.finish(this.report(error));
      }
    };
  }

  /** Makes the handler of a route that is for everyone who may come in, whoever it is. */
  publicRoute(
    path: string,
    answer: (c: Context) => Response,
  ): (c: Context) => Response {
    return (c) => {
      const exchange = this.#exchangeOf(c, path);
      const stopped = this.#guard(c.req.raw);
      return exchange.finish(
        stopped === undefined ? answer(c) : problemResponse(stopped),
      );
    };
  }

  /** What observes every request; `undefined` if nothing is to. */
  get observer(): MiddlewareHandler | undefined {
    const { observe } = this.options;
    if (observe === undefined) return undefined;
    const watch = createObserver(observe, (error) => this.report(error));
    return async (c, next) => {
      const response = await watch(c.req.raw, async () => {
        await next();
        return c.res;
      });
      if (response !== c.res) c.res = response;
    };
  }

  /** Begins to observe a call, if calls are observed. */
  observe(call: ObservedCall): CallSpan {
    const { telemetry } = this.options.observe ?? {};
    return observeCall(telemetry, call, (error) => this.report(error));
  }

  /** The handler for browsers that ask before they send; `undefined` if none may. */
  get preflight(): ((c: Context) => Response) | undefined {
    const cors = this.#cors;
    if (cors === undefined) return undefined;
    return (c) => {
      const stopped = this.#guard(c.req.raw);
      return stopped === undefined
        ? cors.preflight(c.req.raw)
        : this.open(c, problemResponse(stopped));
    };
  }

  /** An answer that is no route's, for pages of other origins to read where they may. */
  open(c: Context, response: Response): Response {
    return this.#cors?.open(c.req.raw, response) ?? response;
  }

  /** What a caller sees of the owner's tools of this moment. */
  toolsetOf(caller: Caller): Toolset {
    return this.options.authorize === undefined
      ? this.#owned()
      : this.narrower.narrow(this.#owned(), selectionOfCaller(caller));
  }

  /** The dispatcher for those who see this toolset. */
  dispatcherOf(toolset: Toolset): ToolDispatcher {
    let view = this.#views.get(toolset);
    if (view === undefined) {
      this.#views.set(toolset, view = this.dispatcher.withToolset(toolset));
    }
    return view;
  }

  /** Why nobody may execute here, if so. */
  get executionClosed(): Problem | undefined {
    const { authorize, openExecution = false } = this.options;
    return authorize === undefined && !openExecution ? EXECUTION_CLOSED : undefined;
  }

  /** Answers a request that cannot be read, or that something broke at: only the log is told what. */
  report(error: unknown): Response {
    const problem = problemOfThrown(error);
    try {
      if (problem.status >= 500) this.options.onError?.(error);
    } catch {
      // A log that fails must not change the answer.
    }
    return problemResponse(problem);
  }

  #exchangeOf(c: Context, path: string): Exchange {
    const exchange = exchangeOf(c.req.raw) ?? new Exchange();
    exchange.route = path;
    if (this.#cors !== undefined) exchange.headers.push(...this.#cors.headersFor(c.req.raw));
    return exchange;
  }

  /**
   * Counts what a request holds beside its first call.
   *
   * @returns What it is answered if that is too much.
   */
  async charge(
    { caller, exchange }: Visit,
    request: Request,
    amount: number,
  ): Promise<Response | undefined> {
    if (this.#rateLimiter === undefined || amount <= 0) return undefined;
    const { headers, problem } = await this.#rateLimiter(caller, request, amount);
    exchange.headers.push(...headers);
    return problem && problemResponse(problem);
  }

  async #enter(
    { req: { raw: request }, env }: Context,
    exchange: Exchange,
  ): Promise<Visit | Response> {
    const { authorize, observe } = this.options;
    const { now = Date.now } = observe ?? {};
    const began = observe && now();
    const caller = authorize === undefined ? this.#everyone : await authorize(request, env);
    if (began !== undefined) exchange.enteredMs = now() - began;
    if (isResponse(caller)) return caller;
    exchange.principal = caller.principal;
    const visit = { caller, toolset: this.toolsetOf(caller), exchange };
    return await this.charge(visit, request, 1) ?? visit;
  }
}
