/**
 * What the calls of each tool have come to.
 *
 * @module
 */

import type { FailureCode } from "../tool/mod.ts";

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

/** What the calls of one tool have come to. */
export interface ToolMetrics {
  /** The tool's id. */
  readonly id: string;
  /** Calls that have ended. */
  readonly calls: number;
  /** Calls that succeeded. */
  readonly succeeded: number;
  /** Calls that failed. */
  readonly failed: number;
  /** Failed calls by code; codes that did not occur are absent. */
  readonly errors: { readonly [Code in FailureCode]?: number };
  /** Calls that were answered with the result of an earlier one. Part of `calls`. */
  readonly replayed: number;
  /** Calls that have begun and not ended. */
  readonly inFlight: number;
  /** Tools that ignored their signal and still run, though their calls have ended. */
  readonly abandoned: number;
  /** When the last call ended: milliseconds since 1970; `null` before that. */
  readonly lastRun: number | null;
  /** Without replayed calls; `null` before another has ended. */
  readonly duration: DurationMetrics | null;
}

/** What a dispatcher's calls have come to. JSON. */
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
