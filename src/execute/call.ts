/**
 * One call: its state, and the end of it from outside.
 *
 * @module
 */

import type { ToolHost, ToolRuntime } from "../registry/mod.ts";
import type { Toolset } from "../select/mod.ts";
import {
  atOnce,
  brandResult,
  callHook,
  checkFunction,
  clip,
  describeThrown,
  type FailureCode,
  isFunction,
  isObject,
  isThenable,
  isWord,
  type QuickWait,
  refuse,
  TIME_OVER,
  type Tool,
  type ToolFailure,
  type ToolResult,
  type ToolRun,
  watchLater,
  within,
} from "../tool/mod.ts";
import type { CallContext } from "./context.ts";
import { Deadline } from "./deadline.ts";
import { CallFailure, failure, type FailureDetails, interruption } from "./failures.ts";
import type { KernelSettings } from "./kernel_options.ts";
import type { Call, DispatchPhase, Outcome, ToolState } from "./layer.ts";
import { readOutput } from "./output.ts";
import type { DispatchContext, ToolCall } from "./request.ts";
import { sendOutput } from "./sending.ts";

/** The next ring of a call. */
export type Ring = (call: KernelCall) => Outcome;

/** A function of an observer. Never throws. */
export type Observe = (call: Call, result?: ToolResult, now?: number) => void;

/** How calls of one tool run. Composed once per tool. */
export interface Plan {
  readonly tool: Tool;
  readonly host: ToolHost;
  readonly layered: Ring;
  /** For calls that no layer concerns: the innermost ring ends the call, which saves two promises. */
  readonly direct: Ring | undefined;
  /** True if no layer concerns the call. */
  readonly isPlain: (call: Call) => boolean;
  readonly began: readonly Observe[];
  readonly ended: readonly Observe[];
  readonly failed: readonly Observe[];
  readonly toolEnded: readonly Observe[];
  readonly layerCount: number;
  readonly timeoutMs: number;
}

/** What a call uses of its kernel. */
export interface CallShared {
  readonly settings: KernelSettings;
  /** The class of the contexts that tools receive. */
  readonly Context: typeof CallContext;
  nextCallId(): string;
  report(toolId: string, callId: string, phase: DispatchPhase, error: unknown): void;
}

type Cleanup = () => void | Promise<void>;
type Generator = AsyncGenerator<unknown, unknown, void>;

const MAX_CALL_ID = 256;

/** Unwinds the layers of a call that was ended from outside. */
class Interrupted extends Error {}

/** A wait that the end of the call cuts short. The one that began last is cut first. */
class Wait implements QuickWait<Wait> {
  isActive = true;
  outer: Wait | undefined;
  readonly call: KernelCall;
  readonly interrupt: (wait: Wait) => void;

  constructor(call: KernelCall, outer: Wait | undefined, interrupt: (wait: Wait) => void) {
    this.call = call;
    this.outer = outer;
    this.interrupt = interrupt;
  }

  waitsFor(): boolean {
    return this.isActive;
  }

  watch(): void {
    this.call.deadline.watch();
  }
}

/** One call of the kernel. Nothing is created before it is needed. */
export class KernelCall implements Call {
  readonly tool: Tool;
  readonly toolset: Toolset;
  readonly host: ToolHost;
  readonly request: ToolCall;
  readonly options: DispatchContext;
  readonly settings: KernelSettings;
  arguments: unknown = undefined;
  plainArguments: unknown = undefined;
  /** How large the arguments are as JSON, at most. */
  argumentBytes = 0;
  toolState: ToolState = "not started";
  readonly #kernel: CallShared;
  readonly #plan: Plan;
  readonly #startedAt: number;
  /** The innermost ring ends the call: no layer takes part in it. */
  #isDirect = false;
  #isOver = false;
  #isEnded = false;
  #wait: Wait | undefined = undefined;
  /** The failure of a call that was ended from outside. */
  #interruption: ToolFailure | undefined = undefined;
  /** Ends the call although a layer does not return. */
  #giveUp: (() => void) | undefined = undefined;
  #disarmGiveUp: (() => void) | undefined = undefined;
  #deadline: Deadline | undefined = undefined;
  #runtime: ToolRuntime | undefined = undefined;
  #context: CallContext | undefined = undefined;
  #callId: string | undefined = undefined;
  #cleanups: Cleanup[] | undefined = undefined;
  #isCleanedUp = false;
  #changes: ((result: ToolResult) => Outcome)[] | undefined = undefined;
  /** Stops a generator. */
  #stopTool: (() => Promise<unknown>) | undefined = undefined;

