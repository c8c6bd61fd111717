/** One call: its state and its end. */

import type { ToolHost, ToolRuntime } from "../registry/mod.ts";
import type { Toolset } from "../select/mod.ts";
import {
  assertSync,
  brandResult,
  callHook,
  checkFunction,
  clip,
  describeThrown,
  fail,
  type FailureCode,
  isFunction,
  isObject,
  isThenable,
  isToolResult,
  isWord,
  noop,
  type QuickWait,
  TIME_OVER,
  type Tool,
  type ToolFailure,
  type ToolResult,
  type ToolRun,
  watchLater,
  within,
} from "../tool/mod.ts";
import { type CheckedCall, parseArguments, type Ring as RingOf } from "./arguments.ts";
import type { CallContext } from "./context.ts";
import { Deadline } from "./deadline.ts";
import {
  CallFailure,
  completeFailure,
  failure,
  type FailureDetails,
  interruption,
  notAvailable,
  ownResult,
  type Settable,
} from "./failures.ts";
import type {
  Call,
  CallObserver,
  DispatchPhase,
  KernelSettings,
  Layer,
  Outcome,
  Requirement,
  ToolState,
} from "./layer.ts";
import { readOutput } from "./output.ts";
import type { DispatchContext, ResumedCall, ToolCall } from "./request.ts";

export type Ring = RingOf<KernelCall>;

/** A function of an observer. Each function takes some or all of these parameters. */
export type Observe = (call: Call, result?: never, now?: never) => void | Promise<void>;

/** The functions that run calls of one tool. They are composed once per tool. */
export interface Plan {
  readonly tool: Tool;
  readonly host: ToolHost;
  readonly layered: Ring;
  /** Runs a call to which no layer applies, and ends it, which saves two promises. */
  readonly direct: Ring | undefined;
  /** A call runs `direct` only if none of these conditions of layers is true for the call. */
  readonly conditions: readonly ((call: Call) => boolean)[];
  readonly observers: { readonly [Name in keyof CallObserver]-?: Observe[] };
  /** The layer that reads text that is not JSON, if there is one. */
  readonly reader: Layer | undefined;
  readonly layerCount: number;
  readonly unmet: readonly Requirement[];
  readonly timeoutMs: number;
}

export interface CallShared {
  readonly settings: KernelSettings;
  readonly Context: typeof CallContext;
  withToolset(toolset: Toolset): {
    dispatch(call: ToolCall | ResumedCall, context: DispatchContext): Promise<ToolResult>;
  };
  nextCallId(): string;
  report(toolId: string, callId: string, phase: DispatchPhase, error: unknown): void;
}

/**
 * For each requirement: the failure code if no layer meets the requirement, and a predicate for
 * calls with it. Without a call, the predicate returns true if any call may have the requirement.
 */
export const REQUIREMENTS: {
  readonly [Name in Requirement]: readonly [
    code: FailureCode,
    isRequired: (tool: Tool, call?: Call) => boolean,
  ];
} = {
  approval: [
    "approval_required",
    (tool, call) => tool.requiresApproval || call?.toolset.requiresApproval(tool) !== false,
  ],
  transaction: ["transaction_failed", (tool) => tool.requiresTransaction],
  context: ["unavailable", (tool) => tool.context !== undefined],
  idempotency: [
    "invalid_arguments",
    (_tool, call) => call === undefined || call.options.idempotencyKey !== undefined,
  ],
  credentials: ["unavailable", (tool) => tool.credentials !== undefined],
};

/**
 * Returns the predicate for the calls to which a layer applies. If the condition of the layer
 * throws, the layer applies, so that a check is never skipped.
 */
export function conditionOf(layer: Layer): (call: Call) => boolean {
  const { when, meets } = layer;
  const [, isRequired] = meets === undefined ? [] : REQUIREMENTS[meets];
  return (call) => {
    try {
      // If the call has the layer's requirement, the layer applies even if `when` is false.
      if (isRequired?.(call.tool, call)) return true;
      if (when === undefined) return meets === undefined;
      return typeof when === "function"
        ? assertSync<unknown>(when.call(layer, call)) !== false
        : call.options[when] !== undefined;
    } catch {
      return true;
    }
  };
}

