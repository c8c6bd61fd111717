/**
 * Slots for concurrent calls, and a bounded queue. The queue serves the principals in rotation, so
 * that the calls of one principal neither delay nor evict the calls of another. Calls of one
 * principal are served in the order of their arrival.
 */

import { once } from "../tool/mod.ts";

/** Limits of running and queued calls. */
export interface ConcurrencyLimits {
  /** The maximum number of concurrent calls. @default {Infinity} */
  readonly maxConcurrent?: number;
  /** The maximum number of concurrent calls of one tool. @default {Infinity} */
  readonly maxConcurrentPerTool?: number;
  /**
   * The maximum number of queued calls. Principals take turns; calls of one principal run in the
   * order of their arrival. If the queue is full, further calls fail with `overloaded`. But a call
   * of a principal below its quota evicts the newest call of a principal above its quota, and the
   * evicted call fails.
   *
   * @default {256}
   */
  readonly maxQueued?: number;
}

interface Waiter {
  readonly key: string;
  readonly principal: string | undefined;
  readonly resolve: (hasSlot: boolean) => void;
  hasSlot: boolean;
}

export interface SlotRequest {
  /** Resolves with `true` when the call has a slot, and with `false` if it was evicted. */
  readonly granted: Promise<boolean>;
  /** Leaves the queue, or releases the slot. Must be called at most once. */
  cancel(): void;
}

export class ConcurrencyLimiter {
  readonly #limits: Required<ConcurrencyLimits>;
  readonly #running: Map<string, number> = new Map();
  #total = 0;
  /**
   * The waiting calls by principal, in order of arrival. The first principal is served next. A
   * waiting call never has a free slot, because each call that ends passes its slot on.
   */
  readonly #queues: Map<string | undefined, Set<Waiter>> = new Map();
  #queued = 0;

  constructor(limits: Required<ConcurrencyLimits>) {
    this.#limits = limits;
  }

  get queued(): number {
    return this.#queued;
  }

  /** Returns `true` with a slot, a request if the call must wait, `false` if the queue is full. */
  acquire(key: string, principal?: string): boolean | SlotRequest {
    // If a call of this key waits, the key has no free slot. So no call overtakes another call.
    if (this.#hasFreeSlot(key)) {
      this.#count(key, 1);
      return true;
    }
    if (this.#queued >= this.#limits.maxQueued && !this.#evictFor(principal)) return false;
    let grant = (_hasSlot: boolean): void => {};
    const granted = new Promise<boolean>((resolve) => grant = resolve);
    const waiter: Waiter = { key, principal, resolve: grant, hasSlot: false };
    once(this.#queues, principal, () => new Set<Waiter>()).add(waiter);
    this.#queued++;
    return { granted, cancel: () => waiter.hasSlot ? this.release(key) : this.#remove(waiter) };
  }

  /** Releases a slot, and passes it to the next waiting call that may run. */
  release(key: string): void {
    this.#count(key, -1);
    for (const [principal, queue] of this.#queues) {
      for (const waiter of queue) {
        if (!this.#hasFreeSlot(waiter.key)) continue;
        this.#remove(waiter);
        // Moves the principal to the end, so that the other principals are served first.
        if (this.#queues.delete(principal)) this.#queues.set(principal, queue);
        this.#count(waiter.key, 1);
        waiter.hasSlot = true;
        return waiter.resolve(true);
      }
    }
  }

  /**
   * Evicts the newest waiting call of a principal above its quota, if `principal` is below its
   * quota. Returns false if no call was evicted.
   */
  #evictFor(principal: string | undefined): boolean {
    const { maxQueued } = this.#limits;
    const own = this.#queues.get(principal);
    const principals = this.#queues.size + (own === undefined ? 1 : 0);
    if (((own?.size ?? 0) + 1) * principals > maxQueued) return false;
    for (const queue of this.#queues.values()) {
      if (queue.size * principals <= maxQueued) continue;
      const newest = [...queue].at(-1) as Waiter;
      this.#remove(newest);
      newest.resolve(false);
      return true;
    }
    return false;
  }

  #remove(waiter: Waiter): void {
    const queue = this.#queues.get(waiter.principal);
    if (queue?.delete(waiter)) this.#queued--;
    if (queue?.size === 0) this.#queues.delete(waiter.principal);
  }

  #hasFreeSlot(key: string): boolean {
    const { maxConcurrent, maxConcurrentPerTool } = this.#limits;
    return this.#total < maxConcurrent && (this.#running.get(key) ?? 0) < maxConcurrentPerTool;
  }

  #count(key: string, change: 1 | -1): void {
    const running = (this.#running.get(key) ?? 0) + change;
    this.#total += change;
    if (running === 0) this.#running.delete(key);
    else this.#running.set(key, running);
  }
}
