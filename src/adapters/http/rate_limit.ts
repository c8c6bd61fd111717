/**
 * Limits how many requests and calls one caller may make.
 *
 * @module
 */

import {
  atOnce,
  type Check,
  checkFunction,
  checkText,
  MAX_TIMEOUT_MS,
  numberFrom,
  systemClock,
  TIME_OVER,
  within,
} from "../../tool/mod.ts";
import { checkCount, checkOptions, having } from "./checks.ts";
import type { Caller } from "./identity.ts";
import {
  MemoryRateLimitStore,
  type RateLimitCount,
  type RateLimitStore,
  type RateLimitWindow,
} from "./request_counts.ts";
import { type Problem, ProblemError } from "./responses.ts";

/** How many requests one caller may make. A request with several calls counts 1 for each call. */
export interface RateLimitOptions extends RateLimitWindow {
  /**
   * Holds the counts, by default in this process. Two handlers with the same store count together.
   *
   * @default {new MemoryRateLimitStore()}
   */
  readonly store?: RateLimitStore;
  /**
   * How long the store may take to answer, in milliseconds. Then requests are answered 503.
   *
   * @default {5_000}
   */
  readonly storeTimeoutMs?: number;
  /**
   * Names the window that a request counts in. By default it is the principal; callers without one
   * share a window.
   */
  readonly keyOf?: (caller: Caller, request: Request) => string;
}

/** The decision of a limiter about one request. */
export interface RateLimitVerdict {
  /** Headers for the response, also if the request is let in. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Why the request is refused; `undefined` if it is let in. */
  readonly problem: Problem | undefined;
}

/**
 * Counts a request of a caller, and decides whether it is too many.
 *
 * @param amount 1 when the request comes in. Once its calls are known, as many again as there are
 * calls after the first: if that is refused, none of the calls may run. @default {1}
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
  const take = takerOf(options);
  const { keyOf = ({ principal }) => principal ?? "" } = options;
  const window = readWindow("limit the rate", options);
  const { limit, windowMs } = window;
  const policy = `"default";q=${limit};w=${Math.ceil(windowMs / 1000)}`;
  return async (caller, request, amount = 1) => {
    // A key that is no text, such as a promise, would be another one each time.
    const key = checkText("limit the rate", atOnce(keyOf(caller, request)), "what keyOf answers");
    const { count, resetMs } = await take(key, amount, window);
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
          ? `More than ${limit} requests in ${windowMs / 1000} s: try again in ${seconds} s`
          : `None of the ${amount + 1} calls ran: ${left} are allowed in the next ` +
            `${seconds} s, and ${limit} in every ${windowMs / 1000} s`,
        seconds,
        amount < limit,
      ),
    };
  };
}

/**
 * The part that limits how many requests and calls one caller may make.
 *
 * @throws {TypeError} If an option is unknown or wrong.
 * @throws {RangeError} If a number is out of range.
 */
export function limitRate(options: RateLimitOptions): () => { readonly charge: RateLimiter } {
  const charge = createRateLimiter(options);
  return () => ({ charge });
}

/** The checks of a window's numbers and its store. */
export const WINDOW_CHECKS: {
  readonly [Option in keyof RateLimitWindow | keyof StoreOptions]-?: Check;
} = {
  limit: checkCount,
  windowMs: checkCount,
  storeTimeoutMs: numberFrom(1, MAX_TIMEOUT_MS),
  store: having("take", "a store, with a function take"),
};

const CHECKS = {
  ...WINDOW_CHECKS,
  keyOf: checkFunction,
} satisfies { readonly [Option in keyof RateLimitOptions]-?: Check };

/**
 * Reads a window's numbers, which are both required.
 *
 * @throws {RangeError} If one is wrong.
 */
export function readWindow(action: string, options: RateLimitWindow): RateLimitWindow {
  return {
    limit: checkCount(action, options.limit, "its option limit"),
    windowMs: checkCount(action, options.windowMs, "its option windowMs"),
  };
}

/** Where counts are kept. */
export type StoreOptions = Pick<RateLimitOptions, "store" | "storeTimeoutMs">;

/** Asks a store, and does not take its word where it cannot be right. */
export function takerOf(
  { store = new MemoryRateLimitStore(), storeTimeoutMs = 5_000 }: StoreOptions,
): (key: string, amount: number, window: RateLimitWindow) => Promise<RateLimitCount> {
  return async (key, amount, window) => {
    const given = store.take(key, amount, window);
    // The store in this process answers at once.
    const answer = isCount((given as Partial<RateLimitCount> | undefined)?.count)
      ? given as RateLimitCount
      : await within(systemClock, storeTimeoutMs, Promise.resolve(given));
    if (answer === TIME_OVER) {
      throw new ProblemError(NO_STORE, {
        cause: new Error(`The rate-limit store did not answer within ${storeTimeoutMs} ms`),
      });
    }
    // Anything else could let a request in, and would stand in its headers.
    if (isCount(answer?.count) && isCount(answer.resetMs)) return answer;
    throw new ProblemError(NO_STORE, {
      cause: new TypeError("The rate-limit store must answer two numbers, count and resetMs"),
    });
  };
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value < Infinity;
}

const NO_STORE: Problem = {
  status: 503,
  code: "overloaded",
  detail: "Requests cannot be counted now",
  retryable: true,
  headers: { "retry-after": "1" },
};

/** The problem of a request that is one too many. */
export function limited(detail: string, seconds: string, retryable: boolean = true): Problem {
  return {
    status: 429,
    code: "rate_limited",
    detail,
    retryable,
    headers: { "retry-after": seconds },
  };
}

/** Seconds for a header: a whole number, and never 0. */
export function secondsOf(ms: number): string {
  return String(Math.max(1, Math.ceil(ms / 1000)) || 1);
}
