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

/** The longest id that a tool may have, and more. */
const MAX_ID = 260;

/** What a route knows of the request that it answers. */
export interface Visit {
  readonly caller: Caller;
  /** What the caller sees. */
  readonly toolset: Toolset;
  readonly exchange: Exchange;
}

/** Answers a request whose caller is known. */
export type Answer = (c: Context, visit: Visit) => Response | Promise<Response>;

/** One call of a request, for an access log. */
export interface AccessCall {
  /** As the caller wrote it: there may be no such tool. */
  readonly toolId: string;
  readonly callId: string;
  /** What came of it: `ok`, or the code of its failure. `undefined` if it has not ended. */
  readonly outcome: string | undefined;
}

/** What is found out about a request while it is answered. */
export class Exchange {
  /** Headers for whatever the answer will be. */
  readonly headers: Header[] = [];
  /** The route, as it is written: `/tools/:id`. */
  route: string | undefined;
  principal: string | undefined;
  readonly calls: AccessCall[] = [];
  /** How long it took to know the caller, in milliseconds. */
  enteredMs: number | undefined;
  /** How long the longest call took, in milliseconds. */
  toolMs: number | undefined;
  /** Where in its trace the call is, if there is one call. */
  place: TraceParent | undefined;
  /** Resolves when a stream has ended; `undefined` for an answer that is whole. */
  ended: Promise<void> | undefined;

  /**
   * A call begins.
   *
   * @param span What observes it.
   * @returns Is to be given the result, and looks at the first one only: a reader that leaves may do
   * so just when the result is there.
   */
  begin(toolId: string, callId: string, span: CallSpan): (result: ToolResult) => void {
    const call = {
      toolId: toolId.slice(0, MAX_ID),
      callId,
      outcome: undefined as string | undefined,
    };
    this.place = this.calls.push(call) === 1 ? span.place : undefined;
    return (result) => {
      if (call.outcome !== undefined) return;
      call.outcome = result.ok ? "ok" : result.error.code;
      this.toolMs = Math.max(this.toolMs ?? 0, result.durationMs);
      span.end(result);
    };
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
