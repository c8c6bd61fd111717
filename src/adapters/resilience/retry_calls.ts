/** Retries failed calls, after delays that grow. */

import type { Call, Layer } from "../../execute/mod.ts";
import * as check from "../../tool/mod.ts";
import { type FailureCode, isFailureCode, isListOf } from "../../tool/mod.ts";

/** Options for {@linkcode retryCalls}. */
export interface RetryOptions {
  /** The maximum number of runs, including the first run. @default {3} */
  readonly maxAttempts?: number | undefined;
  /**
   * The first delay, in milliseconds. Each further delay is twice as long, up to 10 seconds. A random
   * part of up to half is subtracted, so that callers do not all retry together.
   *
   * @default {200}
   */
  readonly initialDelayMs?: number | undefined;
  /**
   * The codes of failures that are retried although they are not `retryable`, such as `["threw"]`
   * for tools that throw when a service is unreachable.
   *
   * @default {[]}
   */
  readonly codes?: readonly FailureCode[] | undefined;
}

/** The longest delay. A failure whose `retryAfterMs` is longer is not retried. */
const MAX_DELAY_MS = 10_000;

const CHECKS = {
  maxAttempts: check.wholeFrom(1),
  initialDelayMs: check.numberFrom(0, check.MAX_TIMEOUT_MS),
  codes: check.createCheck("a list of failure codes", (value) => isListOf(value, isFailureCode)),
};

/**
 * Creates a layer that runs a tool again after a transient failure: a failure that is `retryable`,
 * or has one of the `codes`. It applies to tools that are `idempotent` and require no transaction;
 * calls of other tools cost nothing. A retry is part of its call: it needs no new approval, keeps
 * the slot, and ends with the call's timeout or abort. A failure is returned immediately if the
 * delay would exceed the remaining time of the call. Yields of a generator are repeated. Stage `run`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry, ToolResult } from "@plue/tools";
 * import { retryCalls } from "@plue/tools/resilience";
 *
 * let runs = 0;
 * const execute = () => ++runs < 3 ? ToolResult.error("unavailable", "No signal") : "sun";
 * const registry = new ToolRegistry({
 *   tools: [{ name: "weather", description: "Tells the weather.", idempotent: true, execute }],
 * });
 * const dispatcher = new ToolDispatcher(registry, { layers: [retryCalls({ initialDelayMs: 1 })] });
 *
 * const result = await dispatcher.dispatch({ name: "weather" });
 * assert.equal(result.ok && result.content, "sun");
 * assert.equal(runs, 3);
 * ```
 *
 * @throws {TypeError | RangeError} If an option is invalid.
 */
export function retryCalls(options: RetryOptions = {}): Layer {
  const read = check.readFields("retry calls", options, CHECKS);
  const { maxAttempts = 3, initialDelayMs = 200, codes = [] } = read;
  return {
    name: "retry",
    stage: "run",
    for: ({ idempotent, requiresTransaction }) =>
      !idempotent || requiresTransaction ? undefined : async (call, next) => {
        for (let attempt = 1;; attempt++) {
          const result = await next(call);
          if (result.ok || attempt === maxAttempts) return result;
          const { code, retryable, retryAfterMs = 0 } = result.error;
          const growingMs = Math.min(MAX_DELAY_MS, initialDelayMs * 2 ** (attempt - 1));
          const delayMs = Math.max(retryAfterMs, growingMs * (1 - Math.random() / 2));
          const isInTime = retryAfterMs <= MAX_DELAY_MS && delayMs < call.deadline.remainingMs;
          if (!isInTime || !(retryable || codes.includes(code))) return result;
          await sleep(call, delayMs);
        }
      },
  };
}

async function sleep(call: Call, ms: number): Promise<void> {
  let cancel = (): void => {};
  const passed = new Promise<void>((resolve) => {
    cancel = call.settings.clock.setTimeout(resolve, ms);
  });
  await call.wait("waiting to run the tool again", passed).finally(cancel);
}
