/** Counts of requests in fixed windows of time: in the memory of this process, or in a call store. */

import { type CallStore, ownerDigest, StoredRecords } from "../../execute/durable/mod.ts";
import * as check from "../../tool/mod.ts";
import { BoundedMap, once, type RegistryClock, systemClock } from "../../tool/mod.ts";
import { checkCount, checkObject, checkOptions } from "./options.ts";

/** The state of a key's window after a request. */
export interface RateLimitCount {
  /** The amount that was taken in this window before, plus the requested amount. */
  readonly count: number;
  /** The time until the window ends, in milliseconds. */
  readonly resetMs: number;
}

/** The amount that may be taken in a window of time. */
export interface RateLimitWindow {
  readonly limit: number;
  /** The length of the window, in milliseconds. */
  readonly windowMs: number;
}

/**
 * Counts requests by key.
 *
 * Contract: `take` opens a window of `windowMs` if the key has no window, or if its window has ended.
 * It takes the amount if the window's total stays within `limit`; otherwise it takes nothing. An
 * amount of 0 only reads the count. `take` is atomic per key. If it rejects, times out or does not
 * return two numbers, the request is rejected.
 */
export interface RateLimitStore {
  take(
    key: string,
    amount: number,
    window: RateLimitWindow,
  ): RateLimitCount | Promise<RateLimitCount>;
}

/** Options for {@linkcode MemoryRateLimitStore}. */
export interface MemoryRateLimitStoreOptions {
  /**
   * The maximum number of keys. A new key evicts the oldest window that is below its limit; if all
   * windows are at their limits, the oldest window.
   *
   * @default {10_000}
   */
  readonly maxKeys?: number;
  /** Returns the time, in milliseconds. It must not go back. @default {performance.now} */
  readonly now?: () => number;
}

interface Window {
  count: number;
  readonly limit: number;
  readonly endsAt: number;
}

/**
 * Counts in fixed windows, in memory. Each key belongs to the principal that chose it. Principals
 * have equal quotas of the keys: a new key evicts a window of a principal that exceeds its quota.
 */
export class WindowCounts {
  readonly #owners = new Map<string, Map<string, Window>>();
  readonly #maxKeys: number;
  #size = 0;

  constructor(maxKeys: number = 10_000) {
    this.#maxKeys = maxKeys;
  }

