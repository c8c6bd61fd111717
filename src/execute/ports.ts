/**
 * The objects of a host that take part in calls: hooks, an approver, a transaction manager, telemetry.
 */

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
  /** True for a resumed call, which hooks have seen before. */
  readonly resumed: boolean;
  /** Aborts when the call aborts. */
  readonly signal: AbortSignal;
  /** The remaining time of the call, in milliseconds. */
  readonly remainingMs: number;
  /**
   * A frozen copy of the arguments. In `before` they are parsed but not yet validated; later they
   * are the tool's arguments. `undefined` if a call ended before they were parsed.
   */
  readonly arguments: unknown;
}

/** The return value of a `before` hook. Without one the call continues. */
export type BeforeAnswer =
  | void
  /** Continue with these arguments instead. They are validated like any others. */
  | { readonly arguments: unknown }
  /** Do not run the tool: this is the result. Its content is validated like a tool's. */
  | { readonly result: ToolResult }
  /** Do not run the tool: the call fails with `denied` and this message. */
  | { readonly refuse: string };

/**
 * A hook for every call of a tool in the toolset. It may change the arguments, return a result
 * instead of the tool, deny the call, or change the result.
 *
 * `before` runs after the arguments were parsed and before they are validated; the hooks run in the
 * given order, until one returns a result or denies the call.
 *
 * `after` runs last, when the transaction is closed and the cleanups have run, with every result of
 * a known tool, including denied calls, but not with a result that is replayed for an idempotency
 * key. The hooks run in reverse order. If `after` returns a result, it replaces the call's result;
 * its content is validated like a tool's.
 *
 * If a hook throws, or returns another value, the call fails with `denied`. To run a tool again, or
 * to wait around it, write a `Layer`.
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
  /** The arguments: a value, or JSON as a string. Nothing, or an empty text, repairs nothing. */
  readonly arguments: unknown;
  /** The changes, for the result. */
  readonly repairs?: readonly ArgumentRepair[];
};

/**
 * Repairs arguments that violate the tool's schema, or are not JSON. Text that is not JSON is a
 * string in `call.arguments`, with one issue of the keyword `json`. A repair is called once per
 * call. Its result is validated like other arguments, and passed to hooks, approvers and the tool.
 * A repair that throws repairs nothing.
 */
export type RepairHook = (
  call: CallInfo,
  issues: readonly Issue[],
) => RepairAnswer | Promise<RepairAnswer>;

/**
 * The return value of an approver: yes or no with a reason for the model, or a question to the
 * caller.
 */
export type ApprovalAnswer =
  | boolean
  | "ask"
  | { readonly ask: string }
  | { readonly approved: boolean; readonly reason?: string | undefined };

/**
 * Decides whether a call of a tool that `requiresApproval` may run, or a call for which a rule
 * requires approval: `message` is then the rule's question. The arguments have been
 * validated. Waiting for the answer does not count against the call's timeout. If an approver
 * throws, or returns another value, the call is denied.
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
 * - Its result is closed exactly once by `commit`, after the result was validated, or by
 *   `rollback`; a `commit` that fails is followed by one `rollback`. A `begin` that answers after
 *   its call has ended is rolled back.
 * - Each may return a value or a promise. If one throws, the call fails.
 * - `rollback` may run while a tool that ignored its signal is still working.
 */
export interface TransactionManager<Tx extends Transaction = Transaction> {
  begin(info: TransactionInfo): Tx | Promise<Tx>;
  commit(transaction: Tx): void | Promise<void>;
  /** `reason` is the reason for the failure. */
  rollback(transaction: Tx, reason: ToolCallError): void | Promise<void>;
}

/**
 * Ends the first call with a key: its result, whether to store it, and its size in bytes of JSON.
 */
export type SettleKey = (result: ToolResult, keep: boolean, bytes: number) => void | Promise<void>;

/**
 * The state of a key for a new call. The first call runs the tool and reports the result; later
 * calls receive it. `conflict`: the key was used with other arguments. `full`: the principal's
 * running calls have used up its quota of keys.
 */
export type ClaimedKey = SettleKey | ToolResult | "conflict" | "full";

/** Stores idempotency keys and results for several processes. `storedKeys` creates it. */
export interface KeptKeys {
  /** Returns the state of a key for the first call of this process with it. */
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
  /** Receives the position of the call in its trace, before the call runs. */
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

/** One call that is observed. */
export interface CallSpan {
  /** The position of the call in its trace; `undefined` if it is not traced. */
  readonly place: TraceParent | undefined;
  /** Does work inside the span: spans that the work begins become its children. */
  run<Result>(work: () => Result): Result;
  /** Ends the span. The call has taken `durationMs` of its result. */
  end(result: ToolResult): void;
}

/** Observes calls. Its errors go to `onError` with the phase `telemetry`. */
export interface CallTelemetry {
  begin(call: ObservedCall): CallSpan;
  /** The position of the current work in a trace, for calls that continue in another process. */
  place?(): TraceParent | undefined;
}
