/**
 * The options of a dispatcher, and their checks.
 *
 * @module
 */

import type { SchemaEngine } from "../schema/mod.ts";
import {
  type Check,
  checkFunction,
  checkOverflow,
  checkPort,
  type Clock,
  isFunction,
  isListOf,
  isObject,
  MAX_TIMEOUT_MS,
  must,
  numberFrom,
  type OutputOverflow,
  refuse,
  refuseOthers,
  systemClock,
  type ToolRuleAnswer,
} from "../tool/mod.ts";
import type {
  Approver,
  CallInfo,
  KeptKeys,
  RepairHook,
  ToolHooks,
  TransactionManager,
} from "./ports.ts";
import type { CallTickets } from "./suspension.ts";
import type { CallTelemetry } from "./telemetry.ts";

/**
 * A rule for the arguments of every tool, after the schema and the tool's own rules. It answers as
 * a tool's `validate` does. One that throws refuses the call.
 */
export type CallValidator = (call: CallInfo) => ToolRuleAnswer | Promise<ToolRuleAnswer>;

/** How many calls may run and wait. */
export interface ConcurrencyLimits {
  /**
   * How many calls may run at once.
   *
   * @default {Infinity}
   */
  readonly maxConcurrent?: number;
  /**
   * How many calls of one tool may run at once.
   *
   * @default {Infinity}
   */
  readonly maxConcurrentPerTool?: number;
  /**
   * How many calls may wait for their turn. Principals take turns; calls of one run first come,
   * first served. Further calls fail with `overloaded`, and so does the newest call of a principal
   * that has more than its share of the queue, for a call of one that has less.
   *
   * @default {256}
   */
  readonly maxQueued?: number;
}

/** How long and how many results are kept for their idempotency keys. */
export interface IdempotencyOptions {
  /**
   * How long a result is kept after its call has ended, in milliseconds.
   *
   * @default {600_000}
   */
  readonly windowMs?: number;
  /**
   * How many results are kept. Where there are more, a principal that has more than its share of
   * them gives up its oldest. As many calls with keys may run for one principal; further ones fail
   * with `overloaded`.
   *
   * @default {1_000}
   */
  readonly maxKeys?: number;
  /**
   * How many bytes of JSON the kept results may have in all. They give way as `maxKeys` says.
   *
   * @default {16_777_216}
   */
  readonly maxBytes?: number;
  /**
   * Keeps keys and results where they outlive the process and other processes find them, too:
   * `storedKeys` of `@plue/tools/calls`.
   */
  readonly kept?: KeptKeys;
}

/** In which step of a call something was thrown that the call's result does not tell in full. */
export type DispatchPhase =
  | "init"
  | "context"
  | "repair"
  | "before"
  | "validate"
  | "approve"
  | "ask"
  | "begin"
  | "execute"
  | "around"
  | "result"
  | "metadata"
  | "commit"
  | "rollback"
  | "cleanup"
  | "after"
  | "telemetry"
  | "internal";

/** Something that was thrown during a call, for the host's log. */
export interface DispatchErrorReport {
  readonly toolId: string;
  readonly callId: string;
  readonly phase: DispatchPhase;
  /** What was thrown, as it is. */
  readonly error: unknown;
}

