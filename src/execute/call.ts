/**
 * One call: its state, and the way from its first step to its result.
 *
 * @module
 */

import type { ToolHost, ToolRuntime } from "../registry/mod.ts";
import type { Toolset } from "../select/mod.ts";
import {
  brandResult,
  checkFunction,
  clip,
  type FailureCode,
  type Issue,
  isWord,
  type Tool,
  type ToolFailure,
  type ToolResult,
  type Transaction,
} from "../tool/mod.ts";
import { CallContext } from "./context.ts";
import { type Cleanup, runCleanup, runCleanups } from "./cleanups.ts";
import { Deadline, type InterruptCause, INTERRUPTED, within } from "./deadline.ts";
import type { EventQueue } from "./event_queue.ts";
import { EventSender } from "./event_sender.ts";
import { failure, interruption, misfit } from "./failures.ts";
import { runAfterHooks } from "./hook_steps.ts";
import type { DispatchPhase } from "./options.ts";
import type { Step, ToolPlan } from "./plan.ts";
import { MIN_OUTPUT_BYTES, type Settings } from "./settings.ts";
import type { DispatcherState } from "./state.ts";
import type { DispatchContext, ToolCall } from "./tool_call.ts";
import { closeTransaction } from "./transaction_steps.ts";

const MAX_CALL_ID = 256;

/** A value that can be set once. Results are, by the code that made them, before anyone has them. */
type Settable<T> = { -readonly [Key in keyof T]: T[Key] };

/**
 * One call, from its first step to its result. Nothing is made before it is needed: a tool that
 * answers at once and asks for nothing costs no controller, no timer and no list.
 */
export class Call {
  readonly shared: DispatcherState;
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
  /** What the tool returned. */
  output: unknown = undefined;
  /** The tool was started. */
  ran = false;
  /** Settles when a tool that did not answer at once has ended. */
  running: Promise<unknown> | undefined = undefined;
  /** Asks a generator to stop. */
  stopTool: (() => Promise<unknown>) | undefined = undefined;
  transaction: Transaction | undefined = undefined;
  giveTurnBack: (() => void) | undefined = undefined;
  settleKey: ((result: ToolResult, keep: boolean, bytes: number) => void) | undefined = undefined;
  /** The result is an earlier call's. */
  replays = false;
  /** How large the content of the result is, in bytes of JSON, at most. */
  resultBytes = 0;
  /** The result is decided: what the tool sends now comes too late. */
  over = false;
  readonly #plan: ToolPlan;
  readonly #startedAt: number;
  #toolEnded = false;
  #cleanedUp = false;
  #runtime: ToolRuntime | undefined = undefined;
  #deadline: Deadline | undefined = undefined;
  #context: CallContext | undefined = undefined;
  #callId: string | undefined = undefined;
  #cleanups: Cleanup[] | undefined = undefined;
  #sender: EventSender | undefined = undefined;

