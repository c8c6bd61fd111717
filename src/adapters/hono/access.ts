/**
 * What everything that serves tools over HTTP begins with: who calls, how often, and what that
 * caller sees. Routes and protocols answer from the toolsets that are made here, and no others.
 *
 * @module
 */

import { ToolDispatcher } from "../../execute/mod.ts";
import type { ToolRegistry } from "../../registry/mod.ts";
import { Toolset } from "../../select/mod.ts";
import { systemClock } from "../../tool/mod.ts";
import type { AccessOptions } from "./access_options.ts";
import { type Cors, createCors } from "./cors.ts";
import type { Exchange } from "./exchange.ts";
import { createGuard } from "./guard.ts";
import { copyOf } from "./headers.ts";
import { type Caller, ownerToolset, selectionOfCaller, ToolsetNarrower } from "./identity.ts";
import { type Problem, problemOfThrown, problemResponse } from "./problem.ts";
import { createRateLimiter, type RateLimiter } from "./rate_limit.ts";
import { isResponse } from "./responses.ts";
import { type CallSpan, observeCall, type ObservedCall } from "./telemetry.ts";

/** The way in to the tools of one handler or endpoint. */
export class Access {
  readonly source: ToolRegistry | Toolset;
  readonly dispatcher: ToolDispatcher;
  readonly cors: Cors | undefined;
  /** Says why a request may not come in at all, if so. */
  readonly guard: (request: Request) => Problem | undefined;
  /** Whether something is to be found out about a caller, or noted, before the answer. */
  readonly asksFirst: boolean;
  /** Nobody may execute: the owner has neither said who calls, nor that it does not matter. */
  readonly executionClosed: boolean;
  /** Who calls where nobody is asked. */
  readonly everyone: Caller;
  readonly #options: AccessOptions;
  readonly #owned: () => Toolset;
  readonly #narrower: ToolsetNarrower = new ToolsetNarrower();
  readonly #rateLimiter: RateLimiter | undefined;
  readonly #views = new WeakMap<Toolset, ToolDispatcher>();

  /** @throws {TypeError} If an option is wrong. */
  constructor(source: ToolRegistry | Toolset, options: AccessOptions, everyone: Caller = {}) {
    const { authorize, openExecution = false, selection, rateLimit, cors } = options;
    this.source = source;
    this.everyone = everyone;
    this.#options = options;
    this.guard = createGuard(options);
    this.cors = cors && createCors(cors === true ? {} : cors, options.allowedOrigins ?? []);
    this.asksFirst = [authorize, rateLimit, options.observe].some(Boolean);
    this.executionClosed = authorize === undefined && !openExecution;
    this.#rateLimiter = rateLimit && createRateLimiter(rateLimit);
    // Nobody said who calls: then a registry's tools for certain roles and scopes are for nobody.
    this.#owned = ownerToolset(
      source,
      authorize === undefined && !(source instanceof Toolset)
        ? { ...selection, role: selection?.role ?? null, scopes: selection?.scopes ?? [] }
        : selection,
    );
    this.dispatcher = options.dispatcher ?? new ToolDispatcher(source, {
      onError: ({ error }) => this.log(error),
      ...options.dispatch,
    });
  }

  /** What everybody sees of the owner's tools of this moment, where nobody is asked. */
  get everyonesToolset(): Toolset {
    return this.#owned();
  }

  /** What a caller sees of the owner's tools of this moment. */
  toolsetOf(caller: Caller): Toolset {
    return this.#options.authorize === undefined
      ? this.#owned()
      : this.#narrower.narrow(this.#owned(), selectionOfCaller(caller));
  }

  /** The dispatcher for those who see this toolset. */
  dispatcherOf(toolset: Toolset): ToolDispatcher {
    let view = this.#views.get(toolset);
    if (view === undefined) this.#views.set(toolset, view = this.dispatcher.withToolset(toolset));
    return view;
  }

  /**
   * Finds out who calls, and counts the request.
   *
   * @returns The caller, or what the request is answered instead.
   */
  async enter(request: Request, env: unknown, exchange: Exchange): Promise<Caller | Response> {
    const { authorize, observe } = this.#options;
    const began = observe && systemClock.now();
    const caller = authorize === undefined ? this.everyone : await authorize(request, env);
    if (began !== undefined) exchange.enteredMs = systemClock.now() - began;
    // It may be one that is sent again and again: what one request gets must not stay on it.
    if (isResponse(caller)) return copyOf(caller);
    exchange.principal = caller.principal;
    return await this.charge(caller, request, exchange, 1) ?? caller;
  }

  /**
   * Counts what a request holds.
   *
   * @returns What it is answered if that is too much.
   */
  async charge(
    caller: Caller,
    request: Request,
    exchange: Exchange,
    amount: number,
  ): Promise<Response | undefined> {
    if (this.#rateLimiter === undefined || amount <= 0) return undefined;
    const { headers, problem } = await this.#rateLimiter(caller, request, amount);
    exchange.headers.push(...headers);
    return problem && problemResponse(problem);
  }

  /** Begins to observe a call, if calls are observed. */
  observe(call: ObservedCall): CallSpan {
    const { telemetry } = this.#options.observe ?? {};
    return observeCall(telemetry, call, (error) => this.log(error));
  }

  /** Answers a request that cannot be read, or that something broke at: only the log is told what. */
  answerThrown(error: unknown): Response {
    const problem = problemOfThrown(error);
    if (problem.status >= 500) this.log(error);
    return problemResponse(problem);
  }

  /** Tells the owner's log. Does not throw. */
  log(error: unknown): void {
    try {
      this.#options.onError?.(error);
    } catch {
      // A log that fails must not change the answer.
    }
  }
}
