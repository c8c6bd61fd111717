/**
 * One request on its way through the handler.
 *
 * @module
 */

import type { Context } from "hono";
import type { Toolset } from "../../select/mod.ts";
import type { ToolResult } from "../../tool/mod.ts";
import { type Header, withHeaders } from "./headers.ts";
import type { Caller } from "./identity.ts";
import type { CallSpan } from "./telemetry.ts";
import type { TraceParent } from "./traceparent.ts";

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
  /** Headers for whatever the answer will be. */
  readonly headers: Header[] = [];
  /** The route, as it is written: `/tools/:id`. */
  route: string | undefined;
  principal: string | undefined;
  call: { readonly toolId: string; readonly callId: string } | undefined;
  /** What came of the call: `ok`, or the code of its failure. */
  outcome: string | undefined;
  /** How long it took to know the caller, in milliseconds. */
  enteredMs: number | undefined;
  /** How long the call took, in milliseconds. */
  toolMs: number | undefined;
  /** Where in its trace the call is. */
  place: TraceParent | undefined;
  /** Resolves when a stream has ended; `undefined` for an answer that is whole. */
  ended: Promise<void> | undefined;

  /** The call has ended. */
  settle(result: ToolResult, span: CallSpan): void {
    // A reader that leaves may do so just when the result is there.
    if (this.outcome !== undefined) return;
    this.outcome = result.ok ? "ok" : result.error.code;
    this.toolMs = result.durationMs;
    span.end(result);
  }

  /** Puts the headers on the answer. */
  finish(response: Response): Response {
    return withHeaders(response, this.headers);
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
