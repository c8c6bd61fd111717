/**
 * Counts the calls of one tool while they happen.
 *
 * @module
 */

import type { Clock, FailureCode, ToolResult } from "../tool/mod.ts";
import { Histogram } from "./histogram.ts";
import type { ToolMetrics } from "./metrics.ts";

/** The counters of one tool. */
export class ToolStats {
  readonly id: string;
  inFlight = 0;
  abandoned = 0;
  #durations: Histogram | undefined;
  #calls = 0;
  #failed = 0;
  #replayed = 0;
  #errors: Map<FailureCode, number> | undefined;
  /** By the clock's `now`: a wall clock need not be asked at each call. */
  #lastEnd = 0;

  constructor(id: string) {
    this.id = id;
  }

  /** Counts a call that ended at `now`. */
  record(result: ToolResult, now: number): void {
    this.#calls++;
    this.#lastEnd = now;
    // A result that was kept costs nothing, and says nothing of how long the tool takes.
    if (result.replayed === true) this.#replayed++;
    else (this.#durations ??= new Histogram()).add(result.durationMs);
    if (result.ok) return;
    const errors = this.#errors ??= new Map();
    const { code } = result.error;
    this.#failed++;
    errors.set(code, (errors.get(code) ?? 0) + 1);
  }

  /** Nothing is under way. */
  get isIdle(): boolean {
    return this.inFlight + this.abandoned === 0;
  }

  /** Counts the ended calls of another, too. */
  absorb(other: ToolStats): void {
    this.#calls += other.#calls;
    this.#failed += other.#failed;
    this.#replayed += other.#replayed;
    this.#lastEnd = Math.max(this.#lastEnd, other.#lastEnd);
    if (other.#durations !== undefined) {
      (this.#durations ??= new Histogram()).absorb(other.#durations);
    }
    const errors = this.#errors ??= new Map();
    for (const [code, count] of other.#errors ?? []) {
      errors.set(code, (errors.get(code) ?? 0) + count);
    }
  }

  /** Forgets what has ended, and keeps what is under way. */
  reset(): void {
    this.#durations = this.#errors = undefined;
    this.#calls = this.#failed = this.#replayed = 0;
  }

  snapshot(clock: Clock): ToolMetrics {
    const durations = this.#durations;
    const calls = this.#calls;
    return {
      id: this.id,
      calls,
      succeeded: calls - this.#failed,
      failed: this.#failed,
      errors: Object.fromEntries(this.#errors ?? []),
      replayed: this.#replayed,
      inFlight: this.inFlight,
      abandoned: this.abandoned,
      lastRun: calls === 0 ? null : Math.round(clock.timestamp() - (clock.now() - this.#lastEnd)),
      duration: durations === undefined ? null : {
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
