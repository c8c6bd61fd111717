/**
 * Tasks: calls that outlive their request, and are read by their ids.
 *
 * @module
 */

import {
  type Answers,
  atOnce,
  callHook,
  checkFunction,
  clip,
  type Clock,
  isSuspended,
  NO_LOG,
  numberFrom,
  refuse,
  refuseOthers,
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
import { contextDigest, ownerDigest } from "./digest.ts";
import {
  hasEnded,
  isSeen,
  keyOf,
  mayRunAgain,
  newId,
  parse,
  type TaskRecord,
  TaskRecords,
  type TaskState,
} from "./task_records.ts";
import { beginRun, type Run } from "./task_run.ts";

const NOT_RUN = { ran: "no" } as const;
import { tooLarge, wrongAnswers } from "./tickets.ts";

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
   * The duration of the lease on a running task, in milliseconds. After it the task's process
   * counts as dead.
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
   * Returns the context for a call that `recover` resumes, if its tool declares one, because the
   * original context is not stored. A call without a context within `leaseMs` fails with
   * `unavailable`.
   */
  callContext?(call: RecoveredCall): unknown;
  /** Receives errors of the store during a task, and errors of `callContext`. */
  onError?(error: unknown): void;
  /** The clock. */
  readonly clock?: Clock;
}

/** A call that is resumed. */
export interface RecoveredCall {
  /** The tool's id. */
  readonly tool: string;
  readonly principal: string | undefined;
  readonly sessionId?: string | undefined;
  readonly messageId?: string | undefined;
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

/** The questions of a task, and the answers so far. */
type Asked = Pick<TaskRecord, "ticket" | "questions" | "answers">;

/** The number of attempts to write the end of a task. */
const MAX_ENDINGS = 10;
/** The maximum size of a page's records, in bytes. */
const MAX_PAGE_BYTES = 4_194_304;
const CURSOR = /^[\w-]{1,64}$/;

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
  readonly #store: CallStore;
  readonly #records: TaskRecords;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #maxRunning: number;
  readonly #log: (error: unknown) => void;
  readonly #callContext: CallTasksOptions["callContext"];
  /** By key. */
  readonly #runs: Map<string, Run> = new Map();
  /** The principals of tasks whose record is being written, which count as running. */
  readonly #starting: string[] = [];

  /** @ignore Use {@linkcode callTasks}. */
  constructor(options: CallTasksOptions) {
    const action = "make tasks";
    const names = ["ttlMs", "leaseMs", "pollMs", "maxRunning"] as const;
    checkStore(action, options?.store);
    refuseOthers(action, options, ["store", "callContext", "onError", "clock", ...names]);
    const positive = numberFrom(1);
    const [ttlMs, leaseMs, pollMs, maxRunning] = [86_400_000, 30_000, 1_000, 64].map(
      (otherwise, index) => {
        const name = names[index] as typeof names[number];
        return positive(action, options[name] ?? otherwise, name);
      },
    ) as [number, number, number, number];
    this.#store = options.store;
    this.#clock = options.clock ?? systemClock;
    this.#records = new TaskRecords(options.store, this.#clock, { ttlMs, leaseMs, pollMs });
    this.#leaseMs = leaseMs;
    this.#maxRunning = maxRunning;
    checkFunction(action, options.callContext ?? NO_LOG, "callContext");
    this.#callContext = options.callContext;
    this.#log = (error) => callHook(() => options.onError?.(error), NO_LOG);
  }