  constructor(
    kernel: CallShared,
    toolset: Toolset,
    plan: Plan,
    request: ToolCall,
    options: DispatchContext,
  ) {
    this.#kernel = kernel;
    this.settings = kernel.settings;
    this.toolset = toolset;
    this.host = plan.host;
    this.tool = plan.tool;
    this.request = request;
    this.options = options;
    this.#plan = plan;
    this.#startedAt = this.settings.clock.now();
  }

  // From the first ring to the result

  /** Runs the call. Never throws and never rejects. */
  run(): Outcome {
    const plan = this.#plan;
    const { direct } = plan;
    for (const observe of plan.began) observe(this);
    this.#isDirect = direct !== undefined && plan.isPlain(this);
    if (this.#isDirect && direct !== undefined) {
      let outcome: Outcome;
      try {
        outcome = direct(this);
      } catch (error) {
        return this.#finish(this.thrown(error));
      }
      if (!(outcome instanceof Promise)) return this.#finish(outcome);
      // The innermost ring has the promise of the tool, and ends the call.
      if (this.toolState === "running") return outcome;
      return outcome.then(
        (result) => this.#finish(result),
        (error) => this.#finish(this.thrown(error)),
      );
    }
    const outcome = plan.layered(this);
    if (!(outcome instanceof Promise)) return this.#finish(outcome);
    // For layers that wait by themselves.
    watchLater({ waitsFor: () => !this.#isEnded, watch: () => this.deadline.watch() }, plan);
    return new Promise((resolve) => {
      this.#giveUp = () =>
        resolve(this.#finish(this.#interruption ?? this.#interrupted("waiting")));
      void outcome.then((result) => resolve(this.#finish(result)));
    });
  }

  /** Makes the tool ready, which runs its `init` before the first call. */
  acquire(next: (call: KernelCall) => Outcome): Outcome {
    let runtime: ToolRuntime | Promise<ToolRuntime>;
    try {
      runtime = this.host.acquire(this.tool);
    } catch (error) {
      return this.#notReady(error);
    }
    if (!(runtime instanceof Promise)) {
      this.#runtime = runtime;
      return next(this);
    }
    // A tool that is ready too late is released.
    runtime.then((late) => this.#isOver ? this.#release(late) : undefined, () => {});
    return this.wait("starting up", runtime).then((ready) => {
      this.#runtime = ready;
      return next(this);
    }, (error) => this.#notReady(error)).catch((error) => this.thrown(error));
  }

  #notReady(error: unknown): ToolFailure {
    if (error instanceof Interrupted) return this.thrown(error);
    // The message of any other error is the host's, and was not written for a model.
    const why = (error as Error).name === "ToolLifecycleError"
      ? (error as Error).message
      : "the tool could not be made ready";
    this.report("init", error);
    return this.fail("unavailable", why);
  }

  /** Runs the tool and checks its result. */
  runTool(): Outcome {
    const { tool } = this;
    const cause = this.interruptedBy ?? (this.#isEnded ? "aborted" : undefined);
    if (cause !== undefined) {
      return this.#end(this.#interruption ??= interruption(tool.id, cause, "about to run"));
    }
    if (this.toolState === "running") refuse("run the tool again", "it still runs");
    this.toolState = "running";
    let output: unknown;
    try {
      output = tool.execute?.(this.arguments, this.context);
      if (!(output instanceof Promise)) {
        if (isGenerator(output)) output = this.#drain(output);
        // The `then` of another library may throw.
        else if (isThenable(output)) output = Promise.resolve(output);
      }
    } catch (error) {
      return this.#end(this.#threw(error));
    }
    if (output instanceof Promise) return this.#waitForTool(output);
    this.toolState = "ended";
    return this.#endWith(output);
  }

  /** The end of the tool, with what it returned. */
  #endWith(output: unknown): Outcome {
    try {
      const result = readOutput(this, output);
      return result instanceof Promise
        ? result.then((checked) => this.#end(checked), (error) => this.#end(this.thrown(error)))
        : this.#end(result);
    } catch (error) {
      // Only a schema engine that breaks its contract throws here.
      return this.#end(this.thrown(error));
    }
  }

  /** Streams what a generator yields as fast as it is consumed, and returns its result. */
  async #drain(generator: Generator): Promise<unknown> {
    // Async, because an object that only looks like a generator may throw, or return no promise.
    this.#stopTool = async () => await generator.return(undefined);
    for (;;) {
      const step = await generator.next();
      if (step.done === true) return step.value;
      await sendOutput(this, step.value);
      // Without real awaits in the generator no timer fires, so the clock is read here.
      if (this.#isOver || this.deadline.expired()) {
        await generator.return(undefined);
        return undefined;
      }
    }
  }

  #threw(error: unknown): ToolFailure {
    this.toolState = "ended";
    if (error instanceof CallFailure) return this.fail(error.code, error.message);
    const why = `the tool threw: ${describeThrown(error)}`;
    // A tool that stops by throwing the signal's reason did as it should, and is not reported.
    if (this.interruptedBy === undefined || error !== this.deadline.signal.reason) {
      this.report("execute", error);
    }
    return this.fail("threw", why);
  }

  /** The end of a call without layers, whose innermost ring has its result. */
  #end(result: ToolResult): Outcome {
    if (this.#isDirect) return this.#finish(result);
    // For layers that decide by it whether to run the tool again.
    if (!result.ok) this.#settle(result);
    return result;
  }

  #settle(failed: ToolFailure): void {
    settle(failed, this.toolState === "not started" ? "no" : "yes", this.tool);
  }

  /** Closes the call before its outermost layers see the result: no interruption, and the cleanups. */
  close(result: ToolResult): Outcome {
    this.#isOver = true;
    // An abort must not reach a transaction that is being committed.
    this.#deadline?.close();
    const change = this.#changes?.pop();
    if (change !== undefined) {
      const changed = change(result);
      return changed instanceof Promise
        ? changed.then((last) => this.close(last))
        : this.close(changed);
    }
    return this.#cleanups === undefined ? result : this.#cleanUp(this.#cleanups, result);
  }

  /** The end, exactly once: the tool is released, and the observers see the result. */
  #finish(result: ToolResult): Outcome {
    if (this.#isEnded) return result;
    if (this.#wait !== undefined) this.#endRest();
    const closed = this.close(result);
    if (closed instanceof Promise) return closed.then((last) => this.#finish(last));
    this.#isEnded = this.#isCleanedUp = true;
    this.#disarmGiveUp?.();
    const now = this.settings.clock.now();
    (closed as Settable<ToolResult>).durationMs = now - this.#startedAt;
    brandResult(closed);
    const { ended, failed } = this.#plan;
    if (!closed.ok) this.#settle(closed);
    if (this.#runtime !== undefined) this.#release(this.#runtime);
    for (const observe of ended) observe(this, closed, now);
    if (!closed.ok) { for (const observe of failed) observe(this, closed); }
    return closed;
  }

  /**
   * A layer has returned before the rest of the call has: that is aborted, so that inner layers give
   * back what they hold.
   */
  #endRest(): void {
    this.deadline.abort(new DOMException("The call has ended", "AbortError"));
  }

  #release(runtime: ToolRuntime): void {
    try {
      const released: unknown = this.host.release(runtime);
      if (released !== undefined) atOnce(released);
    } catch (error) {
      this.report("internal", error);
    }
  }

  // Cleanups

  defer(cleanup: Cleanup): void {
    checkFunction("defer a cleanup", cleanup, "it");
    // A tool that still runs though its call has been closed cleans up at once, rather than never.
    if (this.#isCleanedUp) void this.#cleanUpWith(cleanup);
    else (this.#cleanups ??= []).push(cleanup);
  }

  atEnd(change: (result: ToolResult) => Outcome): void {
    (this.#changes ??= []).push(change);
  }

  /**
   * Runs the cleanups. One that fails does not stop the others. Those that take too long go on after
   * the call.
   */
  async #cleanUp(cleanups: readonly Cleanup[], result: ToolResult): Promise<ToolResult> {
    this.#cleanups = undefined;
    this.#isCleanedUp = true;
    const { clock, closeTimeoutMs } = this.settings;
    const run = async (): Promise<void> => {
      for (const cleanup of cleanups.toReversed()) await this.#cleanUpWith(cleanup);
    };
    if (await within(clock, closeTimeoutMs, run()) === TIME_OVER) {
      this.report("cleanup", new RangeError(`The cleanups took longer than ${closeTimeoutMs} ms`));
    }
    return result;
  }

  async #cleanUpWith(cleanup: Cleanup): Promise<void> {
    try {
      await cleanup();
    } catch (error) {
      this.report("cleanup", error);
    }
  }

  // Waiting, and the end from outside

  wait<T>(
    doing: string,
    work: PromiseLike<T> | (() => PromiseLike<T>),
    limitMs?: number,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const resume = limitMs === undefined ? undefined : this.deadline.suspend(limitMs);
      const wait = this.#begin((own) => {
        this.#isOver = true;
        this.#interruption ??= this.#interrupted(doing);
        reject(new Interrupted());
        this.#unwind(own);
      });
      const settle = (answer: () => void): void => {
        if (wait.isActive) resume?.();
        // An abort that nothing has listened for yet.
        if (this.interruptedBy === "aborted") this.deadline.checkCaller();
        // The wait may have been cut short, also just now.
        if (!wait.isActive) return;
        this.#leave(wait);
        answer();
      };
      if (!wait.isActive) return;
      Promise.resolve(typeof work === "function" ? work() : work).then(
        (value) => settle(() => resolve(value)),
        (error) => settle(() => reject(error)),
      );
    });
  }

  /** Waits for the tool; once the call is ended from outside, for its grace period. */
  #waitForTool(output: PromiseLike<unknown>): Promise<ToolResult> {
    return new Promise((resolve) => {
      const wait = this.#begin((own) => {
        this.#isOver = true;
        void this.#stop(output).then((acknowledged) => {
          this.#interruption ??= this.#interrupted("running", acknowledged);
          resolve(this.#end(this.#interruption));
          this.#unwind(own);
        });
      });
      output.then((value) => {
        this.toolState = "ended";
        if (this.#continue(wait)) resolve(this.#endWith(value));
      }, (error) => {
        // Before the check for an interruption: what a tool throws late is reported.
        const failed = this.#threw(error);
        if (this.#continue(wait)) resolve(this.#end(failed));
      });
    });
  }

