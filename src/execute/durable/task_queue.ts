/** Tasks that wait until a process runs them: retries, dead letters, and the state of the queue. */

import {
  type Check,
  createCheck,
  fail,
  type FailureCode,
  isFailureCode,
  isListOf,
  isObject,
  MAX_TIMEOUT_MS,
  numberFrom,
  readFields,
  type ToolCallError,
  type ToolResult,
  wholeFrom,
} from "../../tool/mod.ts";
import type { TaskRecord, TaskState } from "./task_records.ts";

/** The repetition of failed tasks of a tool. */
export interface TaskRetry {
  /**
   * The maximum number of runs, the first one included. A call that was refused before its tool ran
   * (`ran: "no"`) does not count, at most 100 times.
   *
   * @default {3}
   */
  readonly maxAttempts?: number;
  /**
   * The first delay, in milliseconds. Each further one is twice as long, up to an hour. Up to half of
   * a delay is omitted at random. A longer `retryAfterMs` of the failure counts instead, but the task
   * fails if that is longer than its `ttlMs`.
   *
   * @default {1_000}
   */
  readonly initialDelayMs?: number;
  /**
   * Failures that are retried although they are not `retryable`. If the tool is not `idempotent`, it
   * may do its work twice.
   *
   * @default {[]}
   */
  readonly codes?: readonly FailureCode[];
}

/** Options for `tasks.work()`. */
export interface WorkOptions {
  /**
   * The maximum number of tasks that this process runs at once.
   *
   * @default {16}
   */
  readonly concurrency?: number;
  /** The maximum number of tasks of a tool that this process runs at once, by the tool's id. */
  readonly toolConcurrency?: Readonly<Record<string, number>>;
  /** Ends the work: tasks that are running end first. */
  readonly signal: AbortSignal;
}

/** A task that has failed in all its attempts. */
export interface DeadTask extends Pick<TaskState, "id" | "tool" | "createdAt" | "updatedAt"> {
  readonly principal: string | undefined;
  readonly attempts: number;
  readonly error: ToolCallError | undefined;
}

/** A task that a process runs. */
export interface RunningTask extends Pick<TaskState, "id" | "tool" | "createdAt"> {
  readonly attempts: number;
  /** The name of the process. */
  readonly worker: string | undefined;
}

/** The tasks of all principals that have not ended and need no answer. */
export interface TaskQueueState {
  readonly waiting: number;
  /** The age of the oldest waiting task, in milliseconds. */
  readonly oldestMs: number;
  readonly running: readonly RunningTask[];
}

const MAX_DELAY_MS = 3_600_000;
const MAX_REFUSALS = 100;
const RETRY_CHECKS = {
  maxAttempts: wholeFrom(1),
  initialDelayMs: numberFrom(0, MAX_TIMEOUT_MS),
  codes: createCheck(
    "a list of failure codes",
    (value): value is readonly FailureCode[] => isListOf(value, isFailureCode),
  ),
};

const WORK_CHECKS = {
  concurrency: wholeFrom(1),
  toolConcurrency: createCheck(
    "an object with a whole number of at least 1 for each tool",
    (value): value is Readonly<Record<string, number>> =>
      isObject(value) &&
      Object.values(value).every((most) => Number.isInteger(most) && Number(most) > 0),
  ),
  signal: createCheck("an AbortSignal", (value) => value instanceof AbortSignal),
};

export function checkWorkOptions(options: WorkOptions): WorkOptions {
  const { signal, ...read } = readFields("work on tasks", options, WORK_CHECKS);
  if (signal === undefined) fail("work on tasks", "signal must be an AbortSignal");
  return { ...read, signal };
}

/** Checks the retries of tools by their ids. */
export const checkRetries: Check<Readonly<Record<string, TaskRetry>>> = (action, value, place) => {
  const retries = Object.entries(Object(value)).map(([tool, retry]) => [
    tool,
    readFields(
      action,
      retry as object,
      RETRY_CHECKS,
      (field) => `${place.slice(0, -1)}/${tool}/${field}"`,
    ),
  ]);
  // A tool may be called "constructor".
  return Object.assign(Object.create(null), Object.fromEntries(retries));
};

/**
 * Returns the record of a task whose failure is retried: it waits until its next run. Returns
 * `undefined` if it has ended.
 */
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

function runsOf({ runs = 0, attempts }: TaskRecord): number {
  return runs + attempts;
}

/** Returns the state of the queue by the records of all tasks that are running or waiting. */
export function queueOf(records: readonly TaskRecord[], now: number): TaskQueueState {
  const waiting = records.filter(({ holder }) => holder === "");
  const running = records.filter(({ holder }) => holder !== "");
  return {
    waiting: waiting.length,
    oldestMs: Math.max(0, ...waiting.map(({ createdAt }) => now - createdAt)),
    running: running.map((record) => {
      const { id, tool, createdAt, worker } = record;
      return { id, tool, createdAt, attempts: runsOf(record), worker };
    }),
  };
}

export function deadTaskOf(record: TaskRecord): DeadTask {
  const { id, tool, createdAt, updatedAt, principal, result } = record;
  return {
    ...{ id, tool, createdAt, updatedAt, attempts: runsOf(record) },
    principal: principal ?? undefined,
    error: result?.ok === false ? result.error : undefined,
  };
}
