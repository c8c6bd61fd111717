/**
 * Counts of requests in fixed windows of time: in the memory of this process, or in a call store.
 *
 * @module
 */

import { type CallStore, ownerDigest } from "../../execute/durable/mod.ts";
import { atOnce, checkFunction, once, type RegistryClock, systemClock } from "../../tool/mod.ts";
import { checkCount, checkOptions } from "./options.ts";

/** The use of a window by one key. */
export interface RateLimitCount {
  /** The amount that was taken in this window, plus the requested amount. */
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
 * Contract: `take` opens a window of `windowMs` if the key has none, or if its window has ended. It
 * takes the amount if the total of the window stays within `limit`; otherwise it takes nothing. An
 * amount of 0 only reads. It is atomic per key. If it rejects, times out or does not return two
 * numbers, the request is rejected.
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
   * The maximum number of keys. A new key evicts the oldest window that is below its limit; if there
   * is none, the oldest window.
   *
   * @default {10_000}
   */
  readonly maxKeys?: number;
  /**
   * Returns the time, in milliseconds. It must not go back.
   *
   * @default {performance.now}
   */
  readonly now?: () => number;
}

interface Window {
  count: number;
  readonly endsAt: number;
}

/** The windows of one owner, in the order of their beginning. */
interface OwnerWindows {
  readonly open: Map<string, Window>;
  /** The windows at their limit, which are evicted last: an evicted window starts again from 0. */
  readonly full: Map<string, Window>;
}

/**
 * Counts in fixed windows, in memory. Each key belongs to the principal that chose it. Principals
 * have equal quotas of the keys: a new key evicts a window of a principal that exceeds its quota.
 */
export class WindowCounts {
  /** The windows of principals with at least one window below its limit, and of the others. */
  readonly #open = new Map<string, OwnerWindows>();
  readonly #full = new Map<string, OwnerWindows>();
  #size = 0;
  readonly #maxKeys: number;

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
    const known = this.#open.get(owner) ?? this.#full.get(owner);
    let window = known?.open.get(key) ?? known?.full.get(key);
    if (window === undefined || window.endsAt <= now) {
      if (amount === 0) return { count: 0, resetMs: windowMs };
      if (known !== undefined && window !== undefined) this.#remove(owner, known, key);
      if (this.#size >= this.#maxKeys) this.#evict(now);
      window = { count: 0, endsAt: now + windowMs };
      const windows = this.#full.get(owner) ?? this.#open.get(owner) ??
        { open: new Map(), full: new Map() };
      this.#size++;
      windows.open.set(key, window);
      this.#place(owner, windows);
    }
    const count = window.count + amount;
    if (count <= limit) window.count = count;
    const windows = window.count >= limit ? this.#open.get(owner) : undefined;
    if (windows?.open.delete(key) === true) {
      windows.full.set(key, window);
      this.#place(owner, windows);
    }
    return { count, resetMs: window.endsAt - now };
  }

  /**
   * Evicts an ended window of a principal whose windows are all full; otherwise a window of a
   * principal that exceeds its quota.
   */
  #evict(now: number): void {
    const [first] = this.#full;
    const ended = first && endedIn(first[1], now);
    if (first !== undefined && ended !== undefined) return this.#remove(...first, ended);
    const quota = (this.#maxKeys - 1) / (this.#open.size + this.#full.size);
    for (const owners of [this.#open, this.#full]) {
      for (const [owner, windows] of owners) {
        if (windows.open.size + windows.full.size <= quota) continue;
        const [oldest = ""] = (owners === this.#open ? windows.open : windows.full).keys();
        return this.#remove(owner, windows, endedIn(windows, now) ?? oldest);
      }
    }
  }

  #remove(owner: string, windows: OwnerWindows, key: string): void {
    this.#size--;
    if (!windows.open.delete(key)) windows.full.delete(key);
    this.#place(owner, windows);
  }

  /** Moves the windows of a principal to the map that fits them. */
  #place(owner: string, windows: OwnerWindows): void {
    const owners = windows.open.size > 0 ? this.#open : this.#full;
    (owners === this.#open ? this.#full : this.#open).delete(owner);
    if (windows.open.size + windows.full.size === 0) owners.delete(owner);
    else once(owners, owner, () => windows);
  }
}

/** Returns the oldest window at its limit, if it has ended. */
function endedIn({ full }: OwnerWindows, now: number): string | undefined {
  const [oldest] = full;
  return oldest !== undefined && oldest[1].endsAt <= now ? oldest[0] : undefined;
}

/** Counts in fixed windows, in the memory of this process. The number of keys is bounded. */
export class MemoryRateLimitStore implements RateLimitStore {
  readonly #counts: WindowCounts;
  readonly #now: () => number;

  /**
   * @throws {TypeError} If an option is unknown or invalid.
   * @throws {RangeError} If `maxKeys` is out of range.
   */
  constructor(options: MemoryRateLimitStoreOptions = {}) {
    checkOptions("count requests", options, { maxKeys: checkCount, now: checkFunction });
    const { maxKeys, now = systemClock.now } = options;
    this.#counts = new WindowCounts(maxKeys);
    this.#now = now;
  }

  /** Takes an amount if the total of the window stays within the limit. */
  take(key: string, amount: number, window: RateLimitWindow): RateLimitCount {
    return this.#counts.take("", key, amount, window, atOnce(this.#now()));
  }
}

interface StoredWindow {
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly endsAt: number;
}

const MAX_TRIES = 32;

/** A window in a store, after an attempt to take permits out of it. */
export interface TakenPermits extends StoredWindow {
  /** The number of permits that were taken: 0 if the window does not have the amount. */
  readonly taken: number;
}

/**
 * Takes permits out of a window in a store, by compare-and-set.
 *
 * @param wanted Returns the number of permits to take, from the number that is free.
 * @throws {Error} If other processes change the window at every attempt.
 */
export async function takePermits(
  store: CallStore,
  key: string,
  { limit, windowMs }: RateLimitWindow,
  wanted: (free: number) => number,
  clock: Pick<RegistryClock, "timestamp">,
): Promise<TakenPermits> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const now = clock.timestamp();
    const stored = await store.get(key);
    const window: StoredWindow = stored === undefined
      ? { count: 0, endsAt: now + windowMs }
      : JSON.parse(new TextDecoder().decode(stored.value));
    const free = limit - window.count;
    const taken = wanted(free);
    if (taken === 0 || taken > free) return { ...window, taken: 0 };
    const next = { ...window, count: window.count + taken };
    const value = new TextEncoder().encode(JSON.stringify(next));
    const life = { expiresAt: window.endsAt };
    const revision = stored === undefined
      ? await store.create(key, value, life)
      : await store.update(key, value, stored.revision, life);
    if (revision !== undefined) return { ...next, taken };
  }
  throw new Error("Cannot count a request: others count all the time");
}

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
 * @param clock Returns the time.
 */
export function storedRateLimits(
  store: CallStore,
  clock: Pick<RegistryClock, "timestamp"> = systemClock,
): RateLimitStore {
  return {
    async take(of, amount, window) {
      const key = `rate.${await ownerDigest(of)}.${window.windowMs}`;
      const { count, taken, endsAt } = await takePermits(store, key, window, () => amount, clock);
      return {
        count: count - taken + amount,
        resetMs: Math.max(0, endsAt - clock.timestamp()),
      };
    },
  };
}
