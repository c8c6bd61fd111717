/**
 * Tasks: calls with a life of their own, which are asked about by their ids.
 *
 * @module
 */

import {
  type Answers,
  atOnce,
  callHook,
  clip,
  type Clock,
  isSuspended,
  NO_LOG,
  numberFrom,
  type Question,
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
import type { ToolDispatcher } from "../dispatcher.ts";
import { failure, unknownTool } from "../failures.ts";
import { readJson } from "../json_value.ts";
import type { DispatchContext, ResumedCall, ToolCall, ToolProgress } from "../request.ts";
import { type CallStore, checkStore } from "./call_store.ts";
import { base64url, ownerDigest } from "./digest.ts";
import { tooLarge, wrongAnswers } from "./tickets.ts";

/** How far a task is. The last three are its end. */
export type TaskStatus = "working" | "input_required" | "completed" | "failed" | "cancelled";

/** A task, as its caller sees it. JSON. */
export interface TaskState {
  readonly id: string;
  readonly status: TaskStatus;
  /** The tool's id. */
  readonly tool: string;
  /** The id of the call; the task's own for one that was continued with a ticket. */
  readonly callId: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** Milliseconds since 1970. */
  readonly updatedAt: number;
  /** How long the task is kept after its last change, in milliseconds. */
  readonly ttlMs: number;
  /** How often it is worth asking, in milliseconds. */
  readonly pollMs: number;
  readonly progress?: ToolProgress;
  /** What it waits for, while its status is `input_required`. */
  readonly questions?: readonly Question[];
  /** Its result, once it has ended. */
  readonly result?: ToolResult;
}

/** Options for {@linkcode callTasks}. */
export interface CallTasksOptions {
  /** Keeps the tasks. */
  readonly store: CallStore;
  /**
   * How long a task is kept after its last change, in milliseconds.
   *
   * @default {86_400_000}
   */
  readonly ttlMs?: number;
  /**
   * How long a process holds a task without renewing it, in milliseconds. A task whose process has
   * died is known to be dead after that.
   *
   * @default {30_000}
   */
  readonly leaseMs?: number;
  /**
   * How often clients should ask, and how often `follow` does, in milliseconds.
   *
   * @default {1_000}
   */
  readonly pollMs?: number;
  /**
   * How many tasks of one principal run in this process at once. Further ones fail with `overloaded`.
   *
   * @default {64}
   */
  readonly maxRunning?: number;
  /** Is told what goes wrong with the store while a task runs. */
  onError?(error: unknown): void;
  /** Tells the time. */
  readonly clock?: Clock;
}

/** Whose tasks are meant. */
export interface TaskOwner {
  readonly principal?: string | undefined;
  /**
   * What the caller sees now. A task whose tool is not in it, nor behind its bridge, is not found.
   * Absent: all of the principal's tasks are.
   */
  readonly toolset?: Toolset | undefined;
}

/** Which tasks to list. */
export interface TaskListOptions extends TaskOwner {
  /**
   * How many at most.
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
  /** There are more. */
  readonly nextCursor?: string;
}

/** What a record holds besides what is shown. */
interface TaskRecord extends Omit<TaskState, "pollMs"> {
  readonly version: 1;
  readonly principal: string | null;
  readonly arguments: unknown;
  readonly sessionId?: string | undefined;
  readonly messageId?: string | undefined;
  readonly idempotencyKey?: string | undefined;
  /** Names the run that may change the record while it works. */
  readonly holder: string;
  /** Until when the run holds it, in milliseconds since 1970. */
  readonly heldUntil: number;
  /** How often its tool was started. */
  readonly attempts: number;
  readonly idempotent: boolean;
  readonly ticket?: string;
  /** Those that came, while answers to other questions are missing. */
  readonly answers?: Answers;
}

/** What a task waits for, and what it has of that. */
type Asked = Pick<TaskRecord, "ticket" | "questions" | "answers">;

/** A call that runs in this process, and may be a task. */
interface Run {
  /** Aborts the call. */
  readonly abort: () => void;
  readonly owner: string;
  result: Promise<ToolResult>;
  progress: ToolProgress | undefined;
  /** Called when there is progress. */
  changed: () => void;
  /** Lets go of the caller's request. */
  detach(): void;
}

/** Runs of a task whose processes died, at most. */
const MAX_ATTEMPTS = 3;
/** The last millisecond that an id has digits for, in the year 2527. */
const END_OF_TIME = 2 ** 44 - 1;
/** How often a change is tried while others change the record. */
const MAX_CHANGES = 32;
/** How often the end of a task is tried to be written. */
const MAX_ENDINGS = 10;
/** How many bytes the records of a page may have together. */
const MAX_PAGE_BYTES = 4_194_304;
const ID = /^[0-9a-f]{11}[\w-]{22}$/;
const CURSOR = /^[\w-]{1,64}$/;
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/**
 * Runs calls as tasks. A task goes on when the request that began it has ended, reports its progress
 * into its record, can be asked, answered and cancelled, and is kept for some time after its end. Only
 * the principal that began it finds it.
 *
 * A process holds the tasks that it runs, and renews that. When it dies, they are `failed` with
 * `unavailable`; those of an `idempotent` tool are taken up by the next process that calls `recover`.
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
 * @throws {TypeError | RangeError} If an option is wrong.
 */
export function callTasks(options: CallTasksOptions): CallTasks {
  return new CallTasks(options);
}

/** The tasks of a store. Made by {@linkcode callTasks}. */
export class CallTasks {
  readonly #store: CallStore;
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #leaseMs: number;
  readonly #pollMs: number;
  readonly #maxRunning: number;
  readonly #log: (error: unknown) => void;
  /** By key. */
  readonly #runs: Map<string, Run> = new Map();
  /** Those who wait for a change in this process, by key. */
  readonly #waiting: Map<string, Set<() => void>> = new Map();

  /** @ignore Use {@linkcode callTasks}. */
  constructor(options: CallTasksOptions) {
    const action = "make tasks";
    const names = ["ttlMs", "leaseMs", "pollMs", "maxRunning"] as const;
    checkStore(action, options?.store);
    refuseOthers(action, options, ["store", "onError", "clock", ...names]);
    const positive = numberFrom(1);
    const [ttlMs, leaseMs, pollMs, maxRunning] = [86_400_000, 30_000, 1_000, 64].map(
      (otherwise, index) => {
        const name = names[index] as typeof names[number];
        return positive(action, options[name] ?? otherwise, name);
      },
    ) as [number, number, number, number];
    this.#store = options.store;
    this.#clock = options.clock ?? systemClock;
    this.#ttlMs = ttlMs;
    this.#leaseMs = leaseMs;
    this.#pollMs = pollMs;
    this.#maxRunning = maxRunning;
    this.#log = (error) => callHook(() => options.onError?.(error), NO_LOG);
  }

  /**
   * Starts a call as a task.
   *
   * @param dispatcher Runs the call, for the tools that its caller sees.
   * @param context What the host adds. The task outlives its signal and its callbacks.
   * @returns The task, or why there is none.
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
      return failure("invalid_arguments", tool.id, "its arguments are not JSON, or too large");
    }
    const id = this.#newId();
    const record = this.#newRecord(id, tool, { ...led, arguments: args.value }, context);
    try {
      await this.#create(owner, record);
    } catch (error) {
      this.#log(error);
      return failure("unavailable", tool.id, "its task cannot be kept now; nothing has run");
    }
    const { name, arguments: given, callId } = { ...led, ...record };
    this.#hold(
      owner,
      record,
      this.#begin(
        owner,
        context,
        (own) => dispatcher.dispatch({ name, arguments: given, callId }, own),
      ),
    );
    return this.#shown(record);
  }

  /**
   * Runs a call, which becomes a task if it takes longer than `afterMs` milliseconds, as far as its
   * tool allows that.
   *
   * @param call A call, or one that goes on and is repeated with its ticket.
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
    const id = this.#newId();
    // The tool is told the id that its task has; a call that goes on has one in its ticket.
    const isResumed = "ticket" in call;
    const named = isResumed ? call : { ...call, callId: call.callId ?? id };
    const run = this.#begin(owner, context, (own) => dispatcher.dispatch(named, own));
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
      const made = this.#newRecord(id, tool, { ...led, arguments: args.value }, context);
      // What it was told until it went on is in its ticket: it cannot be taken up.
      const record = isResumed ? { ...made, idempotent: false } : made;
      await this.#create(owner, record);
      this.#hold(owner, record, run);
      return this.#shown(record);
    } catch (error) {
      // Without a record the call stays what it was.
      this.#log(error);
      return await run.result;
    }
  }

  /** The task with that id; `undefined` if the principal has none. */
  async get(id: string, owner: TaskOwner = {}): Promise<TaskState | undefined> {
    const record = await this.#find(id, owner);
    return record && this.#shown(record);
  }

  async #find(id: string, { principal, toolset }: TaskOwner): Promise<TaskRecord | undefined> {
    const key = await keyOf(id, principal);
    const record = key === undefined ? undefined : await this.#read(key);
    return record && isSeen(record, toolset) ? record : undefined;
  }

  /**
   * Cancels a task: its signal aborts, in whatever process it runs. One that has ended stays as it is.
   *
   * @returns The task; `undefined` if the principal has none with that id.
   */
  async cancel(id: string, owner: TaskOwner = {}): Promise<TaskState | undefined> {
    const key = await keyOf(id, owner.principal);
    if (key === undefined || await this.#find(id, owner) === undefined) return undefined;
    const record = await this.#change(
      key,
      (before) =>
        hasEnded(before) ? undefined : this.#ended(
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
    return record && this.#shown(record);
  }

  /**
   * Answers questions of a task, which then goes on in this process. It keeps the answers, and goes on
   * waiting, as long as others are missing.
   *
   * @returns The task; why the answers were not taken; `undefined` if the principal has no such task.
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
    if (before.status === "input_required" && wrong !== undefined) {
      return ToolResult.error("invalid_arguments", `Cannot answer the task: ${wrong}`);
    }
    const answers = given ?? {};
    const holder = newId();
    const { ticket = "" } = before;
    let asked: Asked = {};
    // Only the ticket that was read is used, and by one of those who answer.
    const after = await this.#change(key, (now) => {
      if (now.status !== "input_required" || now.ticket !== ticket) return undefined;
      const { questions = [], ticket: _, answers: earlier, ...rest } = now;
      asked = { ticket, questions, ...(earlier && { answers: earlier }) };
      const missing = questions.filter((question) => !Object.hasOwn(answers, question.key));
      return missing.length > 0
        ? { ...now, questions: missing, answers: { ...answers, ...earlier }, holder }
        : { ...rest, status: "working", holder, ...this.#held() };
    });
    if (after?.holder === holder && after.status === "input_required") return this.#shown(after);
    if (after?.holder !== holder) {
      return after && ToolResult.error(
        "ticket_refused",
        "Cannot answer the task: it does not wait for an answer now",
      );
    }
    const owner = await ownerDigest(principal);
    const all = { ...answers, ...asked.answers };
    const run = this.#begin(owner, context, (own) => dispatcher.resume(ticket, all, own));
    this.#hold(owner, after, run, asked);
    return this.#shown(after);
  }

  /**
   * The tasks of a principal, the newest first. A page ends early where its tasks are large, and may
   * be empty where the caller does not see their tools.
   *
   * @throws {TypeError | RangeError} If the limit is no whole number from 1 on, or the cursor is not one
   * that a page gave.
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
      if (isSeen(record, toolset)) tasks.push(this.#shown(this.#judged(record)));
    }
    return { tasks };
  }

  /** The task now and after each change, until it has ended. Nothing for one that is not found. */
  async *follow(
    id: string,
    { principal, toolset, signal }: TaskOwner & { readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<TaskState, void> {
    const key = await keyOf(id, principal);
    if (key === undefined) return;
    let last = "";
    while (signal?.aborted !== true) {
      const change = this.#nextChange(key, signal);
      try {
        const record = await this.#read(key);
        if (record === undefined || !isSeen(record, toolset)) return;
        const state = this.#shown(record);
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
   * Looks for tasks whose process has died: those of idempotent tools are taken up here, the others
   * have failed. Call it when the program starts, and now and then.
   *
   * @param dispatcher Runs what is taken up: for all tools, since it was let in when it began.
   * @returns How many were taken up.
   */
  async recover(dispatcher: ToolDispatcher): Promise<number> {
    let count = 0;
    for await (const { key, value } of atOnce(this.#store.list("task"))) {
      if (!this.#isDead(parse(value))) continue;
      const holder = newId();
      const after = await this.#change(key, (record) => {
        if (!this.#isDead(record)) return undefined;
        return mayRunAgain(record)
          ? { ...record, holder, attempts: record.attempts + 1, ...this.#held() }
          : this.#died(record);
      });
      if (after?.holder !== holder) continue;
      const { tool: name, arguments: args, callId, principal, ...ids } = after;
      const { sessionId, messageId } = ids;
      // Without its idempotency key, which the run that has died may still hold.
      const context = { principal: principal ?? undefined, sessionId, messageId };
      const owner = key.split(".")[1] ?? "";
      this.#hold(
        owner,
        after,
        this.#begin(
          owner,
          context,
          (own) => dispatcher.dispatch({ name, arguments: args, callId }, own),
        ),
      );
      count++;
    }
    return count;
  }

  /** Why a call is not started as a task, if it is not. */
  #refuse(tool: Tool | undefined, call: ToolCall, owner: string): ToolFailure | undefined {
    if (tool === undefined) return unknownTool(clip(String(call.name)), []);
    if (tool.execution === "sync") {
      return failure("not_executable", tool.id, "it does not run as a task");
    }
    let running = 0;
    for (const run of this.#runs.values()) if (run.owner === owner) running++;
    return running < this.#maxRunning ? undefined : failure(
      "overloaded",
      tool.id,
      `${running} tasks of its caller are running; try again later`,
    );
  }

  /** Runs a call with a signal of its own. */
  #begin(
    owner: string,
    context: DispatchContext,
    dispatch: (context: DispatchContext) => Promise<ToolResult>,
  ): Run {
    const controller = new AbortController();
    const { signal } = context;
    const caller = typeof signal === "function" ? signal() : signal;
    const abort = (): void => controller.abort(caller?.reason);
    let isAttached = true;
    let cancel = (): void => {};
    // On Workers, the request that cancels a task must not run the code of the one that began it.
    void new Promise<void>((resolve) => cancel = resolve).then(() =>
      controller.abort(new DOMException("The task was cancelled", "AbortError"))
    );
    const run: Run = {
      abort: cancel,
      owner,
      progress: undefined,
      changed: () => {},
      result: Promise.resolve(ToolResult.error("The call has not begun")),
      detach() {
        isAttached = false;
        caller?.removeEventListener("abort", abort);
      },
    };
    if (caller?.aborted === true) abort();
    else caller?.addEventListener("abort", abort, { once: true });
    run.result = dispatch({
      ...context,
      signal: controller.signal,
      progress(progress) {
        run.progress = progress;
        run.changed();
        if (isAttached) context.progress?.(progress);
      },
      metadata: (value) => isAttached ? context.metadata?.(value) : undefined,
      output: (value) => isAttached ? context.output?.(value) : undefined,
    });
    return run;
  }

  /** A store lists by key: the newer a task, the smaller the number that its id begins with. */
  #newId(): string {
    const age = END_OF_TIME - Math.floor(this.#clock.timestamp());
    return age.toString(16).padStart(11, "0") + newId();
  }

  #newRecord(id: string, tool: Tool, call: ToolCall, context: DispatchContext): TaskRecord {
    const { principal = null, sessionId, messageId, idempotencyKey } = context;
    const now = this.#clock.timestamp();
    return {
      ...{ version: 1, id, status: "working", tool: tool.id, callId: call.callId ?? id },
      ...{ createdAt: now, updatedAt: now, ttlMs: this.#ttlMs, principal },
      ...{ arguments: call.arguments, sessionId, messageId, idempotencyKey },
      ...{ holder: newId(), attempts: 1, idempotent: tool.idempotent },
      ...this.#held(),
    };
  }

  async #create(owner: string, record: TaskRecord): Promise<void> {
    await this.#store.create(`task.${owner}.${record.id}`, bytesOf(record), this.#life(record));
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
      this.#change(
        key,
        (record) =>
          record.holder === holder && record.status === "working" ? change(record) : undefined,
      );
    let disarm = (): void => {};
    let writing: Promise<unknown> | undefined;
    let isDirty = false;
    const flush = (): void => {
      isDirty = writing !== undefined;
      // One write at a time: what comes meanwhile is in the next one.
      writing ??= own((record) => ({ ...record, ...this.#touched(), ...progressOf(run) }))
        .catch(this.#log)
        .then(() => {
          writing = undefined;
          if (isDirty) flush();
        });
    };
    const renew = (): void => {
      disarm = this.#clock.setTimeout(async () => {
        try {
          const record = await own((before) => ({ ...before, ...this.#held() }));
          // Another process has cancelled it, or has taken it up.
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

  /** Writes how a run has ended. */
  async #end(
    given: ToolResult,
    tool: string,
    own: (change: (record: TaskRecord) => TaskRecord) => Promise<TaskRecord | undefined>,
    run: Run,
    asked: Asked | undefined,
  ): Promise<void> {
    let result = given;
    // The answers were not taken: nothing has run, so they may come again.
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
              ...this.#touched(),
              status: "input_required",
              ...(questions && { questions }),
              ...(ticket && { ticket }),
              ...(answers && { answers }),
            };
          }
          return this.#ended(now, result.ok ? "completed" : "failed", result);
        });
        return;
      } catch (error) {
        this.#log(error);
        if (error instanceof RangeError) {
          result = failure("output_too_large", tool, `it ended, and ${error.message}`);
        } else {
          await new Promise<void>((resolve) =>
            void this.#clock.setTimeout(resolve, this.#leaseMs / 6)
          );
        }
      }
    }
  }

  #ended(record: TaskRecord, status: TaskStatus, result: ToolResult): TaskRecord {
    const { questions: _questions, ticket: _ticket, answers: _answers, ...rest } = record;
    return { ...rest, ...this.#touched(), status, result };
  }

  #died(record: TaskRecord): TaskRecord {
    const why = "its process ended before it did; it may have run";
    return this.#ended(record, "failed", failure("unavailable", record.tool, why));
  }

  #isDead({ status, heldUntil }: TaskRecord): boolean {
    return status === "working" && heldUntil <= this.#clock.timestamp();
  }

  /** A record as it is now: that of a process that died has failed, if it is not taken up. */
  #judged(record: TaskRecord): TaskRecord {
    return this.#isDead(record) && !mayRunAgain(record) ? this.#died(record) : record;
  }

  #touched(): Pick<TaskRecord, "updatedAt"> {
    return { updatedAt: this.#clock.timestamp() };
  }

  #held(): Pick<TaskRecord, "heldUntil"> {
    return { heldUntil: this.#clock.timestamp() + this.#leaseMs };
  }

  #life({ updatedAt, heldUntil, ttlMs }: TaskRecord): { readonly expiresAt: number } {
    return { expiresAt: Math.max(updatedAt, heldUntil) + ttlMs };
  }

  async #read(key: string): Promise<TaskRecord | undefined> {
    const stored = await this.#store.get(key);
    if (stored === undefined) return undefined;
    const record = parse(stored.value);
    const judged = this.#judged(record);
    if (judged === record) return record;
    return await this.#change(
      key,
      (now) => this.#isDead(now) && !mayRunAgain(now) ? this.#died(now) : undefined,
    );
  }

  /**
   * Changes a record. Others may change it at the same time, in whatever process.
   *
   * @param change Answers the new record; `undefined` leaves it as it is.
   * @returns The record as it is then; `undefined` if there is none.
   */
  async #change(
    key: string,
    change: (record: TaskRecord) => TaskRecord | undefined,
  ): Promise<TaskRecord | undefined> {
    for (let tries = 0; tries < MAX_CHANGES; tries++) {
      const stored = await this.#store.get(key);
      if (stored === undefined) return undefined;
      const before = parse(stored.value);
      const after = change(before);
      if (after === undefined) return before;
      const { revision } = stored;
      if (
        await this.#store.update(key, bytesOf(after), revision, this.#life(after)) !== undefined
      ) {
        for (const tell of this.#waiting.get(key) ?? []) tell();
        return after;
      }
    }
    throw new Error("Cannot change a task: others change it all the time");
  }

  /** A change of this process, the time to look for those of others, or the signal. */
  #nextChange(
    key: string,
    signal: AbortSignal | undefined,
  ): { readonly came: Promise<void>; forget(): void } {
    let tell = (): void => {};
    const came = new Promise<void>((resolve) => tell = resolve);
    const waiting = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiting.add(tell));
    const disarm = this.#clock.setTimeout(tell, this.#pollMs);
    signal?.addEventListener("abort", tell, { once: true });
    return {
      came,
      forget: () => {
        disarm();
        signal?.removeEventListener("abort", tell);
        waiting.delete(tell);
        if (waiting.size === 0) this.#waiting.delete(key);
      },
    };
  }

  #shown(record: TaskRecord): TaskState {
    const { id, status, tool, callId, createdAt, updatedAt, ttlMs } = record;
    const { progress, questions, result } = record;
    return {
      ...{ id, status, tool, callId, createdAt, updatedAt, ttlMs, pollMs: this.#pollMs },
      ...(progress && { progress }),
      ...(questions && { questions }),
      ...(result && { result }),
    };
  }
}

/** The tool that a call means, and the call as that tool gets it, also through a bridge. */
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

/** Whether a caller sees the tool of a task. */
function isSeen({ tool }: TaskRecord, toolset: Toolset | undefined): boolean {
  return toolset === undefined || (toolset.bridge?.behind ?? toolset).get(tool) !== undefined;
}

function hasEnded({ status }: TaskRecord): boolean {
  return status !== "working" && status !== "input_required";
}

function mayRunAgain({ idempotent, attempts }: TaskRecord): boolean {
  return idempotent && attempts < MAX_ATTEMPTS;
}

function progressOf({ progress }: Run): Pick<TaskRecord, "progress"> {
  return progress === undefined ? {} : { progress };
}

function newId(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(16)));
}

/** The key of a task; `undefined` for what is no id. */
async function keyOf(id: string, principal: string | undefined): Promise<string | undefined> {
  return typeof id === "string" && ID.test(id)
    ? `task.${await ownerDigest(principal)}.${id}`
    : undefined;
}

function bytesOf(record: TaskRecord): Uint8Array {
  return ENCODER.encode(JSON.stringify(record));
}

function parse(value: Uint8Array): TaskRecord {
  return JSON.parse(DECODER.decode(value));
}
