/**
 * The options of a dispatcher's kernel: its layers, limits and clock.
 *
 * @module
 */

import type { SchemaEngine } from "../schema/mod.ts";
import {
  callHook,
  checkFunction,
  checkOverflow,
  type Clock,
  describe,
  isFunction,
  isListOf,
  isObject,
  isWord,
  MAX_TIMEOUT_MS,
  NO_LOG,
  numberFrom,
  type OutputOverflow,
  refuse,
  refuseOthers,
  systemClock,
} from "../tool/mod.ts";
import type { CallSettings, DispatchPhase, Layer } from "./layer.ts";

/** Something that was thrown during a call, for the host's log. */
export interface DispatchErrorReport {
  readonly toolId: string;
  readonly callId: string;
  readonly phase: DispatchPhase;
  /** What was thrown, as it is. */
  readonly error: unknown;
}

/** Options for {@linkcode Dispatcher}. */
export interface DispatcherOptions {
  /** The layers of every call. Within a stage the first layer is the outermost. */
  readonly layers?: readonly (Layer | readonly Layer[])[];
  /** Compiles schemas, for a toolset that was made from a list. A registry brings its own. */
  readonly engine?: SchemaEngine;
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
   * How large a result, and each value sent on the way, may be, in bytes of JSON. At least 128.
   *
   * @default {1_048_576}
   */
  readonly maxOutputBytes?: number;
  /**
   * What happens to a text that is larger. Other values fail with `output_too_large`.
   *
   * @default {"fail"}
   */
  readonly outputOverflow?: OutputOverflow;
  /** Receives what was thrown, stack and all, for the host's log. Errors of this function are ignored. */
  onError?(report: DispatchErrorReport): void;
  /** Tells the time. */
  readonly clock?: Clock;
}

/** {@linkcode DispatcherOptions}, checked and complete. */
export interface KernelSettings extends CallSettings {
  readonly onError: (report: DispatchErrorReport) => void;
  readonly layers: readonly Layer[];
  readonly engine: SchemaEngine | undefined;
}

/** The smallest limit on output: a marker of truncation must fit. */
export const MIN_OUTPUT_BYTES = 128;

/** The default of an option that is a number, and its least and greatest value. */
export type NumberOption = readonly [otherwise: number, least: number, most?: number];

const NUMBERS = {
  timeoutMs: [60_000, 1, MAX_TIMEOUT_MS],
  maxTimeoutMs: [3_600_000, 1, MAX_TIMEOUT_MS],
  graceMs: [1_000, 0, MAX_TIMEOUT_MS],
  closeTimeoutMs: [10_000, 1, MAX_TIMEOUT_MS],
  maxArgumentBytes: [1_048_576, 2],
  maxOutputBytes: [1_048_576, MIN_OUTPUT_BYTES],
} as const satisfies Readonly<Record<string, NumberOption>>;

const OTHERS = ["layers", "engine", "outputOverflow", "onError", "clock"];

/** The names of all options of the kernel. */
export const KERNEL_OPTIONS: readonly string[] = [...Object.keys(NUMBERS), ...OTHERS];

export const MAKE = "make a dispatcher";

const STAGES: readonly unknown[] = ["call", "input", "run"];

/** Checks options. Throws a `TypeError` or a `RangeError` that names the option. */
export function resolveSettings(options: DispatcherOptions): KernelSettings {
  const given: unknown = options;
  if (!isObject(given)) refuse(MAKE, "its options must be an object");
  const { engine, onError, outputOverflow = "fail", clock = systemClock } = options;
  if (onError !== undefined) checkFunction(MAKE, onError, "onError");
  const layers = options.layers ?? [];
  if (!Array.isArray(layers)) refuse(MAKE, "layers must be a list");
  return Object.freeze({
    ...readNumbers("", options, NUMBERS, OTHERS),
    layers: layers.flat().map(checkLayer),
    engine,
    outputOverflow: checkOverflow(MAKE, outputOverflow, "outputOverflow"),
    clock,
    onError: (report: DispatchErrorReport) =>
      callHook(() => onError?.call(options, report), NO_LOG),
  });
}

function checkLayer(layer: unknown): Layer {
  const { name, stage, when, context = {} } = isObject(layer) ? layer : {};
  const action = `use the layer ${describe(name)}`;
  if (!isWord(name) || !STAGES.includes(stage)) {
    refuse(action, "it must have a name, and the stage call, input or run");
  }
  const functions = ["for", "observe", "unresolved"].flatMap((field) => {
    const part = (layer as Record<string, unknown>)[field];
    if (part !== undefined) checkFunction(action, part, field);
    return part ?? [];
  });
  if (when !== undefined && !isWord(when)) checkFunction(action, when, "when");
  if (!isObject(context) || !isListOf(Object.values(context), isFunction)) {
    refuse(action, "its context must be an object of functions");
  }
  // Fields of its own are allowed, so a misspelt one is only noticed where nothing else is left.
  if (functions.length + Object.keys(context).length === 0) {
    refuse(action, "it has no effect without for, observe, unresolved or context");
  }
  return layer as unknown as Layer;
}

/** Reads the options that are numbers, and fails on a field that is neither one nor among `others`. */
export function readNumbers<Ranges extends { readonly [name: string]: NumberOption }>(
  group: string,
  given: { readonly [Name in keyof Ranges]?: number | undefined },
  ranges: Ranges,
  others: readonly string[] = [],
): { readonly [Name in keyof Ranges]: number } {
  refuseOthers(MAKE, given, [...Object.keys(ranges), ...others]);
  const read = Object.entries(ranges).map(([name, [otherwise, least, most]]) =>
    [name, numberFrom(least, most)(MAKE, given[name] ?? otherwise, group + name)] as const
  );
  // Every name of the ranges was read.
  return Object.fromEntries(read) as { [Name in keyof Ranges]: number };
}