  constructor(
    shared: DispatcherState,
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

  get callId(): string {
    return this.#callId ??= chosenCallId(this.request) ?? this.shared.nextCallId();
  }

  get context(): CallContext {
    return this.#context ??= new CallContext(this);
  }

  get deadline(): Deadline {
    if (this.#deadline !== undefined) return this.#deadline;
    const { signal, timeoutMs } = this.options;
    const { timeoutMs: planned } = this.#plan;
    const ms = timeoutMs !== undefined && timeoutMs < planned ? timeoutMs : planned;
    return this.#deadline = new Deadline(this.settings.clock, signal, this.#startedAt + ms);
  }

  /** The tool made ready. Only after the step that does it. */
  get runtime(): ToolRuntime {
    if (this.#runtime === undefined) throw new TypeError("Cannot use a tool that is not ready");
    return this.#runtime;
  }

  /** What has ended the call from outside, if anything has, whether or not a step noticed. */
  get interruptedBy(): InterruptCause | undefined {
    return this.#deadline?.cause ?? (this.options.signal?.aborted === true ? "aborted" : undefined);
  }

  /** Sends what the tool says while it runs. */
  get sender(): EventSender {
    return this.#sender ??= new EventSender(this);
  }

  /** How many values that the tool sent were lost. */
  get dropped(): number {
    return this.#sender?.dropped ?? 0;
  }

  get elapsedMs(): number {
    return this.settings.clock.now() - this.#startedAt;
  }

  get maxOutputBytes(): number {
    const asked = this.options.maxOutputBytes;
    const limit = this.settings.maxOutputBytes;
    return asked !== undefined && asked < limit ? Math.max(asked, MIN_OUTPUT_BYTES) : limit;
  }

  /** Keeps the tool ready until the call has ended. */
  hold(runtime: ToolRuntime): void {
    this.#runtime = runtime;
  }

  /** Runs the call. Never throws and never rejects. */
  run(): ToolResult | Promise<ToolResult> {
    return this.#advance(this.#plan.first);
  }

  #advance(from: Step | undefined): ToolResult | Promise<ToolResult> {
    try {
      for (let step = from; step !== undefined; step = step.next) {
        const answer = step.run(this);
        if (answer === undefined) continue;
        return answer instanceof Promise ? this.#wait(step, answer) : this.#close(answer);
      }
      throw new TypeError("Cannot end a call without a result");
    } catch (error) {
      return this.#close(this.#broken(error));
    }
  }

  async #wait(step: Step, pending: Promise<ToolResult | undefined>): Promise<ToolResult> {
    const answer = await this.deadline.wait(pending).catch((error) => this.#broken(error));
    if (answer === INTERRUPTED) {
      const interrupted = await this.#interrupt(step).catch((error) => this.#broken(error));
      return await this.#close(interrupted);
    }
    if (this.ran) this.#toolEnded = true;
    return await (answer === undefined ? this.#advance(step.next) : this.#close(answer));
  }

  /** The call was ended from outside: a tool that runs is given time to stop. */
  async #interrupt(step: Step): Promise<ToolResult> {
    this.over = true;
    this.events?.release();
    const cause = this.deadline.cause ?? "aborted";
    const acknowledged = this.ran ? await this.#awaitTool() : undefined;
    return interruption(this.tool.id, cause, step.doing, acknowledged);
  }

  /** Whether the tool stops within the grace period. */
  async #awaitTool(): Promise<boolean> {
    const { running } = this;
    if (running === undefined || this.#toolEnded) return true;
    const { stats } = this.#plan;
    const { clock, graceMs } = this.settings;
    stats.abandoned++;
    const count = (): void => void stats.abandoned--;
    // A generator has ended when its `return` has settled, though its last output may still wait.
    const ended = (this.stopTool?.() ?? running).then(count, count);
    return graceMs > 0 && await within(clock, graceMs, ended) !== INTERRUPTED;
  }

  #close(result: ToolResult): ToolResult | Promise<ToolResult> {
    this.over = true;
    // What is decided stays so: an abort must not reach a transaction that is being committed.
    this.#deadline?.close();
    if (
      this.transaction === undefined && this.#cleanups === undefined &&
      (this.settings.afterHooks.length === 0 || this.replays)
    ) return this.#record(result);
    return this.#closeLater(result);
  }

  async #closeLater(outcome: ToolResult): Promise<ToolResult> {
    let result = outcome;
    try {
      const { transactions, afterHooks } = this.settings;
      if (this.transaction !== undefined && transactions !== undefined) {
        result = await closeTransaction(this, transactions, this.transaction, result);
      }
      this.#cleanedUp = true;
      if (this.#cleanups !== undefined) await runCleanups(this, this.#cleanups);
      if (afterHooks.length > 0 && !this.replays) result = await runAfterHooks(this, result);
    } catch (error) {
      result = this.#broken(error);
    }
    return this.#record(result);
  }

  /** The end: everything is given back, and the call is counted. */
  #record(result: ToolResult): ToolResult {
    const { stats } = this.#plan;
    const now = this.settings.clock.now();
    (result as Settable<ToolResult>).durationMs = now - this.#startedAt;
    brandResult(result);
    this.#cleanedUp = true;
    this.giveTurnBack?.();
    this.#release();
    this.settleKey?.(
      result,
      this.ran && (result.ok || !result.error.retryable),
      this.resultBytes,
    );
    stats.inFlight--;
    stats.record(result, now);
    return result;
  }

  #release(): void {
    if (this.#runtime === undefined) return;
    try {
      this.host.release(this.#runtime);
    } catch (error) {
      this.report("internal", error);
    }
  }

  /** Something of the dispatcher's own went wrong. The call still has its one result. */
  #broken(error: unknown): ToolResult {
    const why = "something went wrong that is not the call's fault";
    return this.failed("internal", error, "threw", why);
  }

  /** The failure of this call for the reason given. */
  fail(code: FailureCode, why: string): ToolFailure {
    return failure(code, this.tool.id, why);
  }

  /** The same because something was thrown, which the host is told in full. */
  failed(phase: DispatchPhase, error: unknown, code: FailureCode, why: string): ToolFailure {
    this.report(phase, error);
    return this.fail(code, why);
  }

  /** The same because of what is wrong with the arguments or the result. */
  misfit(
    code: "invalid_arguments" | "invalid_result",
    what: string,
    issues: readonly Issue[],
  ): ToolFailure {
    return misfit(code, this.tool.id, what, issues);
  }

  /** Tells the host what was thrown. */
  report(phase: DispatchPhase, error: unknown): void {
    try {
      this.settings.onError?.({ toolId: this.tool.id, callId: this.callId, phase, error });
    } catch {
      // Whoever is told of errors has nobody to tell of its own.
    }
  }

  /** Ends the call from outside. */
  abort(reason: unknown): void {
    this.deadline.abort(reason);
  }

  /** Runs `cleanup` when the call is closed. */
  defer(cleanup: Cleanup): void {
    checkFunction("defer a cleanup", cleanup, "it");
    // A tool that still runs though its call has been closed cleans up at once, rather than never.
    if (this.#cleanedUp) void runCleanup(this, cleanup);
    else (this.#cleanups ??= []).push(cleanup);
  }
}

/** The name that the caller gave the call, if it did. */
export function chosenCallId(request: ToolCall | null | undefined): string | undefined {
  const callId = request?.callId;
  return isWord(callId) ? clip(callId, MAX_CALL_ID) : undefined;
}
