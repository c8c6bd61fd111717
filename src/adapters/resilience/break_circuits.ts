/**
 * A circuit breaker per tool and principal, which is Cockatiel's.
 *
 * @module
 */

import {
  circuitBreaker,
  type CircuitBreakerPolicy,
  CircuitState,
  ConsecutiveBreaker,
  handleWhenResult,
  isBrokenCircuitError,
} from "cockatiel";
import type { CallInfo, ToolHooks } from "../../execute/mod.ts";
import {
  type FailureCode,
  MAX_TIMEOUT_MS,
  must,
  numberFrom,
  readFields,
  type Tool,
  type ToolFailure,
  ToolResult,
  wholeFrom,
} from "../../tool/mod.ts";
import { BoundedMap } from "../http/mod.ts";

/** Options for {@linkcode breakCircuits}. */
export interface CircuitBreakerOptions {
  /**
   * Whose failures count together: those of one principal, or those of all callers of the tool. With
   * `"tool"` one caller, by a bad credential or a short timeout, can stop the tool for the others.
   *
   * @default {"principal"}
   */
  readonly per?: "principal" | "tool" | undefined;
  /**
   * After how many failures in a row a tool is not run any more.
   *
   * @default {5}
   */
  readonly failures?: number | undefined;
  /**
   * For how long, in milliseconds. Then one call tries it, and its result decides.
   *
   * @default {30_000}
   */
  readonly coolDownMs?: number | undefined;
}

const CHECKS = {
  per: must(
    '"principal" or "tool"',
    (value): value is "principal" | "tool" => value === "principal" || value === "tool",
  ),
  failures: wholeFrom(1),
  coolDownMs: numberFrom(1, MAX_TIMEOUT_MS),
};

/** How many circuits a tool has at most. Beyond them, the one that was used least lately is closed. */
const MAX_CIRCUITS = 1_000;

/** What says that a tool, or what it needs, is broken; other failures are the caller's. */
const BROKEN: ReadonlySet<FailureCode> = new Set([
  "unavailable",
  "timeout",
  "overloaded",
  "threw",
  "invalid_result",
]);

/**
 * Stops running a tool that fails again and again: its calls fail with `unavailable` at once, and say
 * when to try again. Failures with the codes `unavailable`, `overloaded`, `threw` and `invalid_result`
 * count, and calls that timed out; a refusal or an abort does not. Each tool has a circuit for each
 * principal, in this process; callers without a principal share one.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { breakCircuits } from "@plue/tools/resilience";
 *
 * let runs = 0;
 * const registry = new ToolRegistry({
 *   tools: [{
 *     name: "fax",
 *     description: "Sends a fax.",
 *     execute() {
 *       runs++;
 *       throw new Error("No line");
 *     },
 *   }],
 * });
 * const dispatcher = new ToolDispatcher(registry, { hooks: breakCircuits({ failures: 2 }) });
 *
 * for (const code of ["threw", "threw", "unavailable"]) {
 *   const result = await dispatcher.dispatch({ name: "fax" });
 *   assert.equal(!result.ok && result.error.code, code);
 * }
 * assert.equal(runs, 2);
 * ```
 *
 * @throws {TypeError | RangeError} If an option is wrong.
 */
export function breakCircuits(options: CircuitBreakerOptions = {}): ToolHooks {
  const { per = "principal", failures = 5, coolDownMs = 30_000 } = readFields(
    "break circuits",
    options,
    CHECKS,
  );
  const circuits = new WeakMap<Tool, BoundedMap<string | undefined, Circuit>>();
  const circuitOf = ({ tool, principal }: CallInfo): Circuit => {
    let ofTool = circuits.get(tool);
    if (ofTool === undefined) {
      circuits.set(tool, ofTool = new BoundedMap({ maxEntries: MAX_CIRCUITS }));
    }
    const whose = per === "tool" ? undefined : principal;
    const known = ofTool.get(whose);
    if (known !== undefined) return known;
    // A trial that was aborted proves nothing.
    const isFailure = (result: unknown): boolean =>
      isBroken(result, policy.state === CircuitState.HalfOpen);
    const policy = circuitBreaker(handleWhenResult(isFailure), {
      halfOpenAfter: coolDownMs,
      breaker: new ConsecutiveBreaker(failures),
    });
    const circuit = { policy, closesAt: 0 };
    policy.onBreak(() => circuit.closesAt = Date.now() + coolDownMs);
    ofTool.set(whose, circuit);
    return circuit;
  };
  return {
    name: "breakCircuits",
    async around(call, run) {
      const { tool, signal } = call;
      const { policy, closesAt } = circuitOf(call);
      // Cockatiel would have all other calls wait for the result of the trial.
      if (policy.state === CircuitState.HalfOpen) {
        return leftAlone(tool, Math.min(1_000, coolDownMs));
      }
      try {
        return await policy.execute(() => orEnded(run, tool, signal));
      } catch (error) {
        if (!isBrokenCircuitError(error)) throw error;
        return leftAlone(tool, Math.max(0, closesAt - Date.now()));
      }
    },
  };
}

function leftAlone(tool: Tool, retryAfterMs: number): ToolResult {
  return ToolResult.error(
    "unavailable",
    `Cannot call "${tool.id}": it has failed too often, and is left alone for a while`,
    { retryAfterMs },
  );
}

interface Circuit {
  readonly policy: CircuitBreakerPolicy;
  closesAt: number;
}

function isBroken(result: unknown, isTrial: boolean): boolean {
  const { ok, error } = result as Partial<ToolFailure>;
  return ok === false && error !== undefined &&
    (BROKEN.has(error.code) || (isTrial && error.code === "aborted"));
}

/** Runs the tool until its call ends: a tool that ignores its signal must not keep a trial open. */
function orEnded(
  run: () => Promise<ToolResult>,
  tool: Tool,
  signal: AbortSignal,
): Promise<ToolResult> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      const code = (signal.reason as Error | undefined)?.name === "TimeoutError"
        ? "timeout"
        : "aborted";
      resolve(ToolResult.error(code, `The call of "${tool.id}" has ended`));
    };
    run().then(resolve, reject).finally(() => signal.removeEventListener("abort", end));
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}