/** Options for {@linkcode ToolDispatcher}. */
export interface ToolDispatcherOptions {
  /** Compiles schemas, for a toolset that was made from a list. A registry brings its own. */
  readonly engine?: SchemaEngine;
  /** For tools that require a transaction. Without it, they fail with `transaction_failed`. */
  readonly transactions?: TransactionManager;
  /** Run before and after every call. */
  readonly hooks?: ToolHooks | readonly ToolHooks[];
  /**
   * Repairs arguments that do not fit, or are not JSON: `coerceArguments` of `@plue/tools/calls`, a
   * model, a library. Several are asked in order, each once, until the arguments fit. The result says
   * in `repaired` what was changed.
   */
  readonly repair?: RepairHook | readonly RepairHook[];
  /** Traces and measures every call: `openTelemetry` of `@plue/tools/telemetry` makes it. */
  readonly telemetry?: CallTelemetry;
  /** Rules for the arguments of every tool. */
  readonly validators?: readonly CallValidator[];
  /**
   * For calls that need approval, by their tool or by a policy. Without it, they fail with
   * `approval_required`. `"ask"` asks the one who called.
   */
  readonly approve?: Approver | "ask";
  /**
   * Lets calls wait for answers that their callers cannot give at once: `sealedTickets` or
   * `storedTickets` of `@plue/tools/calls`. Without it, only a caller with `onQuestion` can be asked.
   */
  readonly tickets?: CallTickets;
  /**
   * How long to wait for the approver, or for the answer to a question, in milliseconds.
   *
   * @default {600_000}
   */
  readonly approvalTimeoutMs?: number;
  /**
   * How long a call may take, in milliseconds, waiting for its turn included and waiting for the
   * approver not. A tool or a caller may ask for less or, up to `maxTimeoutMs`, a tool for more.
   *
   * @default {60_000}
   */
  readonly timeoutMs?: number;
  /**
   * The longest timeout that a tool may ask for, in milliseconds.
   *
   * @default {3_600_000}
   */
  readonly maxTimeoutMs?: number;
  /**
   * How long a tool has, after a timeout or an abort, to stop, in milliseconds. The call is
   * answered as soon as the tool stops, and at the latest then. 0 does not wait at all.
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
  /** How many calls may run and wait. */
  readonly limits?: ConcurrencyLimits;
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
   * What is done with a result that is larger.
   *
   * @default {"fail"}
   */
  readonly outputOverflow?: OutputOverflow;
  /** How long and how many results are kept for their idempotency keys. */
  readonly idempotency?: IdempotencyOptions;
  /**
   * How many calls one `dispatchAll` takes. Further ones fail with `overloaded`.
   *
   * @default {128}
   */
  readonly maxCallsPerBatch?: number;
  /**
   * How many events of a streamed call wait for their consumer. A generator then waits, progress
   * keeps its newest, and metadata is dropped and counted. An output counts as one for every 16 KiB.
   *
   * @default {64}
   */
  readonly maxBufferedEvents?: number;
  /**
   * How many tools have metrics of their own. Those of further tools are added up under the id `*`,
   * and so are those of a tool that was removed when another needs its place.
   *
   * @default {10_000}
   */
  readonly maxMeteredTools?: number;
  /** Receives what was thrown, stack and all, for the host's log. Errors of this function are ignored. */
  onError?(report: DispatchErrorReport): void;
  /** Tells the time. */
  readonly clock?: Clock;
}

/** The smallest limit on output: a marker of truncation must fit. */
export const MIN_OUTPUT_BYTES = 128;

/** The default of an option that is a number, and the least and the most that it may be. */
type Range = readonly [otherwise: number, least: number, most?: number];

type NumberOption = keyof {
  [
    Name in keyof ToolDispatcherOptions as ToolDispatcherOptions[Name] extends number | undefined
      ? Name
      : never
  ]: true;
};

const NUMBERS: Readonly<Record<NumberOption, Range>> = {
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
};

const LIMITS: Readonly<Record<keyof ConcurrencyLimits, Range>> = {
  maxConcurrent: [Infinity, 1],
  maxConcurrentPerTool: [Infinity, 1],
  maxQueued: [256, 0],
};

const IDEMPOTENCY: Readonly<Record<Exclude<keyof IdempotencyOptions, "kept">, Range>> = {
  windowMs: [600_000, 1],
  maxKeys: [1_000, 1],
  maxBytes: [16_777_216, 0],
};

/** The options that are no numbers. */
const OTHERS: readonly Exclude<keyof ToolDispatcherOptions, NumberOption>[] = [
  "engine",
  "transactions",
  "hooks",
  "repair",
  "telemetry",
  "validators",
  "approve",
  "tickets",
  "limits",
  "outputOverflow",
  "idempotency",
  "onError",
  "clock",
];

