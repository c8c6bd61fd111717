/** A clock and promises that a test controls, and a function that waits for promise reactions. */

import type { Clock } from "../../mod.ts";

type Timer = { readonly at: number; readonly wake: () => void };

/** A manual clock. */
export class FakeClock implements Clock {
  readonly timers: Set<Timer> = new Set();
  #now = 1_000;
  #onArmed: (() => void)[] = [];

  now(): number {
    return this.#now;
  }

  timestamp(): number {
    return 1_800_000_000_000 + this.#now;
  }

  setTimeout(wake: () => void, ms: number): () => void {
    const timer = { at: this.#now + ms, wake };
    this.timers.add(timer);
    for (const resolve of this.#onArmed.splice(0)) resolve();
    return () => void this.timers.delete(timer);
  }

  /** Resolves when a timer is armed, or immediately if a timer is armed already. */
  armed(): Promise<void> {
    return this.timers.size > 0
      ? Promise.resolve()
      : new Promise((resolve) => this.#onArmed.push(resolve));
  }

  /** Advances the time, and fires due timers in order. */
  advance(ms: number): void {
    this.#now += ms;
    for (const timer of [...this.timers].sort((a, b) => a.at - b.at)) {
      if (timer.at <= this.#now && this.timers.delete(timer)) timer.wake();
    }
  }

  /** Waits for a timer, then moves the time. */
  async pass(ms: number): Promise<void> {
    await this.armed();
    this.advance(ms);
  }
}

/** A promise that is settled by hand. */
export type Deferred<T> = PromiseWithResolvers<T>;

export function deferred<T = void>(): Deferred<T> {
  return Promise.withResolvers();
}

/** Lets pending promise reactions run until `done` returns true; fails if it never does. */
export async function until(done: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1_000; turn++) {
    if (done()) return;
    await Promise.resolve();
  }
  throw new Error("It did not come about, however many reactions ran");
}

/** Checks a real server or process until a condition holds. Between the checks, others may compute. */
export async function poll(done: () => boolean | Promise<boolean>): Promise<void> {
  while (!await done()) await new Promise((resolve) => setTimeout(resolve, 10));
}
