/** Counts and times the calls of each tool. */

import { type Clock, type FailureCode, once, systemClock, type ToolResult } from "../tool/mod.ts";
import type { Call, CallObserver, Layer } from "./layer.ts";

/**
 * Durations of calls, in milliseconds. The percentiles are right to within 7 %, or half a
 * microsecond.
 */
export interface DurationMetrics {
  readonly totalMs: number;
  readonly meanMs: number;
  readonly minMs: number;
  readonly maxMs: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
}

/** Counts and durations of the calls of one tool. */
export interface ToolMetrics {
  /** The tool's id. */
  readonly id: string;
  /** Completed calls. */
  readonly calls: number;
  /** Calls that succeeded. */
  readonly succeeded: number;
  /** Calls that failed. */
  readonly failed: number;
  /** Suspended calls, which neither succeeded nor failed. */
  readonly suspended: number;
  /** Failed calls by code; codes that did not occur are absent. */
  readonly errors: { readonly [Code in FailureCode]?: number };
  /** Calls with the result of an earlier one. Part of `calls`. */
  readonly replayed: number;
  /** Calls that named the tool by one of its aliases. Counted when they begin. */
  readonly aliased: number;
  /** Running calls. */
  readonly inFlight: number;
  /** Tools that ignored their signal and still run, though their calls have ended. */
  readonly abandoned: number;
  /** The time of the last end, in milliseconds since 1970; `null` before that. */
  readonly lastRun: number | null;
  /** Without replayed calls; `null` before another has ended. */
  readonly duration: DurationMetrics | null;
}

/** Counts and durations of a dispatcher's calls. JSON. */
export interface DispatcherMetrics {
  /** Since when: milliseconds since 1970. */
  readonly since: number;
  /** Completed calls, including calls of unknown tools. */
  readonly calls: number;
  readonly failed: number;
  readonly inFlight: number;
  /** Calls that wait for their turn. */
  readonly queued: number;
  /** Calls that named no tool of their caller's toolset. */
  readonly unknownTool: number;
  /** Per tool, in code-unit order of id. */
  readonly tools: readonly ToolMetrics[];
}

interface Counts {
  calls: number;
  failed: number;
  suspended: number;
  replayed: number;
  aliased: number;
  /** By the clock's `now`: a wall clock need not be read at each call. */
  lastEnd: number;
  readonly errors: Map<FailureCode, number>;
  readonly durations: Histogram;
}

function noCounts(): Counts {
  return {
    ...{ calls: 0, failed: 0, suspended: 0, replayed: 0, aliased: 0, lastEnd: 0 },
    errors: new Map(),
    durations: new Histogram(),
  };
}

class ToolStats implements CallObserver {
  readonly id: string;
  inFlight = 0;
  abandoned = 0;
  counts: Counts = noCounts();

  constructor(id: string) {
    this.id = id;
  }

  began({ request }: Call): void {
    this.inFlight++;
    if (request.name !== this.id) this.counts.aliased++;
  }

  ended({ toolState }: Call, result: ToolResult, now: number): void {
    const { counts } = this;
    this.inFlight--;
    if (toolState === "running") this.abandoned++;
    counts.calls++;
    counts.lastEnd = now;
    // A replayed result has no duration of its tool.
    if (result.replayed === true) counts.replayed++;
    else counts.durations.add(result.durationMs);
    if (result.ok) return;
    const { code } = result.error;
    if (code === "input_required") {
      counts.suspended++;
      return;
    }
    counts.failed++;
    counts.errors.set(code, (counts.errors.get(code) ?? 0) + 1);
  }

  toolEnded(): void {
    this.abandoned--;
  }

  /** True if it counts no call that runs. */
  get isIdle(): boolean {
    return this.inFlight + this.abandoned === 0;
  }

  snapshot(clock: Clock): ToolMetrics {
    const { id, inFlight, abandoned } = this;
    const { lastEnd, durations, errors, ...counts } = this.counts;
    const { calls, failed, suspended } = counts;
    return {
      id,
      ...counts,
      succeeded: calls - failed - suspended,
      errors: Object.fromEntries(errors),
      inFlight,
      abandoned,
      lastRun: calls === 0 ? null : Math.round(clock.timestamp() - (clock.now() - lastEnd)),
      duration: durations.count === 0 ? null : {
        totalMs: durations.totalMs,
        meanMs: durations.totalMs / durations.count,
        minMs: durations.minMs,
        maxMs: durations.maxMs,
        p50Ms: durations.percentile(0.5),
        p95Ms: durations.percentile(0.95),
        p99Ms: durations.percentile(0.99),
      },
    };
  }
}

