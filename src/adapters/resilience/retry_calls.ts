/**
 * Retries, with a wait that grows. The waits are Cockatiel's; the loop is here, because Cockatiel's
 * own waits to the end when its call is aborted, and knows neither deadlines nor `retryAfterMs`.
 *
 * @module
 */

import { ExponentialBackoff } from "cockatiel";
import type { CallInfo, ToolHooks } from "../../execute/mod.ts";
import {
  type Check,
  type Clock,
  type FailureCode,
  isFailureCode,
  isFunction,
  isListOf,
  MAX_TIMEOUT_MS,
  must,
  numberFrom,
  readFields,
  systemClock,
  type ToolResult,
  wholeFrom,
} from "../../tool/mod.ts";

/** Options for {@linkcode retryCalls}. */
export interface RetryOptions {
  /**
   * How often a tool runs at most, the first time included.
   *
   * @default {3}
   */
  readonly maxAttempts?: number | undefined;
  /**
   * About how long the first wait is, in milliseconds. Each is about twice as long as the one before
   * it, with a random part.
   *
   * @default {200}
   */
  readonly initialDelayMs?: number | undefined;
  /**
   * How long a wait is at most, in milliseconds. A failure that wants a longer one by `retryAfterMs` is
   * not retried.
   *
   * @default {10_000}
   */
  readonly maxDelayMs?: number | undefined;
  /**
   * Failures that are retried though they are not `retryable`: `["threw"]` for tools that throw when
   * what they need is out of reach.
   *
   * @default {[]}
   */
  readonly codes?: readonly FailureCode[] | undefined;
  /** Waits. */
  readonly clock?: Clock | undefined;
}

const checkAttempts = wholeFrom(1);
const checkDelay = numberFrom(0, MAX_TIMEOUT_MS);
const checkCodes: Check<readonly FailureCode[]> = must(
  "a list of failure codes",
  (value) => isListOf(value, isFailureCode),
);
const checkClock: Check<Clock> = must(
  "a clock, with a function setTimeout",
  (value): value is Clock => isFunction((value as Partial<Clock> | null)?.setTimeout),
);

/**
 * Runs tools again whose failure may pass: only those that are `idempotent` and want no transaction,
 * and only failures that are `retryable` or whose code is named. A retry happens inside the call: it
 * was approved once, keeps its turn, and ends with its timeout or abort. There is no retry where the
 * wait would be longer than the time that the call has left. What a generator yielded is sent again.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry, ToolResult } from "@plue/tools";
 * import { retryCalls } from "@plue/tools/resilience";
 *
 * let runs = 0;
 * const registry = new ToolRegistry({
 *   tools: [{
 *     name: "weather",
 *     description: "Tells the weather.",
 *     idempotent: true,
 *     execute: () => ++runs < 3 ? ToolResult.error("unavailable", "The station is silent") : "sun",
 *   }],
 * });
 * const dispatcher = new ToolDispatcher(registry, { hooks: retryCalls({ initialDelayMs: 1 }) });
 *
 * const result = await dispatcher.dispatch({ name: "weather" });
 * assert.equal(result.ok && result.content, "sun");
 * assert.equal(runs, 3);
 * ```
 *
 * @throws {TypeError | RangeError} If an option is wrong.
 */
export function retryCalls(options: RetryOptions = {}): ToolHooks {
  const {
    maxAttempts = 3,
    initialDelayMs = 200,
    maxDelayMs = 10_000,
    codes = [],
    clock = systemClock,
  } = readFields("retry calls", options, {
    maxAttempts: checkAttempts,
    initialDelayMs: checkDelay,
    maxDelayMs: checkDelay,
    codes: checkCodes,
    clock: checkClock,
  });
  const delays = new ExponentialBackoff({ initialDelay: initialDelayMs, maxDelay: maxDelayMs });
  const mayPass = (result: ToolResult): boolean =>
    !result.ok && (result.error.retryable || codes.includes(result.error.code));
  return {
    name: "retryCalls",
    async around(call, run) {
      let result = await run();
      if (!call.tool.idempotent || call.tool.requiresTransaction) return result;
      let delay = delays.next();
      for (let attempt = 1; attempt < maxAttempts && mayPass(result); attempt++) {
        const asked = result.ok ? 0 : result.error.retryAfterMs ?? 0;
        const waitMs = Math.max(asked, delay.duration);
        if (asked > maxDelayMs || waitMs >= call.remainingMs) break;
        if (!await wait(clock, waitMs, call)) break;
        result = await run();
        delay = delay.next(undefined);
      }
      return result;
    },
  };
}

/** Waits; answers whether the call still runs then. */
function wait(clock: Clock, ms: number, { signal }: CallInfo): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(false);
    const abort = (): void => {
      cancel();
      resolve(false);
    };
    const cancel = clock.setTimeout(() => {
      signal.removeEventListener("abort", abort);
      resolve(true);
    }, ms);
    signal.addEventListener("abort", abort, { once: true });
  });
}