  /**
   * Starts a call as a task.
   *
   * @param dispatcher Runs the call, for the caller's tools.
   * @param context What the host adds. The task outlives its signal and its callbacks.
   * @returns The task, or the reason why there is none.
   */
  async start(
    dispatcher: ToolDispatcher,
    call: ToolCall,
    context: DispatchContext = {},
  ): Promise<TaskState | ToolFailure> {
    const [tool, led] = findTool(dispatcher, call);
    const owner = await ownerDigest(context.principal);
    const refused = this.#refuse(tool, led, owner);
    if (refused !== undefined || tool === undefined) return refused as ToolFailure;
    const args = readJson(led.arguments ?? {}, dispatcher.maxArgumentBytes, true);
    if (args.kind !== "json") {
      const why = "its arguments are not JSON, or too large";
      return failure("invalid_arguments", tool.id, why, NOT_RUN);
    }
    this.#starting.push(owner);
    try {
      const id = this.#records.newId();
      const record = await this.#records.make(id, tool, { ...led, arguments: args.value }, context);
      await this.#records.create(owner, record);
      const { name, arguments: given, callId } = { ...led, ...record };
      const start = (own: DispatchContext): Promise<ToolResult> =>
        dispatcher.dispatch({ name, arguments: given, callId }, own);
      this.#hold(owner, record, beginRun(owner, context, start));
      return this.#records.shown(record);
    } catch (error) {
      this.#log(error);
      const why = "its task cannot be kept now; nothing has run";
      return failure("unavailable", tool.id, why, NOT_RUN);
    } finally {
      this.#freePlace(owner);
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
    const [tool, led] = findTool(dispatcher, call);
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
    const run = beginRun(owner, context, (own) => dispatcher.dispatch(named, own));
    const result = await within(this.#clock, afterMs, run.result);
    if (result !== TIME_OVER) {
      run.detach();
      return result;
    }
    try {
      const args = readJson(led.arguments ?? {}, dispatcher.maxArgumentBytes, true);
      if (this.#refuse(tool, led, owner) !== undefined || args.kind !== "json") {
        return await run.result;
      }
      this.#starting.push(owner);
      try {
        const made = await this.#records.make(id, tool, { ...led, arguments: args.value }, context);
        // Its earlier answers are in its ticket, so another process cannot resume it.
        const record = isResumed ? { ...made, idempotent: false } : made;
        await this.#records.create(owner, record);
        this.#hold(owner, record, run);
        return this.#records.shown(record);
      } finally {
        this.#freePlace(owner);
      }
    } catch (error) {
      // Without a record the call stays what it was.
      this.#log(error);
      return await run.result;
    }
  }

  /** Returns the task with an id, or `undefined` if the principal has none. */
  async get(id: string, owner: TaskOwner = {}): Promise<TaskState | undefined> {
    const record = await this.#find(id, owner);
    return record && this.#records.shown(record);
  }

  async #find(id: string, { principal, toolset }: TaskOwner): Promise<TaskRecord | undefined> {
    const key = await keyOf(id, principal);
    const record = key === undefined ? undefined : await this.#records.read(key);
    return record && isSeen(record, toolset) ? record : undefined;
  }

  /**
   * Cancels a task: its signal aborts, in any process. A completed task stays unchanged.
   *
   * @returns The task; `undefined` if the principal has none with that id.
   */
  async cancel(id: string, owner: TaskOwner = {}): Promise<TaskState | undefined> {
    const key = await keyOf(id, owner.principal);
    if (key === undefined || await this.#find(id, owner) === undefined) return undefined;
    const record = await this.#records.change(
      key,
      (before) =>
        hasEnded(before) ? undefined : this.#records.ended(
          before,
          "cancelled",
          failure(
            "aborted",
            before.tool,
            "the task was cancelled",
          ),
        ),
    );
    this.#runs.get(key)?.abort();
    return record && this.#records.shown(record);
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
    const holder = newId();
    const { ticket = "" } = before;
    let asked: Asked = {};
    // The ticket is used once, even with concurrent answers.
    const after = await this.#records.change(key, (now) => {
      if (now.status !== "input_required" || now.ticket !== ticket) return undefined;
      const { questions = [], ticket: _, answers: earlier, ...rest } = now;
      asked = { ticket, questions, ...(earlier && { answers: earlier }) };
      const missing = questions.filter((question) => !Object.hasOwn(answers, question.key));
      return missing.length > 0
        ? { ...now, questions: missing, answers: { ...answers, ...earlier }, holder }
        : { ...rest, status: "working", holder, ...this.#records.held() };
    });
    if (after?.holder === holder && after.status === "input_required") {
      return this.#records.shown(after);
    }
    if (after?.holder !== holder) {
      return after && ToolResult.error(
        "ticket_refused",
        "Cannot answer the task: it does not wait for an answer now",
      );
    }
    const owner = await ownerDigest(principal);
    const all = { ...answers, ...asked.answers };
    const run = beginRun(owner, context, (own) => dispatcher.resume(ticket, all, own));
    this.#hold(owner, after, run, asked);
    return this.#records.shown(after);
  }

  /**
   * Returns the tasks of a principal, the newest first. A page ends early if its tasks are large,
   * and may be empty if their tools are hidden.
   *
   * @throws {TypeError | RangeError} If the limit is not a positive integer, or the cursor is
   * invalid.
   */
  async list(
    { principal, toolset, limit = 50, cursor }: TaskListOptions = {},
  ): Promise<TaskList> {
    const action = "list tasks";
    wholeFrom(1)(action, limit, "limit");
    if (cursor !== undefined && !CURSOR.test(cursor)) {
      refuse(action, "the cursor must be the nextCursor of a page");
    }
    const owned = `task.${await ownerDigest(principal)}`;
    const after = cursor === undefined ? undefined : `${owned}.${cursor}`;
    const tasks: TaskState[] = [];
    let bytes = 0;
    let last: string | undefined;
    for await (const { value } of atOnce(this.#store.list(owned, after))) {
      bytes += value.byteLength;
      if (last !== undefined && (tasks.length === limit || bytes > MAX_PAGE_BYTES)) {
        return { tasks, nextCursor: last };
      }
      const record = parse(value);
      last = record.id;
      if (isSeen(record, toolset)) tasks.push(this.#records.shown(this.#records.judged(record)));
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
    while (signal?.aborted !== true) {
      const change = this.#records.nextChange(key, signal);
      try {
        const record = await this.#records.read(key);
        if (record === undefined || !isSeen(record, toolset)) return;
        const state = this.#records.shown(record);
        const text = JSON.stringify(state);
        if (text !== last) yield state;
        last = text;
        if (hasEnded(record)) return;
        await change.came;
      } finally {
        change.forget();
      }
    }
  }

  /**
   * Searches for tasks of processes that died: tasks of idempotent tools are resumed here, the
   * others have failed. Call it when the program starts, and at intervals.
   *
   * @param dispatcher Runs the resumed calls. It has all tools, because the caller was authorized
   * at the start of the call.
   * @returns The number of resumed tasks.
   */
  async recover(dispatcher: ToolDispatcher): Promise<number> {
    let count = 0;
    for await (const { key, value } of atOnce(this.#store.list("task"))) {
      if (!this.#records.isDead(parse(value))) continue;
      const holder = newId();
      const after = await this.#records.change(key, (record) => {
        if (!this.#records.isDead(record)) return undefined;
        return mayRunAgain(record)
          ? { ...record, holder, attempts: record.attempts + 1, ...this.#records.held() }
          : this.#records.died(record);
      });
      if (after?.holder !== holder) continue;
      const { tool: name, arguments: args, callId, principal, ...ids } = after;
      const { sessionId, messageId } = ids;
      // Without its idempotency key, which the dead run may still hold.
      const context = { principal: principal ?? undefined, sessionId, messageId };
      const call = { name, arguments: args, callId };
      const owner = key.split(".")[1] ?? "";
      this.#hold(
        owner,
        after,
        beginRun(owner, context, (own) => this.#again(dispatcher, call, own)),
      );
      count++;
    }
    return count;
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
        if (context === TIME_OVER) refuse("take up a task", "callContext took too long");
      } catch (error) {
        context = undefined;
        this.#log(error);
      }
    }
    return await dispatcher.dispatch(call, { ...own, ...(context !== undefined && { context }) });
  }

  /** Returns the reason why a call is not started as a task, if there is one. */
  #refuse(tool: Tool | undefined, call: ToolCall, owner: string): ToolFailure | undefined {
    if (tool === undefined) return unknownTool(clip(String(call.name)));
    if (tool.execution === "sync") {
      return failure("not_executable", tool.id, "it does not run as a task", NOT_RUN);
    }
    let running = this.#starting.filter((starting) => starting === owner).length;
    for (const run of this.#runs.values()) if (run.owner === owner) running++;
    return running < this.#maxRunning ? undefined : failure(
      "overloaded",
      tool.id,
      `${running} tasks of its caller are running; try again later`,
      NOT_RUN,
    );
  }

  #freePlace(owner: string): void {
    this.#starting.splice(this.#starting.indexOf(owner), 1);
  }

  /** Keeps the record of a run up to date until the run has ended. */
  #hold(
    owner: string,
    { id, holder, tool }: TaskRecord,
    run: Run,
    asked?: Asked,
  ): void {
    const key = `task.${owner}.${id}`;
    run.detach();
    this.#runs.set(key, run);
    const own = (change: (record: TaskRecord) => TaskRecord): Promise<TaskRecord | undefined> =>
      this.#records.change(
        key,
        (record) =>
          record.holder === holder && record.status === "working" ? change(record) : undefined,
      );
    let disarm = (): void => {};
    let writing: Promise<unknown> | undefined;
    let isDirty = false;
    const flush = (): void => {
      isDirty = writing !== undefined;
      // One write at a time; the next one contains later progress.
      writing ??= own((record) => ({ ...record, ...this.#records.touched(), ...progressOf(run) }))
        .catch(this.#log)
        .then(() => {
          writing = undefined;
          if (isDirty) flush();
        });
    };
    const renew = (): void => {
      disarm = this.#clock.setTimeout(async () => {
        try {
          const record = await own((before) => ({ ...before, ...this.#records.held() }));
          // Another process has cancelled or resumed it.
          if (record?.holder !== holder || record.status !== "working") run.abort();
        } catch (error) {
          this.#log(error);
        }
        if (this.#runs.get(key) === run) renew();
      }, this.#leaseMs / 3);
    };
    run.changed = flush;
    if (run.progress !== undefined) flush();
    renew();
    void run.result.then(async (result) => {
      run.changed = () => {};
      await writing;
      await this.#end(result, tool, own, run, asked);
      disarm();
      this.#runs.delete(key);
    });
  }

  async #end(
    given: ToolResult,
    tool: string,
    own: (change: (record: TaskRecord) => TaskRecord) => Promise<TaskRecord | undefined>,
    run: Run,
    asked: Asked | undefined,
  ): Promise<void> {
    let result = given;
    // The answers were not used: nothing has run, so they may be sent again.
    const waits = !result.ok && result.error.retryable && asked !== undefined &&
      (result.error.code === "unavailable" || result.error.code === "overloaded");
    for (let tries = 1; tries <= MAX_ENDINGS; tries++) {
      try {
        await own((record) => {
          const now = { ...record, ...progressOf(run) };
          if (isSuspended(result) || waits) {
            const { questions, ticket, answers }: Asked = isSuspended(result)
              ? result
              : asked ?? {};
            return {
              ...now,
              ...this.#records.touched(),
              status: "input_required",
              ...(questions && { questions }),
              ...(ticket && { ticket }),
              ...(answers && { answers }),
            };
          }
          return this.#records.ended(now, result.ok ? "completed" : "failed", result);
        });
        return;
      } catch (error) {
        this.#log(error);
        if (error instanceof RangeError) {
          result = failure("output_too_large", tool, `it ended, and ${error.message}`, {
            ran: "yes",
          });
        } else {
          await new Promise<void>((resolve) =>
            void this.#clock.setTimeout(resolve, this.#leaseMs / 6)
          );
        }
      }
    }
  }
}

/** Returns the tool of a call, and the call for that tool, even through a bridge. */
function findTool(
  { toolset, maxArgumentBytes }: ToolDispatcher,
  call: ToolCall,
): readonly [Tool | undefined, ToolCall] {
  const { bridge } = toolset;
  const led = bridge?.lead(call, maxArgumentBytes);
  return bridge && led
    ? [bridge.behind.resolve(led.name), led]
    : [toolset.resolve(call.name), call];
}

function progressOf({ progress }: Run): Pick<TaskRecord, "progress"> {
  return progress === undefined ? {} : { progress };
}
