/** Tasks: calls that outlive their request, and are read by their ids. */

import {
  type Answers,
  anyValue,
  callHook,
  type Check,
  checkFunction,
  checkText,
  clip,
  type Clock,
  fail,
  isSuspended,
  noop,
  numberFrom,
  readFields,
  systemClock,
  TIME_OVER,
  type Tool,
  type ToolFailure,
  ToolResult,
  wholeFrom,
  within,
} from "../../tool/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import type { ToolDispatcher } from "../tool_dispatcher.ts";
import { failure, unknownTool } from "../failures.ts";
import { readJson } from "../json_value.ts";
import type { DispatchContext, ResumedCall, ToolCall } from "../request.ts";
import { type CallStore, checkStore } from "./call_store.ts";
import {
  hasEnded,
  isSeen,
  keyOf,
  type NewTask,
  type TaskRecord,
  TaskRecords,
  type TaskState,
} from "./task_records.ts";
import { contextDigest, type Lease, ownerDigest } from "./records.ts";
import { beginRun, type Run, TaskEngine } from "./task_engine.ts";
import { Quotas } from "./quotas.ts";
import {
  checkRetries,
  checkWorkOptions,
  type DeadTask,
  deadTaskOf,
  queueOf,
  retried,
  type TaskQueueState,
  type TaskRetry,
  type WorkOptions,
} from "./task_queue.ts";
import { TaskWorker } from "./task_worker.ts";
import { tooLarge, wrongAnswers } from "./tickets.ts";

const NOT_RUN = { ran: "no" } as const;

/** Options for {@linkcode callTasks}. */
export interface CallTasksOptions {
  /** The store of the tasks. */
  readonly store: CallStore;
  /**
   * The lifetime of a task after its last change, in milliseconds.
   *
   * @default {86_400_000}
   */
  readonly ttlMs?: number;
  /**
   * The duration of the lease on a running task, in milliseconds. Without a renewal for this time,
   * the task's process counts as dead.
   *
   * @default {30_000}
   */
  readonly leaseMs?: number;
  /**
   * The polling interval for clients and `follow`, in milliseconds.
   *
   * @default {1_000}
   */
  readonly pollMs?: number;
  /**
   * The maximum number of running tasks of one principal in this process. Further ones fail with
   * `overloaded`.
   *
   * @default {64}
   */
  readonly maxRunning?: number;
  /**
   * The retries of failed tasks, by the ids of their tools. The other tools are not retried. A task
   * that has failed in all its attempts is one of `deadTasks()`.
   */
  readonly retries?: Readonly<Record<string, TaskRetry>>;
  /** The name of this process in `queue()`. By default, it has none. */
  readonly name?: string;
  /**
   * Returns the context of a call that `recover` resumes, because contexts are not stored. Called
   * only if the tool declares a context. If there is none within `leaseMs`, the call fails with
   * `unavailable`.
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
}

/** The principal of the tasks. */
export interface TaskOwner {
  readonly principal?: string | undefined;
  /**
   * The caller's current toolset. A task whose tool is neither in it nor bridged by it is not
   * found. By default all tasks of the principal are found.
   */
  readonly toolset?: Toolset | undefined;
}

/** Options of a list. */
export interface TaskListOptions extends TaskOwner {
  /**
   * The maximum number of tasks.
   *
   * @default {50}
   */
  readonly limit?: number;
  /** The `nextCursor` of the list before. */
  readonly cursor?: string;
}

/** A part of the tasks of a principal, the newest first. */
export interface TaskList {
  readonly tasks: readonly TaskState[];
  /** The cursor of the next page, if there is one. */
  readonly nextCursor?: string;
}

type Asked = Pick<TaskRecord, "ticket" | "questions" | "answers">;

/** The maximum number of starts of a tool whose processes die. */
const MAX_ATTEMPTS = 3;
/** The number of attempts to store the end of a task. */
const MAX_ENDINGS = 10;
/** The maximum size of a page's records, in bytes. */
const MAX_PAGE_BYTES = 4_194_304;
/** The maximum delay of a task: a hundred years, in milliseconds. */
const MAX_DELAY_MS = 3_153_600_000_000;
const CURSOR = /^[\w-]{1,64}$/;
const ACTION = "make tasks";

const CHECKS = {
  ...{ store: anyValue, clock: anyValue as Check<Clock>, onError: checkFunction },
  ...{ ttlMs: numberFrom(1), leaseMs: numberFrom(1), pollMs: numberFrom(1) },
  ...{ maxRunning: numberFrom(1), retries: checkRetries, name: checkText },
  callContext: checkFunction as Check<NonNullable<CallTasksOptions["callContext"]>>,
};

/**
 * Runs calls as tasks. A task continues after the end of its request, and writes its progress into
 * its record. It can be read, answered and cancelled, and is stored for some time after its end.
 * Only the principal that started it can find it.
 *
 * A process holds and renews leases on the tasks that it runs. If it dies, they are `failed` with
 * `unavailable`; tasks of an `idempotent` tool are resumed by the next process that calls
 * `recover`.
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
  return new CallTasks(options);
}

/** The tasks of a store. Made by {@linkcode callTasks}. */
export class CallTasks {
  readonly #records: TaskRecords;
  readonly #engine: TaskEngine<TaskRecord>;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #pollMs: number;
  /** The number of running tasks of each principal. */
  readonly #running: Quotas<string>;
  readonly #log: (error: unknown) => void;
  readonly #callContext: CallTasksOptions["callContext"];
  readonly #retries: Readonly<Record<string, TaskRetry>>;
  readonly #runs: Map<string, Run> = new Map();
  /** Settle when the results of running tasks are stored. */
  readonly #kept: Set<Promise<unknown>> = new Set();
  readonly #worker: TaskWorker;

