/**
 * One call: its state, and the way from its first step to its result.
 *
 * @module
 */

import type { ToolHost, ToolRuntime } from "../registry/mod.ts";
import { MAX_ISSUES } from "../schema/mod.ts";
import type { Toolset } from "../select/mod.ts";
import {
  atOnce,
  brandResult,
  callHook,
  checkFunction,
  clip,
  defined,
  type FailureCode,
  isFunction,
  isObject,
  type Issue,
  isWord,
  type Services,
  TIME_OVER,
  type Tool,
  type ToolFailure,
  type ToolResult,
  type Transaction,
  watchLater,
  within,
} from "../tool/mod.ts";
import { CallContext } from "./context.ts";
import { Deadline, type InterruptCause } from "./deadline.ts";
import { type EventQueue, tellFailure } from "./events.ts";
import { failure, interruption } from "./failures.ts";
import { CallQuestions, InputUnavailable } from "./questions.ts";
import type { IdempotencyStore } from "./idempotency.ts";
import type { Gate } from "./limits.ts";
import type { ToolStats } from "./metrics.ts";
import { type DispatchPhase, MIN_OUTPUT_BYTES, type Settings } from "./options.ts";
import type { SettleKey } from "./ports.ts";
import type { DispatchContext, ToolCall } from "./request.ts";
import type { RepairedArguments } from "./suspension.ts";
import { traced } from "./telemetry.ts";

/** What a step says: nothing to go on with the next step, or the result of the call. */
export type StepAnswer = ToolResult | undefined;

export interface Step {
  /** What the call does in this step, for messages: "waiting for its turn". */
  readonly doing: string;
  /** Answers at once where it can: a promise costs turns of the queue, and most calls need none. */
  readonly run: (call: Call, doing: string) => unknown;
  /** Reads what `run` or its promise gave, also when the call has ended. Absent: it is the answer. */
  readonly settled: ((call: Call, value: unknown) => StepAnswer) | undefined;
  /** Reads what `run` threw or its promise was rejected with. Absent: it is the dispatcher's fault. */
  readonly rejected: ((call: Call, error: unknown) => StepAnswer) | undefined;
  readonly next: Step | undefined;
}

/** How calls of one tool run. Made once per tool. */
export interface ToolPlan {
  readonly tool: Tool;
  readonly first: Step | undefined;
  /** The first step of a call that a policy wants approved. */
  readonly firstOfAsked: () => Step | undefined;
  /** Closes the transaction, cleans up and runs the `after` hooks. */
  readonly close: (call: Call, result: ToolResult) => Promise<ToolResult>;
  readonly timeoutMs: number;
  readonly stats: ToolStats;
  /** What runs the tool. */
  readonly host: ToolHost;
}

/** What a call uses of its dispatcher. */
export interface CallShared {
  readonly settings: Settings;
  readonly gate: Gate;
  readonly keys: IdempotencyStore;
  nextCallId(): string;
  report(toolId: string, callId: string, phase: DispatchPhase, error: unknown): void;
}

type Cleanup = () => void | Promise<void>;

const MAX_CALL_ID = 256;

/** The dispatcher sets the duration of a result that it has made, before it hands it out. */
type Settable<T> = { -readonly [Key in keyof T]: T[Key] };

/**
 * One call, from its first step to its result. Nothing is made before it is needed: a tool that
 * answers at once and asks for nothing costs no controller, no timer and no list.
 */
export class Call {
  readonly shared: CallShared;
  readonly settings: Settings;
  readonly toolset: Toolset;
  readonly host: ToolHost;
  readonly tool: Tool;
  readonly request: ToolCall;
  readonly options: DispatchContext;
  /** Where events go, if the call is streamed. */
  readonly events: EventQueue | undefined;
  /** The arguments, as far as the steps have come with them. */
  args: unknown = undefined;
  /** The arguments before a library's schema made others of them. JSON. */
  plainArgs: unknown = undefined;
  /** How long the arguments are as JSON, at most. */
  argumentLength = 0;
  /** The arguments are text that is not JSON, which a repair may mend. */
  hasText = false;
  /** What a repair made of the arguments, here or before the call was suspended. */
  repaired: RepairedArguments | undefined = undefined;
  /** It goes on with its ticket. */
  resumed = false;
  /** What the host gave the call, once it is checked; only for a tool that declares it. */
  hostContext: unknown = undefined;
  /** What the tool returned. */
  output: unknown = undefined;
  /** The tool was started. */
  ran = false;
  /** The tool was started and has not ended. */
  isRunning = false;
  /** Asks a generator to stop. */
  stopTool: (() => Promise<unknown>) | undefined = undefined;
  transaction: Transaction | undefined = undefined;
  giveTurnBack: (() => void) | undefined = undefined;
  settleKey: SettleKey | undefined = undefined;
  /** The result is an earlier call's. */
  replays = false;
  /** How large the content of the result is, in bytes of JSON, at most. */
  resultBytes = 0;
  /** How many values that the tool sent were lost. */
  dropped = 0;
  /** The result is decided: what the tool sends from here on is dropped. */
  over = false;
  /** What the call asks; `undefined` until it asks. */
  questions: CallQuestions | undefined = undefined;
  readonly #plan: ToolPlan;
  readonly #startedAt: number;
  /** The step whose promise is waited for. */
  #waiting: Step | undefined = undefined;
  #pending: Promise<unknown> | undefined = undefined;
  /** The answer of `run`, once a step has had to wait. */
  #answer: Promise<ToolResult> | undefined = undefined;
  #resolve: (result: ToolResult | Promise<ToolResult>) => void = resolveNothing;
  #cleanedUp = false;
  #runtime: ToolRuntime | undefined = undefined;
  #deadline: Deadline | undefined = undefined;
  #context: CallContext | undefined = undefined;
  #callId: string | undefined = undefined;
  #services: Services | undefined = undefined;
  #cleanups: Cleanup[] | undefined = undefined;

