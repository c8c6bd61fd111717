/** Tasks: calls that outlive their request, and can be read by id. */

import {
  type Answers,
  fail,
  type ToolFailure,
  type ToolResult,
  wholeFrom,
} from "../../tool/mod.ts";
import type { DispatchContext, ToolCall } from "../request.ts";
import type { ToolDispatcher } from "../tool_dispatcher.ts";
import { ownerDigest } from "./records.ts";
import {
  hasEnded,
  isSeen,
  keyOf,
  type TaskOwner,
  type TaskRecord,
  type TaskState,
} from "./task_records.ts";
import { failure, type FailureDetails } from "../failures.ts";
import { type CallTasksOptions, NOT_RUN, TaskRuns } from "./task_runs.ts";
import { answerTask, type NamedCall, runOrStart, startTask } from "./task_starts.ts";
import { TaskWorker } from "./task_worker.ts";

/** Options of a list. */
export interface TaskListOptions extends TaskOwner {
  /** The maximum number of tasks. @default {50} */
  readonly limit?: number;
  /** The `nextCursor` of the previous page. */
  readonly cursor?: string;
}

/** A part of the tasks of a principal, the newest first. */
export interface TaskList {
  readonly tasks: readonly TaskState[];
  /** The cursor of the next page, if there is one. */
  readonly nextCursor?: string;
}

/** The maximum size of a page's records, in bytes. */
const MAX_PAGE_BYTES = 4_194_304;
const CURSOR = /^[\w-]{1,64}$/;

/**
 * Runs calls as tasks. A task continues after the end of its request, and writes its progress into
 * its record. It can be read, answered and cancelled, and is stored for some time after its end.
 * Only the principal that started it can find it.
 *
 * A process holds and renews leases on the tasks that it runs. If the process dies, its tasks fail
 * with `unavailable`; but the next process that calls `recover` runs tasks of `idempotent` tools
 * again. `taskQueue` of `@plue/tools/queue` adds delays, retries and workers.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { callTasks, memoryCallStore } from "@plue/tools/calls";
 *
 * const registry = new ToolRegistry({
 *   tools: [{ name: "build", description: "Builds it.", execute: () => "built" }],
 * });
 * const dispatcher = new ToolDispatcher(registry);
 * const tasks = callTasks({ store: memoryCallStore() });
 *
 * const task = await tasks.start(dispatcher, { name: "build" }, { principal: "ann" });
 * assert.ok("id" in task);
 * for await (const { status, result } of tasks.follow(task.id, { principal: "ann" })) {
 *   if (status === "completed") assert.equal(result?.ok && result.content, "built");
 * }
 * assert.equal(await tasks.get(task.id, { principal: "bob" }), undefined);
 * ```
 *
 * @throws {TypeError | RangeError} If an option is invalid.
 */
export function callTasks(options: CallTasksOptions): CallTasks {
  return new CallTasks(new TaskRuns(options));
}

/** The tasks of a store. Made by {@linkcode callTasks}. */
export class CallTasks {
  readonly #runs: TaskRuns;

  /** @ignore Use {@linkcode callTasks}. */
  constructor(runs: TaskRuns) {
    this.#runs = runs;
  }

