/** The retries of failed tasks. */

import * as check from "../../tool/mod.ts";
import { type FailureCode, isFailureCode, isListOf, type ToolResult } from "../../tool/mod.ts";
import type { TaskRecord } from "./task_records.ts";

/** The retries of the failed tasks of a tool. */
export interface TaskRetry {
  /**
   * The maximum number of runs, including the first run. Up to 100 runs that failed before the tool
   * ran (`ran: "no"`) do not count.
   *
   * @default {3}
   */
  readonly maxAttempts?: number;
  /**
   * The first delay, in milliseconds. Each further delay is twice as long, up to an hour. Up to
   * half of a delay is omitted at random. If the failure has a longer `retryAfterMs`, the task
   * waits that long, or fails if `retryAfterMs` exceeds its `ttlMs`.
   *
   * @default {1_000}
   */
  readonly initialDelayMs?: number;
  /**
   * Failures that are retried although they are not `retryable`. A tool that is not `idempotent`
   * may then do its work twice.
   *
   * @default {[]}
   */
  readonly codes?: readonly FailureCode[];
}

const MAX_DELAY_MS = 3_600_000;
const MAX_REFUSALS = 100;
const RETRY_CHECKS = {
  maxAttempts: check.wholeFrom(1),
  initialDelayMs: check.numberFrom(0, check.MAX_TIMEOUT_MS),
  codes: check.createCheck("a list of failure codes", (value) => isListOf(value, isFailureCode)),
};

export const checkRetries: check.Check<Readonly<Record<string, TaskRetry>>> = (
  action,
  value,
  place,
) => {
  const retries = Object.entries(Object(value)).map(([tool, retry]) => [
    tool,
    check.readFields(
      action,
      retry as object,
      RETRY_CHECKS,
      (field) => `${place.slice(0, -1)}/${tool}/${field}"`,
    ),
  ]);
  // Without a prototype, because a tool may have the id "constructor".
  return Object.assign(Object.create(null), Object.fromEntries(retries));
};

/** Returns a failed task with the time of its next run; `undefined` if it is not retried. */
export function retried(
  record: TaskRecord,
  result: ToolResult,
  retry: TaskRetry | undefined,
  now: number,
): TaskRecord | undefined {
  if (result.ok || retry === undefined || record.isRepeatable === false) return undefined;
  const { maxAttempts = 3, initialDelayMs = 1_000, codes = [] } = retry;
  const { code, retryable, retryAfterMs = 0, ran } = result.error;
  if (!retryable && !codes.includes(code)) return undefined;
  const isRefusal = ran === "no";
  const refusals = (record.refusals ?? 0) + Number(isRefusal);
  const runs = runsOf(record) - Number(isRefusal);
  if (runs >= maxAttempts || refusals > MAX_REFUSALS || retryAfterMs > record.ttlMs) {
    return undefined;
  }
  const longest = Math.min(initialDelayMs * 2 ** Math.min(runs + refusals - 1, 32), MAX_DELAY_MS);
  const delay = Math.max(longest * (1 - Math.random() / 2), retryAfterMs);
  return { ...record, holder: "", attempts: 0, runs, refusals, runAt: now + delay };
}

export function runsOf({ runs = 0, attempts }: TaskRecord): number {
  return runs + attempts;
}