/** The field `ran` of a failure, by tool state. The outcome of a running tool is unknown. */
const RAN: { readonly [State in ToolState]: ToolRun } = {
  "not started": "no",
  running: "unknown",
  ended: "yes",
};

type Cleanup = () => void | Promise<void>;
type Generator = AsyncGenerator<unknown, unknown, void>;

const MAX_CALL_ID = 256;

/** Rejects the waits of layers after an abort or a timeout. */
class Interrupted extends Error {}

/** A wait, which an abort or a timeout interrupts. The innermost wait is interrupted first. */
interface Wait {
  isActive: boolean;
  /** True after the end of the wait, which stays in the list until all inner waits have ended. */
  hasEnded: boolean;
  readonly outer: Wait | undefined;
  readonly interrupt: (next: () => void) => void;
}

/** One call of the kernel. Its context, its deadline and its id are created when first needed. */
export class KernelCall implements CheckedCall, QuickWait<Wait> {
  readonly tool: Tool;
  readonly toolset: Toolset;
  readonly host: ToolHost;
  readonly request: ToolCall;
  readonly options: DispatchContext;
  readonly settings: KernelSettings;
  arguments: unknown;
  plainArguments: unknown;
  argumentBytes = 0;
  declare readonly redact: Call["redact"];
  toolState: ToolState = "not started";
  /** Absent until the tool is ready, so layers of stage `call` must not use this field. */
  runtime: ToolRuntime = undefined as never;
  readonly #kernel: CallShared;
  readonly #plan: Plan;
  readonly #startedAt: number;
  /** True if the innermost ring ends the call, because no layer applies to the call. */
  #isDirect = false;
  #isOver = false;
  #isEnded = false;
  #wait: Wait | undefined;
  #interruption: ToolFailure | undefined;
  #deadline: Deadline | undefined;
  #context: CallContext | undefined;
  #callId: string | undefined;
  /** The cleanups; `null` once they have run. */
  #cleanups: Cleanup[] | null | undefined;
  #changes: ((result: ToolResult) => Outcome)[] | undefined;
  #stopTool: (() => Promise<unknown>) | undefined;

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

