/** The interfaces of a host: hooks, approvers, transaction managers, telemetry, stores. */

import type {
  ArgumentRepair,
  Clock,
  Issue,
  Services,
  Tool,
  ToolCallError,
  ToolResult,
  Transaction,
} from "../tool/mod.ts";

/** The call that a hook, a rule or an approver receives. */
export interface CallInfo {
  readonly tool: Tool;
  readonly callId: string;
  readonly sessionId: string | undefined;
  readonly messageId: string | undefined;
  readonly principal: string | undefined;
  /** The host's validated context; `undefined` for a tool without `context`. */
  readonly context: unknown;
  /** True for a resumed call. Hooks also ran before the call was suspended. */
  readonly resumed: boolean;
  /** Aborts when the call aborts. */
  readonly signal: AbortSignal;
  /**
   * A frozen copy of the arguments. In `before`, they are parsed but not yet validated; later, they
   * are the tool's arguments. `undefined` if the call has ended before its arguments were parsed.
   */
  readonly arguments: unknown;
}

/** The return value of a `before` hook. Without a return value, the call continues unchanged. */
export type BeforeAnswer =
  | void
  /** Replaces the arguments. The new arguments are validated like the model's. */
  | { readonly arguments: unknown }
  /** Ends the call with this result, without the tool. The content is validated like a tool's. */
  | { readonly result: ToolResult }
  /** Fails the call with `denied` and this message; the tool does not run. */
  | { readonly refuse: string };

/**
 * A hook for every call of a tool in the toolset. It may change the arguments, return a result
 * instead of the tool, deny the call, or change the result.
 *
 * `before` runs after the arguments were parsed and before they are validated; the hooks run in the
 * given order, until one returns a result or denies the call.
 *
 * `after` runs last, when the transaction is closed and the cleanups have run. It runs for every
 * call of a known tool, including denied calls, but not for a result that is replayed for an
 * idempotency key. The hooks run in reverse order. A result that `after` returns replaces the
 * call's result; its content is validated like a tool's.
 *
 * If a hook throws, or returns another value, the call fails with `denied`. To run code around the
 * tool, such as a retry, write a `Layer`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, type ToolHooks, ToolRegistry } from "@plue/tools";
 *
 * const log: string[] = [];
 * const audit: ToolHooks = {
 *   name: "audit",
 *   before: ({ principal }) => principal === undefined ? { refuse: "Who are you?" } : undefined,
 *   after: ({ tool }, result) => void log.push(`${tool.id}: ${result.ok}`),
 * };
 * const registry = new ToolRegistry({
 *   tools: [{ name: "ping", description: "Answers.", execute: () => "pong" }],
 * });
 * const dispatcher = new ToolDispatcher(registry, { hooks: audit });
 *
 * await dispatcher.dispatch({ name: "ping" });
 * await dispatcher.dispatch({ name: "ping" }, { principal: "ann" });
 * assert.deepEqual(log, ["ping: false", "ping: true"]);
 * ```
 */
export interface ToolHooks {
  /** Names the hook in messages. */
  readonly name?: string;
  before?(call: CallInfo): BeforeAnswer | Promise<BeforeAnswer>;
  after?(call: CallInfo, result: ToolResult): ToolResult | void | Promise<ToolResult | void>;
}

/** The return value of a repair: nothing, or other arguments. */
export type RepairAnswer = void | {
  /** The arguments: a value, or JSON as a string. `undefined` and empty texts repair nothing. */
  readonly arguments: unknown;
  /** The changes, for the result. */
  readonly repairs?: readonly ArgumentRepair[];
};

/**
 * Repairs arguments that violate the tool's schema, or are not JSON. For text that is not JSON,
 * `call.arguments` is the text, and the only issue has the keyword `json`. A repair is called once
 * per call. The repaired arguments are validated, and passed to hooks, approvers and the tool. If a
 * repair throws, the arguments stay unchanged.
 */
export type RepairHook = (
  call: CallInfo,
  issues: readonly Issue[],
) => RepairAnswer | Promise<RepairAnswer>;

/** The answer of an approver: yes, no with a reason for the model, or a question to the caller. */
export type ApprovalAnswer =
  | boolean
  | "ask"
  | { readonly ask: string }
  | { readonly approved: boolean; readonly reason?: string | undefined };

