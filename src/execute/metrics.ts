/**
 * Counts and durations of the calls of each tool.
 *
 * @module
 */

import type { Clock, FailureCode, ToolResult } from "../tool/mod.ts";

/** How long calls took, in milliseconds. The percentiles are right to within 7 %, or half a microsecond. */
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
  /** Calls that have ended. */
  readonly calls: number;
  /** Calls that succeeded. */
  readonly succeeded: number;
  /** Calls that failed. */
  readonly failed: number;
  /** Calls that ended because they wait for answers. They neither succeeded nor failed. */
  readonly suspended: number;
  /** Failed calls by code; codes that did not occur are absent. */
  readonly errors: { readonly [Code in FailureCode]?: number };
  /** Calls that were answered with the result of an earlier one. Part of `calls`. */
  readonly replayed: number;
  /** Calls that named the tool by one of its aliases. Counted when they begin. */
  readonly aliased: number;
  /** Calls that have begun and not ended. */
  readonly inFlight: number;
  /** Tools that ignored their signal and still run, though their calls have ended. */
  readonly abandoned: number;
  /** When the last call ended: milliseconds since 1970; `null` before that. */
  readonly lastRun: number | null;
  /** Without replayed calls; `null` before another has ended. */
  readonly duration: DurationMetrics | null;
}

/** Counts and durations of a dispatcher's calls. JSON. */
export interface DispatcherMetrics {
  /** Since when: milliseconds since 1970. */
  readonly since: number;
  /** Calls that have ended, with those of unknown tools. */
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
  /** By the clock's `now`: a wall clock need not be asked at each call. */
  lastEnd: number;
  readonly errors: Map<FailureCode, number>;
  readonly durations: Histogram;
}

function noCounts(): Counts {
  return {
    calls: 0,
    failed: 0,
    suspended: 0,
    replayed: 0,
    aliased: 0,
    lastEnd: 0,
    errors: new Map(),
    durations: new Histogram(),
  };
}

export class ToolStats {
  readonly id: string;
  inFlight = 0;
  abandoned = 0;
  #counts: Counts = noCounts();

  constructor(id: string) {
    this.id = id;
  }

  /** Counts a call that ended at `now`. */
  record(result: ToolResult, now: number): void {
    const counts = this.#counts;
    counts.calls++;
    counts.lastEnd = now;
    // A replayed result says nothing of how long the tool takes.
    if (result.replayed === true) counts.replayed++;
    else counts.durations.add(result.durationMs);
    if (result.ok) return;
    if (result.error.code === "input_required") {
      counts.suspended++;
      return;
    }
    counts.failed++;
    const { code } = result.error;
    counts.errors.set(code, (counts.errors.get(code) ?? 0) + 1);
  }

  /** Counts a call by an alias. */
  countAlias(): void {
    this.#counts.aliased++;
  }

  /** No call is under way, and no abandoned tool runs. */
  get isIdle(): boolean {
    return this.inFlight + this.abandoned === 0;
  }

  /** Sets everything back to zero but the calls under way. */
  reset(): void {
    this.#counts = noCounts();
  }

  snapshot(clock: Clock): ToolMetrics {
    const { calls, failed, suspended, errors, replayed, aliased, lastEnd, durations } =
      this.#counts;
    return {
      id: this.id,
      calls,
      succeeded: calls - failed - suspended,
      failed,
      suspended,
      errors: Object.fromEntries(errors),
      replayed,
      aliased,
      inFlight: this.inFlight,
      abandoned: this.abandoned,
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

/** Microseconds, nearly: 2^10 to the millisecond keeps the arithmetic in integers. */
const UNITS_PER_MS = 1024;
const MAX_UNITS = 0xffff_ffff;
/** Eight buckets to the octave. */
const STEPS = 8;
const STEP_BITS = 3;
/** Values 0 to 7 have a bucket each; then the octaves from 2^3 to 2^31. */
const BUCKETS = STEPS + (32 - STEP_BITS) * STEPS;

/** Counts durations, in milliseconds. */
export class Histogram {
  count = 0;
  totalMs = 0;
  minMs: number = Infinity;
  maxMs = 0;
  readonly #buckets = new Uint32Array(BUCKETS);

  /** Counts one duration. */
  add(ms: number): void {
    const index = bucketOf(ms);
    this.#buckets[index] = (this.#buckets[index] ?? 0) + 1;
    this.count++;
    this.totalMs += ms;
    if (ms < this.minMs) this.minMs = ms;
    if (ms > this.maxMs) this.maxMs = ms;
  }

  /** The duration that the share `rank` (0 to 1) of all durations does not exceed. */
  percentile(rank: number): number {
    const wanted = Math.max(1, Math.ceil(rank * this.count));
    let seen = 0;
    for (let index = 0; index < BUCKETS; index++) {
      seen += this.#buckets[index] ?? 0;
      if (seen >= wanted) return Math.min(Math.max(middleOf(index), this.minMs), this.maxMs);
    }
    return this.maxMs;
  }
}

function bucketOf(ms: number): number {
  // The comparison is false for NaN too, which a broken clock could give.
  const units = ms > 0 ? Math.min(ms * UNITS_PER_MS, MAX_UNITS) >>> 0 : 0;
  if (units < STEPS) return units;
  const octave = 31 - Math.clz32(units);
  return (octave - STEP_BITS + 1) * STEPS + ((units >>> (octave - STEP_BITS)) & (STEPS - 1));
}

/** The middle of a bucket, in milliseconds. */
function middleOf(index: number): number {
  if (index < STEPS) return (index + 0.5) / UNITS_PER_MS;
  const octave = (index >>> STEP_BITS) + STEP_BITS - 1;
  const width = 2 ** (octave - STEP_BITS);
  return (2 ** octave + ((index & (STEPS - 1)) + 0.5) * width) / UNITS_PER_MS;
}
