/**
 * The records of tasks in a store, and how they change while several processes change them.
 *
 * @module
 */

import type { Answers, Clock, Question, Tool, ToolResult } from "../../tool/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import { failure } from "../failures.ts";
import type { DispatchContext, ToolCall, ToolProgress } from "../request.ts";
import type { CallStore } from "./call_store.ts";
import { base64url, contextDigest, ownerDigest } from "./digest.ts";

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

/** What a record holds besides what is shown. */
export interface TaskRecord extends Omit<TaskState, "pollMs"> {
  readonly version: 1;
  readonly principal: string | null;
  readonly arguments: unknown;
  readonly sessionId?: string | undefined;
  readonly messageId?: string | undefined;
  readonly idempotencyKey?: string | undefined;
  /** A digest of the host's context. */
  readonly context?: string | undefined;
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

/** Runs of a task whose processes died, at most. */
const MAX_ATTEMPTS = 3;
/** The last millisecond that an id has digits for, in the year 2527. */
const END_OF_TIME = 2 ** 44 - 1;
/** How often a change is tried while others change the record. */
const MAX_CHANGES = 32;
const ID = /^[0-9a-f]{11}[\w-]{22}$/;
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** Times in milliseconds. */
interface TaskTimes {
  /** How long a record is kept after its last change. */
  readonly ttlMs: number;
  /** How long a process holds a task without renewing it. */
  readonly leaseMs: number;
  /** How often changes of other processes are looked for. */
  readonly pollMs: number;
}

export class TaskRecords {
  readonly #store: CallStore;
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #leaseMs: number;
  readonly #pollMs: number;
  /** Those who wait for a change in this process, by key. */
  readonly #waiting: Map<string, Set<() => void>> = new Map();

  constructor(store: CallStore, clock: Clock, { ttlMs, leaseMs, pollMs }: TaskTimes) {
    this.#store = store;
    this.#clock = clock;
    this.#ttlMs = ttlMs;
    this.#leaseMs = leaseMs;
    this.#pollMs = pollMs;
  }

  /** A store lists by key: the newer a task, the smaller the number that its id begins with. */
  newId(): string {
    const age = END_OF_TIME - Math.floor(this.#clock.timestamp());
    return age.toString(16).padStart(11, "0") + newId();
  }

  /** The record of a call that begins now. */
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

  /** A record with its end. */
  ended(record: TaskRecord, status: TaskStatus, result: ToolResult): TaskRecord {
    const { questions: _questions, ticket: _ticket, answers: _answers, ...rest } = record;
    return { ...rest, ...this.touched(), status, result };
  }

  /** A record whose process has died. */
  died(record: TaskRecord): TaskRecord {
    const why = "its process ended before it did; it may have run";
    const details = { retryable: record.idempotent, ran: "unknown" } as const;
    return this.ended(record, "failed", failure("unavailable", record.tool, why, details));
  }

  isDead({ status, heldUntil }: TaskRecord): boolean {
    return status === "working" && heldUntil <= this.#clock.timestamp();
  }

  /** A record as it is now: that of a process that died has failed, if it is not taken up. */
  judged(record: TaskRecord): TaskRecord {
    return this.isDead(record) && !mayRunAgain(record) ? this.died(record) : record;
  }

  /** What a change of a record says of its time. */
  touched(): Pick<TaskRecord, "updatedAt"> {
    return { updatedAt: this.#clock.timestamp() };
  }

  /** Holds a record for the process that runs its call. */
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
   * Changes a record. Others may change it at the same time, in whatever process.
   *
   * @param change Answers the new record; `undefined` leaves it as it is.
   * @returns The record as it is then; `undefined` if there is none.
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

  /** A change of this process, the time to look for those of others, or the signal. */
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

  /** What its caller sees. */
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

/** Whether a caller sees the tool of a task. */
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

/** The key of a task; `undefined` for what is no id. */
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
