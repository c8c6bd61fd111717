/**
 * How often one caller may come.
 *
 * @module
 */

import type { Caller } from "./identity.ts";
import type { Problem } from "./problem.ts";

/** How often a key was counted in its window. */
export interface RateLimitCount {
  /** With this one. */
  readonly count: number;
  /** How long until the window ends, in milliseconds. */
  readonly resetMs: number;
}

/**
 * Counts requests.
 *
 * Contract: `count` adds one to the key's window, opens a window of `windowMs` where there is none
 * or it has ended, and is atomic per key. A store that rejects refuses the request.
 */
export interface RateLimitStore {
  count(
    key: string,
    windowMs: number,
  ): RateLimitCount | Promise<RateLimitCount>;
}

/** How often one caller may come. */
export interface RateLimitOptions {
  /** How many requests in a window. */
  readonly limit: number;
  /** How long a window is, in milliseconds. */
  readonly windowMs: number;
  /**
   * Where is counted: in this process, unless told otherwise.
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

/** Counts a request of a caller, and says whether it is one too many. */
export type RateLimiter = (
  caller: Caller,
  request: Request,
) => Promise<RateLimitVerdict>;

/**
 * Makes a limiter.
 *
 * Its headers are those of the IETF draft: `RateLimit-Policy` and `RateLimit`.
 *
 * @throws {TypeError} If a number is wrong.
 */
export function createRateLimiter(options: RateLimitOptions): RateLimiter {
  const { limit, windowMs, store = new MemoryRateLimitStore() } = options;
  const { keyOf = ({ principal }) => principal ?? "" } = options;
  for (const [name, value] of Object.entries({ limit, windowMs })) {
    if (!(Number.isSafeInteger(value) && value > 0)) {
      throw new TypeError(
        `Cannot limit the rate: ${name} must be a whole number above 0`,
      );
    }
  }
  const policy = `"default";q=${limit};w=${Math.ceil(windowMs / 1000)}`;
  return async (caller, request) => {
    const { count, resetMs } = await store.count(
      keyOf(caller, request),
      windowMs,
    );
    const seconds = String(Math.max(1, Math.ceil(resetMs / 1000)));
    return {
      headers: [
        ["ratelimit-policy", policy],
        ["ratelimit", `"default";r=${Math.max(0, limit - count)};t=${seconds}`],
      ],
      // Written so that a count that is no number refuses.
      problem: count <= limit ? undefined : {
        status: 429,
        code: "rate_limited",
        detail: `More than ${limit} requests in ${
          windowMs / 1000
        } s: the next may come in ${seconds} s`,
        retryable: true,
        headers: { "retry-after": seconds },
      },
    };
  };
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

  /** @throws {TypeError} If `maxKeys` is wrong. */
  constructor(options: MemoryRateLimitStoreOptions = {}) {
    const { maxKeys = 10_000, now = Date.now } = options;
    if (!(Number.isSafeInteger(maxKeys) && maxKeys > 0)) {
      throw new TypeError(
        "Cannot count requests: maxKeys must be a whole number above 0",
      );
    }
    this.#maxKeys = maxKeys;
    this.#now = now;
  }

  /** Counts one request. */
  count(key: string, windowMs: number): RateLimitCount {
    const now = this.#now();
    let window = this.#windows.get(key);
    if (window === undefined || window.endsAt <= now) {
      window = { count: 0, endsAt: now + windowMs };
      // Taken out first, so that the order of the map is that of the windows' ages.
      this.#windows.delete(key);
      if (this.#windows.size >= this.#maxKeys) {
        this.#windows.delete(this.#windows.keys().next().value as string);
      }
      this.#windows.set(key, window);
    }
    window.count++;
    return { count: window.count, resetMs: window.endsAt - now };
  }
}
