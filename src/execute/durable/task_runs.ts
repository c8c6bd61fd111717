/** The tasks that run in this process, and the options of tasks. */

import {
  anyValue,
  callHook,
  type Check,
  checkFunction,
  type Clock,
  type HookLog,
  isSuspended,
  noop,
  numberFrom,
  readFields,
  systemClock,
  type ToolFailure,
  type ToolResult,
} from "../../tool/mod.ts";
import { failure } from "../failures.ts";
import type { DispatchContext } from "../request.ts";
import { type CallStore, checkStore } from "./call_store.ts";
import { Quotas } from "./quotas.ts";
import type { Lease } from "./records.ts";
import { type Run, storeProgress, TaskEngine } from "./task_engine.ts";
import * as tasks from "./task_records.ts";
import type { TaskRecord } from "./task_records.ts";

/** Options for {@linkcode callTasks}. */
export interface CallTasksOptions {
  /** The store of the tasks. */
  readonly store: CallStore;
  /** The lifetime of a task after its last change, in milliseconds. @default {86_400_000} */
  readonly ttlMs?: number;
  /**
   * The duration of the lease on a running task, in milliseconds. Without a renewal for this time,
   * the task's process counts as dead.
   *
   * @default {30_000}
   */
  readonly leaseMs?: number;
  /** The polling interval for clients and `follow`, in milliseconds. @default {1_000} */
  readonly pollMs?: number;
  /**
   * The maximum number of running tasks of one principal in this process. Further tasks fail with
   * `overloaded`.
   *
   * @default {64}
   */
  readonly maxRunning?: number;
  /**
   * Returns the context of a call that `recover` resumes, because only the member `tenant` of a
   * context is stored. Called only if the tool declares a context. If it returns no context within
   * `leaseMs`, the call fails with `unavailable`.
   */
  callContext?(call: RecoveredCall): unknown;
  /** Receives errors of the store during a task, and errors of `callContext`. */
  onError?(error: unknown): void;
  readonly clock?: Clock;
}

/** A call that is resumed. */
export interface RecoveredCall extends Pick<DispatchContext, "sessionId" | "messageId"> {
  /** The tool's id. */
  readonly tool: string;
  readonly principal: string | undefined;
  /** The member `tenant` of the context with which the call began. */
  readonly tenant?: unknown;
}

/** The additions of a queue to the tasks of a process. */
export interface TaskPolicy {
  readonly name?: string | undefined;
  /** Returns the record of a failed task that will run again; `undefined` if the task has ended. */
  retry(record: TaskRecord, result: ToolResult, now: number): TaskRecord | undefined;
  /** Called after a failure was stored. */
  failed(records: tasks.TaskRecords, key: string, tool: string): Promise<void>;
}

export type Pending = Pick<TaskRecord, "ticket" | "questions" | "answers">;

export const NOT_RUN = { ran: "no" } as const;
/** The maximum number of runs of a task whose processes die. */
const MAX_ATTEMPTS = 3;
/** The number of attempts to store the end of a task. */
const MAX_ENDINGS = 10;
const ACTION = "make tasks";
const CHECKS = {
  ...{ store: anyValue, clock: anyValue as Check<Clock>, onError: checkFunction },
  ...{ ttlMs: numberFrom(1), leaseMs: numberFrom(1), pollMs: numberFrom(1) },
  maxRunning: numberFrom(1),
  callContext: checkFunction as Check<NonNullable<CallTasksOptions["callContext"]>>,
};

export class TaskRuns {
  readonly records: tasks.TaskRecords;
  readonly engine: TaskEngine<TaskRecord>;
  readonly clock: Clock;
  readonly pollMs: number;
  readonly log: HookLog;
  readonly callContext: NonNullable<CallTasksOptions["callContext"]>;
  readonly #policy: TaskPolicy | undefined;
  /** The number of running tasks of each principal. */
  readonly #running: Quotas<string>;
  readonly #runs: Map<string, Run> = new Map();
  /** Promises that settle when the results of running tasks are stored. */
  readonly #kept: Set<Promise<unknown>> = new Set();

  /** @throws {TypeError | RangeError} If an option is invalid. */
  constructor(options: CallTasksOptions, policy?: TaskPolicy) {
    checkStore(ACTION, options?.store);
    const fields = readFields(ACTION, { ...options }, CHECKS);
    const { ttlMs = 86_400_000, leaseMs = 30_000, pollMs = 1_000, ...read } = fields;
    this.clock = read.clock ?? systemClock;
    const times = { ttlMs, leaseMs, pollMs, name: policy?.name };
    this.records = new tasks.TaskRecords(options.store, this.clock, times);
    this.pollMs = pollMs;
    this.log = (error) => callHook(() => options.onError?.(error), noop);
    this.callContext = read.callContext ?? noop;
    this.#policy = policy;
    this.#running = new Quotas(Infinity, read.maxRunning ?? 64);
    this.engine = new TaskEngine({
      records: this.records,
      maxAttempts: MAX_ATTEMPTS,
      log: this.log,
      retryMs: leaseMs / 6,
      isOver: (tries) => tries >= MAX_ENDINGS,
      end: (record, result) => this.ended(record, result.ok ? "completed" : "failed", result),
    });
  }

