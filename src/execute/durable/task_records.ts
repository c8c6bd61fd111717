/**
 * The records of tasks in a store, and their changes by several processes.
 *
 * @module
 */

import type { Answers, Clock, Question, Tool, ToolResult } from "../../tool/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import { failure } from "../failures.ts";
import type { DispatchContext, ToolCall, ToolProgress } from "../request.ts";
import type { CallStore } from "./call_store.ts";
import { base64url, contextDigest, ownerDigest } from "./digest.ts";

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
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** Milliseconds since 1970. */
  readonly updatedAt: number;
  /** The lifetime of the task after its last change, in milliseconds. */
  readonly ttlMs: number;
  /** The recommended polling interval, in milliseconds. */
  readonly pollMs: number;
  readonly progress?: ToolProgress;
  /** Its questions, while its status is `input_required`. */
  readonly questions?: readonly Question[];
  /** Its result, after its end. */
  readonly result?: ToolResult;
}

/** The private fields of a record. */
export interface TaskRecord extends Omit<TaskState, "pollMs"> {
  readonly version: 1;
  readonly principal: string | null;
  readonly arguments: unknown;
  readonly sessionId?: string | undefined;
  readonly messageId?: string | undefined;
  readonly idempotencyKey?: string | undefined;
  /** A digest of the host's context. */
  readonly context?: string | undefined;
  /** The id of the run that holds the lease. */
  readonly holder: string;
  /** The end of the lease, in milliseconds since 1970. */
  readonly heldUntil: number;
  /** The number of starts of its tool. */
  readonly attempts: number;
  readonly idempotent: boolean;
  readonly ticket?: string;
  /** Answers that have arrived, while others are missing. */
  readonly answers?: Answers;
}

/** The maximum number of runs after processes died. */
const MAX_ATTEMPTS = 3;
/** The last millisecond that an id can represent, in the year 2527. */
const END_OF_TIME = 2 ** 44 - 1;
/** The maximum number of attempts of a change during concurrent changes. */
const MAX_CHANGES = 32;
const ID = /^[0-9a-f]{11}[\w-]{22}$/;
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** Times in milliseconds. */
interface TaskTimes {
  /** The lifetime of a record after its last change. */
  readonly ttlMs: number;
  /** The duration of a lease. */
  readonly leaseMs: number;
  /** The interval at which changes of other processes are read. */
  readonly pollMs: number;
}

export class TaskRecords {
  readonly #store: CallStore;
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #leaseMs: number;
  readonly #pollMs: number;
  /** Waiters for a change in this process, by key. */
  readonly #waiting: Map<string, Set<() => void>> = new Map();

  constructor(store: CallStore, clock: Clock, { ttlMs, leaseMs, pollMs }: TaskTimes) {
    this.#store = store;
    this.#clock = clock;
    this.#ttlMs = ttlMs;
    this.#leaseMs = leaseMs;
    this.#pollMs = pollMs;
  }

  /** A store lists by key: the id of a newer task begins with a smaller number. */
  newId(): string {
    const age = END_OF_TIME - Math.floor(this.#clock.timestamp());
    return age.toString(16).padStart(11, "0") + newId();
  }

  /** Creates the record of a new call. */
  async make(
    id: string,
    tool: Tool,
    call: ToolCall,
    context: DispatchContext,
  ): Promise<TaskRecord> {
    const { principal = null, sessionId, messageId, idempotencyKey } = context;
    const now = this.#clock.timestamp();
    return {
      ...{ version: 1, id, status: "working", tool: tool.id, callId: call.callId ?? id },
      ...{ createdAt: now, updatedAt: now, ttlMs: this.#ttlMs, principal },
      ...{ arguments: call.arguments, sessionId, messageId, idempotencyKey },
      context: await contextDigest(context.context),
      ...{ holder: newId(), attempts: 1, idempotent: tool.idempotent },
      ...this.held(),
    };
  }

  async create(owner: string, record: TaskRecord): Promise<void> {
    await this.#store.create(`task.${owner}.${record.id}`, bytesOf(record), this.#life(record));
  }

  /** Returns a record with its final state. */
  ended(record: TaskRecord, status: TaskStatus, result: ToolResult): TaskRecord {
    const { questions: _questions, ticket: _ticket, answers: _answers, ...rest } = record;
    return { ...rest, ...this.touched(), status, result };
  }

  /** Returns a record whose process has died. */
  died(record: TaskRecord): TaskRecord {
    const why = "its process ended before it did; it may have run";
    const details = { retryable: record.idempotent, ran: "unknown" } as const;
    return this.ended(record, "failed", failure("unavailable", record.tool, why, details));
  }

  isDead({ status, heldUntil }: TaskRecord): boolean {
    return status === "working" && heldUntil <= this.#clock.timestamp();
  }

  /**
   * Returns the current state of a record: after the death of its process it has failed, unless
   * another process resumes it.
   */
  judged(record: TaskRecord): TaskRecord {
    return this.isDead(record) && !mayRunAgain(record) ? this.died(record) : record;
  }

  /** Returns the time fields of a changed record. */
  touched(): Pick<TaskRecord, "updatedAt"> {
    return { updatedAt: this.#clock.timestamp() };
  }

  /** Renews the lease of the process that runs the call. */
  held(): Pick<TaskRecord, "heldUntil"> {
    return { heldUntil: this.#clock.timestamp() + this.#leaseMs };
  }

  #life({ updatedAt, heldUntil, ttlMs }: TaskRecord): { readonly expiresAt: number } {
    return { expiresAt: Math.max(updatedAt, heldUntil) + ttlMs };
  }

  async read(key: string): Promise<TaskRecord | undefined> {
    const stored = await this.#store.get(key);
    if (stored === undefined) return undefined;
    const record = parse(stored.value);
    const judged = this.judged(record);
    if (judged === record) return record;
    return await this.change(
      key,
      (now) => this.isDead(now) && !mayRunAgain(now) ? this.died(now) : undefined,
    );
  }

  /**
   * Changes a record. Other processes may change it at the same time.
   *
   * @param change Returns the new record, or `undefined` to leave it unchanged.
   * @returns The current record, or `undefined` if there is none.
   */
  async change(
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

  /** Resolves at a change of this process, at the polling interval, or when the signal aborts. */
  nextChange(
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

  /** Returns the public form of a record. */
  shown(record: TaskRecord): TaskState {
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

/** Returns true if the caller's toolset contains the tool of a task. */
export function isSeen({ tool }: TaskRecord, toolset: Toolset | undefined): boolean {
  return toolset === undefined || (toolset.bridge?.behind ?? toolset).get(tool) !== undefined;
}

export function hasEnded({ status }: TaskRecord): boolean {
  return status !== "working" && status !== "input_required";
}

export function mayRunAgain({ idempotent, attempts }: TaskRecord): boolean {
  return idempotent && attempts < MAX_ATTEMPTS;
}

export function newId(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(16)));
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

function bytesOf(record: TaskRecord): Uint8Array {
  return ENCODER.encode(JSON.stringify(record));
}

export function parse(value: Uint8Array): TaskRecord {
  return JSON.parse(DECODER.decode(value));
}