  take(
    owner: string,
    key: string,
    amount: number,
    { limit, windowMs }: RateLimitWindow,
    now: number,
  ): RateLimitCount {
    let window = this.#owners.get(owner)?.get(key);
    if (window === undefined || window.endsAt <= now) {
      if (amount === 0) return { count: 0, resetMs: windowMs };
      if (window !== undefined) this.#remove(owner, key);
      if (this.#size >= this.#maxKeys) this.#evict(now);
      window = { count: 0, limit, endsAt: now + windowMs };
      once(this.#owners, owner, () => new Map()).set(key, window);
      this.#size++;
    }
    const count = window.count + amount;
    if (count <= limit) window.count = count;
    return { count, resetMs: window.endsAt - now };
  }

  /** Evicts a window at its limit last: an evicted window starts again from 0. */
  #evict(now: number): void {
    const quota = (this.#maxKeys - 1) / this.#owners.size;
    const above = [...this.#owners].filter(([, windows]) => windows.size > quota);
    for (const [owner, windows] of above) {
      for (const [key, { count, limit, endsAt }] of windows) {
        if (count < limit || endsAt <= now) return this.#remove(owner, key);
      }
    }
    const [[owner, windows] = ["", new Map<string, Window>()]] = above;
    const [oldest = ""] = windows.keys();
    this.#remove(owner, oldest);
  }

  #remove(owner: string, key: string): void {
    const windows = this.#owners.get(owner);
    if (windows?.delete(key) !== true) return;
    this.#size--;
    if (windows.size === 0) this.#owners.delete(owner);
  }
}

/** Counts in fixed windows, in the memory of this process. The number of keys is bounded. */
export class MemoryRateLimitStore implements RateLimitStore {
  readonly #counts: WindowCounts;
  readonly #now: () => number;

  /** @throws {TypeError | RangeError} If an option is unknown or invalid. */
  constructor(options: MemoryRateLimitStoreOptions = {}) {
    checkOptions("count requests", options, { maxKeys: checkCount, now: check.checkFunction });
    const { maxKeys, now = systemClock.now } = options;
    this.#counts = new WindowCounts(maxKeys);
    this.#now = now;
  }

  take(key: string, amount: number, window: RateLimitWindow): RateLimitCount {
    return this.#counts.take("", key, amount, window, check.assertSync(this.#now()));
  }
}

interface StoredWindow {
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly endsAt: number;
}

interface OwnPermits extends StoredWindow {
  /** The permits that this process has taken in advance. */
  left: number;
}

/** Options for {@linkcode storedRateLimits}. */
export interface StoredRateLimitsOptions {
  /**
   * The maximum number of permits that the process takes in advance, so that most requests need no
   * access to the store. At most an eighth of the free permits is taken in advance. Unused permits are
   * lost when the process ends. The limit itself is never exceeded.
   *
   * @default {1}
   */
  readonly maxPermits?: number;
  readonly clock?: Pick<RegistryClock, "timestamp">;
}

const PART_OF_FREE = 8;
/** The maximum number of keys with prefetched permits. An evicted key loses its permits. */
const MAX_KEYS = 10_000;

/**
 * Counts in fixed windows, in a {@linkcode CallStore}: for the option `rateLimit.store`, where the
 * counts outlive the process, or several processes count together.
 *
 * @example Usage
 * ```ts
 * import { ToolRegistry } from "@plue/tools";
 * import { memoryCallStore } from "@plue/tools/calls";
 * import { createToolHandler, storedRateLimits } from "@plue/tools/hono";
 *
 * createToolHandler(new ToolRegistry({ tools: [] }), {
 *   rateLimit: { limit: 100, windowMs: 60_000, store: storedRateLimits(memoryCallStore()) },
 * });
 * ```
 *
 * @throws {TypeError | RangeError} If an option is invalid.
 */
export function storedRateLimits(
  store: CallStore,
  options: StoredRateLimitsOptions = {},
): RateLimitStore {
  checkOptions("count requests", options, { maxPermits: checkCount, clock: checkObject });
  const { maxPermits = 1, clock = systemClock } = options;
  const records = new StoredRecords<StoredWindow>(store, ({ endsAt }) => endsAt);
  const permits = new BoundedMap<string, OwnPermits>({ maxEntries: MAX_KEYS });
  /** The last operation of each key: operations of a key are serialized. */
  const turns = new Map<string, Promise<unknown>>();

  /** Takes the amount from the store, or more if many permits are free; nothing if too few are. */
  async function lease(
    key: string,
    amount: number,
    { limit, windowMs }: RateLimitWindow,
  ): Promise<OwnPermits> {
    let window: StoredWindow = { count: 0, endsAt: 0 };
    let left = 0;
    await records.change(key, (before = { count: 0, endsAt: clock.timestamp() + windowMs }) => {
      window = before;
      const free = limit - before.count;
      left = Math.max(amount, Math.min(maxPermits, Math.floor(free / PART_OF_FREE)));
      if (amount === 0 || left > free) left = 0;
      return left === 0 ? undefined : window = { ...before, count: before.count + left };
    });
    return { ...window, left };
  }

  async function take(
    key: string,
    amount: number,
    window: RateLimitWindow,
  ): Promise<RateLimitCount> {
    const known = permits.get(key);
    let own = maxPermits > 1 && known !== undefined && known.endsAt > clock.timestamp()
      ? known
      : undefined;
    const rest = own?.left ?? 0;
    // Counts only rise within a window, so a request above the limit stays above it.
    const isFull = own !== undefined && amount - rest > window.limit - own.count;
    if (own === undefined || (rest < amount && !isFull)) {
      const more = await lease(key, amount - rest, window);
      // The lease is empty if too few permits are free.
      own = { ...more, left: rest + more.left };
      permits.set(key, own);
    }
    const isTaken = own.left >= amount;
    if (isTaken) own.left -= amount;
    const resetMs = Math.max(0, own.endsAt - clock.timestamp());
    return { count: own.count - own.left + (isTaken ? 0 : amount), resetMs };
  }

  return {
    async take(of, amount, window) {
      const key = `rate.${await ownerDigest(of)}.${window.windowMs}`;
      const work = () => take(key, amount, window);
      const mine = (turns.get(key) ?? Promise.resolve()).then(work, work);
      turns.set(key, mine);
      try {
        return await mine;
      } finally {
        if (turns.get(key) === mine) turns.delete(key);
      }
    },
  };
}
