/**
 * What a dispatcher may be told.
 *
 * @module
 */

import type { SchemaEngine } from "../schema/mod.ts";
import type { Clock, OutputOverflow, ToolRuleAnswer } from "../tool/mod.ts";
import type { Approver } from "./approval.ts";
import type { CallInfo, ToolHooks } from "./hooks.ts";
import type { TransactionManager } from "./transaction.ts";

/**
 * A rule for the arguments of every tool, after the schema and the tool's own rules. It answers as
 * a tool's `validate` does. One that throws refuses the call.
 */
export type CallValidator = (call: CallInfo) => ToolRuleAnswer | Promise<ToolRuleAnswer>;

/** How many calls may run and wait. */
export interface ConcurrencyLimits {
  /**
   * How many calls may run at once.
   *
   * @default {Infinity}
   */
  readonly maxConcurrent?: number;
  /**
   * How many calls of one tool may run at once.
   *
   * @default {Infinity}
   */
  readonly maxConcurrentPerTool?: number;
  /**
   * How many calls may wait for their turn, first come, first served. Further calls fail with
   * `overloaded`.
   *
   * @default {256}
   */
  readonly maxQueued?: number;
}

/** How long and how many results are kept for their idempotency keys. */
export interface IdempotencyOptions {
  /**
   * How long a result is kept after its call has ended, in milliseconds.
   *
   * @default {600_000}
   */
  readonly windowMs?: number;
  /**
   * How many keys are kept. The oldest result gives way to a new one; while all of them are of
   * running calls, further calls with a key fail with `overloaded`.
   *
   * @default {1_000}
   */
  readonly maxKeys?: number;
  /**
   * How many bytes of JSON the kept results may have in all. The oldest give way.
   *
   * @default {16_777_216}
   */
  readonly maxBytes?: number;
}

/** In which step of a call something was thrown that the call's result does not tell in full. */
export type DispatchPhase =
  | "init"
  | "before"
  | "validate"
  | "approve"
  | "begin"
  | "execute"
  | "result"
  | "metadata"
  | "commit"
  | "rollback"
  | "cleanup"
  | "after"
  | "internal";

/** Something that was thrown during a call, for the host's log. */
export interface DispatchErrorReport {
  readonly toolId: string;
  readonly callId: string;
  readonly phase: DispatchPhase;
  /** What was thrown, as it is. */
  readonly error: unknown;
}

/** Options for {@linkcode ToolDispatcher}. */
export interface ToolDispatcherOptions {
  /** Compiles schemas, for a toolset that was made from a list. A registry brings its own. */
  readonly engine?: SchemaEngine;
  /** For tools that require a transaction. Without it, they fail with `transaction_failed`. */
  readonly transactions?: TransactionManager;
  /** Stand around every call. */
  readonly hooks?: ToolHooks | readonly ToolHooks[];
  /** Rules for the arguments of every tool. */
  readonly validators?: readonly CallValidator[];
  /** For tools that require approval. Without it, they fail with `approval_required`. */
  readonly approve?: Approver;
  /**
   * How long to wait for the approver, in milliseconds.
   *
   * @default {600_000}
   */
  readonly approvalTimeoutMs?: number;
  /**
   * How long a call may take, in milliseconds, waiting for its turn included and waiting for the
   * approver not. A tool or a caller may ask for less or, up to `maxTimeoutMs`, a tool for more.
   *
   * @default {60_000}
   */
  readonly timeoutMs?: number;
  /**
   * The longest timeout that a tool may ask for, in milliseconds.
   *
   * @default {3_600_000}
   */
  readonly maxTimeoutMs?: number;
  /**
   * How long a tool has, after a timeout or an abort, to stop, in milliseconds. The call is
   * answered as soon as the tool stops, and at the latest then. 0 does not wait at all.
   *
   * @default {1_000}
   */
  readonly graceMs?: number;
  /**
   * How long commit, rollback, all cleanups together, and each `after` hook may take, in
   * milliseconds.
   *
   * @default {10_000}
   */
  readonly closeTimeoutMs?: number;
  /** How many calls may run and wait. */
  readonly limits?: ConcurrencyLimits;
  /**
   * How large the arguments may be, in bytes of JSON.
   *
   * @default {1_048_576}
   */
  readonly maxArgumentBytes?: number;
  /**
   * How large a result, and each value sent on the way, may be, in bytes of JSON. At least 128.
   *
   * @default {1_048_576}
   */
  readonly maxOutputBytes?: number;
  /**
   * What is done with a result that is larger.
   *
   * @default {"fail"}
   */
  readonly outputOverflow?: OutputOverflow;
  /** How long and how many results are kept for their idempotency keys. */
  readonly idempotency?: IdempotencyOptions;
  /**
   * How many calls one `dispatchAll` takes. Further ones fail with `overloaded`.
   *
   * @default {128}
   */
  readonly maxCallsPerBatch?: number;
  /**
   * How many events of a streamed call wait for their consumer. A generator then waits, progress
   * keeps its newest, and metadata is dropped and counted.
   *
   * @default {64}
   */
  readonly maxBufferedEvents?: number;
  /**
   * Of how many tools metrics are kept. Those of further tools are added up under the id `*`, and
   * so are those of a tool that is gone when another needs its place.
   *
   * @default {10_000}
   */
  readonly maxMeteredTools?: number;
  /** Is told what was thrown, stack and all, for the host's log. What it throws is ignored. */
  onError?(report: DispatchErrorReport): void;
  /** Tells the time. */
  readonly clock?: Clock;
}
