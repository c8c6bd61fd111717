/**
 * A limiter of concurrent calls. Calls over the limits wait in a queue that is bounded. Principals
 * take turns in it, so that the calls of one neither hold up nor push out those of another; the
 * calls of one principal run first come, first served.
 *
 * @module
 */

import { once } from "../tool/mod.ts";

interface Waiter {
  readonly key: string;
  readonly principal: string | undefined;
  readonly answer: (isIn: boolean) => void;
  isIn: boolean;
}

/** A turn that is waited for. */
export interface Turn {
  /** Resolves with `true` when the call may run; it then holds a place. `false`: it lost its turn. */
  readonly entered: Promise<boolean>;
  /** Gives up waiting, or gives the place back if it has been given. Once. */
  cancel(): void;
}

/** Limits how many calls run, in all and per key. */
export class Gate {
  readonly #maxTotal: number;
  readonly #maxPerKey: number;
  readonly #maxQueued: number;
  readonly #running: Map<string, number> = new Map();
  #total = 0;
  /**
   * By principal, in order of arrival; the principal whose turn is next comes first. None of the
   * calls has room now: each call that leaves lets one in.
   */
  readonly #lines: Map<string | undefined, Set<Waiter>> = new Map();
  #queued = 0;

  constructor(maxTotal: number, maxPerKey: number, maxQueued: number) {
    this.#maxTotal = maxTotal;
    this.#maxPerKey = maxPerKey;
    this.#maxQueued = maxQueued;
  }

  /** The number of queued calls. */
  get queued(): number {
    return this.#queued;
  }

  /**
   * Asks for a place.
   *
   * @returns `true` if it is given at once, a turn to wait for, or `false` if the queue is full.
   */
  enter(key: string, principal?: string): boolean | Turn {
    // A newcomer overtakes no one: if a call of this key is waiting, there is no room for this one.
    if (this.#hasRoom(key)) {
      this.#count(key, 1);
      return true;
    }
    if (this.#queued >= this.#maxQueued && !this.#makeRoom(principal)) return false;
    let answer = (_isIn: boolean): void => {};
    const entered = new Promise<boolean>((resolve) => answer = resolve);
    const waiter: Waiter = { key, principal, answer, isIn: false };
    once(this.#lines, principal, () => new Set<Waiter>()).add(waiter);
    this.#queued++;
    return { entered, cancel: () => waiter.isIn ? this.leave(key) : this.#remove(waiter) };
  }

  /** Gives a place back. */
  leave(key: string): void {
    this.#count(key, -1);
    for (const [principal, line] of this.#lines) {
      for (const waiter of line) {
        if (!this.#hasRoom(waiter.key)) continue;
        this.#remove(waiter);
        // The others have their turn before it.
        if (this.#lines.delete(principal)) this.#lines.set(principal, line);
        this.#count(waiter.key, 1);
        waiter.isIn = true;
        // One place became free, so at most one call can take it.
        return waiter.answer(true);
      }
    }
  }

  /**
   * Makes room in the full queue for a call of a principal that has less than its share of it: the
   * newest call of one that has more loses its turn.
   */
  #makeRoom(principal: string | undefined): boolean {
    const own = this.#lines.get(principal);
    const principals = this.#lines.size + (own === undefined ? 1 : 0);
    if (((own?.size ?? 0) + 1) * principals > this.#maxQueued) return false;
    for (const line of this.#lines.values()) {
      if (line.size * principals <= this.#maxQueued) continue;
      const newest = [...line].at(-1) as Waiter;
      this.#remove(newest);
      newest.answer(false);
      return true;
    }
    return false;
  }

  #remove(waiter: Waiter): void {
    const line = this.#lines.get(waiter.principal);
    if (line?.delete(waiter)) this.#queued--;
    if (line?.size === 0) this.#lines.delete(waiter.principal);
  }

  #hasRoom(key: string): boolean {
    return this.#total < this.#maxTotal && (this.#running.get(key) ?? 0) < this.#maxPerKey;
  }

  #count(key: string, change: 1 | -1): void {
    const running = (this.#running.get(key) ?? 0) + change;
    this.#total += change;
    if (running === 0) this.#running.delete(key);
    else this.#running.set(key, running);
  }
}
