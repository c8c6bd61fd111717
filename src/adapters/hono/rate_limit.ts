/**
 * How often one caller may come.
 *
 * @module
 */

import { type Check, checkFunction } from "../../tool/mod.ts";
import { checkCount, checkOptions, having } from "./checks.ts";
import type { Caller } from "./identity.ts";
import type { Problem } from "./problem.ts";

/** What a key has used of its window. */
export interface RateLimitCount {
  /** What was taken in the window and what is asked for now, together. */
  readonly count: number;
  /** How long until the window ends, in milliseconds. */
  readonly resetMs: number;
}

/** How much may be taken in which time. */
export interface RateLimitWindow {
  readonly limit: number;
  /** How long a window is, in milliseconds. */
  readonly windowMs: number;
}

/**
 * Counts what is taken.
 *
 * Contract: `take` opens a window of `windowMs` where the key has none or it has ended. If what was
 * taken in it and `amount` are together at most `limit`, the amount is taken; else nothing is. An
 * amount of 0 only looks. It is atomic per key. A store that rejects refuses the request.
 */
export interface RateLimitStore {
  take(
    key: string,
    amount: number,
    window: RateLimitWindow,
  ): RateLimitCount | Promise<RateLimitCount>;
}

/** How often one caller may come. A request counts 1; one with several calls, 1 for each of them. */
export interface RateLimitOptions extends RateLimitWindow {
  /**
   * Where is counted: in this process, unless told otherwise. Two handlers that are to count
   * together are given the same store.
   *
   * @default {new MemoryRateLimitStore()}
   */
  readonly store?: RateLimitStore;
  /**
   * Whose requests are counted together. By default a principal's; callers without one share a
   * window.
   */
  readonly keyOf?: (caller: Caller, request: Request) => string;
}

/** What a limiter says of one request. */
export interface RateLimitVerdict {
  /** For the answer, whatever it is. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Why the request is refused, if it is. */
  readonly problem: Problem | undefined;
}

/**
 * Counts a request of a caller, and says whether it is one too many.
 *
 * @param amount 1 when the request comes in; once it is known that it holds several calls, as many
 * again as there are calls after the first. Refused, nothing of the amount is taken, and none of
 * the calls may run. @default {1}
 */
export type RateLimiter = (
  caller: Caller,
  request: Request,
  amount?: number,
) => Promise<RateLimitVerdict>;

/**
 * Makes a limiter.
 *
 * Its headers are those of the IETF draft: `RateLimit-Policy` and `RateLimit`.
 *
 * @throws {TypeError} If an option is unknown or wrong.
 * @throws {RangeError} If a number is out of range.
 */
export function createRateLimiter(options: RateLimitOptions): RateLimiter {
  checkOptions("limit the rate", options, CHECKS);
  const { store = new MemoryRateLimitStore() } = options;
  const { keyOf = ({ principal }) => principal ?? "" } = options;
  const window = readWindow("limit the rate", options);
  const { limit, windowMs } = window;
  const policy = `"default";q=${limit};w=${Math.ceil(windowMs / 1000)}`;
  return async (caller, request, amount = 1) => {
    const { count, resetMs } = await store.take(keyOf(caller, request), amount, window);
    // Written so that a count that is no number refuses.
    const isTaken = count <= limit;
    const left = Math.max(0, limit - count + (isTaken ? 0 : amount));
    const seconds = secondsOf(resetMs);
    return {
      headers: [
        ["ratelimit-policy", policy],
        ["ratelimit", `"default";r=${left};t=${seconds}`],
      ],
      problem: isTaken ? undefined : limited(
        amount === 1
          ? `More than ${limit} requests in ${windowMs / 1000} s: the next may come in ${seconds} s`
          : `The ${amount + 1} calls are too many, and none ran: ${left} may in the next ` +
            `${seconds} s, and ${limit} in every ${windowMs / 1000} s`,
        seconds,
        amount < limit,
      ),
    };
  };
}

/** What a window's numbers and its store must be. */
export const WINDOW_CHECKS: { readonly [Option in "limit" | "windowMs" | "store"]: Check } = {
  limit: checkCount,
  windowMs: checkCount,
  store: having("take", "a store, with a function take"),
};

const CHECKS = {
  ...WINDOW_CHECKS,
  keyOf: checkFunction,
} satisfies { readonly [Option in keyof RateLimitOptions]-?: Check };

/**
 * Reads a window's numbers, both of which must be there.
 *
 * @throws {RangeError} If one is wrong.
 */
export function readWindow(action: string, options: RateLimitWindow): RateLimitWindow {
  return {
    limit: checkCount(action, options.limit, "its option limit"),
    windowMs: checkCount(action, options.windowMs, "its option windowMs"),
  };
}

/** 429. */
export function limited(detail: string, seconds: string, retryable: boolean = true): Problem {
  return {
    status: 429,
    code: "rate_limited",
    detail,
    retryable,
    headers: { "retry-after": seconds },
  };
}

/** For headers: whole, and never 0. */
export function secondsOf(ms: number): string {
  return String(Math.max(1, Math.ceil(ms / 1000)) || 1);
}

/** Options for {@linkcode MemoryRateLimitStore}. */
export interface MemoryRateLimitStoreOptions {
  /**
   * How many keys are kept. The window that was opened first gives way.
   *
   * @default {10_000}
   */
  readonly maxKeys?: number;
  /** Tells the time, in milliseconds. */
  readonly now?: () => number;
}

interface Window {
  count: number;
  readonly endsAt: number;
}

/** Counts in this process, in fixed windows: bounded, and gone when the process is. */
export class MemoryRateLimitStore implements RateLimitStore {
  readonly #windows = new Map<string, Window>();
  readonly #maxKeys: number;
  readonly #now: () => number;

  /**
   * @throws {TypeError} If an option is unknown or wrong.
   * @throws {RangeError} If `maxKeys` is out of range.
   */
  constructor(options: MemoryRateLimitStoreOptions = {}) {
    checkOptions("count requests", options, { maxKeys: checkCount, now: checkFunction });
    const { maxKeys = 10_000, now = Date.now } = options;
    this.#maxKeys = maxKeys;
    this.#now = now;
  }

  /** Takes an amount, if it is there. */
  take(key: string, amount: number, { limit, windowMs }: RateLimitWindow): RateLimitCount {
    const now = this.#now();
    let window = this.#windows.get(key);
    if (window === undefined || window.endsAt <= now) {
      if (amount === 0) return { count: 0, resetMs: windowMs };
      window = { count: 0, endsAt: now + windowMs };
      // Taken out first, so that the order of the map is that of the windows' ages.
      this.#windows.delete(key);
      if (this.#windows.size >= this.#maxKeys) {
        this.#windows.delete(this.#windows.keys().next().value as string);
      }
      this.#windows.set(key, window);
    }
    const count = window.count + amount;
    if (count <= limit) window.count = count;
    return { count, resetMs: window.endsAt - now };
  }
}