/** What {@linkcode ToolDispatcherOptions} say, checked and complete. */
export interface Settings
  extends Required<Pick<ToolDispatcherOptions, NumberOption | "outputOverflow" | "clock">> {
  readonly engine: SchemaEngine | undefined;
  readonly transactions: TransactionManager | undefined;
  readonly approve: Approver | "ask" | undefined;
  readonly tickets: CallTickets | undefined;
  readonly telemetry: CallTelemetry | undefined;
  readonly onError: ToolDispatcherOptions["onError"] | undefined;
  readonly validators: readonly CallValidator[];
  readonly repairs: readonly RepairHook[];
  readonly beforeHooks: readonly ToolHooks[];
  /** The innermost first, which is the reverse of the order given. */
  readonly aroundHooks: readonly ToolHooks[];
  /** In the order in which they run, which is the reverse of the order given. */
  readonly afterHooks: readonly ToolHooks[];
  readonly limits: Required<ConcurrencyLimits>;
  readonly idempotency: IdempotencySettings;
}

/** What {@linkcode IdempotencyOptions} say, complete. */
export interface IdempotencySettings extends Required<Omit<IdempotencyOptions, "kept">> {
  readonly kept: KeptKeys | undefined;
}

const ACTION = "make a dispatcher";

const checkValidators: Check<readonly CallValidator[]> = must(
  "a list of functions",
  (value) => isListOf(value, (item): item is CallValidator => isFunction(item)),
);
const checkRepair: Check<RepairHook> = must(
  "a function or a list of functions",
  (value): value is RepairHook => isFunction(value),
);
const checkHook: Check<ToolHooks> = must(
  "an object with a before, an around or an after function",
  (value): value is ToolHooks => {
    if (!isObject(value)) return false;
    const parts = [value["before"], value["around"], value["after"]]
      .filter((part) => part !== undefined);
    return parts.length > 0 && parts.every(isFunction);
  },
);

/** Checks options. Throws a `TypeError` or a `RangeError` that names the option. */
export function resolveSettings(options: ToolDispatcherOptions): Settings {
  if (typeof options !== "object" || options === null) {
    refuse(ACTION, "its options must be an object");
  }
  const { engine, transactions, approve, onError, clock = systemClock } = options;
  const { tickets, telemetry, repair = [] } = options;
  const { outputOverflow = "fail", validators = [] } = options;
  const hooks = [options.hooks ?? []].flat().map((hook) => checkHook(ACTION, hook, "a hook"));
  if (approve !== undefined && approve !== "ask") checkFunction(ACTION, approve, "approve");
  if (onError !== undefined) checkFunction(ACTION, onError, "onError");
  const kept = options.idempotency?.kept;
  checkPort(ACTION, "transactions", transactions, ["begin", "commit", "rollback"]);
  checkPort(ACTION, "tickets", tickets, ["suspend", "resume"]);
  checkPort(ACTION, "telemetry", telemetry, ["begin"]);
  checkPort(ACTION, "idempotency.kept", kept, ["claim"]);
  return Object.freeze({
    engine,
    transactions,
    approve,
    tickets,
    telemetry,
    onError: onError?.bind(options),
    repairs: [repair].flat().map((one) => checkRepair(ACTION, one, "repair")),
    beforeHooks: hooks.filter((hook) => hook.before !== undefined),
    aroundHooks: hooks.filter((hook) => hook.around !== undefined).reverse(),
    afterHooks: hooks.filter((hook) => hook.after !== undefined).reverse(),
    validators: [...checkValidators(ACTION, validators, "validators")],
    outputOverflow: checkOverflow(ACTION, outputOverflow, "outputOverflow"),
    clock,
    ...numbers("", options, NUMBERS, OTHERS),
    limits: numbers("limits.", options.limits, LIMITS),
    idempotency: {
      ...numbers("idempotency.", options.idempotency, IDEMPOTENCY, ["kept"]),
      kept,
    },
  });
}

/** Reads a group of options that are numbers, and refuses what is neither one nor among `others`. */
function numbers<Ranges extends { readonly [name: string]: Range }>(
  group: string,
  given: { readonly [Name in keyof Ranges]?: number | undefined } = {},
  ranges: Ranges,
  others: readonly string[] = [],
): { readonly [Name in keyof Ranges]: number } {
  refuseOthers(ACTION, given, [...Object.keys(ranges), ...others]);
  const read = Object.entries(ranges).map(([name, [otherwise, least, most]]) =>
    [name, numberFrom(least, most)(ACTION, given[name] ?? otherwise, group + name)] as const
  );
  // Every name of the ranges was read.
  return Object.fromEntries(read) as { [Name in keyof Ranges]: number };
}
