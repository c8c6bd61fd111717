/** Counts and times the calls of each tool. */

import { type Clock, type FailureCode, once, systemClock, type ToolResult } from "../tool/mod.ts";
import type { Call, CallObserver, Layer } from "./layer.ts";

/** Durations of calls, in milliseconds. Percentiles are within 7 %, or half a microsecond. */
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
  /** Calls that returned the stored result of an earlier call. `calls` includes them. */
  readonly replayed: number;
  /** Calls that named the tool by one of its aliases. They are counted when they begin. */
  readonly aliased: number;
  /** Running calls. */
  readonly inFlight: number;
  /** Tools that ignored their signal and still run, though their calls have ended. */
  readonly abandoned: number;
  /** The end of the last completed call, in milliseconds since 1970; `null` before the first. */
  readonly lastRun: number | null;
  /** The durations of all but the replayed calls; `null` if no such call has ended. */
  readonly duration: DurationMetrics | null;
}

/** Counts and durations of a dispatcher's calls. JSON. */
export interface DispatcherMetrics {
  /** The time when counting began, in milliseconds since 1970. */
  readonly since: number;
  /** Completed calls, including calls of unknown tools. */
  readonly calls: number;
  readonly failed: number;
  readonly inFlight: number;
  /** Calls that wait for a slot. */
  readonly queued: number;
  /** Calls that named no tool of their caller's toolset. */
  readonly unknownTool: number;
  /** The metrics of each tool, in code-unit order of id. */
  readonly tools: readonly ToolMetrics[];
}

class ToolStats implements CallObserver {
  readonly id: string;
  readonly counts = { calls: 0, failed: 0, suspended: 0, replayed: 0, aliased: 0 };
  inFlight = 0;
  abandoned = 0;
  /** By the clock's `now`, so that the wall clock is not read for each call. */
  #lastEnd = 0;
  readonly #errors: Map<FailureCode, number> = new Map();
  readonly #durations = new Histogram();

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
    this.#lastEnd = now;
    // The duration of a replayed call is not the duration of its tool.
    if (result.replayed === true) counts.replayed++;
    else this.#durations.add(result.durationMs);
    if (result.ok) return;
    const { code } = result.error;
    if (code === "input_required") {
      counts.suspended++;
      return;
    }
    counts.failed++;
    this.#errors.set(code, (this.#errors.get(code) ?? 0) + 1);
  }

  toolEnded(): void {
    this.abandoned--;
  }

  snapshot(clock: Clock): ToolMetrics {
    const { id, counts, inFlight, abandoned } = this;
    const { calls, failed, suspended } = counts;
    const durations = this.#durations;
    return {
      id,
      ...counts,
      succeeded: calls - failed - suspended,
      errors: Object.fromEntries(this.#errors),
      inFlight,
      abandoned,
      lastRun: calls === 0 ? null : Math.round(clock.timestamp() - (clock.now() - this.#lastEnd)),
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
/** Eight buckets for each doubling of the duration, up to 2^32 units: 70 minutes. */
const STEPS = 8;
const BUCKETS = 32 * STEPS + 1;

export class Histogram {
  count = 0;
  totalMs = 0;
  minMs: number = Infinity;
  maxMs = 0;
  readonly #buckets = new Uint32Array(BUCKETS);

  add(ms: number): void {
    const steps = Math.min(STEPS * Math.log2(ms * UNITS_PER_MS + 1), BUCKETS - 1);
    // With a broken clock, the duration could be negative, and the logarithm would be NaN.
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

/** The maximum number of tools with counters. Above it, the oldest idle tool loses its counters. */
const MAX_TOOLS = 10_000;

/** The layer of metrics, and its counters. */
export interface MetricsLayer extends Layer {
  /** Counts and durations of the calls, per tool. JSON. */
  snapshot(): Omit<DispatcherMetrics, "queued">;
}

/** A layer that counts and times calls, and never delays a call. Stage `call`. */
export function metrics(clock: Clock = systemClock): MetricsLayer {
  const tools: Map<string, ToolStats> = new Map();
  let unknownTool = 0;
  const since = clock.timestamp();
  return {
    name: "metrics",
    stage: "call",
    // If a tool is replaced by another tool with the same id, the counters continue.
    observe: ({ id }) =>
      once(tools, id, () => {
        for (const [other, { inFlight, abandoned }] of tools.size < MAX_TOOLS ? [] : tools) {
          if (inFlight + abandoned > 0) continue;
          tools.delete(other);
          break;
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
  };
}