  /**
   * Starts a call as a task in this process.
   *
   * @param dispatcher A dispatcher for the caller's tools, which runs the call.
   * @param context The host's additions to the call. The task outlives its signal and callbacks.
   */
  async start(
    dispatcher: ToolDispatcher,
    call: ToolCall,
    context: DispatchContext = {},
  ): Promise<TaskState | ToolFailure> {
    return await startTask(this.#runs, dispatcher, call, context);
  }

  /**
   * Runs a call, which becomes a task if it takes longer than `afterMs` milliseconds. The
   * `execution` of a tool may require or forbid tasks.
   *
   * @param call A call, or a resumed call that is repeated with its ticket.
   */
  async run(
    dispatcher: ToolDispatcher,
    call: NamedCall,
    context: DispatchContext,
    { afterMs }: { readonly afterMs: number },
  ): Promise<ToolResult | TaskState> {
    return await runOrStart(this.#runs, dispatcher, call, context, afterMs);
  }

  /** Returns the task with an id, or `undefined` if the principal has none. */
  async get(id: string, owner: TaskOwner = {}): Promise<TaskState | undefined> {
    const record = await this.#runs.find(id, owner);
    return record && this.#runs.records.shown(record);
  }

  /**
   * Cancels a task: its signal aborts, in any process. A completed task stays unchanged.
   *
   * @returns The task; `undefined` if the principal has no task with that id.
   */
  async cancel(id: string, owner: TaskOwner = {}): Promise<TaskState | undefined> {
    const runs = this.#runs;
    const key = await keyOf(id, owner.principal);
    if (key === undefined || await runs.find(id, owner) === undefined) return undefined;
    const found = await runs.records.change(key, (before) => {
      if (before === undefined || hasEnded(before)) return undefined;
      const hasBegun = before.holder !== "" || before.attempts > 0;
      const ran: FailureDetails = hasBegun
        ? { ran: "unknown", retryable: before.idempotent }
        : NOT_RUN;
      const result = failure("aborted", before.tool, "the task was cancelled", ran);
      return runs.ended(before, "cancelled", result);
    });
    runs.abort(key);
    return found && runs.records.shown(found.record);
  }

  /**
   * Answers questions of a task, which then resumes in this process. While answers are missing, the
   * task stores the given answers and waits for the others.
   *
   * @returns The task; the reason for rejected answers; or `undefined` if the principal has no such
   * task.
   */
  async answer(
    dispatcher: ToolDispatcher,
    id: string,
    answers: Answers,
    context: DispatchContext = {},
  ): Promise<TaskState | ToolFailure | undefined> {
    return await answerTask(this.#runs, dispatcher, id, answers, context);
  }

  /**
   * Returns the tasks of a principal, the newest first. A page ends early if its tasks are large,
   * and may be empty if their tools are hidden.
   *
   * @throws {TypeError | RangeError} If the limit is not a positive integer, or the cursor is
   * invalid.
   */
  async list({ principal, toolset, limit = 50, cursor }: TaskListOptions = {}): Promise<TaskList> {
    const action = "list tasks";
    wholeFrom(1)(action, limit, "limit");
    if (cursor !== undefined && !CURSOR.test(cursor)) {
      fail(action, "the cursor must be the nextCursor of a page");
    }
    const { records } = this.#runs;
    const owned = `task.${await ownerDigest(principal)}`;
    const after = cursor === undefined ? undefined : `${owned}.${cursor}`;
    const tasks: TaskState[] = [];
    let bytes = 0;
    let last: string | undefined;
    for await (const { key, value } of records.store.list(owned, after)) {
      bytes += value.byteLength;
      if (last !== undefined && (tasks.length === limit || bytes > MAX_PAGE_BYTES)) {
        return { tasks, nextCursor: last };
      }
      const record = records.decode(value, key);
      last = record.id;
      if (isSeen(record, toolset)) tasks.push(records.shown(this.#runs.judge(record)));
    }
    return { tasks };
  }

  /** Yields the task now and after each change until its end; nothing for an unknown task. */
  async *follow(
    id: string,
    { principal, toolset, signal }: TaskOwner & { readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<TaskState, void> {
    const runs = this.#runs;
    const key = await keyOf(id, principal);
    if (key === undefined) return;
    let last = "";
    let revision: number | undefined;
    let known: TaskRecord | undefined;
    while (signal?.aborted !== true) {
      const change = runs.records.nextChange(key, signal);
      try {
        const stored = await runs.records.store.get(key);
        // A large record is parsed only if the record has changed, or its process has died.
        if (!known || stored?.revision !== revision || runs.judge(known) !== known) {
          const record = await runs.read(key);
          if (record === undefined || !isSeen(record, toolset)) return;
          const state = runs.records.shown(record);
          const text = JSON.stringify(state);
          if (text !== last) yield state;
          last = text;
          if (hasEnded(record)) return;
          revision = stored?.revision;
          known = { ...record, arguments: null, questions: [] };
        }
        if (!isSeen(known, toolset)) return;
        await change.came;
      } finally {
        change.cancel();
      }
    }
  }

  /**
   * Runs waiting tasks. A task whose process has died runs again if its tool is `idempotent`, and
   * fails otherwise. Call this function when the program starts, and at intervals.
   *
   * @param dispatcher Runs the calls. It must have all tools: callers were authorized when their
   * calls began.
   * @returns The number of tasks that run now.
   */
  async recover(dispatcher: ToolDispatcher): Promise<number> {
    return await new TaskWorker(this.#runs).recover(dispatcher);
  }

  /** Resolves when no task runs in this process, and their results are stored. */
  async idle(): Promise<void> {
    await this.#runs.idle();
  }
}
