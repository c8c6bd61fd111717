/**
 * The options of a dispatcher's kernel: its layers, limits and clock.
 *
 * @module
 */

import {
  callHook,
  checkFunction,
  checkWord,
  type Clock,
  defined,
  describe,
  isObject,
  isWord,
  MAX_TIMEOUT_MS,
  NO_LOG,
  numberFrom,
  oneOf,
  refuse,
  refuseOthers,
  systemClock,
} from "../tool/mod.ts";
import {
  type DispatchErrorReport,
  type KernelSettings,
  type Layer,
  REQUIREMENTS,
} from "./layer.ts";
import { MIN_OUTPUT_BYTES } from "./output.ts";

/** Options for {@linkcode Dispatcher}. */
export interface DispatcherOptions {
  /** The layers of every call. Within a stage the first layer is the outermost. */
  readonly layers?: readonly (Layer | readonly Layer[])[];
  /**
   * The timeout of a call in milliseconds. It includes the wait for a slot, but not the wait for
   * the approver. A tool or a caller may lower it or, up to `maxTimeoutMs`, a tool may raise it.
   *
   * @default {60_000}
   */
  readonly timeoutMs?: number;
  /**
   * The longest timeout that a tool may have, in milliseconds.
   *
   * @default {3_600_000}
   */
  readonly maxTimeoutMs?: number;
  /**
   * The grace period for a tool to stop after a timeout or an abort, in milliseconds. The call ends
   * as soon as the tool stops, and at the latest then. 0 does not wait at all.
   *
   * @default {1_000}
   */
  readonly graceMs?: number;
  /**
   * The time limit of commit, rollback, all cleanups together, and each `after` hook, in
   * milliseconds.
   *
   * @default {10_000}
   */
  readonly closeTimeoutMs?: number;
  /**
   * The maximum size of the arguments, in bytes of JSON.
   *
   * @default {1_048_576}
   */
  readonly maxArgumentBytes?: number;
  /**
   * The maximum size of a result, and of each value that is sent before it, in bytes of JSON. At
   * least 128. A larger result fails with `output_too_large`.
   *
   * @default {1_048_576}
   */
  readonly maxOutputBytes?: number;
  /** Receives errors with their stacks, for the host's log. Errors of this function are ignored. */
  onError?(report: DispatchErrorReport): void;
  /** The clock. */
  readonly clock?: Clock;
}

/** Numeric options: the default of each, and its minimum and maximum. */
export interface NumberOptions {
  readonly [name: string]: readonly [otherwise: number, least: number, most?: number];
}

const NUMBERS = {
  timeoutMs: [60_000, 1, MAX_TIMEOUT_MS],
  maxTimeoutMs: [3_600_000, 1, MAX_TIMEOUT_MS],
  graceMs: [1_000, 0, MAX_TIMEOUT_MS],
  closeTimeoutMs: [10_000, 1, MAX_TIMEOUT_MS],
  maxArgumentBytes: [1_048_576, 2],
  maxOutputBytes: [1_048_576, MIN_OUTPUT_BYTES],
} as const satisfies NumberOptions;

export const MAKE = "make a dispatcher";

/**
 * Checks options. Throws a `TypeError` or a `RangeError` that names the option.
 *
 * @param others The names of further options, which another dispatcher checks.
 */
export function resolveSettings(
  options: DispatcherOptions,
  others: readonly string[] = [],
): KernelSettings {
  const numbers = readNumbers("", options, NUMBERS, ["layers", "onError", "clock", ...others]);
  const { onError, layers = [], clock = systemClock } = options;
  if (onError !== undefined) checkFunction(MAKE, onError, "onError");
  if (!Array.isArray(layers)) refuse(MAKE, "layers must be a list");
  return Object.freeze({
    ...numbers,
    layers: layers.flat().map(checkLayer),
    clock,
    onError: (report: DispatchErrorReport) =>
      callHook(() => onError?.call(options, report), NO_LOG),
  });
}

const checkStage = oneOf(["call", "input", "run"]);
const checkMeets = oneOf([undefined, ...Object.keys(REQUIREMENTS)]);

function checkLayer(layer: unknown): Layer {
  const { name, stage, when, meets, for: around, observe, unresolved, context } = Object(layer);
  const action = `use the layer ${describe(name)}`;
  checkWord(action, name, "its name");
  checkStage(action, stage, "its stage");
  checkMeets(action, meets, "its meets");
  const parts = defined({ for: around, observe, unresolved, ...context });
  // The dispatcher has further fields, so a misspelt one is only noticed at the end.
  if (Object.keys(parts).length === 0) {
    refuse(action, "it has no effect without for, observe, unresolved or context");
  }
  const functions = isWord(when) ? parts : defined({ when, ...parts });
  for (const [field, part] of Object.entries(functions)) checkFunction(action, part, field);
  return layer as Layer;
}

/** Reads the numeric options, and fails on a field that is neither numeric nor among `others`. */
export function readNumbers<Ranges extends NumberOptions>(
  group: string,
  given: { readonly [Name in keyof Ranges]?: number | undefined },
  ranges: Ranges,
  others: readonly string[] = [],
): { readonly [Name in keyof Ranges]: number } {
  if (!isObject(given)) refuse(MAKE, "its options must be an object");
  refuseOthers(MAKE, given, [...Object.keys(ranges), ...others]);
  const read = Object.entries(ranges).map(([name, [otherwise, least, most]]) =>
    [name, numberFrom(least, most)(MAKE, given[name] ?? otherwise, group + name)] as const
  );
  // Every name of the ranges was read.
  return Object.fromEntries(read) as { [Name in keyof Ranges]: number };
}
