/** A circuit breaker per tool and principal. */

import type { Call, Layer } from "../../execute/mod.ts";
import * as check from "../../tool/mod.ts";
import { BoundedMap, type FailureCode, once, type Tool } from "../../tool/mod.ts";

/** Options for {@linkcode breakCircuits}. */
export interface CircuitBreakerOptions {
  /**
   * The callers whose failures count together: one principal, or all callers of the tool. With
   * `"tool"`, one caller with a bad credential or a short timeout can stop the tool for everyone.
   *
   * @default {"principal"}
   */
  readonly per?: "principal" | "tool" | undefined;
  /**
   * The number of consecutive failures after which the circuit opens and the tool no longer runs.
   *
   * @default {5}
   */
  readonly failures?: number | undefined;
  /**
   * The duration for which the circuit stays open, in milliseconds. Then one call tries the tool.
   * If the call succeeds, the circuit closes; otherwise it opens again.
   *
   * @default {30_000}
   */
  readonly coolDownMs?: number | undefined;
}

const CHECKS = {
  per: check.oneOf(["principal", "tool"] as const),
  failures: check.wholeFrom(1),
  coolDownMs: check.numberFrom(1, check.MAX_TIMEOUT_MS),
};

/** The maximum number of circuits of a tool. A further circuit evicts the least recently used one. */
const MAX_CIRCUITS = 1_000;

/** The failures of the tool, or of a service that it needs. The caller causes the other failures. */
const BROKEN: FailureCode[] = ["unavailable", "timeout", "overloaded", "threw", "invalid_result"];

interface Circuit {
  failures: number;
  /** The time at which an open circuit admits a call, by the dispatcher's clock. */
  triesAt: number;
  trial: Call | undefined;
}

const createCircuit = (): Circuit => ({ failures: 0, triesAt: 0, trial: undefined });

/**
 * Creates a layer that stops running a tool after consecutive failures: its calls fail with
 * `unavailable` immediately, with the delay before a retry in `retryAfterMs`. The codes
 * `unavailable`, `timeout`, `overloaded`, `threw` and `invalid_result` count as failures. Each tool
 * has a circuit for each principal, in this process; callers without a principal share one. Stage
 * `run`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { breakCircuits } from "@plue/tools/resilience";
 *
 * const execute = () => Promise.reject(new Error("No line"));
 * const registry = new ToolRegistry({ tools: [{ name: "fax", description: "Faxes.", execute }] });
 * const dispatcher = new ToolDispatcher(registry, { layers: [breakCircuits({ failures: 2 })] });
 *
 * for (const code of ["threw", "threw", "unavailable"]) {
 *   const result = await dispatcher.dispatch({ name: "fax" });
 *   assert.equal(!result.ok && result.error.code, code);
 * }
 * ```
 *
 * @throws {TypeError | RangeError} If an option is invalid.
 */
export function breakCircuits(options: CircuitBreakerOptions = {}): Layer {
  const read = check.readFields("break circuits", options, CHECKS);
  const { per = "principal", failures = 5, coolDownMs = 30_000 } = read;
  const tools: WeakMap<Tool, BoundedMap<string | undefined, Circuit>> = new WeakMap();
  return {
    name: "circuit-breaker",
    stage: "run",
    for(tool) {
      const circuits = once(tools, tool, () => new BoundedMap({ maxEntries: MAX_CIRCUITS }));
      return async (call, next) => {
        const { options: { principal }, settings: { clock } } = call;
        const circuit = once(circuits, per === "tool" ? undefined : principal, createCircuit);
        const isTrial = circuit.failures >= failures;
        if (isTrial) {
          const { trial } = circuit;
          // On Workers, a trial does not end if its request has ended.
          const isTried = trial?.isOver === false && trial.deadline.remainingMs > 0;
          const retryAfterMs = isTried
            ? Math.min(1_000, coolDownMs)
            : circuit.triesAt - clock.now();
          if (retryAfterMs > 0) {
            const why = "the tool has failed too often and does not run for a while";
            return call.fail("unavailable", why, { retryAfterMs });
          }
          circuit.trial = call;
        }
        const result = await next(call);
        const code = result.ok ? undefined : result.error.code;
        // Aborted calls, and calls that began before the circuit opened, do not count.
        if (code === "aborted" || (!isTrial && circuit.failures >= failures)) return result;
        const isBroken = code !== undefined && BROKEN.includes(code);
        circuit.failures = isBroken ? circuit.failures + 1 : 0;
        circuit.triesAt = clock.now() + coolDownMs;
        circuit.trial = undefined;
        return result;
      };
    },
  };
}
