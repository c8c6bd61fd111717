/**
 * The options of a dispatcher, checked and complete.
 *
 * @module
 */

import type { SchemaEngine } from "../schema/mod.ts";
import {
  type Check,
  checkFunction,
  checkOverflow,
  type Clock,
  isListOf,
  isObject,
  MAX_TIMEOUT_MS,
  must,
  numberFrom,
  type OutputOverflow,
  refuse,
  systemClock,
} from "../tool/mod.ts";
import type { Approver } from "./approval.ts";
import type { ToolHooks } from "./hooks.ts";
import type {
  CallValidator,
  ConcurrencyLimits,
  DispatchErrorReport,
  IdempotencyOptions,
  ToolDispatcherOptions,
} from "./options.ts";
import type { TransactionManager } from "./transaction.ts";

/** What {@linkcode ToolDispatcherOptions} say, complete. */
export interface Settings {
  readonly engine: SchemaEngine | undefined;
  readonly transactions: TransactionManager | undefined;
  readonly beforeHooks: readonly ToolHooks[];
  /** In the order in which they run, which is the reverse of the order given. */
  readonly afterHooks: readonly ToolHooks[];
  readonly validators: readonly CallValidator[];
  readonly approve: Approver | undefined;
  readonly approvalTimeoutMs: number;
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
  readonly graceMs: number;
  readonly closeTimeoutMs: number;
  readonly limits: Required<ConcurrencyLimits>;
  readonly maxArgumentBytes: number;
  readonly maxOutputBytes: number;
  readonly outputOverflow: OutputOverflow;
  readonly idempotency: Required<IdempotencyOptions>;
  readonly maxCallsPerBatch: number;
  readonly maxBufferedEvents: number;
  readonly maxMeteredTools: number;
  readonly onError: ((report: DispatchErrorReport) => void) | undefined;
  readonly clock: Clock;
}

/** The smallest limit on output: a marker of truncation must fit. */
export const MIN_OUTPUT_BYTES = 128;

const ACTION = "make a dispatcher";

/** An option that is a number: what it is by default, and from where to where it may go. */
type Range = readonly [otherwise: number, least: number, most?: number];

const NUMBERS = {
  approvalTimeoutMs: [600_000, 1, MAX_TIMEOUT_MS],
  timeoutMs: [60_000, 1, MAX_TIMEOUT_MS],
  maxTimeoutMs: [3_600_000, 1, MAX_TIMEOUT_MS],
  graceMs: [1_000, 0, MAX_TIMEOUT_MS],
  closeTimeoutMs: [10_000, 1, MAX_TIMEOUT_MS],
  maxArgumentBytes: [1_048_576, 2],
  maxOutputBytes: [1_048_576, MIN_OUTPUT_BYTES],
  maxCallsPerBatch: [128, 1],
  maxBufferedEvents: [64, 1],
  maxMeteredTools: [10_000, 1],
} satisfies { readonly [Name in keyof ToolDispatcherOptions]?: Range };

const LIMITS: { readonly [Name in keyof Required<ConcurrencyLimits>]: Range } = {
  maxConcurrent: [Infinity, 1],
  maxConcurrentPerTool: [Infinity, 1],
  maxQueued: [256, 0],
};

const IDEMPOTENCY: { readonly [Name in keyof Required<IdempotencyOptions>]: Range } = {
  windowMs: [600_000, 1],
  maxKeys: [1_000, 1],
  maxBytes: [16_777_216, 0],
};

const checkValidators: Check<readonly CallValidator[]> = must(
  "a list of functions",
  (value) => isListOf(value, (item): item is CallValidator => typeof item === "function"),
);
const checkHook: Check<ToolHooks> = must(
  "an object with a before or an after function",
  (value): value is ToolHooks => {
    if (!isObject(value)) return false;
    const { before, after } = value;
    return (before ?? after) !== undefined &&
      [before, after].every((part) => part === undefined || typeof part === "function");
  },
);

/** Checks options. Throws a `TypeError` or a `RangeError` that names the option. */
export function resolveSettings(options: ToolDispatcherOptions): Settings {
  if (typeof options !== "object" || options === null) {
    refuse(ACTION, "the options must be an object");
  }
  const { engine, transactions, approve, onError, clock = systemClock } = options;
  const { outputOverflow = "fail", validators = [] } = options;
  const hooks = [options.hooks ?? []].flat().map((hook) => checkHook(ACTION, hook, "a hook"));
  for (const [name, value] of Object.entries({ approve, onError })) {
    if (value !== undefined) checkFunction(ACTION, value, name);
  }
  for (const method of ["begin", "commit", "rollback"] as const) {
    if (transactions !== undefined && typeof transactions[method] !== "function") {
      refuse(ACTION, `transactions must have a ${method} function`);
    }
  }
  return Object.freeze({
    engine,
    transactions,
    beforeHooks: hooks.filter((hook) => hook.before !== undefined),
    afterHooks: hooks.filter((hook) => hook.after !== undefined).reverse(),
    validators: [...checkValidators(ACTION, validators, "validators")],
    approve,
    outputOverflow: checkOverflow(ACTION, outputOverflow, "outputOverflow"),
    onError: onError?.bind(options),
    clock,
    ...numbers("", options, NUMBERS),
    limits: numbers("limits.", options.limits, LIMITS),
    idempotency: numbers("idempotency.", options.idempotency, IDEMPOTENCY),
  });
}

/** Reads a group of options that are numbers. */
function numbers<Ranges extends { readonly [name: string]: Range }>(
  group: string,
  given: { readonly [Name in keyof Ranges]?: number | undefined } = {},
  ranges: Ranges,
): { readonly [Name in keyof Ranges]: number } {
  const read = Object.entries(ranges).map(([name, [otherwise, least, most]]) =>
    [name, numberFrom(least, most)(ACTION, given[name] ?? otherwise, group + name)] as const
  );
  // Every name of the ranges was read.
  return Object.fromEntries(read) as { [Name in keyof Ranges]: number };
}
