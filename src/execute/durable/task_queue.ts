/** Queues of tasks: delays, retries, workers, dead tasks, and the state of the queue. */

import * as check from "../../tool/mod.ts";
import { fail, isObject, type ToolCallError, type ToolFailure, within } from "../../tool/mod.ts";
import type { DispatchContext, ToolCall } from "../request.ts";
import type { ToolDispatcher } from "../tool_dispatcher.ts";
import type { DueEntry } from "./call_store.ts";
import { Quotas } from "./quotas.ts";
import { keyOf, type TaskOwner, type TaskRecord, type TaskState } from "./task_records.ts";
import { checkRetries, retried, runsOf, type TaskRetry } from "./task_retries.ts";
import { type CallTasksOptions, TaskRuns } from "./task_runs.ts";
import { storeTask } from "./task_starts.ts";
import { MAX_DUE, PAGE, type TakenTasks, type TakeSlot, TaskWorker } from "./task_worker.ts";
import { CallTasks } from "./tasks.ts";

/** Options for {@linkcode taskQueue}. */
export interface TaskQueueOptions extends CallTasksOptions {
  /**
   * The retries of failed tasks, by the ids of their tools. Tasks of other tools are not retried.
   * `deadTasks()` returns the tasks that have failed in all their attempts.
   */
  readonly retries?: Readonly<Record<string, TaskRetry>>;
  /** The name of this process in `state()`. By default, it has none. */
  readonly name?: string;
}

/** Options for `queue.work()`. */
export interface WorkOptions {
  /** The maximum number of tasks that this process runs concurrently. @default {16} */
  readonly concurrency?: number;
  /** The maximum number of concurrent tasks of a tool in this process, by the tool's id. */
  readonly toolConcurrency?: Readonly<Record<string, number>>;
  /** Ends the work. Running tasks are completed first. */
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
  /** The number of tasks that have failed in all their attempts, up to 1,000. */
  readonly dead: number;
  /** True if there are more tasks, which were not read. */
  readonly hasMore: boolean;
}

/** The maximum delay of a task: a hundred years, in milliseconds. */
const MAX_DELAY_MS = 3_153_600_000_000;
const NONE_DUE: TakenTasks = { taken: 0 };
const WORK_CHECKS = {
  concurrency: check.wholeFrom(1),
  toolConcurrency: check.createCheck(
    "an object with a whole number of at least 1 for each tool",
    (value): value is Readonly<Record<string, number>> =>
      isObject(value) &&
      Object.values(value).every((most) => Number.isInteger(most) && Number(most) > 0),
  ),
  signal: check.createCheck("an AbortSignal", (value) => value instanceof AbortSignal),
};

/**
 * Runs calls as tasks, as {@linkcode callTasks} does, and lets several processes share the tasks of
 * one store: each process that calls `work` runs tasks of the queue.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { memoryCallStore } from "@plue/tools/calls";
 * import { taskQueue } from "@plue/tools/queue";
 *
 * const registry = new ToolRegistry({
 *   tools: [{ name: "send", description: "Sends a mail.", execute: () => "sent" }],
 * });
 * const dispatcher = new ToolDispatcher(registry);
 * const queue = taskQueue({ store: memoryCallStore(), retries: { send: { maxAttempts: 5 } } });
 *
 * const task = await queue.enqueue(dispatcher, { name: "send" });
 * assert.equal((await queue.state()).waiting, 1);
 *
 * const stop = new AbortController();
 * const work = queue.work(dispatcher, { signal: stop.signal });
 * for await (const { result } of queue.follow("id" in task ? task.id : "")) {
 *   if (result?.ok) assert.equal(result.content, "sent");
 * }
 * stop.abort();
 * await work;
 * ```
 *
 * @throws {TypeError | RangeError} If an option is invalid.
 */
export function taskQueue(options: TaskQueueOptions): TaskQueue {
  const { retries, name, ...others } = { ...options };
  const checks = { retries: checkRetries, name: check.checkText };
  const read = check.readFields("make a queue of tasks", { retries, name }, checks);
  return new TaskQueue(
    new TaskRuns(others, {
      name: read.name,
      retry: (record, result, now) => retried(record, result, read.retries?.[record.tool], now),
      async failed(records, key, tool) {
        if (read.retries?.[tool] === undefined) return;
        const now = records.now();
        const life = { dueAt: now, expiresAt: now + records.ttlMs };
        await records.store.create(markOf(key), new Uint8Array(), life);
      },
    }),
  );
}

/** Returns the key of the entry that marks a task as dead. */
function markOf(key: string): string {
  return key.replace("task", "dead");
}

/** The tasks of a store, which several processes share. Made by {@linkcode taskQueue}. */
export class TaskQueue extends CallTasks {
  readonly #runs: TaskRuns;
  readonly #worker: TaskWorker;

  /** @ignore Use {@linkcode taskQueue}. */
  constructor(runs: TaskRuns) {
    super(runs);
    this.#runs = runs;
    this.#worker = new TaskWorker(runs);
  }

