/**
 * What ends a call from outside: the caller's signal, the timeout, a consumer that went away.
 *
 * @module
 */

import type { Clock } from "../tool/mod.ts";

export type InterruptCause = "aborted" | "timeout";

/**
 * The deadlines that listen to a signal. All calls that share a signal, such as a
 * server's shutdown, share one listener: a listener each is searched for at every end of a call, and
 * Node warns of a leak from the eleventh on.
 */
const listeners = new WeakMap<AbortSignal, Set<Deadline>>();

/** The end of one call, created when the call first waits or its tool first reads its signal. */
export class Deadline {
  /** What ended the call; `undefined` while it may go on. */
  cause: InterruptCause | undefined = undefined;
  readonly #clock: Clock;
  readonly #caller: AbortSignal | undefined;
  readonly #interruptCall: () => void;
  #expiresAt: number;
  #reason: unknown;
  #controller: AbortController | undefined;
  #isListening = false;
  #isClosed = false;
  #disarm: (() => void) | undefined;

  /**
   * @param expiresAt When the time is over, by `clock.now()`.
   * @param interruptCall Called once if the call is ended from outside. Must not throw.
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

  /** Aborts when the call ends from outside; with the caller's reason, or a `TimeoutError`. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.cause !== undefined) this.#controller.abort(this.#reason);
      else this.#listen();
    }
    return this.#controller.signal;
  }

  /** Why the call was ended from outside; a `CallFailure` becomes its result. */
  get reason(): unknown {
    return this.#reason;
  }

  /** How long the call may still take. */
  get remainingMs(): number {
    return Math.max(0, this.#expiresAt - this.#clock.now());
  }

  /** Throws the reason if the call has ended from outside. Needs no controller for that. */
  throwIfAborted(): void {
    this.checkCaller();
    if (this.cause !== undefined) throw this.#reason;
  }

  /** Ends the call for the reason given. */
  abort(reason: unknown): void {
    this.#interrupt("aborted", reason);
  }

  /** Ends the call if the caller's signal has aborted, without a listener. */
  checkCaller(): void {
    const caller = this.#caller;
    if (caller !== undefined && caller.aborted) this.abort(caller.reason);
  }

  /** Whether the time is over, asked without a timer: for loops that never let one fire. */
  expired(): boolean {
    if (this.cause === undefined && this.#clock.now() >= this.#expiresAt) this.#timeOut();
    return this.cause !== undefined;
  }

  /**
   * Stops counting the call's own time, for a wait with a limit of its own.
   *
   * @returns A function that resumes the count.
   */
  suspend(limitMs: number): () => void {
    const left = this.#expiresAt - this.#clock.now();
    this.#expireIn(limitMs);
    return () => this.#expireIn(left);
  }

  #expireIn(ms: number): void {
    this.#expiresAt = this.#clock.now() + ms;
    if (this.#disarm === undefined) return;
    this.#rest();
    this.#arm();
  }

  /** Watches the time and the caller's signal until the call ends. */
  watch(): void {
    this.#listen();
    if (this.cause === undefined && this.#disarm === undefined && !this.#isClosed) this.#arm();
  }

  #rest(): void {
    this.#disarm?.();
    this.#disarm = undefined;
  }

  /** The call cannot be interrupted any more. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The result is decided: nothing interrupts the call, and nothing listens to the caller's signal. */
  close(): void {
    this.#isClosed = true;
    this.#rest();
    if (!this.#isListening || this.#caller === undefined) return;
    this.#isListening = false;
    const deadlines = listeners.get(this.#caller);
    if (deadlines?.delete(this) !== true || deadlines.size > 0) return;
    listeners.delete(this.#caller);
    this.#caller.removeEventListener("abort", abortAll);
  }

  #arm(): void {
    const left = Math.max(0, this.#expiresAt - this.#clock.now());
    this.#disarm = this.#clock.setTimeout(() => this.#timeOut(), left);
  }

  #listen(): void {
    const caller = this.#caller;
    if (caller === undefined || this.#isListening || this.#isClosed) return;
    if (caller.aborted) return this.abort(caller.reason);
    this.#isListening = true;
    const deadlines = listeners.get(caller);
    if (deadlines !== undefined) return void deadlines.add(this);
    listeners.set(caller, new Set([this]));
    caller.addEventListener("abort", abortAll, { once: true });
  }

  #timeOut(): void {
    this.#interrupt("timeout", new DOMException("The call took too long", "TimeoutError"));
  }

  #interrupt(cause: InterruptCause, reason: unknown): void {
    if (this.cause !== undefined || this.#isClosed) return;
    this.cause = cause;
    this.#reason = reason;
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