  /** @ignore Use {@linkcode callTasks}. */
  constructor(options: CallTasksOptions) {
    checkStore(ACTION, options?.store);
    const { ttlMs = 86_400_000, leaseMs = 30_000, pollMs = 1_000, ...read } = readFields(
      ...[ACTION, { ...options }, CHECKS] as const,
    );
    this.#clock = read.clock ?? systemClock;
    this.#records = new TaskRecords(options.store, this.#clock, {
      ...{ ttlMs, leaseMs, pollMs, name: read.name },
    });
    this.#leaseMs = leaseMs;
    this.#pollMs = pollMs;
    this.#running = new Quotas(Infinity, read.maxRunning ?? 64);
    this.#callContext = read.callContext;
    this.#retries = read.retries ?? Object.create(null);
    this.#log = (error) => callHook(() => options.onError?.(error), noop);
    this.#engine = new TaskEngine({
      records: this.#records,
      maxAttempts: MAX_ATTEMPTS,
      log: this.#log,
      retryMs: leaseMs / 6,
      isOver: (tries) => tries >= MAX_ENDINGS,
      end: (record, result) => this.#ended(record, result.ok ? "completed" : "failed", result),
    });
    this.#worker = new TaskWorker({
      ...{ records: this.#records, engine: this.#engine, clock: this.#clock, pollMs },
      log: this.#log,
      isFull: (owner) => this.#running.exceeded(owner, 1) !== undefined,
      judge: (record) => this.#judged(record),
      run: (dispatcher, lease, ended) => this.#runAgain(dispatcher, lease, ended),
      died: (key, tool) => this.#buryIfRetried(key, tool),
    });
  }

  /**
   * Starts a call as a task.
   *
   * @param dispatcher Runs the call, for the caller's tools.
   * @param context The host's part of the call. The task outlives its signal and its callbacks.
   * @param options With `delayMs`, the task waits until a process that calls `work` runs it, but at
   * least for this time. By default, this process runs it at once.
   * @returns The task, or the failure.
   */
  async start(
    dispatcher: ToolDispatcher,
    call: ToolCall,
    context: DispatchContext = {},
    options: { readonly delayMs?: number } = {},
  ): Promise<TaskState | ToolFailure> {
    const { delayMs } = readFields("start a task", options, {
      delayMs: numberFrom(0, MAX_DELAY_MS),
    });
    const owner = await ownerDigest(context.principal);
    const admitted = this.#admit(dispatcher, call, owner);
    if ("error" in admitted) return admitted;
    const { tool } = admitted;
    try {
      const task = { ...admitted, owner, id: this.#records.newId(), context };
      if (delayMs !== undefined) {
        const runAt = this.#records.now() + delayMs;
        return this.#records.shown(await this.#records.enqueue(task, runAt));
      }
      return await this.#hold(task, ({ arguments: args, callId }) => {
        const request = { name: admitted.call.name, arguments: args, callId };
        return beginRun(context, (own) => dispatcher.dispatch(request, own));
      });
    } catch (error) {
      this.#log(error);
      const why = "its task cannot be kept now; nothing has run";
      return failure("unavailable", tool.id, why, NOT_RUN);
    }
  }

  /**
   * Runs a call, which becomes a task if it takes longer than `afterMs` milliseconds, as far as its
   * tool allows that.
   *
   * @param call A call, or a resumed call that is repeated with its ticket.
   * @returns The result, or the task.
   */
  async run(
    dispatcher: ToolDispatcher,
    call: ToolCall | ResumedCall & Pick<ToolCall, "name">,
    context: DispatchContext,
    { afterMs }: { readonly afterMs: number },
  ): Promise<ToolResult | TaskState> {
    const [tool] = findTool(dispatcher, call);
    if (tool?.execution === "task" && !("ticket" in call)) {
      return await this.start(dispatcher, call, context);
    }
    if (tool === undefined || tool.execution === "sync") {
      return await dispatcher.dispatch(call, context);
    }
    const owner = await ownerDigest(context.principal);
    const id = this.#records.newId();
    // The tool receives the id of its task; a resumed call has one in its ticket.
    const isResumed = "ticket" in call;
    const named = isResumed ? call : { ...call, callId: call.callId ?? id };
    const run = beginRun(context, (own) => dispatcher.dispatch(named, own));
    const result = await within(this.#clock, afterMs, run.result);
    if (result !== TIME_OVER) {
      run.detach();
      return result;
    }
    try {
      const admitted = this.#admit(dispatcher, call, owner);
      if ("error" in admitted) return await run.result;
      // No other process can repeat a resumed call: its earlier answers are in its ticket.
      const task = { ...admitted, owner, id, context, isRepeatable: !isResumed };
      return await this.#hold(task, () => run);
    } catch (error) {
      // If its record cannot be stored, the call does not become a task.
      this.#log(error);
      return await run.result;
    }
  }

  /** Stores the record of a call, and keeps it up to date while the call runs. */
  async #hold(task: NewTask, begin: (record: TaskRecord) => Run): Promise<TaskState> {
    return await this.#counted(task.owner, async () => {
      const lease = await this.#records.make(task);
      this.#keep(lease, begin(lease.record));
      return this.#records.shown(lease.record);
    });
  }

  /** Counts a task as running while its record is written. */
  async #counted<T>(owner: string, write: () => Promise<T>): Promise<T> {
    this.#running.add(owner, 1);
    try {
      return await write();
    } finally {
      this.#running.add(owner, -1);
    }
  }

  /** Returns the failure `overloaded` if the owner has the maximum number of running tasks. */
  #checkRunning(owner: string, toolId: string): ToolFailure | undefined {
    if (this.#running.exceeded(owner, 1) === undefined) return undefined;
    const count = this.#running.usedBy(owner);
    const why = `${count} tasks of its caller are running; try again later`;
    return failure("overloaded", toolId, why, NOT_RUN);
  }

  /** Returns the task with an id, or `undefined` if the principal has none. */
  async get(id: string, owner: TaskOwner = {}): Promise<TaskState | undefined> {
    const record = await this.#find(id, owner);
    return record && this.#records.shown(record);
  }

  async #find(id: string, { principal, toolset }: TaskOwner): Promise<TaskRecord | undefined> {
    const key = await keyOf(id, principal);
    const record = key === undefined ? undefined : await this.#read(key);
    return record && isSeen(record, toolset) ? record : undefined;
  }

  /** Returns the current record of a task. It has failed if its process died and no other resumes it. */
  async #read(key: string): Promise<TaskRecord | undefined> {
    const found = await this.#records.read(key);
    if (found === undefined || this.#judged(found.record) === found.record) return found?.record;
    const { record } = await this.#records.change(key, (now) => {
      const judged = now && this.#judged(now);
      return judged === now ? undefined : judged;
    }) ?? {};
    if (record?.status === "failed") await this.#buryIfRetried(key, record.tool);
    return record;
  }

  /** Marks a failed task as dead, if tasks of its tool are retried. */
  async #buryIfRetried(key: string, tool: string): Promise<void> {
    if (this.#retries[tool] !== undefined) await this.#records.bury(key).catch(this.#log);
  }

  #judged(record: TaskRecord): TaskRecord {
    return this.#engine.judge(record, record.tool, record.idempotent);
  }

  /** Returns a record with its final state, and without a lease. */
  #ended(record: TaskRecord, status: TaskState["status"], result: ToolResult): TaskRecord {
    const { questions: _questions, ticket: _ticket, answers: _answers, runAt: _, ...rest } = record;
    return { ...rest, ...this.#records.touched(), holder: "", status, result };
  }

  /**
   * Cancels a task: its signal aborts, in any process. A completed task stays unchanged.
   *
   * @returns The task; `undefined` if the principal has none with that id.
   */
  async cancel(id: string, owner: TaskOwner = {}): Promise<TaskState | undefined> {
    const key = await keyOf(id, owner.principal);
    if (key === undefined || await this.#find(id, owner) === undefined) return undefined;
    const found = await this.#records.change(key, (before) => {
      if (before === undefined || hasEnded(before)) return undefined;
      const result = failure("aborted", before.tool, "the task was cancelled");
      return this.#ended(before, "cancelled", result);
    });
    this.#runs.get(key)?.abort();
    return found && this.#records.shown(found.record);
  }

  /**
   * Answers questions of a task, which then resumes in this process. As long as answers are
   * missing, it stores the given ones and keeps waiting.
   *
   * @returns The task; the reason for rejected answers; or `undefined` if the principal has no such
   * task.
   */
  async answer(
    dispatcher: ToolDispatcher,
    id: string,
    given: Answers,
    context: DispatchContext = {},
  ): Promise<TaskState | ToolFailure | undefined> {
    const { principal } = context;
    const { toolset } = dispatcher;
    const key = await keyOf(id, principal);
    const before = await this.#find(id, { principal, toolset });
    if (key === undefined || before === undefined) return undefined;
    const keys = (before.questions ?? []).map((question) => question.key);
    const wrong = wrongAnswers(given, keys) ?? tooLarge({ ...given, ...before.answers });
    if (await contextDigest(context.context) !== before.context) {
      const why = "its host gives another context than its call had";
      return ToolResult.error("ticket_refused", `Cannot answer the task: ${why}`, NOT_RUN);
    }
    if (before.status === "input_required" && wrong !== undefined) {
      return ToolResult.error("invalid_arguments", `Cannot answer the task: ${wrong}`);
    }
    const answers = given ?? {};
    const { ticket = "" } = before;
    const owner = await ownerDigest(principal);
    const refused = this.#checkRunning(owner, before.tool);
    if (refused !== undefined) return refused;
    let asked: Asked | undefined;
    return await this.#counted(owner, async () => {
      // The ticket is used once, even with concurrent answers.
      const { lease, record: after } = await this.#records.claim(key, (now, begun) => {
        asked = undefined;
        if (now?.status !== "input_required" || now.ticket !== ticket) return undefined;
        const { questions = [], ticket: _, answers: earlier, ...rest } = now;
        asked = { ticket, questions, ...(earlier && { answers: earlier }) };
        const missing = questions.filter((question) => !Object.hasOwn(answers, question.key));
        return missing.length > 0
          ? { ...now, questions: missing, answers: { ...answers, ...earlier } }
          : { ...rest, status: "working", ...begun };
      });
      if (after === undefined) return undefined;
      if (asked === undefined) {
        return ToolResult.error(
          "ticket_refused",
          "Cannot answer the task: it does not wait for an answer now",
        );
      }
      if (lease !== undefined) {
        const all = { ...answers, ...(asked as Asked).answers };
        const run = beginRun(context, (own) => dispatcher.resume(ticket, all, own));
        this.#keep(lease, run, asked);
      }
      return this.#records.shown(after);
    });
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
    const owned = `task.${await ownerDigest(principal)}`;
    const after = cursor === undefined ? undefined : `${owned}.${cursor}`;
    const tasks: TaskState[] = [];
    let bytes = 0;
    let last: string | undefined;
    for await (const { key, value } of this.#records.store.list(owned, after)) {
      bytes += value.byteLength;
      if (last !== undefined && (tasks.length === limit || bytes > MAX_PAGE_BYTES)) {
        return { tasks, nextCursor: last };
      }
      const record = this.#records.decode(value, key);
      last = record.id;
      if (isSeen(record, toolset)) tasks.push(this.#records.shown(this.#judged(record)));
    }
    return { tasks };
  }

  /**
   * Yields the task now and after each change, until its end. Yields nothing for an unknown task.
   */
  async *follow(
    id: string,
    { principal, toolset, signal }: TaskOwner & { readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<TaskState, void> {
    const key = await keyOf(id, principal);
    if (key === undefined) return;
    let last = "";
    let revision: number | undefined;
    let known: TaskRecord | undefined;
    while (signal?.aborted !== true) {
      const change = this.#records.nextChange(key, signal);
      try {
        const stored = await this.#records.store.get(key);
        // A record may be large: it is parsed only if it has changed, or its process has died.
        if (!known || stored?.revision !== revision || this.#judged(known) !== known) {
          const record = await this.#read(key);
          if (record === undefined || !isSeen(record, toolset)) return;
          const state = this.#records.shown(record);
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
        change.forget();
      }
    }
  }

  /**
   * Runs the tasks that wait, and those of processes that died: tasks of idempotent tools run again,
   * the others fail. Call it when the program starts, and at intervals; or call {@linkcode work}.
   *
   * @param dispatcher Runs the calls. It has all tools, because the caller was authorized at the
   * start of the call.
   * @returns The number of tasks that run now.
   */
  async recover(dispatcher: ToolDispatcher): Promise<number> {
    return await this.#worker.recover(dispatcher);
  }

  /**
   * Runs tasks that wait, and those of processes that died, until its signal aborts. Several
   * processes may work on the tasks of one store. A task whose tool this process does not have is
   * left to others.
   *
   * @param dispatcher Runs the calls. It has all tools, because the caller was authorized at the
   * start of the call.
   * @throws {TypeError | RangeError} If an option is invalid.
   */
  async work(dispatcher: ToolDispatcher, options: WorkOptions): Promise<void> {
    await this.#worker.work(dispatcher, checkWorkOptions(options));
  }

  #runAgain(dispatcher: ToolDispatcher, lease: Lease<TaskRecord>, ended: () => void): void {
    const { tool: name, arguments: args, callId, principal, attempts, ...ids } = lease.record;
    const { sessionId, messageId } = ids;
    // The run of a process that died may still hold the idempotency key; one that ended does not.
    const idempotencyKey = attempts === 1 ? ids.idempotencyKey : undefined;
    const context = {
      ...{ principal: principal ?? undefined, sessionId, messageId },
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    };
    const call = { name, arguments: args, callId };
    const run = beginRun(context, (own) => this.#again(dispatcher, call, own));
    this.#keep(lease, run, undefined, ended);
  }

  /** Returns the state of all tasks that run or wait, of all principals: the first 1,000. */
  async queue(): Promise<TaskQueueState> {
    return queueOf(await this.#worker.dueRecords(), this.#clock.timestamp());
  }

  /** Returns the tasks of all principals that have failed in all their attempts, the oldest first. */
  async deadTasks(limit: number = 100): Promise<readonly DeadTask[]> {
    return (await this.#records.dead(limit)).map(deadTaskOf);
  }

  /**
   * Lets a task wait again that has failed in all its attempts.
   *
   * @returns The task; `undefined` if there is none, or if it has not failed.
   */
  async runAgain(id: string, owner: TaskOwner = {}): Promise<TaskState | undefined> {
    const key = await keyOf(id, owner.principal);
    const isFailed = (record?: TaskRecord): boolean =>
      record?.status === "failed" && record.isRepeatable !== false;
    if (key === undefined || !isFailed(await this.#find(id, owner))) return undefined;
    const runAt = this.#records.now();
    // Not later, because the task may have failed again by then.
    await this.#records.unbury(key);
    let isChanged = false;
    const found = await this.#records.change(key, (record) => {
      isChanged = isFailed(record);
      if (record === undefined || !isChanged) return undefined;
      const { result: _, ...rest } = record;
      return {
        ...{ ...rest, ...this.#records.touched(), status: "working" },
        ...{ attempts: 0, runs: 0, refusals: 0, runAt },
      };
    });
    return found && isChanged ? this.#records.shown(found.record) : undefined;
  }

  /** Resolves when no task runs in this process, and their results are stored. */
  async idle(): Promise<void> {
    while (this.#kept.size > 0) await Promise.race(this.#kept);
  }

  /** Runs a resumed call, with the context from the host. */
  async #again(
    dispatcher: ToolDispatcher,
    call: ToolCall,
    own: DispatchContext,
  ): Promise<ToolResult> {
    let context: unknown;
    if (dispatcher.toolset.resolve(call.name)?.context !== undefined) {
      const { principal, sessionId, messageId } = own;
      try {
        const asked = this.#callContext?.({ tool: call.name, principal, sessionId, messageId });
        context = await within(this.#clock, this.#leaseMs, Promise.resolve(asked));
        if (context === TIME_OVER) fail("take up a task", "callContext took too long");
      } catch (error) {
        context = undefined;
        this.#log(error);
      }
    }
    return await dispatcher.dispatch(call, { ...own, ...(context !== undefined && { context }) });
  }

  /** Returns the tool and the call of a new task, or the reason why it is not started. */
  #admit(
    dispatcher: ToolDispatcher,
    given: ToolCall,
    owner: string,
  ): Pick<NewTask, "tool" | "call"> | ToolFailure {
    const [tool, call] = findTool(dispatcher, given);
    if (tool === undefined) return unknownTool(clip(String(call.name)));
    if (tool.execution === "sync") {
      return failure("not_executable", tool.id, "it does not run as a task", NOT_RUN);
    }
    const refused = this.#checkRunning(owner, tool.id);
    if (refused !== undefined) return refused;
    const args = readJson(call.arguments ?? {}, dispatcher.maxArgumentBytes, true);
    if (args.kind === "json") return { tool, call: { ...call, arguments: args.value } };
    const why = "its arguments are not JSON, or too large";
    return failure("invalid_arguments", tool.id, why, NOT_RUN);
  }

  /**
   * Keeps the record of a run up to date until the run has ended.
   *
   * @param asked The questions that the run continues from.
   */
  #keep(lease: Lease<TaskRecord>, run: Run, asked?: Asked, ended = (): void => {}): void {
    const { key, record: { tool } } = lease;
    const [, owner = ""] = key.split(".");
    run.detach();
    this.#runs.set(key, run);
    this.#running.add(owner, 1);
    let writing: Promise<unknown> | undefined;
    let isDirty = false;
    let disarm = (): void => {};
    const flush = (): void => {
      isDirty = writing !== undefined;
      // Writes are serialized; the next write contains the latest progress.
      writing ??= lease.change((record) => ({
        ...record,
        ...this.#records.touched(),
        ...progressOf(run),
      })).catch(this.#log).then(() => {
        if (run.changed !== flush) return;
        // Not sooner, because clients do not read it sooner, and a record may be large.
        disarm = this.#clock.setTimeout(() => {
          writing = undefined;
          if (isDirty) flush();
        }, this.#pollMs);
      });
    };
    run.changed = flush;
    if (run.progress !== undefined) flush();
    void run.result.then(() => {
      run.changed = () => {};
      disarm();
    });
    let isDead = false;
    const end = (record: TaskRecord, result: ToolResult): TaskRecord => {
      const last = this.#end(record, result, run, asked);
      isDead = last.status === "failed";
      return last;
    };
    const kept = this.#engine.keep(lease, tool, run, end)
      .then((isStored) => isStored && isDead ? this.#buryIfRetried(key, tool) : undefined)
      .catch(this.#log)
      .then(() => {
        this.#kept.delete(kept);
        this.#runs.delete(key);
        this.#running.add(owner, -1);
        ended();
      });
    this.#kept.add(kept);
  }

  /** Returns the record of a run that has ended: with its result, or with its questions. */
  #end(record: TaskRecord, result: ToolResult, run: Run, asked: Asked | undefined): TaskRecord {
    const now = { ...record, ...progressOf(run) };
    // If nothing has run, the ticket is still valid and the task waits.
    const waits = asked && !result.ok && result.error.retryable && result.error.ran === "no";
    if (!isSuspended(result) && !waits) {
      const next = retried(now, result, this.#retries[record.tool], this.#records.now());
      if (next !== undefined) return { ...next, ...this.#records.touched() };
      return this.#ended(now, result.ok ? "completed" : "failed", result);
    }
    const { questions, ticket, answers }: Asked = isSuspended(result) ? result : asked ?? {};
    return {
      ...now,
      ...this.#records.touched(),
      ...{ holder: "", status: "input_required" },
      ...(questions && { questions }),
      ...(ticket && { ticket }),
      ...(answers && { answers }),
    };
  }
}

/** Returns the tool of a call, and the call for that tool, even through a bridge. */
function findTool(
  { toolset, maxArgumentBytes }: ToolDispatcher,
  call: ToolCall,
): readonly [Tool | undefined, ToolCall] {
  const { bridge } = toolset;
  const target = bridge?.resolveTarget(call, maxArgumentBytes);
  return bridge && target
    ? [bridge.behind.resolve(target.name), target]
    : [toolset.resolve(call.name), call];
}

function progressOf({ progress }: Run): Pick<TaskRecord, "progress"> {
  return progress === undefined ? {} : { progress };
}
