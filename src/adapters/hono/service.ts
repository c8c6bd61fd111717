/**
 * What the routes of one handler share: each begins with the caller, and what that caller sees.
 *
 * @module
 */

import type { Context, MiddlewareHandler } from "hono";
import type { ToolRegistry } from "../../registry/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import { Access } from "./access.ts";
import { type BodyReader, createBodyReader } from "./body.ts";
import { type Answer, Exchange, type Visit } from "./exchange.ts";
import type { ListCache } from "./list_cache.ts";
import { createPageCache, type Page } from "./listing.ts";
import { createObserver, exchangeOf } from "./observe.ts";
import { type HandlerLimits, readOptions, type ToolHandlerOptions } from "./options.ts";
import { type Problem, problemResponse } from "./problem.ts";
import { isResponse } from "./responses.ts";
import { RunningCalls } from "./running_calls.ts";

const EXECUTION_CLOSED: Problem = {
  status: 403,
  code: "execution_closed",
  detail: "This server lists tools and does not execute them: its owner sets authorize, or " +
    "openExecution: true, to open execution",
};

/** The parts of one handler that its routes share. */
export class ToolService {
  readonly options: ToolHandlerOptions;
  readonly limits: HandlerLimits;
  readonly access: Access;
  readonly withBody: BodyReader;
  /** What was answered to queries for the caller's tools. */
  readonly pages: ListCache<Page> = createPageCache();
  /** The calls that run for this handler's clients. */
  readonly running: RunningCalls = new RunningCalls();
  /** Why nobody may execute here, if so. */
  readonly executionClosed: Problem | undefined;

  /** @throws {TypeError} If an option is unknown or wrong. */
  constructor(source: ToolRegistry | Toolset, options: ToolHandlerOptions) {
    this.options = options;
    this.limits = readOptions(options);
    this.access = new Access(source, options, { explain: options.openExplain ?? false });
    this.withBody = createBodyReader(this.limits.maxBodyBytes);
    this.executionClosed = this.access.executionClosed ? EXECUTION_CLOSED : undefined;
  }

  /** Makes the handler of a route: the answer, once it is known who calls. */
  route(path: string, answer: Answer): (c: Context) => Response | Promise<Response> {
    const { access } = this;
    return (c) => {
      const exchange = this.#exchangeOf(c, path);
      const stopped = access.guard(c.req.raw);
      if (stopped !== undefined) return exchange.finish(problemResponse(stopped));
      try {
        // Where there is nobody to ask, an answer that is at hand takes no turn of the queue.
        const response = access.asksFirst
          ? this.#enter(c, exchange)
            .then((visit) => isResponse(visit) ? visit : answer(c, visit))
          : answer(c, { caller: access.everyone, toolset: access.everyonesToolset, exchange });
        if (!(response instanceof Promise)) return exchange.finish(response);
        return response.catch((error: unknown) => access.answerThrown(error))
          .then((whole) => exchange.finish(whole));
      } catch (error) {
        return exchange.finish(access.answerThrown(error));
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
      const stopped = this.access.guard(c.req.raw);
      return exchange.finish(
        stopped === undefined ? answer(c) : problemResponse(stopped),
      );
    };
  }

  /** What observes every request; `undefined` if nothing is to. */
  get observer(): MiddlewareHandler | undefined {
    const { observe } = this.options;
    if (observe === undefined) return undefined;
    const watch = createObserver(observe, (error) => this.access.log(error));
    return async (c, next) => {
      const response = await watch(c.req.raw, async () => {
        await next();
        return c.res;
      });
      if (response !== c.res) c.res = response;
    };
  }

  /** The handler for browsers that ask before they send; `undefined` if none may. */
  get preflight(): ((c: Context) => Response) | undefined {
    const { cors, guard } = this.access;
    if (cors === undefined) return undefined;
    return (c) => {
      const stopped = guard(c.req.raw);
      return stopped === undefined
        ? cors.preflight(c.req.raw)
        : this.open(c, problemResponse(stopped));
    };
  }

  /** An answer that is no route's, for pages of other origins to read where they may. */
  open(c: Context, response: Response): Response {
    return this.access.cors?.open(c.req.raw, response) ?? response;
  }

  #exchangeOf(c: Context, path: string): Exchange {
    const exchange = exchangeOf(c.req.raw) ?? new Exchange();
    exchange.route = path;
    const { cors } = this.access;
    if (cors !== undefined) exchange.headers.push(...cors.headersFor(c.req.raw));
    return exchange;
  }

  async #enter(
    { req: { raw: request }, env }: Context,
    exchange: Exchange,
  ): Promise<Visit | Response> {
    const caller = await this.access.enter(request, env, exchange);
    return isResponse(caller)
      ? caller
      : { caller, toolset: this.access.toolsetOf(caller), exchange };
  }
}