  constructor(
    shared: CallShared,
    toolset: Toolset,
    host: ToolHost,
    plan: ToolPlan,
    request: ToolCall,
    options: DispatchContext,
    events: EventQueue | undefined,
  ) {
    this.shared = shared;
    this.settings = shared.settings;
    this.toolset = toolset;
    this.host = host;
    this.tool = plan.tool;
    this.request = request;
    this.options = options;
    this.#plan = plan;
    this.events = events;
    this.#startedAt = this.settings.clock.now();
    plan.stats.inFlight++;
  }

  /** Runs the call. Never throws and never rejects. */
  run(): ToolResult | Promise<ToolResult> {
    const { first, firstOfAsked } = this.#plan;
    const step = this.toolset.requiresApproval(this.tool) ? firstOfAsked() : first;
    const { telemetry } = this.settings;
    if (telemetry === undefined) return this.#advance(step);
    const { tool, callId, options: { sessionId, trace } } = this;
    return traced<ToolResult | Promise<ToolResult>>(
      telemetry,
      { tool, callId, sessionId, headers: trace?.headers },
      trace,
      () => this.#advance(step),
      (error) => this.report("telemetry", error),
    );
  }

  #advance(from: Step | undefined): ToolResult | Promise<ToolResult> {
    try {
      for (let step = from; step !== undefined; step = step.next) {
        const answer = this.#take(step);
        if (answer === undefined) continue;
        return answer instanceof Promise ? this.#wait(step, answer) : this.#close(answer);
      }
      throw new TypeError("Cannot end a call without a result");
    } catch (error) {
      return this.#close(this.broken(error));
    }
  }

  #take(step: Step): StepAnswer | Promise<unknown> {
    try {
      const value = step.run(this, step.doing);
      if (value instanceof Promise) return value;
      return step.settled === undefined ? value as StepAnswer : step.settled(this, value);
    } catch (error) {
      return (step.rejected ?? broken)(this, error);
    }
  }

  /** Waits for the promise of a step or for the end of the call, whichever is first. */
  #wait(step: Step, pending: Promise<unknown>): Promise<ToolResult> {
    const answer = this.#answer ??= new Promise((resolve) => this.#resolve = resolve);
    this.#waiting = step;
    this.#pending = pending;
    pending.then(
      (value) => this.#resume(step, step.settled ?? answerOf, value),
      (error) => this.#resume(step, step.rejected ?? broken, error),
    );
    if (this.#deadline?.cause === undefined) watchLater(this, step);
    else this.interrupt();
    return answer;
  }

  #resume(step: Step, read: NonNullable<Step["settled"]>, value: unknown): void {
    try {
      // Before the check for an interruption: what a tool throws late is reported.
      const answer = read(this, value);
      if (this.#waiting !== step) return;
      if (this.interruptedBy === "aborted") this.deadline.checkCaller();
      if (this.#deadline?.cause !== undefined) return;
      this.#waiting = undefined;
      this.#deadline?.rest();
      this.#settle(answer === undefined ? this.#advance(step.next) : this.#close(answer));
    } catch (error) {
      this.#settle(this.#close(this.broken(error)));
    }
  }

  #settle(result: ToolResult | Promise<ToolResult>): void {
    if (result !== this.#answer) this.#resolve(result);
  }

  waitsFor(step: Step): boolean {
    return this.#waiting === step;
  }

  watch(): void {
    this.deadline.watch();
  }

  /** Called when the call times out or is aborted. Does nothing unless a step is waited for. */
  interrupt(): void {
    const step = this.#waiting;
    if (step === undefined) return;
    this.#waiting = undefined;
    this.#settle(
      this.#giveUp(step).catch((error) => this.broken(error)).then((result) => this.#close(result)),
    );
  }

  /** Gives a tool that runs time to stop, and says why the call has no result. */
  async #giveUp(step: Step): Promise<ToolResult> {
    this.over = true;
    this.events?.release();
    const cause = this.deadline.cause ?? "aborted";
    const acknowledged = this.ran ? await this.#awaitTool() : undefined;
    return interruption(this.tool.id, cause, step.doing, acknowledged);
  }

  /** Whether the tool stops within the grace period. */
  async #awaitTool(): Promise<boolean> {
    if (!this.isRunning) return true;
    const { stats } = this.#plan;
    const { clock, graceMs } = this.settings;
    stats.abandoned++;
    const count = (): void => void stats.abandoned--;
    // A generator has ended when its `return` has settled, though its last output may still wait.
    const ended = Promise.resolve(this.stopTool?.() ?? this.#pending).then(count, count);
    return graceMs > 0 && await within(clock, graceMs, ended) !== TIME_OVER;
  }

  #close(result: ToolResult): ToolResult | Promise<ToolResult> {
    this.over = true;
    // An abort must not reach a transaction that is being committed.
    this.#deadline?.close();
    const { questions } = this;
    if (questions !== undefined && !questions.isClosed) {
      return questions.close(result).then((closed) => this.#close(closed));
    }
    if (
      this.transaction === undefined && this.#cleanups === undefined &&
      (this.settings.afterHooks.length === 0 || this.replays)
    ) return this.#record(result);
    return this.#plan.close(this, result)
      .catch((error) => this.broken(error))
      .then((closed) => this.#record(closed));
  }

  /** The end: everything is given back, and the call is counted. */
  #record(result: ToolResult): ToolResult | Promise<ToolResult> {
    const { stats } = this.#plan;
    const now = this.settings.clock.now();
    (result as Settable<ToolResult>).durationMs = now - this.#startedAt;
    if (this.repaired) (result as Settable<ToolResult>).repaired = this.repaired.repairs;
    brandResult(result);
    this.#cleanedUp = true;
    this.giveTurnBack?.();
    if (this.#runtime !== undefined) this.release(this.#runtime);
    const isFinal = this.ran && (result.ok || isFinalFailure(result));
    const settled = this.settleKey?.(result, isFinal, this.resultBytes);
    stats.inFlight--;
    stats.record(result, now);
    if (!result.ok && result.error.code !== "input_required") {
      tellFailure(this.options, this.tool.id, result, (error) => this.report("metadata", error));
    }
    return settled === undefined ? result : this.#whenSettled(settled, result);
  }

  /** The result, once it is kept for its key: then no other process runs the tool again. */
  async #whenSettled(settled: Promise<void>, result: ToolResult): Promise<ToolResult> {
    const { clock, closeTimeoutMs } = this.settings;
    try {
      if (await within(clock, closeTimeoutMs, settled) !== TIME_OVER) return result;
      throw new RangeError(`The result was not kept within ${closeTimeoutMs} ms`);
    } catch (error) {
      this.report("internal", error);
      return result;
    }
  }

  get callId(): string {
    return this.#callId ??= chosenCallId(this.request) ?? this.shared.nextCallId();
  }

  get context(): CallContext {
    return this.#context ??= new CallContext(this);
  }

  get asking(): CallQuestions {
    return this.questions ??= new CallQuestions(this);
  }

  get deadline(): Deadline {
    if (this.#deadline !== undefined) return this.#deadline;
    const { timeoutMs } = this.options;
    const { timeoutMs: planned } = this.#plan;
    const ms = timeoutMs !== undefined && timeoutMs < planned ? timeoutMs : planned;
    const { clock } = this.settings;
    this.#deadline = new Deadline(clock, this.#callerSignal(), this.#startedAt + ms, this);
    // What a tool asks for after its call listens to nothing.
    if (this.over) this.#deadline.close();
    return this.#deadline;
  }

  /** Only the deadline asks a function for its signal. What is no signal ends no call. */
  #callerSignal(): AbortSignal | undefined {
    const { signal } = this.options;
    let asked: unknown;
    const log = (error: unknown): void => this.report("internal", error);
    callHook(() => asked = typeof signal === "function" ? signal() : signal, log);
    if (asked === undefined || isSignal(asked)) return asked;
    log(new TypeError("Cannot listen to the caller's signal: it must be an AbortSignal"));
    return undefined;
  }

  /** The tool made ready. Only after the step that does it. */
  set runtime(runtime: ToolRuntime) {
    this.#runtime = runtime;
  }

  get runtime(): ToolRuntime {
    if (this.#runtime === undefined) {
      throw new TypeError("Cannot use a tool: it has not been made ready");
    }
    return this.#runtime;
  }

  /** Gives the tool back to its host. */
  release(runtime: ToolRuntime): void {
    try {
      // Every call passes here: without a function made for it.
      atOnce<unknown>(this.host.release(runtime));
    } catch (error) {
      this.report("internal", error);
    }
  }

  /** The services of the registry, with those of the call laid over them. */
  get services(): Services {
    const { services } = this.options;
    if (services === undefined) return this.runtime.services;
    return this.#services ??= laidOver(this.runtime.services, services);
  }

  /** What has ended the call from outside, if anything has, whether or not a step noticed. */
  get interruptedBy(): InterruptCause | undefined {
    const { signal, timeoutMs = 1 } = this.options;
    if (this.#deadline !== undefined) {
      this.#deadline.checkCaller();
      return this.#deadline.cause;
    }
    if (typeof signal !== "function" && signal?.aborted === true) return "aborted";
    return timeoutMs <= 0 ? "timeout" : undefined;
  }

  get elapsedMs(): number {
    return this.settings.clock.now() - this.#startedAt;
  }

  get maxOutputBytes(): number {
    const asked = this.options.maxOutputBytes;
    const limit = this.settings.maxOutputBytes;
    return asked !== undefined && asked < limit ? Math.max(asked, MIN_OUTPUT_BYTES) : limit;
  }

  /** Runs `cleanup` when the call is closed. */
  defer(cleanup: Cleanup): void {
    checkFunction("defer a cleanup", cleanup, "it");
    // A tool that still runs though its call has been closed cleans up at once, rather than never.
    if (this.#cleanedUp) void this.#cleanUpWith(cleanup);
    else (this.#cleanups ??= []).push(cleanup);
  }

  /**
   * Runs the cleanups, the last one deferred first. A cleanup that fails does not stop the others.
   * Resolves when they have ended or their time is over; they go on then.
   */
  async cleanUp(): Promise<void> {
    this.#cleanedUp = true;
    const cleanups = this.#cleanups;
    if (cleanups === undefined) return;
    const { clock, closeTimeoutMs } = this.settings;
    const run = async (): Promise<void> => {
      for (const cleanup of cleanups.toReversed()) await this.#cleanUpWith(cleanup);
    };
    if (await within(clock, closeTimeoutMs, run()) === TIME_OVER) {
      this.report("cleanup", new RangeError(`The cleanups took longer than ${closeTimeoutMs} ms`));
    }
  }

  async #cleanUpWith(cleanup: Cleanup): Promise<void> {
    try {
      await cleanup();
    } catch (error) {
      this.report("cleanup", error);
    }
  }

  /** The dispatcher or something handed to it failed. The call still has its one result. */
  broken(error: unknown): ToolResult {
    const why = "an internal error; the arguments are not the cause";
    return this.failed("internal", error, "threw", why);
  }

  /** The failure of this call for the reason given. */
  fail(code: FailureCode, why: string): ToolFailure {
    return failure(code, this.tool.id, why);
  }

  /** The failure of this call because something was thrown, which the host is told in full. */
  failed(phase: DispatchPhase, error: unknown, code: FailureCode, why: string): ToolFailure {
    // A question without an answer was reported where it was asked.
    if (error instanceof InputUnavailable) return this.fail(error.code, error.message);
    this.report(phase, error);
    return this.fail(code, why);
  }

  /** The failure of this call because its arguments or its result have these issues. */
  misfit(
    code: "invalid_arguments" | "invalid_result",
    what: string,
    issues: readonly Issue[],
  ): ToolFailure {
    const kept = issues.slice(0, MAX_ISSUES);
    const words = kept.map(({ message }) => message).join("; ");
    return failure(code, this.tool.id, `${what}: ${words}`, { issues: kept });
  }

  /** Tells the host what was thrown. */
  report(phase: DispatchPhase, error: unknown): void {
    this.shared.report(this.tool.id, this.callId, phase, error);
  }
}

/** Whether a tool that failed would fail alike if it ran again. */
function isFinalFailure({ error: { code, retryable } }: ToolFailure): boolean {
  return !retryable && code !== "input_required";
}

function resolveNothing(): void {}

function answerOf(_call: Call, value: unknown): StepAnswer {
  return value as StepAnswer;
}

function broken(call: Call, error: unknown): StepAnswer {
  return call.broken(error);
}

function isSignal(value: unknown): value is AbortSignal {
  return isObject(value) && isFunction(value["addEventListener"]);
}

/** The name that the caller gave the call, if it did. */
export function chosenCallId(request: Partial<ToolCall> | null | undefined): string | undefined {
  const callId = request?.callId;
  return isWord(callId) ? clip(callId, MAX_CALL_ID) : undefined;
}

/** What the lower services inherit from a class stays, and so does what is `undefined` above them. */
function laidOver(below: Services, above: Services): Services {
  return Object.setPrototypeOf({ ...below, ...defined(above) }, Object.getPrototypeOf(below));
}
