/**
 * A dispatcher's options, checked once and with every default in place.
 *
 * @module
 */

import type { SchemaEngine } from "../schema/mod.ts";
import type { Approver } from "./approval.ts";
import { type Clock, systemClock } from "./clock.ts";
import type { ToolHooks } from "./hooks.ts";
import type { CallValidator, DispatchErrorReport, ToolDispatcherOptions } from "./options.ts";
import type { OutputOverflow } from "./tool_call.ts";
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
  readonly maxConcurrent: number;
  readonly maxConcurrentPerTool: number;
  readonly maxQueued: number;
  readonly maxArgumentBytes: number;
  readonly maxOutputBytes: number;
  readonly outputOverflow: OutputOverflow;
  readonly windowMs: number;
  readonly maxKeys: number;
  readonly maxKeptBytes: number;
  readonly maxCallsPerBatch: number;
  readonly maxBufferedEvents: number;
  readonly maxMeteredTools: number;
  readonly onError: ((report: DispatchErrorReport) => void) | undefined;
  readonly clock: Clock;
}

/** The smallest limit on output: a marker of truncation must fit. */
export const MIN_OUTPUT_BYTES = 128;
/** setTimeout overflows above 2^31 - 1 and would fire at once. */
const MAX_MS = 2_147_483_647;

/** Checks options. Throws a `TypeError` or a `RangeError` that names the option. */
export function resolveSettings(options: ToolDispatcherOptions): Settings {
  if (typeof options !== "object" || options === null) {
    throw new TypeError("Cannot make a dispatcher: the options must be an object");
  }
  const { limits = {}, idempotency = {}, outputOverflow = "fail", clock = systemClock } = options;
  const hooks = options.hooks === undefined
    ? []
    : Array.isArray(options.hooks)
    ? [...options.hooks as readonly ToolHooks[]]
    : [options.hooks as ToolHooks];
  for (const hook of hooks) {
    if (!hasOneMethodOf(hook, ["before", "after"])) {
      wrong("a hook must be an object with a before or an after function");
    }
  }
  const validators = options.validators ?? [];
  if (!Array.isArray(validators) || !validators.every((rule) => typeof rule === "function")) {
    wrong("validators must be a list of functions");
  }
  for (const name of ["approve", "onError"] as const) {
    if (options[name] !== undefined && typeof options[name] !== "function") {
      wrong(`${name} must be a function`);
    }
  }
  const { transactions } = options;
  if (transactions !== undefined) {
    for (const method of ["begin", "commit", "rollback"] as const) {
      if (typeof transactions[method] !== "function") {
        wrong(`transactions must have a ${method} function`);
      }
    }
  }
  if (outputOverflow !== "fail" && outputOverflow !== "truncate") {
    wrong(`outputOverflow must be "fail" or "truncate", not "${String(outputOverflow)}"`);
  }
  return Object.freeze({
    engine: options.engine,
    transactions,
    beforeHooks: hooks.filter((hook) => hook.before !== undefined),
    afterHooks: hooks.filter((hook) => hook.after !== undefined).reverse(),
    validators: [...validators],
    approve: options.approve,
    approvalTimeoutMs: number("approvalTimeoutMs", options.approvalTimeoutMs, 600_000, 1, MAX_MS),
    timeoutMs: number("timeoutMs", options.timeoutMs, 60_000, 1, MAX_MS),
    maxTimeoutMs: number("maxTimeoutMs", options.maxTimeoutMs, 3_600_000, 1, MAX_MS),
    graceMs: number("graceMs", options.graceMs, 1_000, 0, MAX_MS),
    closeTimeoutMs: number("closeTimeoutMs", options.closeTimeoutMs, 10_000, 1, MAX_MS),
    maxConcurrent: number("limits.maxConcurrent", limits.maxConcurrent, Infinity, 1),
    maxConcurrentPerTool: number(
      "limits.maxConcurrentPerTool",
      limits.maxConcurrentPerTool,
      Infinity,
      1,
    ),
    maxQueued: number("limits.maxQueued", limits.maxQueued, 256, 0),
    maxArgumentBytes: number("maxArgumentBytes", options.maxArgumentBytes, 1_048_576, 2),
    maxOutputBytes: number(
      "maxOutputBytes",
      options.maxOutputBytes,
      1_048_576,
      MIN_OUTPUT_BYTES,
    ),
    outputOverflow,
    windowMs: number("idempotency.windowMs", idempotency.windowMs, 600_000, 1),
    maxKeys: number("idempotency.maxKeys", idempotency.maxKeys, 1_000, 1),
    maxKeptBytes: number("idempotency.maxBytes", idempotency.maxBytes, 16_777_216, 0),
    maxCallsPerBatch: number("maxCallsPerBatch", options.maxCallsPerBatch, 128, 1),
    maxBufferedEvents: number("maxBufferedEvents", options.maxBufferedEvents, 64, 1),
    maxMeteredTools: number("maxMeteredTools", options.maxMeteredTools, 10_000, 1),
    onError: options.onError?.bind(options),
    clock,
  });
}

function number(
  name: string,
  given: number | undefined,
  otherwise: number,
  least: number,
  most = Infinity,
): number {
  const value = given ?? otherwise;
  if (typeof value === "number" && value >= least && value <= most) return value;
  throw new RangeError(
    `Cannot make a dispatcher: ${name} must be a number from ${least} to ${most}, ` +
      `not "${String(value)}"`,
  );
}

function hasOneMethodOf(value: unknown, names: readonly string[]): boolean {
  if (typeof value !== "object" || value === null) return false;
  const members = value as Record<string, unknown>;
  return names.some((name) => members[name] !== undefined) &&
    names.every((name) => members[name] === undefined || typeof members[name] === "function");
}

function wrong(problem: string): never {
  throw new TypeError(`Cannot make a dispatcher: ${problem}`);
}
