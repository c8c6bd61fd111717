/**
 * Responses that end before the model was done.
 *
 * @module
 */

import type { WireCall } from "./types.ts";

/** Why a model stopped before it was done, in the words of all providers. */
const REASONS: ReadonlySet<unknown> = new Set([
  "length",
  "content_filter",
  "error",
  "max_tokens",
  "model_length",
  "model_context_window_exceeded",
  "MAX_TOKENS",
  "ERROR",
  "TIMEOUT",
]);

/** Whether the reason why a model stopped says that it was not done. */
export function isCutOff(reason: unknown): boolean {
  return REASONS.has(reason);
}

/** Marks the last call, if the reason says so: the ones before were done when it began. */
export function markCutOff(calls: readonly WireCall[], reason: unknown): readonly WireCall[] {
  if (!isCutOff(reason)) return calls;
  return calls.map((call, index) => index === calls.length - 1 ? { ...call, cutOff: true } : call);
}