  /** Ends the wait for the tool; false if the call was ended from outside. */
  #continue(wait: Wait): boolean {
    if (!this.#isOver && this.interruptedBy === "aborted") this.deadline.checkCaller();
    if (this.#isOver) return false;
    this.#leave(wait);
    return true;
  }

  /** Whether the tool stops within the grace period. */
  async #stop(output: PromiseLike<unknown>): Promise<boolean> {
    if (this.toolState === "ended") return true;
    const { clock, graceMs } = this.settings;
    // A generator has ended when its `return` has settled, though its last output may still wait.
    const ended = Promise.resolve(this.#stopTool?.() ?? output)
      .then(() => {}, () => {})
      .then(() => void (this.toolState = "ended"));
    if (graceMs > 0 && await within(clock, graceMs, ended) !== TIME_OVER) return true;
    // By then the observers have seen the end of the call.
    void ended.then(() => this.#toolEnded());
    return false;
  }

  #toolEnded(): void {
    for (const observe of this.#plan.toolEnded) observe(this);
  }

  #begin(interrupt: (wait: Wait) => void): Wait {
    const wait = this.#wait = new Wait(this, this.#wait, interrupt);
    if (this.#isEnded || this.#deadline?.cause !== undefined) this.#cut();
    else watchLater(wait, wait);
    return wait;
  }

  #leave(wait: Wait): void {
    wait.isActive = false;
    if (this.#wait === wait) {
      this.#wait = wait.outer;
      return;
    }
    for (let inner = this.#wait; inner !== undefined; inner = inner.outer) {
      if (inner.outer === wait) inner.outer = wait.outer;
    }
  }

  /** A wait was cut short: next is the one around it, and then the layers close. */
  #unwind(wait: Wait): void {
    this.#leave(wait);
    const { closeTimeoutMs, clock } = this.settings;
    const giveUp = this.#giveUp;
    const isLast = this.#wait === undefined && !this.#isEnded;
    if (giveUp !== undefined && isLast && this.#disarmGiveUp === undefined) {
      // Each layer may take its time to close; one that does not return must not hold the call.
      const ms = closeTimeoutMs * (this.#plan.layerCount + 2);
      this.#disarmGiveUp = clock.setTimeout(giveUp, ms);
    }
    this.#cut();
  }

  /** Cuts the innermost wait of a call that was ended from outside, or the next one. */
  #cut(): void {
    const wait = this.#wait;
    if (wait !== undefined) return wait.interrupt(wait);
    const giveUp = this.#giveUp;
    if (giveUp === undefined || this.#isOver || this.#disarmGiveUp !== undefined) return;
    // A layer waits by itself. It has as long as a tool.
    const { clock, graceMs } = this.settings;
    this.#disarmGiveUp = clock.setTimeout(giveUp, graceMs);
  }

  #interrupted(doing: string, acknowledged?: boolean): ToolFailure {
    const reason = this.#deadline?.reason;
    if (reason instanceof CallFailure) return this.fail(reason.code, reason.message);
    const stopped = this.toolState === "not started" ? undefined : this.toolState === "ended";
    const cause = this.#deadline?.cause ?? "aborted";
    return interruption(this.tool.id, cause, doing, acknowledged ?? stopped);
  }

