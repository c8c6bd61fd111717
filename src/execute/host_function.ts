/**
 * Calls of functions that the host handed in: hooks, rules, approvers.
 *
 * @module
 */

import type { Call, DispatchPhase } from "./layer.ts";

/** Returned in place of a value by a host's function that threw or rejected. */
export const FAILED: unique symbol = Symbol("plue.failed");

/**
 * Calls a host's function and waits for it, or for the end of the call. What it throws, then or later,
 * is reported.
 *
 * @param doing What the call does meanwhile, for messages.
 * @param limitMs How long this may take, in place of the call's timeout.
 */
export function callHost<T>(
  call: Call,
  doing: string,
  phase: DispatchPhase,
  work: () => T | Promise<T>,
  limitMs?: number,
): Promise<T | typeof FAILED> {
  return call.wait(doing, () => settled(call, phase, work), limitMs);
}

/** The value of a host's function, or {@linkcode FAILED}. */
export async function settled<T>(
  call: Call,
  phase: DispatchPhase,
  work: () => T | Promise<T>,
): Promise<T | typeof FAILED> {
  try {
    return await work();
  } catch (error) {
    call.report(phase, error);
    return FAILED;
  }
}