const UNITS_PER_MS = 1024;
/** Eight buckets to each doubling, up to 2^32 units: 70 minutes. */
const STEPS = 8;
const BUCKETS = 32 * STEPS + 1;

/** Counts durations, in milliseconds. */
export class Histogram {
  count = 0;
  totalMs = 0;
  minMs: number = Infinity;
  maxMs = 0;
  readonly #buckets = new Uint32Array(BUCKETS);

  /** Counts one duration. */
  add(ms: number): void {
    const steps = Math.min(STEPS * Math.log2(ms * UNITS_PER_MS + 1), BUCKETS - 1);
    // A broken clock could return a negative number or NaN, which has no logarithm.
    const index = steps > 0 ? Math.round(steps) : 0;
    this.#buckets[index] = (this.#buckets[index] ?? 0) + 1;
    this.count++;
    this.totalMs += ms;
    if (ms < this.minMs) this.minMs = ms;
    if (ms > this.maxMs) this.maxMs = ms;
  }

  /** The duration that the fraction `rank` (0 to 1) of all durations does not exceed. */
  percentile(rank: number): number {
    let left = Math.max(1, Math.ceil(rank * this.count));
    const index = this.#buckets.findIndex((count) => (left -= count) <= 0);
    const ms = index < 0 ? Infinity : (2 ** (index / STEPS) - 1) / UNITS_PER_MS;
    return Math.min(Math.max(ms, this.minMs), this.maxMs);
  }
}

/** The maximum number of tools with counters. Beyond it, the counters of the oldest idle tool go. */
const MAX_TOOLS = 10_000;

/** The layer of metrics, and its counters. */
export interface MetricsLayer extends Layer {
  /** Counts and durations of the calls, per tool. JSON. */
  snapshot(): Omit<DispatcherMetrics, "queued">;
  /** Sets the metrics back to zero. Calls that are under way stay counted as such. */
  reset(): void;
}

/**
 * A layer that counts and times calls. It only observes, so a call waits for nothing. Stage `call`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { Dispatcher } from "@plue/tools/core";
 * import { metrics } from "@plue/tools/layers";
 *
 * const registry = new ToolRegistry({
 *   tools: [{ name: "ping", description: "Answers.", execute: () => "pong" }],
 * });
 * const counters = metrics();
 * const dispatcher = new Dispatcher(registry, { layers: [counters] });
 *
 * await dispatcher.dispatch({ name: "ping" });
 * assert.equal(counters.snapshot().calls, 1);
 * ```
 *
 * @param clock Tells the time; the same as the dispatcher's.
 */
export function metrics(clock: Clock = systemClock): MetricsLayer {
  const tools: Map<string, ToolStats> = new Map();
  let unknownTool = 0;
  let since = clock.timestamp();
  return {
    name: "metrics",
    stage: "call",
    // A tool that replaces another of its id continues its counters.
    observe: ({ id }) =>
      once(tools, id, () => {
        for (const [other, { isIdle }] of tools.size < MAX_TOOLS ? [] : tools) {
          if (isIdle) {
            tools.delete(other);
            break;
          }
        }
        return new ToolStats(id);
      }),
    unresolved(_request, _options, { error }) {
      if (error.code === "unknown_tool") unknownTool++;
    },
    snapshot() {
      const called = [...tools.values()].map((stats) => stats.snapshot(clock))
        .filter(({ calls, inFlight, abandoned }) => calls + inFlight + abandoned > 0)
        .sort((a, b) => a.id < b.id ? -1 : 1);
      const sum = (count: "calls" | "failed" | "inFlight"): number =>
        called.reduce((total, tool) => total + tool[count], 0);
      return {
        since,
        calls: sum("calls") + unknownTool,
        failed: sum("failed") + unknownTool,
        inFlight: sum("inFlight"),
        unknownTool,
        tools: called,
      };
    },
    reset() {
      for (const stats of tools.values()) stats.counts = noCounts();
      unknownTool = 0;
      since = clock.timestamp();
    },
  };
}
