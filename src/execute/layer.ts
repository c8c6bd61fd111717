/**
 * The interface of layers. A layer is a feature around the rest of a call: `(call, next) =>
 * next(call)`. The layers of a tool are composed once into one function, so an unused feature costs
 * nothing.
 */

import type { ToolHost, ToolRuntime } from "../registry/mod.ts";
import type { Toolset } from "../select/mod.ts";
import type {
  Clock,
  FailureCode,
  Tool,
  ToolContext,
  ToolFailure,
  ToolResult,
} from "../tool/mod.ts";
import type { Deadline } from "./deadline.ts";
import type { FailureDetails } from "./failures.ts";
import type { TraceParent } from "./ports.ts";
import type { DispatchContext, ResumedCall, ToolCall } from "./request.ts";

/** The result of a call, or a promise of the result. Promises of the kernel never reject. */
export type Outcome = ToolResult | Promise<ToolResult>;

/** Runs the rest of the call. Never throws or rejects: errors, timeouts and aborts are failures. */
export type Next = (call: Call) => Outcome;

/** Runs a layer around a call of one tool. */
export type LayerFunction = (call: Call, next: Next) => Outcome;

/** The part of a call in which an error occurred. */
export type DispatchPhase =
  | "init"
  | "context"
  | "repair"
  | "before"
  | "validate"
  | "rule"
  | "approve"
  | "credential"
  | "ask"
  | "begin"
  | "execute"
  | "result"
  | "metadata"
  | "commit"
  | "rollback"
  | "cleanup"
  | "after"
  | "telemetry"
  | "internal";

/** The limits and the clock of a dispatcher. Each has the meaning of the option with its name. */
export interface CallSettings {
  /**
   * The timeout of a call in milliseconds. It includes the wait for a slot, but not the wait for
   * the approver. A tool or a caller can lower it. A tool can raise it up to `maxTimeoutMs`.
   *
   * @default {60_000}
   */
  readonly timeoutMs: number;
  /** The longest timeout that a tool may have, in milliseconds. @default {3_600_000} */
  readonly maxTimeoutMs: number;
  /**
   * The grace period for a tool to stop after a timeout or an abort, in milliseconds. The call ends
   * as soon as the tool stops, and at the latest after this time. 0 means no wait.
   *
   * @default {1_000}
   */
  readonly graceMs: number;
  /**
   * The time limit of commit, rollback, all cleanups together, and each `after` hook, in
   * milliseconds.
   *
   * @default {10_000}
   */
  readonly closeTimeoutMs: number;
  /** The maximum size of the arguments, in bytes of JSON. @default {1_048_576} */
  readonly maxArgumentBytes: number;
  /**
   * The maximum size of a result, and of each value that a tool sends before it, in bytes of JSON.
   * At least 128. A call with a larger result fails with `output_too_large`.
   *
   * @default {1_048_576}
   */
  readonly maxOutputBytes: number;
  readonly clock: Clock;
}

/** An error during a call, for the host's log. */
export interface DispatchErrorReport {
  readonly toolId: string;
  readonly callId: string;
  readonly phase: DispatchPhase;
  /** The thrown value, unchanged. */
  readonly error: unknown;
}

/** The options of a dispatcher, checked and complete. */
export interface KernelSettings extends CallSettings {
  readonly onError: (report: DispatchErrorReport) => void;
  readonly layers: readonly Layer[];
}

/** The state of a call's tool: not started, running or ended. */
export type ToolState = "not started" | "running" | "ended";

/**
 * A requirement of a tool or a call: approval (`requiresApproval`, policies), a transaction, the
 * host's context, a store for idempotency keys, credentials of the caller. A call fails if no layer
 * meets the requirement.
 */
export type Requirement =
  | "approval"
  | "transaction"
  | "context"
  | "idempotency"
  | "credentials";

/**
 * A feature around calls. Each layer has separate state and options. The kernel and the other
 * layers do not depend on them. Within a stage the first layer is the outermost.
 */
export interface Layer {
  /** Names the layer in messages. */
  readonly name: string;
  /**
   * The position of the layer's function. `call`: around the call and its cleanups; the arguments
   * may be missing. `input`: the arguments are parsed but not validated. `run`: they are validated.
   */
  readonly stage: "call" | "input" | "run";
  /**
   * Returns the layer's function for calls of a tool, or nothing if the tool does not need the
   * layer. Called once per tool. An error of the layer's function fails the call with `threw`, and
   * is passed to `onError`.
   */
  for?(tool: Tool, host: ToolHost): LayerFunction | undefined;
  /**
   * The condition for calls to which the layer applies: a field of the host's context that is set,
   * or a function that returns true. Other calls skip the layer. By default, the layer applies to
   * all calls; a layer with `meets` applies to calls with that requirement.
   */
  readonly when?: keyof DispatchContext | ((call: Call) => boolean);
  /** Returns an observer of the tool's calls. It cannot change a result, and costs no promise. */
  observe?(tool: Tool): CallObserver;
  /**
   * Called for a call whose name is not a tool of the toolset. No other function of the layer is
   * called for such a call. `toolset` is absent if the toolset cannot be read.
   */
  unresolved?(
    request: ToolCall,
    options: DispatchContext,
    failure: ToolFailure,
    report: (phase: DispatchPhase, error: unknown) => void,
    toolset?: Toolset,
  ): void;
  /** Members that the layer adds to each tool's context, by name; computed at each reading. */
  readonly context?: { readonly [member: string]: (call: Call) => unknown };
  /**
   * Returns preliminary arguments for text that is not JSON. The layer must have the stage `input`,
   * and replace these arguments there. Without such a layer, the text fails the call.
   */
  readText?(text: string): unknown;
  /** The requirement that the layer meets, for all calls with this requirement. */
  readonly meets?: Requirement;
}

