/**
 * The interface of features around calls: a layer around the rest of the call, `(call, next) =>
 * next(call)`. The layers of a tool are composed once into one function, so that an unused feature
 * costs nothing.
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
import type { DispatchContext, ToolCall } from "./request.ts";

/** The result of a call, now or later. A promise of the kernel never rejects. */
export type Outcome = ToolResult | Promise<ToolResult>;

/**
 * The rest of the call. It never throws and never rejects: errors, timeouts and aborts are
 * failures.
 */
export type Next = (call: Call) => Outcome;

/** One layer for the calls of one tool. */
export type LayerFunction = (call: Call, next: Next) => Outcome;

/** The part of a call with an error that its result does not contain completely. */
export type DispatchPhase =
  | "init"
  | "context"
  | "repair"
  | "before"
  | "validate"
  | "rule"
  | "approve"
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
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
  readonly graceMs: number;
  readonly closeTimeoutMs: number;
  readonly maxArgumentBytes: number;
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
 * Requirements of a tool or a call: approval (`requiresApproval`, policies), a transaction, the
 * host's context, a store for idempotency keys. A call fails if no layer meets its requirement.
 */
export type Requirement = "approval" | "transaction" | "context" | "idempotency";

/**
 * A feature around calls. A layer has its own state and options; the kernel and the other layers do
 * not depend on it. Within a stage the first layer is the outermost.
 */
export interface Layer {
  /** Names the layer in messages. */
  readonly name: string;
  /**
   * The position of `for`. `call`: around everything, the cleanups included; the arguments may be
   * unread. `input`: the arguments are parsed and not validated. `run`: they are validated.
   */
  readonly stage: "call" | "input" | "run";
  /**
   * Returns the layer's function for calls of a tool, or nothing if the tool does not need it.
   * Called once per tool. An error of the function fails the call with `threw`, and is passed to
   * `onError`.
   */
  for?(tool: Tool, host: ToolHost): LayerFunction | undefined;
  /**
   * The calls to which the layer applies: a field of the host's context that they have, or a
   * function that returns true for them. Other calls skip the layer. By default all calls, and for
   * a layer with `meets` the calls that have its requirement.
   */
  readonly when?: keyof DispatchContext | ((call: Call) => boolean);
  /** Only observes: never waits, never changes the result, and costs no promise. */
  observe?(tool: Tool): CallObserver;
  /**
   * Called for a call that names no tool of its toolset: no other function is called for it.
   * `toolset` is absent if it cannot be read.
   */
  unresolved?(
    request: ToolCall,
    options: DispatchContext,
    failure: ToolFailure,
    report: (phase: DispatchPhase, error: unknown) => void,
    toolset?: Toolset,
  ): void;
  /**
   * Members that the layer adds to the context of every tool, by name. Each is computed whenever the
   * tool reads it.
   */
  readonly context?: { readonly [member: string]: (call: Call) => unknown };
  /**
   * Returns preliminary arguments for text that is not JSON, until the layer, of stage `input`, has
   * replaced them. Without such a layer the text fails the call before the `input` stage.
   */
  readText?(text: string): unknown;
  /** The requirement that the layer meets for all calls that have it. */
  readonly meets?: Requirement;
}

/** Observes the calls of one tool. Errors of its functions are passed to `onError`. */
export interface CallObserver {
  /** The call begins. */
  began?(call: Call): void;
  /** The tool is about to run with valid arguments. A tool that is retried starts several times. */
  toolStarted?(call: Call): void;
  /**
   * The call has ended with this result, after all layers and cleanups.
   *
   * @param now The time of the end, by the dispatcher's clock.
   */
  ended?(call: Call, result: ToolResult, now: number): void;
  /** As `ended`, and only for calls that have failed. */
  failed?(call: Call, failure: ToolFailure): void;
  /** A tool that ignored its signal has ended, after its call. */
  toolEnded?(call: Call): void;
  /** The tool, a generator, has yielded a value. It continues when the promise has settled. */
  yielded?(call: Call, value: unknown): void | Promise<void>;
}

/** The view of a call for layers. */
export interface Call {
  readonly tool: Tool;
  /** The toolset that the call was resolved against. */
  readonly toolset: Toolset;
  /** The registry that runs the tool. */
  readonly host: ToolHost;
  /** The model's call. */
  readonly request: ToolCall;
  /** The host's context for it. */
  readonly options: DispatchContext;
  /** The settings of the dispatcher: limits and the clock. */
  readonly settings: CallSettings;
  readonly callId: string;
  /** The context that the tool receives. */
  readonly context: ToolContext;
  /** The timeout and the abort signal. */
  readonly deadline: Deadline;
  /** The arguments: parsed, later validated. `undefined` until they are parsed. */
  readonly arguments: unknown;
  /** The arguments as JSON, before a library's schema converted them. */
  readonly plainArguments: unknown;
  /** The tool with its configuration, its state and its validators. Only in `input` and `run`. */
  readonly runtime: ToolRuntime;
  readonly toolState: ToolState;
  /**
   * True if the result is decided: the call was interrupted or closes, and further output is
   * dropped.
   */
  readonly isOver: boolean;
  /**
   * Replaces the arguments, from the `input` stage on.
   *
   * @param bytes An upper bound of their size as JSON.
   */
  setArguments(value: unknown, bytes: number): void;
  /**
   * Waits for `work`. Rejects at a timeout or an abort of the call, which ends the layer. Every
   * wait of a layer uses this function, except the wait for `next`, which ends by itself. Work that
   * runs the rest of the call is a function, which is called once the wait has begun.
   *
   * @param doing The activity of the call, for messages: "waiting for a slot".
   * @param limitMs The time limit of this wait. The call's timeout is paused meanwhile.
   */
  wait<T>(
    doing: string,
    work: PromiseLike<T> | (() => PromiseLike<T>),
    limitMs?: number,
  ): Promise<T>;
  /** Creates the failure of this call: `Cannot call "x": <why>`. */
  fail(code: FailureCode, why: string, details?: FailureDetails): ToolFailure;
  /** Passes an error to the host's `onError`. */
  report(phase: DispatchPhase, error: unknown): void;
  /** Runs `cleanup` when the call closes, the last one first. */
  defer(cleanup: () => void | Promise<void>): void;
  /** Changes the final result before the cleanups, for a layer that begins in the middle. */
  atEnd(change: (result: ToolResult) => Outcome): void;
}
