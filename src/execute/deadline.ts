/** Ends a call from outside: an abort by the caller or a stream's consumer, or a timeout. */

import type { Clock } from "../tool/mod.ts";

export type InterruptCause = "aborted" | "timeout";

/**
 * The deadlines of each signal. All calls with the same signal, such as a server's shutdown, share
 * one listener. With one listener per call, each end of a call would search all listeners, and Node
 * would warn of a leak from the eleventh listener on.
 */
const listeners = new WeakMap<AbortSignal, Set<Deadline>>();

/** The time limit and the abort signal of a call. Created at its first use. */
export class Deadline {
  /** The cause of the end; `undefined` while the call may continue. */
  cause: InterruptCause | undefined;
  /** The reason of the abort or timeout. A `CallFailure` becomes the result. */
  reason: unknown;
  /** True if the call can no longer be interrupted. */
  isClosed = false;
  readonly #clock: Clock;
  readonly #caller: AbortSignal | undefined;
  readonly #interruptCall: () => void;
  #expiresAt: number;
  #controller: AbortController | undefined;
  /** The deadlines that listen to the caller's signal, while this deadline is one of them. */
  #listening: Set<Deadline> | undefined;
  #disarm: (() => void) | undefined;

  /**
   * @param expiresAt The end of the time limit, by `clock.now()`.
   * @param interruptCall Called once, at an abort or a timeout. Must not throw.
   */
  constructor(
    clock: Clock,
    caller: AbortSignal | undefined,
    expiresAt: number,
    interruptCall: () => void,
  ) {
    this.#clock = clock;
    this.#caller = caller;
    this.#expiresAt = expiresAt;
    this.#interruptCall = interruptCall;
  }

  /** Aborts with the caller's reason, or with a `TimeoutError`. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.cause !== undefined) this.#controller.abort(this.reason);
      else this.#listen();
    }
    return this.#controller.signal;
  }

  get remainingMs(): number {
    return Math.max(0, this.#expiresAt - this.#clock.now());
  }

  /** Throws the reason after an abort or a timeout. Creates no `AbortController`. */
  throwIfAborted(): void {
    this.checkCaller();
    if (this.cause !== undefined) throw this.reason;
  }

  abort(reason: unknown): void {
    this.#interrupt("aborted", reason);
  }

  /** Ends the call if the caller's signal has aborted, without a listener. */
  checkCaller(): void {
    if (this.#caller?.aborted) this.abort(this.#caller.reason);
  }

  /** Ends the call if its time is over. Reads the clock, for loops in which no timer can fire. */
  expired(): boolean {
    if (this.remainingMs === 0) this.#timeOut();
    return this.cause !== undefined;
  }

  /** Pauses the call's timeout for a wait with its own limit. The returned function resumes it. */
  suspend(limitMs: number): () => void {
    const left = this.remainingMs;
    this.#expireIn(limitMs);
    return () => this.#expireIn(left);
  }

  #expireIn(ms: number): void {
    this.#expiresAt = this.#clock.now() + ms;
    if (this.#disarm !== undefined) this.#arm();
  }

  /** Watches the time and the caller's signal until the call ends. */
  watch(): void {
    this.#listen();
    if (this.cause === undefined && this.#disarm === undefined && !this.isClosed) this.#arm();
  }

  #arm(): void {
    this.#disarm?.();
    this.#disarm = this.#clock.setTimeout(() => this.#timeOut(), this.remainingMs);
  }

  #rest(): void {
    this.#disarm?.();
    this.#disarm = undefined;
  }

  /** Called when the result is decided. Removes the timer and the signal's listener. */
  close(): void {
    this.isClosed = true;
    this.#rest();
    const caller = this.#caller;
    const deadlines = this.#listening;
    if (caller === undefined || !deadlines?.delete(this) || deadlines.size > 0) return;
    listeners.delete(caller);
    caller.removeEventListener("abort", abortAll);
  }

  #listen(): void {
    const caller = this.#caller;
    if (caller === undefined || this.#listening !== undefined || this.isClosed) return;
    if (caller.aborted) return this.abort(caller.reason);
    let deadlines = listeners.get(caller);
    if (deadlines === undefined) {
      listeners.set(caller, deadlines = new Set());
      caller.addEventListener("abort", abortAll, { once: true });
    }
    this.#listening = deadlines.add(this);
  }

  #timeOut(): void {
    this.#interrupt("timeout", new DOMException("The call took too long", "TimeoutError"));
  }

  #interrupt(cause: InterruptCause, reason: unknown): void {
    if (this.cause !== undefined || this.isClosed) return;
    this.cause = cause;
    this.reason = reason;
    this.#rest();
    this.#controller?.abort(reason);
    this.#interruptCall();
  }
}

function abortAll(this: AbortSignal): void {
  const deadlines = listeners.get(this) ?? [];
  listeners.delete(this);
  for (const deadline of deadlines) deadline.abort(this.reason);
}