  /** The failure for what a ring or a layer threw. */
  thrown(error: unknown, phase: DispatchPhase = "internal"): ToolFailure {
    if (error instanceof Interrupted) return this.#interruption ?? this.#interrupted("waiting");
    if (error instanceof CallFailure) return this.fail(error.code, error.message);
    this.report(phase, error);
    return this.fail("threw", "an internal error; the arguments are not the cause");
  }

  get deadline(): Deadline {
    if (this.#deadline !== undefined) return this.#deadline;
    const { timeoutMs } = this.options;
    const { timeoutMs: planned } = this.#plan;
    const ms = timeoutMs !== undefined && timeoutMs < planned ? timeoutMs : planned;
    this.#deadline = new Deadline(
      this.settings.clock,
      this.#callerSignal(),
      this.#startedAt + ms,
      () => this.#cut(),
    );
    // A tool that reads its signal after its call listens to nothing.
    if (this.#isOver) this.#deadline.close();
    return this.#deadline;
  }

  /** A function is only called for its signal here. A value that is not a signal ends no call. */
  #callerSignal(): AbortSignal | undefined {
    const { signal } = this.options;
    let given: unknown;
    const log = (error: unknown): void => this.report("internal", error);
    callHook(() => given = typeof signal === "function" ? signal() : signal, log);
    if (given === undefined || isSignal(given)) return given;
    log(new TypeError("Cannot listen to the caller's signal: it must be an AbortSignal"));
    return undefined;
  }

