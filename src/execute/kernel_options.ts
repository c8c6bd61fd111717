/** The options of a dispatcher's kernel: its layers, limits and clock. */

import { type Clock, defined, describe, fail, isFunction, noop, systemClock } from "../tool/mod.ts";
import * as check from "../tool/mod.ts";
import { REQUIREMENTS } from "./call.ts";
import type { CallSettings, DispatchErrorReport, KernelSettings, Layer } from "./layer.ts";
import { MIN_OUTPUT_BYTES } from "./output.ts";

/** Options for {@linkcode Dispatcher}. */
export interface DispatcherOptions extends Partial<CallSettings> {
  /** The layers of every call. Within a stage the first layer is the outermost. */
  readonly layers?: readonly (Layer | readonly Layer[])[];
  /** Receives errors with their stacks, for the host's log. Errors of this function are ignored. */
  onError?(report: DispatchErrorReport): void;
}

export const MAKE = "make a dispatcher";

const checkMs = check.numberFrom(1, check.MAX_TIMEOUT_MS);

const CHECKS = {
  timeoutMs: checkMs,
  maxTimeoutMs: checkMs,
  graceMs: check.numberFrom(0, check.MAX_TIMEOUT_MS),
  closeTimeoutMs: checkMs,
  maxArgumentBytes: check.numberFrom(2),
  maxOutputBytes: check.numberFrom(MIN_OUTPUT_BYTES),
  layers: check.createCheck<readonly unknown[]>("a list", Array.isArray),
  onError: check.checkFunction as check.Check<NonNullable<DispatcherOptions["onError"]>>,
  clock: check.anyValue as check.Check<Clock>,
} satisfies { readonly [Name in keyof DispatcherOptions]-?: check.Check };

const DEFAULTS: CallSettings = {
  timeoutMs: 60_000,
  maxTimeoutMs: 3_600_000,
  graceMs: 1_000,
  closeTimeoutMs: 10_000,
  maxArgumentBytes: 1_048_576,
  maxOutputBytes: 1_048_576,
  clock: systemClock,
};

/** Checks the options, and adds defaults. `others` are names of options that the caller checks. */
export function resolveSettings(
  options: DispatcherOptions,
  others: readonly string[] = [],
): KernelSettings {
  const further = Object.fromEntries(others.map((name) => [name, check.anyValue]));
  const read = check.readFields(MAKE, options, { ...further, ...CHECKS }, String);
  return Object.freeze({
    ...DEFAULTS,
    ...read,
    layers: (read.layers ?? []).flat().map(checkLayer),
    onError: (report: DispatchErrorReport) =>
      check.callHook(() => read.onError?.call(options, report), noop),
  });
}

const checkStage = check.oneOf(["call", "input", "run"]);
const checkMeets = check.oneOf(Object.keys(REQUIREMENTS));
const checkField = check.oneOf(
  ("sessionId messageId principal services context trace signal timeoutMs idempotencyKey " +
    "maxOutputBytes outputOverflow metadata progress onQuestion output").split(" "),
);

function checkLayer(layer: unknown): Layer {
  const { name, stage, when, meets, for: around, observe, unresolved, context } = Object(layer);
  const action = `use the layer ${describe(name)}`;
  check.checkWord(action, name, "its name");
  checkStage(action, stage, "its stage");
  if (meets !== undefined) checkMeets(action, meets, "its meets");
  if (when !== undefined && !isFunction(when)) checkField(action, when, "its when");
  const parts = defined({ for: around, observe, unresolved, ...context });
  // Layers may have further fields, so a misspelt field is found only if the layer has no effect.
  if (Object.keys(parts).length === 0) {
    fail(action, 'it must have "for", "observe", "unresolved" or "context"');
  }
  for (const [field, part] of Object.entries(parts)) check.checkFunction(action, part, field);
  return layer as Layer;
}