/**
 * Decides whether to run a call if the tool, a policy or a rule requires approval. `message` is the
 * question of the rule. The arguments have been validated. Waiting for the answer does not count
 * against the call's timeout. If an approver throws, or returns another value, the call is denied.
 */
export type Approver = (
  call: CallInfo,
  message?: string,
) => ApprovalAnswer | Promise<ApprovalAnswer>;

/** The call of a transaction. Its signal aborts with the call, so that `begin` can stop. */
export interface TransactionInfo
  extends Pick<CallInfo, "tool" | "callId" | "sessionId" | "messageId" | "principal" | "signal"> {
  /** The tool's services, such as the call's document. */
  readonly services: Services;
}

/**
 * Opens and closes transactions.
 *
 * Contract:
 * - `begin` is called once per call of a tool that `requiresTransaction`, before the tool runs.
 * - The transaction is closed exactly once: by `commit`, after the tool's result was validated, or
 *   by `rollback`. A failed `commit` is followed by one `rollback`. A transaction that begins after
 *   the end of its call is rolled back.
 * - Each function may return a value or a promise. If a function throws, the call fails.
 * - `rollback` may run while a tool that ignored its signal is still working.
 */
export interface TransactionManager<Tx extends Transaction = Transaction> {
  begin(info: TransactionInfo): Tx | Promise<Tx>;
  commit(transaction: Tx): void | Promise<void>;
  /** `reason` is the error of the call. */
  rollback(transaction: Tx, reason: ToolCallError): void | Promise<void>;
}

/** Ends the first call with a key. `keep`: store the result. `bytes`: the result's size as JSON. */
export type SettleKey = (result: ToolResult, keep: boolean, bytes: number) => void | Promise<void>;

/**
 * The state of a key for a new call. The first call receives a function, runs the tool and reports
 * the result; later calls receive that result. `conflict`: the key was used with other arguments.
 * `full`: the running calls of the principal have exhausted its quota of keys.
 */
export type ClaimedKey = SettleKey | ToolResult | "conflict" | "full";

/** Stores idempotency keys and results for several processes. `storedKeys` creates it. */
export interface KeptKeys {
  /** Claims a key for the first call of this process with that key, or returns the key's state. */
  claim(claim: {
    readonly principal: string | undefined;
    /** The key and its principal. */
    readonly scope: string;
    /** Equal for equal arguments. */
    readonly fingerprint: string;
    /** True if the tool may run again with these arguments. */
    readonly idempotent: boolean;
    readonly windowMs: number;
    readonly clock: Clock;
  }): Promise<ClaimedKey>;
}

/** Headers that name a trace: a request's headers, or a `Map` with `traceparent`. */
export interface TraceHeaders {
  get(name: string): string | null | undefined;
  keys(): Iterable<string>;
}

/** The trace that a call belongs to. */
export interface CallTrace {
  /** The caller's trace headers. They are used if no span is active. */
  readonly headers?: TraceHeaders | undefined;
  /** Receives the span of the call in its trace, before the call runs. */
  began?(place: TraceParent): void;
}

/** A position in a trace. */
export interface TraceParent {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** True if the trace is recorded. */
  readonly sampled: boolean;
}

/** A call, for telemetry. Arguments and results are omitted: they may contain secrets. */
export interface ObservedCall extends Pick<CallInfo, "tool" | "callId" | "sessionId"> {
  /** The caller's trace headers, if there are any. */
  readonly headers: TraceHeaders | undefined;
}

/** The span of one call. */
export interface CallSpan {
  /** The position of the call in its trace; `undefined` if it is not traced. */
  readonly place: TraceParent | undefined;
  /** Runs `work` inside the span, so that spans of the work become children of this span. */
  run<Result>(work: () => Result): Result;
  /** Ends the span. The duration of the call is `result.durationMs`. */
  end(result: ToolResult): void;
}

/** Observes calls. Errors of its functions are passed to `onError` with the phase `telemetry`. */
export interface CallTelemetry {
  begin(call: ObservedCall): CallSpan;
  /** The position of the current work in a trace, for calls that continue in another process. */
  place?(): TraceParent | undefined;
}