  /** Runs the call. Never throws and never rejects. */
  run(): Outcome {
    const { conditions, layered, observers } = this.#plan;
    let { direct } = this.#plan;
    this.#observe(observers.began);
    for (const applies of conditions) if (applies(this)) direct = undefined;
    if (direct === undefined) return this.#runLayered(layered);
    this.#isDirect = true;
    let outcome: Outcome;
    try {
      outcome = this.open(direct);
    } catch (error) {
      outcome = this.thrown(error);
    }
    if (!(outcome instanceof Promise)) return this.#finish(outcome);
    // If the tool is running, the innermost ring waits for the tool, and then ends the call.
    return this.toolState === "running" ? outcome : outcome.then((result) => this.#finish(result));
  }

  /** Runs the call with its layers. An abort or timeout ends it even if a layer never returns. */
  #runLayered(ring: Ring): Outcome {
    let giveUp = (): void => {};
    let disarm: (() => void) | undefined;
    const interrupt = (): void => {
      const { closeTimeoutMs, clock, graceMs } = this.settings;
      // A closing call has `closeTimeoutMs` per layer. Otherwise, layers that do not use
      // `call.wait` have the grace period of a tool.
      const ms = this.#isOver ? closeTimeoutMs * (this.#plan.layerCount + 2) : graceMs;
      disarm = clock.setTimeout(() => giveUp(), ms);
    };
    // This outermost wait ends the call even if a layer does not use `call.wait`.
    const wait: Wait = { isActive: true, hasEnded: false, outer: undefined, interrupt };
    this.#wait = wait;
    const end = (result: ToolResult): Outcome => {
      wait.isActive = false;
      disarm?.();
      return this.#finish(result);
    };
    const outcome = this.enter(ring);
    if (!(outcome instanceof Promise)) return end(outcome);
    watchLater(this, wait);
    return new Promise((resolve) => {
      giveUp = () => resolve(end(this.#interruption ?? this.#interrupted("waiting")));
      void outcome.then((result) => resolve(end(result)));
    });
  }

  enter(ring: Ring): Outcome {
    try {
      return ring(this);
    } catch (error) {
      return this.thrown(error);
    }
  }

  after<T>(
    doing: string,
    value: T | PromiseLike<T>,
    next: (value: T) => Outcome,
    failed?: (error: unknown) => Outcome,
  ): Outcome {
    return isThenable(value)
      ? this.wait(doing, value as PromiseLike<T>).then(next, failed)
        .catch((error) => this.thrown(error))
      : next(value as T);
  }

  /** The first ring: checks availability and requirements, parses arguments, starts the tool up. */
  open(next: Ring): Outcome {
    const { tool, interruptedBy } = this;
    if (this.#isOver) return fail("run the call again", "it is closed");
    if (interruptedBy !== undefined) return interruption(tool.id, interruptedBy, "beginning");
    // The availability may have changed since the tool was listed.
    if (tool.isAvailable !== true && !this.toolset.isAvailable(tool)) {
      return notAvailable(tool.id);
    }
    if (tool.execute === undefined) {
      return this.fail("not_executable", "it is a definition only and cannot be run here");
    }
    for (const requirement of this.#plan.unmet) {
      const [code, isRequired] = REQUIREMENTS[requirement];
      const why = `no layer meets what it requires: ${requirement}`;
      if (isRequired(tool, this)) return this.fail(code, why, { retryable: false });
    }
    return parseArguments(this, this.request.arguments, this.#plan.reader) ?? this.#acquire(next);
  }

  /** Makes the tool ready: its `init` runs before the first call. */
  #acquire(next: Ring): Outcome {
    let runtime: ToolRuntime | Promise<ToolRuntime>;
    try {
      runtime = this.host.acquire(this.tool);
    } catch (error) {
      return this.#notReady(error);
    }
    if (!(runtime instanceof Promise)) {
      this.runtime = runtime;
      return next(this);
    }
    // A tool that becomes ready after the end of the call is released.
    runtime.then((late) => this.#isOver ? this.#release(late) : undefined, noop);
    return this.after("starting up", runtime, (ready) => {
      this.runtime = ready;
      return next(this);
    }, (error) => this.#notReady(error));
  }

  #notReady(error: unknown): ToolFailure {
    // Other errors come from the host, and their messages were not written for a model.
    const why = (error as Error).name === "ToolLifecycleError"
      ? (error as Error).message
      : "the tool could not be made ready";
    return this.thrown(error, "init", why, "unavailable");
  }

  /** The innermost ring: runs the tool and checks its result. */
  static runTool(call: KernelCall): Outcome {
    const { tool } = call;
    const cause = call.interruptedBy ?? (call.#isEnded ? "aborted" : undefined);
    if (cause !== undefined) {
      return call.#pass(call.#interruption ??= interruption(tool.id, cause, "about to run"));
    }
    if (call.toolState === "running") fail("run the tool again", "it still runs");
    call.#observe(call.#plan.observers.toolStarted);
    call.toolState = "running";
    let output: unknown;
    try {
      output = tool.execute?.(call.arguments, call.context);
      if (!(output instanceof Promise)) {
        if (isGenerator(output)) output = call.#drain(output);
        // Converted, because the `then` of another library's promise may throw.
        else if (isThenable(output)) output = Promise.resolve(output);
      }
    } catch (error) {
      return call.#pass(call.#threw(error));
    }
    if (output instanceof Promise) return call.#waitForTool(output);
    return call.#endWith(output);
  }

  #endWith(output: unknown): Outcome {
    this.toolState = "ended";
    let result: Outcome;
    try {
      result = readOutput(this, output);
    } catch (error) {
      // Only a schema engine that breaks its contract throws here.
      result = this.thrown(error);
    }
    return result instanceof Promise
      ? this.wait("checking the result", result)
        .then((checked) => this.#pass(checked), (error) => this.#pass(this.thrown(error)))
      : this.#pass(result);
  }

  /** Streams the yields of a generator at the consumer's pace. Returns the generator's result. */
  async #drain(generator: Generator): Promise<unknown> {
    // Async, because the `return` of an object that only looks like a generator may throw.
    this.#stopTool = async () => await generator.return(undefined);
    for (;;) {
      const step = await generator.next();
      if (step.done === true) return step.value;
      for (const send of this.#plan.observers.yielded) {
        try {
          await send(this, step.value as never);
        } catch (error) {
          this.report("metadata", error);
        }
      }
      // If the generator never waits, no timer fires. So `expired()` reads the clock.
      if (this.#isOver || this.deadline.expired()) {
        await generator.return(undefined);
        return undefined;
      }
    }
  }

  #threw(error: unknown): ToolFailure {
    this.toolState = "ended";
    return this.thrown(error, "execute", `the tool threw: ${describeThrown(error)}`);
  }

  /** Receives the result of the innermost ring. Ends the call if no layer applies to the call. */
  #pass(result: ToolResult): Outcome {
    if (this.redact) result = this.redact(result) as ToolResult;
    if (this.#isDirect) return this.#finish(result);
    // Layers that may run the tool again read the complete failure.
    if (!result.ok) this.#complete(result);
    return result;
  }

  #complete(failed: ToolFailure): void {
    completeFailure(failed, RAN[this.toolState], this.tool);
  }

  /** Applies the changes of `atEnd` and runs the cleanups, before `call` layers see the result. */
  close(result: ToolResult): Outcome {
    this.#isOver = true;
    // An abort must not interrupt the commit of a transaction.
    this.#deadline?.close();
    const change = this.#changes?.pop();
    if (change !== undefined) {
      const changed = this.enter(() => change(result));
      return changed instanceof Promise
        ? this.#inTime("changing the result", changed)
          .then((last) => this.close(last), (error) => this.close(this.thrown(error)))
        : this.close(changed);
    }
    const cleanups = this.#cleanups;
    if (!cleanups) return result;
    this.#cleanups = null;
    return this.#cleanUp(cleanups).then(() => result);
  }

  /** Ends the call, exactly once: releases the tool, and passes the result to the observers. */
  #finish(result: ToolResult): Outcome {
    if (this.#isEnded) return result;
    if (this.#wait?.outer !== undefined) {
      // An outer layer has returned before its inner layers, so the inner layers must stop.
      this.deadline.abort(new DOMException("The call has ended", "AbortError"));
    }
    const closed = this.close(result);
    if (closed instanceof Promise) return closed.then((last) => this.#finish(last));
    this.#isEnded = true;
    this.#cleanups = null;
    const now = this.settings.clock.now();
    // Without layers, the result belongs to this call alone.
    const isOwn = this.#isDirect && closed === result;
    let last: Settable<ToolResult>;
    try {
      last = isOwn ? closed : ownResult(closed);
    } catch (error) {
      // A getter of a layer's result threw.
      last = this.thrown(error);
    }
    last.durationMs = now - this.#startedAt;
    brandResult(last);
    if (!last.ok) this.#complete(last);
    const runtime: ToolRuntime | undefined = this.runtime;
    if (runtime !== undefined) this.#release(runtime);
    const { ended, failed } = this.#plan.observers;
    this.#observe(ended, last, now);
    if (!last.ok) this.#observe(failed, last);
    return last;
  }

  #observe(observers: readonly Observe[], result?: ToolResult, now?: number): void {
    // No closure here, because Node would create its scope for every call.
    for (let index = 0; index < observers.length; index++) {
      try {
        const answer: unknown = observers[index]?.(this, result as never, now as never);
        if (answer !== undefined) this.#logRejection(answer);
      } catch (error) {
        this.report("internal", error);
      }
    }
  }

  #logRejection(answer: unknown): void {
    callHook(() => answer, (error) => this.report("internal", error));
  }

  #release(runtime: ToolRuntime): void {
    try {
      const released: unknown = this.host.release(runtime);
      if (released !== undefined) assertSync(released);
    } catch (error) {
      this.report("internal", error);
    }
  }