/** Observes the calls of one tool. Errors of its functions are passed to `onError`. */
export interface CallObserver {
  /** The call begins. */
  began?(call: Call): void;
  /** The tool is about to run with valid arguments. A tool that is retried starts several times. */
  toolStarted?(call: Call): void;
  /** The call has ended with this result, after all layers and cleanups. */
  ended?(call: Call, result: ToolResult, now: number): void;
  /** Like `ended`, but only for calls that have failed. */
  failed?(call: Call, failure: ToolFailure): void;
  /** A tool that ignored its signal has ended, after its call. */
  toolEnded?(call: Call): void;
  /** The tool, a generator, has yielded a value, and continues when the promise has settled. */
  yielded?(call: Call, value: unknown): void | Promise<void>;
}

/** A call, as layers receive it. */
export interface Call {
  readonly tool: Tool;
  /** The toolset that the call was resolved against. */
  readonly toolset: Toolset;
  /** The registry that runs the tool. */
  readonly host: ToolHost;
  /** The model's call. */
  readonly request: ToolCall;
  /** The host's context of the call. */
  readonly options: DispatchContext;
  /** The settings of the dispatcher: limits and the clock. */
  readonly settings: CallSettings;
  readonly callId: string;
  /** The context that the tool receives. */
  readonly context: ToolContext;
  /** The timeout and the abort signal. */
  readonly deadline: Deadline;
  /** The parsed arguments, validated from the stage `run` on. `undefined` until they are parsed. */
  readonly arguments: unknown;
  /** The arguments as JSON, before a Standard Schema converted them. */
  readonly plainArguments: unknown;
  /** The tool's configuration, state and validators, for layers of the stages `input` and `run`. */
  readonly runtime: ToolRuntime;
  readonly toolState: ToolState;
  /** True if the call was interrupted or is closing: its result is decided, output is dropped. */
  readonly isOver: boolean;
  /**
   * Replaces the arguments. For layers of the stages `input` and `run`.
   *
   * @param bytes An upper bound of the arguments' size, in bytes of JSON.
   */
  setArguments(value: unknown, bytes: number): void;
  /**
   * Waits for `work`. Rejects at a timeout or an abort of the call, so that the layer ends. Layers
   * use this function for every wait except the wait for `next`, which ends by itself. If the work
   * calls `next`, pass a function: it is called once the wait has begun.
   *
   * @param doing The activity of the call, for messages: "waiting for a slot".
   * @param limitMs The time limit of this wait, in milliseconds. It pauses the call's timeout.
   */
  wait<T>(
    doing: string,
    work: PromiseLike<T> | (() => PromiseLike<T>),
    limitMs?: number,
  ): Promise<T>;
  /** Creates the failure of this call: `Cannot call "x": <why>`. */
  fail(code: FailureCode, why: string, details?: FailureDetails): ToolFailure;
  /** Runs another call, of a tool of the toolset, with the same layers. Never rejects. */
  dispatch(
    toolset: Toolset,
    call: ToolCall | ResumedCall,
    context: DispatchContext,
  ): Promise<ToolResult>;
  /** Passes an error to the host's `onError`. */
  report(phase: DispatchPhase, error: unknown): void;
  /** Runs `cleanup` when the call closes. Cleanups run in reverse order. */
  defer(cleanup: () => void | Promise<void>): void;
  /** Registers a change of the final result, which is applied before the cleanups run. */
  atEnd(change: (result: ToolResult) => Outcome): void;
  /**
   * Removes the secrets of the call from a value that leaves the tool. Layers set it with `redactWith`
   * of `@plue/tools/layers`, and use it for values of the tool that they send. Never throws.
   */
  readonly redact: ((value: unknown) => unknown) | undefined;
}

// Notes of layers about a call, for observers such as a journal

/** A decision about a call, in addition to the selection of its tool. */
export interface CallDecision {
  /** The source: a criterion of the selection, a rule, the approver, or the caller's answer. */
  readonly by: "criterion" | "rule" | "approver" | "caller";
  readonly name?: string | undefined;
  readonly verdict: "allow" | "deny";
  readonly reason?: string | undefined;
}

/** A decision, or the position of a call in its trace. */
export type CallNote = CallDecision | TraceParent;

// A module may have its own copy of the package.
const NOTES = "plue.notes";

/** Returns the notes of a call, oldest first; `undefined` if there are none. */
export function notesOf(call: Call & { [NOTES]?: CallNote[] }): readonly CallNote[] | undefined {
  return call[NOTES];
}

export function note(call: Call & { [NOTES]?: CallNote[] }, fact: CallNote): void {
  (call[NOTES] ??= []).push(fact);
}
