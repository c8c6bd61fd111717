/**
 * The one way to take part in calls: a layer around the rest of the call, `(call, next) => next(call)`.
 * The layers of a tool are composed once into one function, so that a feature that is not used costs
 * nothing.
 *
 * @module
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
 * The rest of the call. It never throws and never rejects: what goes wrong in it is a failure, and so
 * is the end of the call by a timeout or an abort.
 */
export type Next = (call: Call) => Outcome;

/** One layer for the calls of one tool. */
export type LayerFunction = (call: Call, next: Next) => Outcome;

/** The part of a call in which something was thrown that its result does not tell in full. */
export type DispatchPhase =
  | "init"
  | "context"
  | "repair"
  | "before"
  | "validate"
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

/** The limits and the clock of a dispatcher; its options have the meaning of each. */
export interface CallSettings {
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
  readonly graceMs: number;
  readonly closeTimeoutMs: number;
  readonly maxArgumentBytes: number;
  readonly maxOutputBytes: number;
  readonly clock: Clock;
}

/** Something that was thrown during a call, for the host's log. */
export interface DispatchErrorReport {
  readonly toolId: string;
  readonly callId: string;
  readonly phase: DispatchPhase;
  /** What was thrown, as it is. */
  readonly error: unknown;
}

/** The options of a dispatcher, checked and complete. */
export interface KernelSettings extends CallSettings {
  readonly onError: (report: DispatchErrorReport) => void;
  readonly layers: readonly Layer[];
}

/** Whether the tool of a call was started, and whether it has ended. */
export type ToolState = "not started" | "running" | "ended";

/**
 * What a tool or a call may require of the layers: approval (`requiresApproval`, policies), a
 * transaction, its host's context, a store for idempotency keys. A call fails whose requirement no
 * layer meets.
 */
export type Requirement = "approval" | "transaction" | "context" | "idempotency";

/**
 * Takes part in calls. A layer has its own state and options; the kernel and the other layers do not
 * know that it exists. Within a stage the first layer is the outermost.
 *
 * @example A layer that logs slow calls
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { Dispatcher, type Layer } from "@plue/tools/core";
 *
 * function logSlowCalls(limitMs: number, log: (line: string) => void): Layer {
 *   return {
 *     name: "log-slow-calls",
 *     stage: "call",
 *     observe: () => ({
 *       ended(call, { durationMs }) {
 *         if (durationMs >= limitMs) log(`${call.tool.id} took long`);
 *       },
 *     }),
 *   };
 * }
 *
 * const lines: string[] = [];
 * const registry = new ToolRegistry({
 *   tools: [{ name: "ping", description: "Answers.", execute: () => "pong" }],
 * });
 * const dispatcher = new Dispatcher(registry, {
 *   layers: [logSlowCalls(0, (line) => lines.push(line))],
 * });
 * await dispatcher.dispatch({ name: "ping" });
 * assert.deepEqual(lines, ["ping took long"]);
 * ```
 */
export interface Layer {
  /** Names the layer in messages. */
  readonly name: string;
  /**
   * Where `for` takes part. `call`: around everything, the cleanups included; the arguments may be
   * unread. `input`: the arguments are parsed and not validated. `run`: they are validated.
   */
  readonly stage: "call" | "input" | "run";
  /**
   * Returns the layer's function for calls of a tool, or nothing where the tool does not need it.
   * Called once per tool. What the function throws fails the call with `threw`, and goes to `onError`.
   */
  for?(tool: Tool, host: ToolHost): LayerFunction | undefined;
  /**
   * Which calls the layer concerns; the others take the path without it. Either a field of the host's
   * context that they have, or a function that returns true for them. By default all calls, and for a
   * layer with `meets` the calls that have its requirement.
   */
  readonly when?: keyof DispatchContext | ((call: Call) => boolean);
  /** Only observes: never waits, never changes the result, and costs no promise. */
  observe?(tool: Tool): CallObserver;
  /** Called for a call that names no tool of its toolset, which no other function of the layer sees. */
  unresolved?(
    request: ToolCall,
    options: DispatchContext,
    failure: ToolFailure,
    report: (phase: DispatchPhase, error: unknown) => void,
  ): void;
  /**
   * Members that the layer adds to the context of every tool, by name. Each is computed whenever the
   * tool reads it.
   */
  readonly context?: { readonly [member: string]: (call: Call) => unknown };
  /**
   * Returns the arguments that stand for text which is not JSON, until the layer, of stage `input`, has
   * replaced them. Without such a layer that text fails the call before the `input` stage.
   */
  readText?(text: string): unknown;
  /** The requirement that the layer meets for all calls that have it. */
  readonly meets?: Requirement;
}

/** Observes the calls of one tool. What its functions throw or reject with goes to `onError`. */
export interface CallObserver {
  /** The call begins. */
  began?(call: Call): void;
  /**
   * The call has ended with this result, after all layers and cleanups.
   *
   * @param now When it ended, by the dispatcher's clock.
   */
  ended?(call: Call, result: ToolResult, now: number): void;
  /** As `ended`, and only for calls that have failed. */
  failed?(call: Call, failure: ToolFailure): void;
  /** The tool of a call that ended before it, which ignored its signal, has ended. */
  toolEnded?(call: Call): void;
  /** The tool, a generator, has yielded a value. It continues when the promise has settled. */
  yielded?(call: Call, value: unknown): void | Promise<void>;
}

/** One call, as layers see it. */
export interface Call {
  readonly tool: Tool;
  /** The toolset that the call was resolved against. */
  readonly toolset: Toolset;
  /** The registry that runs the tool. */
  readonly host: ToolHost;
  /** The call as the model wrote it. */
  readonly request: ToolCall;
  /** What the host added to it. */
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
  /** The arguments as JSON: before the schema of a library made other values of them. */
  readonly plainArguments: unknown;
  /** The tool with its configuration, its state and its validators. Only in `input` and `run`. */
  readonly runtime: ToolRuntime;
  readonly toolState: ToolState;
  /** The result is decided: the call was interrupted or closes, and what its tool sends is dropped. */
  readonly isOver: boolean;
  /**
   * Replaces the arguments, from the `input` stage on.
   *
   * @param bytes How large they are as JSON, at most.
   */
  setArguments(value: unknown, bytes: number): void;
  /**
   * Waits for `work`, or for a timeout or an abort of the call; then it rejects, which ends the layer.
   * Every wait of a layer goes through here, except that for `next`, which ends by itself. Work that
   * runs the rest of the call is a function, which is called once the wait has begun.
   *
   * @param doing What the call does meanwhile, for messages: "waiting for a slot".
   * @param limitMs How long this wait may take, in place of the call's timeout, which rests meanwhile.
   */
  wait<T>(
    doing: string,
    work: PromiseLike<T> | (() => PromiseLike<T>),
    limitMs?: number,
  ): Promise<T>;
  /** Creates the failure of this call: `Cannot call "x": <why>`. */
  fail(code: FailureCode, why: string, details?: FailureDetails): ToolFailure;
  /** Passes what was thrown to the host's `onError`. */
  report(phase: DispatchPhase, error: unknown): void;
  /** Runs `cleanup` when the call closes, the last one first. */
  defer(cleanup: () => void | Promise<void>): void;
  /** Has the last word on the result before the cleanups, for a layer that begins in the middle. */
  atEnd(change: (result: ToolResult) => Outcome): void;
}
