/** The records of tasks in a store, and their changes by several processes. */

import type { Answers, Clock, Question, Tool, ToolResult } from "../../tool/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import type { DispatchContext, ToolCall, ToolProgress } from "../request.ts";
import type { CallStore, StoreOptions } from "./call_store.ts";
import {
  contextDigest,
  Lease,
  type LeasedRecord,
  LeasedRecords,
  newId,
  ownerDigest,
} from "./records.ts";
import type { RunRecord } from "./task_engine.ts";

/** The status of a task. The last three are final. */
export type TaskStatus = "working" | "input_required" | "completed" | "failed" | "cancelled";

/** The public form of a task. JSON. */
export interface TaskState {
  readonly id: string;
  readonly status: TaskStatus;
  /** The tool's id. */
  readonly tool: string;
  /** The id of the call; the task's own id for a resumed call. */
  readonly callId: string;
  /** The time of creation, in milliseconds since 1970. */
  readonly createdAt: number;
  /** The time of the last change, in milliseconds since 1970. */
  readonly updatedAt: number;
  /** The lifetime of the task after its last change, in milliseconds. */
  readonly ttlMs: number;
  /** The recommended polling interval, in milliseconds. */
  readonly pollMs: number;
  readonly progress?: ToolProgress;
  /** The last states of the calls of a program (`type: "call"`), at most 16 kB of JSON. */
  readonly metadata?: readonly unknown[];
  /** The questions of the task, while its status is `input_required`. */
  readonly questions?: readonly Question[];
  /** The result of the task, after its end. */
  readonly result?: ToolResult;
}

/** The principal of the tasks. */
export interface TaskOwner {
  readonly principal?: string | undefined;
  /**
   * The caller's current toolset. Only tasks of its tools, and of the target tools if it is a bridge,
   * are found. By default, all tasks of the principal are found.
   */
  readonly toolset?: Toolset | undefined;
}

export interface TaskRecord extends Omit<TaskState, "pollMs">, RunRecord {
  readonly version: 1;
  readonly principal: string | null;
  readonly arguments: unknown;
  readonly sessionId?: string | undefined;
  readonly messageId?: string | undefined;
  readonly idempotencyKey?: string | undefined;
  readonly context?: string | undefined;
  readonly tenant?: unknown;
  readonly idempotent: boolean;
  /** False if another process cannot run the call. */
  readonly isRepeatable?: boolean;
  /** The number of runs before the last retry. `attempts` counts the runs since then. */
  readonly runs?: number;
  /** The number of runs that failed before the tool ran. */
  readonly refusals?: number;
  /** The name of the process that runs the task, or ran it last. */
  readonly worker?: string | undefined;
  readonly ticket?: string;
  /** The answers that have arrived, while answers to other questions are missing. */
  readonly answers?: Answers;
  readonly result?: ToolResult;
  readonly questions?: readonly Question[];
}

export interface NewTask {
  readonly owner: string;
  readonly id: string;
  readonly tool: Tool;
  readonly call: ToolCall;
  readonly context: DispatchContext;
  /** False if another process cannot run the call. */
  readonly isRepeatable?: boolean;
}

/** The last millisecond that an id can represent, in the year 2527. */
const END_OF_TIME = 2 ** 44 - 1;
const ID = /^[0-9a-f]{11}[\w-]{22}$/;

interface TaskTimes {
  readonly ttlMs: number;
  readonly leaseMs: number;
  /** The interval at which changes of other processes are read. */
  readonly pollMs: number;
  readonly name?: string | undefined;
}

export class TaskRecords extends LeasedRecords<TaskRecord> {
  readonly ttlMs: number;
  readonly #pollMs: number;
  readonly #name: string | undefined;
  /** Waiters for a change in this process, by key. */
  readonly #waiting: Map<string, Set<() => void>> = new Map();

  constructor(store: CallStore, clock: Clock, { ttlMs, leaseMs, pollMs, name }: TaskTimes) {
    super(
      store,
      ({ updatedAt, heldUntil, runAt = 0, ttlMs }) => Math.max(updatedAt, heldUntil, runAt) + ttlMs,
      clock,
      leaseMs,
    );
    this.ttlMs = ttlMs;
    this.#pollMs = pollMs;
    this.#name = name;
  }