  /** Returns the record, with a failure if its process has died and the tool must not run again. */
  judge(record: TaskRecord): TaskRecord {
    return this.engine.judge(record, record.tool, record.idempotent);
  }

  /** Returns the current record of a task. Stores a failure if `judge` returns one. */
  async read(key: string): Promise<TaskRecord | undefined> {
    const found = await this.records.read(key);
    if (found === undefined || this.judge(found.record) === found.record) return found?.record;
    const { record } = await this.records.change(key, (now) => {
      const judged = now && this.judge(now);
      return judged === now ? undefined : judged;
    }) ?? {};
    if (record?.status === "failed") await this.failed(key, record.tool);
    return record;
  }

  async find(id: string, { principal, toolset }: tasks.TaskOwner): Promise<TaskRecord | undefined> {
    const key = await tasks.keyOf(id, principal);
    const record = key === undefined ? undefined : await this.read(key);
    return record && tasks.isSeen(record, toolset) ? record : undefined;
  }

  async failed(key: string, tool: string): Promise<void> {
    await this.#policy?.failed(this.records, key, tool).catch(this.log);
  }

  /** Returns a record with its final state, and without a lease. */
  ended(record: TaskRecord, status: tasks.TaskState["status"], result: ToolResult): TaskRecord {
    const { questions: _questions, ticket: _ticket, answers: _answers, runAt: _, ...rest } = record;
    return { ...rest, ...this.records.touched(), holder: "", status, result };
  }

  isFull(owner: string): boolean {
    return this.#running.exceeded(owner, 1) !== undefined;
  }

  checkRunning(owner: string, toolId: string): ToolFailure | undefined {
    if (!this.isFull(owner)) return undefined;
    const count = this.#running.usedBy(owner);
    const why = `${count} tasks of its caller are running; try again later`;
    return failure("overloaded", toolId, why, NOT_RUN);
  }

  /** Counts a task as running while its record is written. */
  async counted<T>(owner: string, write: () => Promise<T>): Promise<T> {
    this.#running.add(owner, 1);
    try {
      return await write();
    } finally {
      this.#running.add(owner, -1);
    }
  }

  /** Stores the record of a call, and updates the record while the call runs. */
  async hold(task: tasks.NewTask, begin: (record: TaskRecord) => Run): Promise<tasks.TaskState> {
    return await this.counted(task.owner, async () => {
      const lease = await this.records.make(task);
      this.keep(lease, begin(lease.record));
      return this.records.shown(lease.record);
    });
  }

  /**
   * Updates the record of a run until the run has ended.
   *
   * @param pending The questions that the run has answers to, and their ticket.
   */
  keep(lease: Lease<TaskRecord>, run: Run, pending?: Pending, ended = (): void => {}): void {
    const { key, record: { tool } } = lease;
    const [, owner = ""] = key.split(".");
    run.detach();
    this.#runs.set(key, run);
    this.#running.add(owner, 1);
    storeProgress(lease, run, this);
    let isDead = false;
    const end = (record: TaskRecord, result: ToolResult): TaskRecord => {
      const last = this.#end(record, result, run, pending);
      isDead = last.status === "failed";
      return last;
    };
    const kept = this.engine.keep(lease, tool, run, end)
      .then((isStored) => isStored && isDead ? this.failed(key, tool) : undefined)
      .catch(this.log)
      .then(() => {
        this.#kept.delete(kept);
        this.#runs.delete(key);
        this.#running.add(owner, -1);
        ended();
      });
    this.#kept.add(kept);
  }

  /** Returns the record of a run that has ended: with its result, or with its questions. */
  #end(record: TaskRecord, result: ToolResult, run: Run, pending?: Pending): TaskRecord {
    const now = { ...record, ...run.emitted };
    // If nothing has run, the ticket is still valid, and the task waits for answers again.
    const waits = pending && !result.ok && result.error.retryable && result.error.ran === "no";
    if (!isSuspended(result) && !waits) {
      const next = this.#policy?.retry(now, result, this.records.now());
      if (next !== undefined) return { ...next, ...this.records.touched() };
      return this.ended(now, result.ok ? "completed" : "failed", result);
    }
    const { questions, ticket, answers }: Pending = isSuspended(result) ? result : pending ?? {};
    return {
      ...now,
      ...this.records.touched(),
      ...{ holder: "", status: "input_required" },
      ...(questions && { questions }),
      ...(ticket && { ticket }),
      ...(answers && { answers }),
    };
  }

  /** Aborts the run of a task, if it is in this process. */
  abort(key: string): void {
    this.#runs.get(key)?.abort();
  }

  /** Resolves when no task runs in this process, and their results are stored. */
  async idle(): Promise<void> {
    while (this.#kept.size > 0) await Promise.race(this.#kept);
  }
}
