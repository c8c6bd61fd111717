/**
 * What ends a call from outside: the caller's signal, the timeout, a consumer that went away.
 *
 * @module
 */

import type { Clock } from "../tool/mod.ts";
import { onAbort } from "./abort_listeners.ts";

/** What ended the call. */
export type InterruptCause = "aborted" | "timeout";

/** What {@linkcode Deadline.wait} answers when the call ended first. */
export const INTERRUPTED: unique symbol = Symbol("plue.interrupted");

/** How many turns of the microtask queue a promise may take to settle before a timer is armed. */
const TURNS_BEFORE_TIMER = 4;

/**
 * The end of one call. Made when a call first waits or its tool first asks for a signal: a call
 * that does neither pays for nothing here. Nothing is armed for a promise that has settled already.
 */
export class Deadline {
  readonly #clock: Clock;
  readonly #caller: AbortSignal | undefined;
  #expiresAt: number;
  #cause: InterruptCause | undefined;
  #reason: unknown;
  #controller: AbortController | undefined;
  #stopListening: (() => void) | undefined;
  #closed = false;
  /** Ends the wait that is under way. */
  #interruptWait: (() => void) | undefined;

  /** @param expiresAt When the time is over, by `clock.now()`. */
  constructor(clock: Clock, caller: AbortSignal | undefined, expiresAt: number) {
    this.#clock = clock;
    this.#caller = caller;
    this.#expiresAt = expiresAt;
  }

  /** What ended the call; `undefined` while it may go on. */
  get cause(): InterruptCause | undefined {
    return this.#cause;
  }

  /** Aborts when the call ends from outside; with the caller's reason, or a `TimeoutError`. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#cause !== undefined) this.#controller.abort(this.#reason);
      else this.#listen();
    }
    return this.#controller.signal;
  }

  /** Throws the reason if the call has ended from outside. Needs no controller for that. */
  throwIfAborted(): void {
    this.#listen();
    if (this.#cause !== undefined) throw this.#reason;
  }

  /** Ends the call for the reason given. */
  abort(reason: unknown): void {
    this.#interrupt("aborted", reason);
  }

  /** Whether the time is over, asked without a timer: for loops that never let one fire. */
  expired(): boolean {
    if (this.#cause === undefined && this.#clock.now() >= this.#expiresAt) this.#timeOut();
    return this.#cause !== undefined;
  }

  /**
   * Stops counting the call's own time, for a wait with a limit of its own.
   *
   * @returns Goes on counting where it stopped.
   */
  suspend(limitMs: number): () => void {
    const left = this.#expiresAt - this.#clock.now();
    this.#expiresAt = this.#clock.now() + limitMs;
    return () => void (this.#expiresAt = this.#clock.now() + left);
  }

  /**
   * Waits for `promise`, or for the end of the call, whichever is first. One wait at a time.
   *
   * @returns What the promise gives, or {@linkcode INTERRUPTED}; rejects as the promise does.
   */
  wait<T>(promise: PromiseLike<T>): Promise<T | typeof INTERRUPTED> {
    return new Promise((resolve, reject) => {
      let waiting = true;
      let disarm: (() => void) | undefined;
      const end = (): boolean => {
        if (!waiting) return false;
        waiting = false;
        this.#interruptWait = undefined;
        disarm?.();
        return true;
      };
      promise.then(
        (value) => end() && resolve(value),
        (error) => end() && reject(error),
      );
      this.#interruptWait = () => void (end() && resolve(INTERRUPTED));
      this.#listen();
      if (this.#cause !== undefined) return this.#interruptWait?.();
      // A promise that had settled, or is about to, is heard of within a few turns of the queue, and
      // needs no timer.
      let turns = TURNS_BEFORE_TIMER;
      const arm = (): void => {
        if (!waiting) return;
        if (--turns > 0) return queueMicrotask(arm);
        const left = Math.max(0, this.#expiresAt - this.#clock.now());
        disarm = this.#clock.setTimeout(() => this.#timeOut(), left);
      };
      queueMicrotask(arm);
    });
  }

  /** The call has ended: the caller's signal is let go of. */
  close(): void {
    this.#closed = true;
    this.#stopListening?.();
    this.#stopListening = undefined;
  }

  #listen(): void {
    const caller = this.#caller;
    if (caller === undefined || this.#stopListening !== undefined || this.#closed) return;
    if (caller.aborted) return this.abort(caller.reason);
    this.#stopListening = onAbort(caller, () => this.abort(caller.reason));
  }

  #timeOut(): void {
    this.#interrupt("timeout", new DOMException("The call took too long", "TimeoutError"));
  }

  #interrupt(cause: InterruptCause, reason: unknown): void {
    if (this.#cause !== undefined || this.#closed) return;
    this.#cause = cause;
    this.#reason = reason;
    this.#controller?.abort(reason);
    this.#interruptWait?.();
  }
}

/**
 * Waits for `promise` for at most `ms` milliseconds.
 *
 * @returns What the promise gives, or {@linkcode INTERRUPTED}; rejects as the promise does.
 */
export function within<T>(
  clock: Clock,
  ms: number,
  promise: PromiseLike<T>,
): Promise<T | typeof INTERRUPTED> {
  return new Deadline(clock, undefined, clock.now() + ms).wait(promise);
}