  defer(cleanup: Cleanup): void {
    checkFunction("defer a cleanup", cleanup, "it");
    // If the call has closed and its tool still runs, the cleanup runs immediately.
    if (this.#cleanups === null) void this.#cleanUp([cleanup]);
    else (this.#cleanups ??= []).push(cleanup);
  }

  atEnd(change: (result: ToolResult) => Outcome): void {
    (this.#changes ??= []).push(change);
  }

  /** Runs all cleanups, even if one of them fails. Slow cleanups continue after the call. */
  async #cleanUp(cleanups: readonly Cleanup[]): Promise<void> {
    const run = async (): Promise<void> => {
      for (const cleanup of cleanups.toReversed()) {
        try {
          await cleanup();
        } catch (error) {
          this.report("cleanup", error);
        }
      }
    };
    await this.#inTime("in cleanups", run(), this.settings.closeTimeoutMs)
      .catch((error) => this.report("cleanup", error));
  }

  wait<T>(
    doing: string,
    work: PromiseLike<T> | (() => PromiseLike<T>),
    limitMs?: number,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const resume = limitMs === undefined ? undefined : this.deadline.suspend(limitMs);
      const wait = this.#begin((next) => {
        this.#isOver = true;
        this.#interruption ??= this.#interrupted(doing);
        reject(new Interrupted());
        next();
      });
      if (!wait.isActive) {
        // `assertSync` handles a rejection of the ignored work, which would end the process.
        if (typeof work !== "function") assertSync(work);
        return;
      }
      const settle = (answer: () => void): void => {
        if (wait.isActive) resume?.();
        if (this.#endWait(wait)) answer();
      };
      const working = Promise.resolve(typeof work === "function" ? work() : work);
      (this.#isOver ? this.#inTime(doing, working, limitMs) : working).then(
        (value) => settle(() => resolve(value)),
        (error) => settle(() => reject(error)),
      );
    });
  }

  /** Limits the wait of a layer after the call was closed, because nothing else ends that wait. */
  async #inTime<T>(doing: string, work: Promise<T>, limitMs?: number): Promise<T> {
    const { clock, closeTimeoutMs } = this.settings;
    // Twice `closeTimeoutMs`, so that a time limit in the layer ends the wait first.
    const ms = limitMs ?? 2 * closeTimeoutMs;
    const value = await within(clock, ms, work);
    if (value === TIME_OVER) throw new RangeError(`It exceeded ${ms} ms ${doing}`);
    return value;
  }

  /** Waits for the tool; after an abort or a timeout, at most for the grace period. */
  #waitForTool(output: PromiseLike<unknown>): Promise<ToolResult> {
    return new Promise((resolve) => {
      const wait = this.#begin((next) => {
        this.#isOver = true;
        let ran: ToolRun | undefined;
        output.then((late) => {
          // The failure of a tool that calls another process may state that nothing has run there.
          if (isToolResult(late) && !late.ok) ran = late.error.ran;
        }, () => {});
        void this.#stop(output).then((acknowledged) => {
          const failed = this.#interruption ??= this.#interrupted("running", acknowledged);
          if (ran !== undefined) completeFailure(failed, ran, this.tool);
          resolve(this.#pass(failed));
          next();
        });
      });
      output.then((value) => {
        this.toolState = "ended";
        if (this.#endWait(wait)) resolve(this.#endWith(value));
      }, (error) => {
        // Precedes the check for an interruption, so that late errors of the tool are reported.
        const failed = this.#threw(error);
        if (this.#endWait(wait)) resolve(this.#pass(failed));
      });
    });
  }

  /** Waits for the tool until the end of the grace period. Returns true if the tool has stopped. */
  async #stop(output: PromiseLike<unknown>): Promise<boolean> {
    if (this.toolState === "ended") return true;
    const { clock, graceMs } = this.settings;
    // A generator has ended when its `return` has settled, even while its last output is sent.
    const ended = Promise.resolve(this.#stopTool?.() ?? output)
      .then(noop, noop)
      .then(() => void (this.toolState = "ended"));
    if (graceMs > 0 && await within(clock, graceMs, ended) !== TIME_OVER) return true;
    // The call ends before its tool, so the observers of `ended` are called first.
    void ended.then(() => this.#observe(this.#plan.observers.toolEnded));
    return false;
  }

  #begin(interrupt: Wait["interrupt"]): Wait {
    const wait = this.#wait = { isActive: true, hasEnded: false, outer: this.#wait, interrupt };
    if (this.#isEnded || this.#deadline?.cause !== undefined) this.#interruptWait();
    else watchLater(this, wait);
    return wait;
  }

  waitsFor(wait: Wait): boolean {
    return wait.isActive;
  }

  watch(): void {
    this.deadline.watch();
  }

  #endWait(wait: Wait, isInterrupted = false): boolean {
    // The caller's signal may have aborted while no listener was set up.
    if (wait.isActive && this.interruptedBy === "aborted") this.deadline.checkCaller();
    if (!wait.isActive && !isInterrupted) return false;
    wait.isActive = false;
    wait.hasEnded = true;
    while (this.#wait?.hasEnded) this.#wait = this.#wait.outer;
    return true;
  }

  /** Interrupts the innermost wait after an abort or a timeout. */
  #interruptWait(): void {
    const wait = this.#wait;
    if (!wait?.isActive) return;
    wait.isActive = false;
    wait.interrupt(() => {
      // Interrupts the next outer wait. When all waits have ended, the layers close.
      this.#endWait(wait, true);
      this.#interruptWait();
    });
  }

  #interrupted(doing: string, acknowledged?: boolean): ToolFailure {
    const { cause = "aborted", reason } = this.#deadline ?? {};
    if (reason instanceof CallFailure) return this.fail(reason.code, reason.message);
    const stopped = this.toolState === "not started" ? undefined : this.toolState === "ended";
    return interruption(this.tool.id, cause, doing, acknowledged ?? stopped);
  }

  thrown(
    error: unknown,
    phase: DispatchPhase = "internal",
    why = "an internal error; the arguments are not the cause",
    code: FailureCode = "threw",
  ): ToolFailure {
    if (error instanceof Interrupted) return this.#interruption ?? this.#interrupted("waiting");
    if (error instanceof CallFailure) return this.fail(error.code, error.message);
    // A tool may stop by throwing the reason of its signal. This is not reported as an error.
    const isReason = phase === "execute" && this.interruptedBy !== undefined &&
      error === this.deadline.signal.reason;
    if (!isReason) this.report(phase, error);
    return this.fail(code, why);
  }

  get deadline(): Deadline {
    if (this.#deadline !== undefined) return this.#deadline;
    let { timeoutMs: ms } = this.#plan;
    let caller: AbortSignal | undefined;
    const { signal, timeoutMs = ms } = this.options;
    if (timeoutMs < ms) ms = timeoutMs;
    try {
      // A function that returns the signal is called only here, when the signal is needed.
      const passed = assertSync(typeof signal === "function" ? signal() : signal);
      if (passed !== undefined) checkFunction("use the signal", passed?.addEventListener, "it");
      caller = passed;
    } catch (error) {
      this.report("internal", error);
    }
    const { clock } = this.settings;
    this.#deadline = new Deadline(clock, caller, this.#startedAt + ms, () => this.#interruptWait());
    // If a tool first reads its signal after the end of its call, the signal has no listener.
    if (this.#isOver) this.#deadline.close();
    return this.#deadline;
  }

  /** Returns the cause of an abort or a timeout, even if no wait was interrupted yet. */
  get interruptedBy(): "aborted" | "timeout" | undefined {
    const { signal, timeoutMs = 1 } = this.options;
    if (this.#deadline !== undefined) {
      this.#deadline.checkCaller();
      return this.#deadline.cause;
    }
    if (typeof signal !== "function" && signal?.aborted === true) return "aborted";
    return timeoutMs <= 0 ? "timeout" : undefined;
  }

  get isOver(): boolean {
    return this.#isOver || this.#deadline?.isClosed === true;
  }

  get callId(): string {
    return this.#callId ??= chosenCallId(this.request) ?? this.#kernel.nextCallId();
  }

  get context(): CallContext {
    return this.#context ??= new this.#kernel.Context(this);
  }

  setArguments(value: unknown, bytes: number): void {
    this.arguments = this.plainArguments = value;
    this.argumentBytes = bytes;
  }

  setParsed(value: unknown): void {
    this.arguments = value;
  }

  fail(code: FailureCode, why: string, details?: FailureDetails): ToolFailure {
    return failure(code, this.tool.id, why, details);
  }

  dispatch(
    toolset: Toolset,
    call: ToolCall | ResumedCall,
    context: DispatchContext,
  ): Promise<ToolResult> {
    return this.#kernel.withToolset(toolset).dispatch(call, context);
  }

  report(phase: DispatchPhase, error: unknown): void {
    const shown = this.redact ? this.redact(error) : error;
    this.#kernel.report(this.tool.id, this.callId, phase, shown);
  }
}

function isGenerator(value: unknown): value is Generator {
  return isObject(value) && isFunction(value["next"]) && isFunction(value["return"]) &&
    Symbol.asyncIterator in value;
}

export function chosenCallId(request: Partial<ToolCall> | null | undefined): string | undefined {
  const callId = request?.callId;
  return isWord(callId) ? clip(callId, MAX_CALL_ID) : undefined;
}
