/**
 * The messages between callers and workers. Both sides read these types; `docs/scale.md` explains
 * the order.
 *
 * @module
 */

import type { Answers, ToolResult } from "../../tool/mod.ts";
import type { ToolProgress } from "../../execute/mod.ts";

/**
 * The interval at which both sides check their calls. Silence is counted in ticks, not by the
 * clock.
 */
export const TICK_MS = 500;
/**
 * A worker says within so many ticks that it has a call which may not run twice. If not, the call
 * goes to another one.
 */
export const TICKS_TO_ACCEPT = 4;
/** It sends something at least every so many ticks while the call runs. */
export const TICKS_TO_BEAT = 4;
/** A call whose worker was silent for so many ticks is lost: three beats. */
export const TICKS_TO_LOSE = 13;
/** The maximum size of unacknowledged events, in bytes. */
export const FIRST_CREDIT = 1_048_576;
/** The caller gives more when it has taken so many bytes. */
export const CREDIT_STEP: number = FIRST_CREDIT / 2;
/** An event counts as at least so many bytes, so that at most 64 wait at the caller. */
const MIN_EVENT_BYTES = FIRST_CREDIT / 64;
/** How old a call may be when a worker begins it, by both clocks. */
export const MAX_AGE_MS = 10_000;
/** The maximum difference of clocks, in milliseconds. */
export const MAX_SKEW_MS = 5_000;

/** A call, from its caller to the worker that it was given to. */
export interface CallMessage {
  /** Names this sending of the call: each is taken once. */
  readonly id: string;
  /** The caller's clock, in milliseconds since 1970. */
  readonly time: number;
  readonly callId?: string | undefined;
  readonly principal?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly messageId?: string | undefined;
  /** The host's context, for a tool that declares one. */
  readonly context?: unknown;
  /** The trace that the call belongs to, as W3C's `traceparent` has it. */
  readonly trace?: string | undefined;
  readonly arguments?: unknown;
  /** A resumed call: the worker's ticket and the answers. */
  readonly ticket?: string | undefined;
  readonly answers?: Answers | undefined;
  /** The questions cannot be answered: the tool goes on without, if it can. */
  readonly mute?: true | undefined;
  /** The timeout of the call, in milliseconds. */
  readonly timeoutMs?: number | undefined;
}

/** From the worker to the caller. */
export type Frame =
  /** The worker has a call that may not run twice, and begins it when the caller says so. */
  | { readonly type: "accepted" }
  /** The worker still runs it. */
  | { readonly type: "beat" }
  /** The worker does not run it, and has not begun. Another one may. */
  | { readonly type: "refused"; readonly why: string; readonly result?: ToolResult }
  | { readonly type: "metadata" | "output"; readonly value: unknown }
  | { readonly type: "progress"; readonly progress: ToolProgress }
  /** The call has ended. */
  | { readonly type: "result"; readonly result: ToolResult };

/** From the caller of a call to its worker. */
export type Control =
  /** Begin: no other worker has the call. */
  | { readonly go: true }
  | { readonly abort: string }
  | { readonly credit: number };

/** How much credit an event takes. */
export function creditOf(bytes: number): number {
  return Math.max(bytes, MIN_EVENT_BYTES);
}