  /** A task is due at the time of its next run, or when the lease of its process ends. */
  override optionsOf(record: TaskRecord): StoreOptions {
    const { holder, heldUntil, runAt } = record;
    const dueAt = holder === "" ? runAt : heldUntil;
    return { ...super.optionsOf(record), ...(dueAt !== undefined && { dueAt }) };
  }

  override newLease(): LeasedRecord & Pick<TaskRecord, "worker"> {
    return { ...super.newLease(), worker: this.#name };
  }

  /** Returns an id that sorts before the ids of older tasks, because stores list by key. */
  newId(): string {
    const age = END_OF_TIME - Math.floor(this.clock.timestamp());
    return age.toString(16).padStart(11, "0") + newId();
  }

  /** Stores the record of a new task, with a lease of this process. */
  async make(task: NewTask): Promise<Lease<TaskRecord>> {
    const [key, record] = await this.#recordOf(task, { attempts: 1, ...this.newLease() });
    const revision = await this.write(key, record) ?? 0;
    return new Lease(this, key, { record, revision });
  }

  /** Stores the record of a new task, which waits for a process. */
  async enqueue(task: NewTask, runAt: number): Promise<TaskRecord> {
    const waiting = { attempts: 0, holder: "", heldUntil: 0, runAt };
    const [key, record] = await this.#recordOf(task, waiting);
    await this.write(key, record);
    return record;
  }

  async #recordOf(
    { owner, id, tool, call, context, isRepeatable = true }: NewTask,
    run: Omit<RunRecord, "result" | "questions">,
  ): Promise<readonly [key: string, TaskRecord]> {
    const { principal = null, sessionId, messageId, idempotencyKey } = context;
    const now = this.clock.timestamp();
    const record: TaskRecord = {
      ...{ version: 1, id, status: "working", tool: tool.id, callId: call.callId ?? id },
      ...{ createdAt: now, updatedAt: now, ttlMs: this.ttlMs, principal },
      ...{ arguments: call.arguments, sessionId, messageId, idempotencyKey },
      context: await contextDigest(context.context),
      tenant: Object(context.context).tenant,
      ...{ idempotent: tool.idempotent && isRepeatable, ...(!isRepeatable && { isRepeatable }) },
      ...run,
    };
    return [`task.${owner}.${id}`, record];
  }

  override async write(
    key: string,
    record: TaskRecord,
    revision?: number,
  ): Promise<number | undefined> {
    const written = await super.write(key, record, revision);
    if (written !== undefined) { for (const notify of this.#waiting.get(key) ?? []) notify(); }
    return written;
  }

  touched(): Pick<TaskRecord, "updatedAt"> {
    return { updatedAt: this.clock.timestamp() };
  }

  /** `came` resolves at a change of this process, after the polling interval, or at an abort. */
  nextChange(
    key: string,
    signal: AbortSignal | undefined,
  ): { readonly came: Promise<void>; cancel(): void } {
    let notify = (): void => {};
    const came = new Promise<void>((resolve) => notify = resolve);
    const waiting = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiting.add(notify));
    const disarm = this.clock.setTimeout(notify, this.#pollMs);
    signal?.addEventListener("abort", notify, { once: true });
    return {
      came,
      cancel: () => {
        disarm();
        signal?.removeEventListener("abort", notify);
        waiting.delete(notify);
        if (waiting.size === 0) this.#waiting.delete(key);
      },
    };
  }

  shown(record: TaskRecord): TaskState {
    const { id, status, tool, callId, createdAt, updatedAt, ttlMs } = record;
    const { progress, metadata, questions, result } = record;
    return {
      ...{ id, status, tool, callId, createdAt, updatedAt, ttlMs, pollMs: this.#pollMs },
      ...(progress && { progress }),
      ...(metadata && { metadata }),
      ...(questions && { questions }),
      ...(result && { result }),
    };
  }
}

/** Returns true if the caller's toolset contains the tool of a task. */
export function isSeen({ tool }: TaskRecord, toolset: Toolset | undefined): boolean {
  return toolset === undefined || toolset.get(tool) !== undefined;
}

export function hasEnded({ status }: TaskRecord): boolean {
  return status !== "working" && status !== "input_required";
}

/** Returns the key of a task, or `undefined` for an invalid id. */
export async function keyOf(
  id: string,
  principal: string | undefined,
): Promise<string | undefined> {
  return typeof id === "string" && ID.test(id)
    ? `task.${await ownerDigest(principal)}.${id}`
    : undefined;
}