  /** What has ended the call from outside, whether or not a wait has noticed. */
  get interruptedBy(): "aborted" | "timeout" | undefined {
    const { signal, timeoutMs = 1 } = this.options;
    if (this.#deadline !== undefined) {
      this.#deadline.checkCaller();
      return this.#deadline.cause;
    }
    if (typeof signal !== "function" && signal?.aborted === true) return "aborted";
    return timeoutMs <= 0 ? "timeout" : undefined;
  }

  // Members of the call that are created when they are first read

  get isOver(): boolean {
    return this.#isOver || this.#deadline?.isClosed === true;
  }

  get callId(): string {
    return this.#callId ??= chosenCallId(this.request) ?? this.#kernel.nextCallId();
  }

  get context(): CallContext {
    return this.#context ??= new this.#kernel.Context(this);
  }

  get runtime(): ToolRuntime {
    return this.#runtime ?? refuse("use a tool", "it has not been made ready");
  }

  setArguments(value: unknown, bytes: number): void {
    this.arguments = this.plainArguments = value;
    this.argumentBytes = bytes;
  }

  /** The arguments that the schema of a library returned, which need not be JSON. */
  setParsed(value: unknown): void {
    this.arguments = value;
  }

  fail(code: FailureCode, why: string, details?: FailureDetails): ToolFailure {
    return failure(code, this.tool.id, why, details);
  }

  report(phase: DispatchPhase, error: unknown): void {
    this.#kernel.report(this.tool.id, this.callId, phase, error);
  }
}

/** The dispatcher completes a result that it has made, before it is handed out. */
type Settable<T> = { -readonly [Key in keyof T]: T[Key] };

/** Completes a failure: whether the tool ran, and whether the call may be repeated. */
export function settle(
  { error, replayed }: ToolFailure,
  ran: ToolRun,
  tool?: Tool,
): void {
  if (error.code === "input_required") return;
  const settable = error as Settable<ToolFailure["error"]>;
  // A tool, a layer or a hook that called another process has the better answer. Only the failures of
  // tools that have run are stored.
  settable.ran = error.ran ?? (replayed ? "yes" : ran);
  if (settable.ran === "unknown" && tool?.idempotent !== true) settable.retryable = false;
}

function isGenerator(value: unknown): value is Generator {
  return isObject(value) && isFunction(value["next"]) && isFunction(value["return"]) &&
    Symbol.asyncIterator in value;
}

function isSignal(value: unknown): value is AbortSignal {
  return isObject(value) && isFunction(value["addEventListener"]);
}

/** The name that the caller gave the call. */
export function chosenCallId(request: Partial<ToolCall> | null | undefined): string | undefined {
  const callId = request?.callId;
  return isWord(callId) ? clip(callId, MAX_CALL_ID) : undefined;
}

/** The rest of the call after a wait. Never rejects. */
export function continueAfter<T>(
  call: KernelCall,
  wait: Promise<T>,
  next: (value: T) => Outcome,
): Promise<ToolResult> {
  return wait.then(next).catch((error) => call.thrown(error));
}
