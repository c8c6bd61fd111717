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
import { REQUIREMENTS } from "./call.ts";
import type { DispatchErrorReport, KernelSettings, Layer } from "./layer.ts";
import { MIN_OUTPUT_BYTES } from "./output.ts";

/** Options for {@linkcode Dispatcher}. */
export interface DispatcherOptions {
  /** The layers of every call. Within a stage the first layer is the outermost. */
  readonly layers?: readonly (Layer | readonly Layer[])[];
  /**
   * How long a call may take, in milliseconds, waiting for a slot included and waiting for the
   * approver not. A tool or a caller may lower it or, up to `maxTimeoutMs`, a tool may raise it.
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
   * How long a tool has, after a timeout or an abort, to stop, in milliseconds. The call ends as soon
   * as the tool stops, and at the latest then. 0 does not wait at all.
   *
   * @default {1_000}
   */
  readonly graceMs?: number;
  /**
   * How long commit, rollback, all cleanups together, and each `after` hook may take, in
   * milliseconds.
   *
   * @default {10_000}
   */
  readonly closeTimeoutMs?: number;
  /**
   * How large the arguments may be, in bytes of JSON.
   *
   * @default {1_048_576}
   */
  readonly maxArgumentBytes?: number;
  /**
   * How large a result, and each value sent on the way, may be, in bytes of JSON. At least 128. A
   * larger result fails with `output_too_large`.
   *
   * @default {1_048_576}
   */
  readonly maxOutputBytes?: number;
  /** Receives what was thrown, stack and all, for the host's log. Errors of this function are ignored. */
  onError?(report: DispatchErrorReport): void;
  /** Tells the time. */
  readonly clock?: Clock;
}

/** The default of an option that is a number, and its least and greatest value. */
export type NumberOption = readonly [otherwise: number, least: number, most?: number];

const NUMBERS = {
  timeoutMs: [60_000, 1, MAX_TIMEOUT_MS],
  maxTimeoutMs: [3_600_000, 1, MAX_TIMEOUT_MS],
  graceMs: [1_000, 0, MAX_TIMEOUT_MS],
  closeTimeoutMs: [10_000, 1, MAX_TIMEOUT_MS],
  maxArgumentBytes: [1_048_576, 2],
  maxOutputBytes: [1_048_576, MIN_OUTPUT_BYTES],
} as const satisfies NumberOptions;

const OTHERS = ["layers", "onError", "clock"];

export const MAKE = "make a dispatcher";

/** Options that are numbers. */
export interface NumberOptions {
  readonly [name: string]: NumberOption;
}

/**
 * Checks options. Throws a `TypeError` or a `RangeError` that names the option.
 *
 * @param more The options of a dispatcher with more of them that are numbers, which are read, too.
 * @param others The names of its other options.
 */
export function resolveSettings<More extends NumberOptions = Record<never, NumberOption>>(
  options: DispatcherOptions & { readonly [Name in keyof More]?: number },
  more?: More,
  others: readonly string[] = [],
): KernelSettings & { readonly [Name in keyof More]: number } {
  const ranges = { ...NUMBERS, ...more as More };
  const numbers = readNumbers("", options, ranges, [...OTHERS, ...others]);
  const { onError, layers: given = [], clock = systemClock } = options;
  if (onError !== undefined) checkFunction(MAKE, onError, "onError");
  if (!Array.isArray(given)) refuse(MAKE, "layers must be a list");
  return Object.freeze({
    ...numbers,
    layers: given.flat().map(checkLayer),
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
  // Fields of its own are allowed, so a misspelt one is only noticed where nothing else is left.
  if (Object.keys(parts).length === 0) {
    refuse(action, "it has no effect without for, observe, unresolved or context");
  }
  const functions = isWord(when) ? parts : defined({ when, ...parts });
  for (const [field, part] of Object.entries(functions)) checkFunction(action, part, field);
  return layer as Layer;
}

/** Reads the options that are numbers, and fails on a field that is neither one nor among `others`. */
export function readNumbers<Ranges extends { readonly [name: string]: NumberOption }>(
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