  /**
   * Stores a call as a task. A process that calls `work` or `recover` runs it.
   *
   * @param dispatcher A dispatcher for the caller's tools.
   * @param context The host's additions to the call. Its signal and callbacks have no effect.
   * @param options `delayMs`: the minimum delay of the task, in milliseconds.
   */
  async enqueue(
    dispatcher: ToolDispatcher,
    call: ToolCall,
    context: DispatchContext = {},
    options: { readonly delayMs?: number } = {},
  ): Promise<TaskState | ToolFailure> {
    const checks = { delayMs: check.numberFrom(0, MAX_DELAY_MS) };
    const { delayMs = 0 } = check.readFields("enqueue a task", options, checks);
    const { records } = this.#runs;
    return await storeTask(this.#runs, dispatcher, call, context, async (task) => {
      return records.shown(await records.enqueue(task, records.now() + delayMs));
    });
  }

  /**
   * Runs waiting tasks, and tasks of processes that have died, until its signal aborts. Several
   * processes may work on the tasks of one store. If this process does not have the tool of a task,
   * the task waits for other processes.
   *
   * @param dispatcher Runs the calls. It must have all tools: callers were authorized when their
   * calls began.
   * @throws {TypeError | RangeError} If an option is invalid.
   */
  async work(dispatcher: ToolDispatcher, options: WorkOptions): Promise<void> {
    const read = check.readFields("work on tasks", options, WORK_CHECKS);
    const { concurrency = 16, toolConcurrency = {}, signal } = read;
    if (signal === undefined) fail("work on tasks", "signal must be an AbortSignal");
    const { clock, log, pollMs } = this.#runs;
    const running = new Quotas<string>(concurrency, Infinity);
    const most = new Map(Object.entries(toolConcurrency));
    let wake = (): void => {};
    const take: TakeSlot = (tool) => {
      if (signal.aborted || running.exceeded(tool, 1) !== undefined) return "full";
      if (running.usedBy(tool) >= (most.get(tool) ?? Infinity)) return undefined;
      running.add(tool, 1);
      return { end: () => (running.add(tool, -1), wake()) };
    };
    const takeDue = (limit: number, after?: DueEntry): Promise<TakenTasks> =>
      this.#worker.takeDue(dispatcher, limit, take, after).catch((error) => {
        log(error);
        return NONE_DUE;
      });
    let after: DueEntry | undefined;
    signal.addEventListener("abort", () => wake(), { once: true });
    while (!signal.aborted) {
      const ended = new Promise<void>((resolve) => wake = resolve);
      const begunAt = clock.now();
      const free = concurrency - running.total;
      const first = free === 0 ? NONE_DUE : await takeDue(Math.min(2 * free, PAGE));
      // The first tasks may be for tools that are busy, or that only other processes have.
      const next = first.last === undefined ? NONE_DUE : await takeDue(PAGE, after ?? first.last);
      after = next.last;
      if (signal.aborted) break;
      // If no task could run, waits nine times as long as the search took, to limit the load.
      const isVain = first.taken + next.taken === 0;
      const waitMs = isVain ? 9 * (clock.now() - begunAt) : 0;
      await within(clock, Math.max(after === undefined ? pollMs : 0, waitMs), ended);
    }
    while (running.total > 0) await new Promise<void>((resolve) => wake = resolve);
  }

  /** Returns the state of up to 1,000 running and waiting tasks of all principals. */
  async state(): Promise<TaskQueueState> {
    const { records, clock } = this.#runs;
    const running: RunningTask[] = [];
    let [count, waiting, oldest] = [0, 0, Infinity];
    let after: DueEntry | undefined;
    do {
      const due = await records.store.due("task", Number.MAX_SAFE_INTEGER, PAGE, after);
      after = due.at(-1);
      count += due.length;
      for (const entry of due) {
        const record = await this.#worker.read(entry);
        if (record === undefined) continue;
        const { id, tool, createdAt, worker, holder } = record;
        if (holder !== "") running.push({ id, tool, createdAt, attempts: runsOf(record), worker });
        else [waiting, oldest] = [waiting + 1, Math.min(oldest, createdAt)];
      }
    } while (after !== undefined && count < MAX_DUE);
    const dead = await records.store.due("dead", Number.MAX_SAFE_INTEGER, MAX_DUE);
    const oldestMs = Math.max(0, clock.timestamp() - oldest);
    return { waiting, oldestMs, running, dead: dead.length, hasMore: after !== undefined };
  }

  /** Returns the dead tasks of all principals, oldest first: all their attempts have failed. */
  async deadTasks(limit: number = 100): Promise<readonly DeadTask[]> {
    const { records } = this.#runs;
    const marks = await records.store.due("dead", Number.MAX_SAFE_INTEGER, limit);
    const found = await Promise.all(
      marks.map(({ key }) => records.read(key.replace("dead", "task"))),
    );
    return found.flatMap((task) =>
      task?.record.status === "failed" ? [deadTaskOf(task.record)] : []
    );
  }

  /**
   * Queues a task again that has failed in all its attempts.
   *
   * @returns The task; `undefined` if the task does not exist or has not failed.
   */
  async runAgain(id: string, owner: TaskOwner = {}): Promise<TaskState | undefined> {
    const { records } = this.#runs;
    const key = await keyOf(id, owner.principal);
    const isFailed = (record?: TaskRecord): boolean =>
      record?.status === "failed" && record.isRepeatable !== false;
    if (key === undefined || !isFailed(await this.#runs.find(id, owner))) return undefined;
    const runAt = records.now();
    // Deletes the mark before the change: later, the mark could belong to a new failure.
    const mark = await records.store.get(markOf(key));
    if (mark !== undefined) await records.store.delete(markOf(key), mark.revision);
    let isChanged = false;
    const found = await records.change(key, (record) => {
      isChanged = isFailed(record);
      if (record === undefined || !isChanged) return undefined;
      const { result: _, ...rest } = record;
      return {
        ...{ ...rest, ...records.touched(), status: "working" },
        ...{ attempts: 0, runs: 0, refusals: 0, runAt },
      };
    });
    return found && isChanged ? records.shown(found.record) : undefined;
  }
}

function deadTaskOf(record: TaskRecord): DeadTask {
  const { id, tool, createdAt, updatedAt, principal, result } = record;
  return {
    ...{ id, tool, createdAt, updatedAt, attempts: runsOf(record) },
    principal: principal ?? undefined,
    error: result?.ok === false ? result.error : undefined,
  };
}
