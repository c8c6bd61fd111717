/**
 * One request on its way through the handler.
 *
 * @module
 */

import type { Context } from "hono";
import type { Toolset } from "../../select/mod.ts";
import type { Caller } from "./identity.ts";

/** What a route knows of the request that it answers. */
export interface Visit {
  readonly caller: Caller;
  /** What the caller sees. */
  readonly toolset: Toolset;
  readonly exchange: Exchange;
}

/** Answers a request whose caller is known. */
export type Answer = (c: Context, visit: Visit) => Response | Promise<Response>;

/** What is found out about a request while it is answered. */
export class Exchange {
  /** The route, as it is written: `/tools/:id`. */
  readonly route: string;
  /** Headers for whatever the answer will be. */
  readonly headers: (readonly [name: string, value: string])[] = [];

  constructor(route: string) {
    this.route = route;
  }

  /** Puts the headers on the answer. */
  finish(response: Response): Response {
    if (this.headers.length === 0) return response;
    try {
      this.#write(response.headers);
      return response;
    } catch {
      // What `authorize` answered may come from a fetch: its headers cannot be changed.
      const { body, status, statusText, headers } = response;
      const copy = new Response(body, { status, statusText, headers });
      this.#write(copy.headers);
      return copy;
    }
  }

  #write(headers: Headers): void {
    for (const [name, value] of this.headers) {
      if (name === "vary") headers.append(name, value);
      else headers.set(name, value);
    }
  }
}

/**
 * Lets work go on after its response: Workers drop what is not handed to them, cleanups and all.
 *
 * @param work Must not reject.
 */
export function keepAlive(c: Context, work: Promise<unknown>): void {
  let context: { waitUntil(promise: Promise<unknown>): void };
  try {
    context = c.executionCtx;
  } catch {
    // Hono throws where the runtime has none: there, work goes on by itself.
    return;
  }
  context.waitUntil(work);
}
