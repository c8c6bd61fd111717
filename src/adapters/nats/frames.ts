/**
 * The protocol between callers and workers. `docs/scale.md` explains the order of the messages.
 *
 * @module
 */

import type { Answers, ToolResult } from "../../tool/mod.ts";
import type { ToolProgress } from "../../execute/mod.ts";

/** The interval in which both sides check their calls. Silence is counted in these ticks. */
export const TICK_MS = 500;
/**
 * A worker accepts a call that may not run twice within this number of ticks. Otherwise the caller sends
 * the call to another worker.
 */
export const TICKS_TO_ACCEPT = 4;
/** A worker sends a message at least every so many ticks while the call runs. */
export const TICKS_TO_BEAT = 4;
/** A call is lost after this number of ticks without a message: three heartbeats. */
export const TICKS_TO_LOSE = 13;
/** The bytes of events that a worker may send before the caller grants more. */
export const FIRST_CREDIT = 1_048_576;
/** The caller grants more credit after it has consumed this number of bytes. */
export const CREDIT_STEP: number = FIRST_CREDIT / 2;
/** The minimum size that an event counts, so that at most 64 events wait at the caller. */
const MIN_EVENT_BYTES = FIRST_CREDIT / 64;
/** The maximum age of a call when a worker starts it, by both clocks. */
export const MAX_AGE_MS = 10_000;
/** The maximum difference of two clocks, in milliseconds. */
export const MAX_SKEW_MS = 5_000;

/** A call, from its caller to a worker. */
export interface CallMessage {
  /** The id of this attempt. A worker accepts each attempt once. */
  readonly id: string;
  /** The time by the caller's clock, in milliseconds since 1970. */
  readonly time: number;
  readonly callId?: string | undefined;
  readonly principal?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly messageId?: string | undefined;
  /** The host's context, for a tool that declares one. */
  readonly context?: unknown;
  /** The trace of the call, in the form of W3C's `traceparent`. */
  readonly trace?: string | undefined;
  readonly arguments?: unknown;
  /** The ticket of a suspended call, and the answers to its questions. */
  readonly ticket?: string | undefined;
  readonly answers?: Answers | undefined;
  /** True if the questions cannot be answered. */
  readonly mute?: true | undefined;
  /** The remaining time of the call, in milliseconds. */
  readonly timeoutMs?: number | undefined;
}

/** A message from the worker to the caller. */
export type Frame =
  /** The worker has a call that may not run twice, and waits for the caller's confirmation. */
  | { readonly type: "accepted" }
  /** The worker still runs it. */
  | { readonly type: "beat" }
  /** The worker has rejected the call, and has not started it. Another worker may run it. */
  | { readonly type: "refused"; readonly why: string; readonly result?: ToolResult }
  | { readonly type: "metadata" | "output"; readonly value: unknown }
  | { readonly type: "progress"; readonly progress: ToolProgress }
  /** The call has ended. */
  | { readonly type: "result"; readonly result: ToolResult };

/** A message from the caller to the worker of a call. */
export type Control =
  /** Confirms the call: no other worker has it. */
  | { readonly go: true }
  | { readonly abort: string }
  | { readonly credit: number };

/** Returns the credit that an event uses. */
export function creditOf(bytes: number): number {
  return Math.max(bytes, MIN_EVENT_BYTES);
}
