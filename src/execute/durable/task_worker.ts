/** Claims the tasks that wait in a store, and runs them in this process. */

import { type Clock, type HookLog, within } from "../../tool/mod.ts";
import type { ToolDispatcher } from "../tool_dispatcher.ts";
import type { DueEntry } from "./call_store.ts";
import { Quotas } from "./quotas.ts";
import type { Lease } from "./records.ts";
import type { TaskEngine } from "./task_engine.ts";
import type { WorkOptions } from "./task_queue.ts";
import type { TaskRecord, TaskRecords } from "./task_records.ts";

/** The tasks of a process. */
export interface TaskHost {
  readonly records: TaskRecords;
  readonly engine: TaskEngine<TaskRecord>;
  readonly clock: Clock;
  readonly pollMs: number;
  readonly log: HookLog;
  /** Returns true if the principal has the maximum number of running tasks. */
  isFull(owner: string): boolean;
  /** Returns the record; with a failure if its process has died and its tool does not run again. */
  judge(record: TaskRecord): TaskRecord;
  run(dispatcher: ToolDispatcher, lease: Lease<TaskRecord>, ended: () => void): void;
  /** Is called for a task that has failed because its process died. */
  died(key: string, tool: string): Promise<void>;
}

/** The place of a running task among those of a process. */
interface Taken {
  end(): void;
}

interface TakenTasks {
  readonly taken: number;
  /** The entry after which the next ones are read; none after the last one. */
  readonly last?: DueEntry | undefined;
}

/** Returns nothing for a tool that this process cannot run now, and `"full"` if it can run none. */
type TakePlace = (tool: string) => Taken | "full" | undefined;

/** The number of tasks that are read at a time after the first ones. */
const PAGE = 128;
/** The maximum number of tasks that `recover` runs, and that `queue` returns. */
const MAX_DUE = 1_000;
/** The bytes of tasks after which other work of the process continues. */
const TURN_BYTES = 262_144;
/** The size of a task that takes as long as its claim, in bytes. */
const CLAIM_BYTES = 4_096;
const NONE_DUE: TakenTasks = { taken: 0 };

export class TaskWorker {
  readonly #host: TaskHost;
  /** The bytes of tasks that were read since other work has continued. */
  #readBytes = 0;

  constructor(host: TaskHost) {
    this.#host = host;
  }

  async recover(dispatcher: ToolDispatcher): Promise<number> {
    const take: TakePlace = () => ({ end() {} });
    let [count, after] = [0, undefined as DueEntry | undefined];
    do {
      const { taken, last } = await this.#takeDue(dispatcher, PAGE, take, after, false);
      count += taken;
      after = last;
    } while (after !== undefined && count < MAX_DUE);
    return count;
  }

  async work(
    dispatcher: ToolDispatcher,
    { concurrency = 16, toolConcurrency = {}, signal }: WorkOptions,
  ): Promise<void> {
    const running = new Quotas<string>(concurrency, Infinity);
    const most = new Map(Object.entries(toolConcurrency));
    let wake = (): void => {};
    const take: TakePlace = (tool) => {
      if (signal.aborted || running.exceeded(tool, 1) !== undefined) return "full";
      if (running.usedBy(tool) >= (most.get(tool) ?? Infinity)) return undefined;
      running.add(tool, 1);
      return { end: () => (running.add(tool, -1), wake()) };
    };
    const takeDue = (limit: number, after?: DueEntry): Promise<TakenTasks> =>
      this.#takeDue(dispatcher, limit, take, after).catch((error) => {
        this.#host.log(error);
        return NONE_DUE;
      });
    let after: DueEntry | undefined;
    signal.addEventListener("abort", () => wake(), { once: true });
    while (!signal.aborted) {
      const ended = new Promise<void>((resolve) => wake = resolve);
      const begunAt = this.#host.clock.now();
      const free = concurrency - running.total;
      const first = free === 0 ? NONE_DUE : await takeDue(Math.min(2 * free, PAGE));
      // The first ones may be of tools that are busy, or that other processes have.
      const next = first.last === undefined ? NONE_DUE : await takeDue(PAGE, after ?? first.last);
      after = next.last;
      if (signal.aborted) break;
      // Reading large tasks in vain must not take most of the time.
      const isVain = first.taken + next.taken === 0;
      const waitMs = isVain ? 9 * (this.#host.clock.now() - begunAt) : 0;
      const pollMs = after === undefined ? this.#host.pollMs : 0;
      await within(this.#host.clock, Math.max(pollMs, waitMs), ended);
    }
    while (running.total > 0) await new Promise<void>((resolve) => wake = resolve);
  }

  /**
   * Claims tasks that are due, and runs them in this process.
   *
   * @param after The entry after which they are read.
   * @param isWorker If true, tasks of dead processes whose tool is unknown here are left to others.
   */
  async #takeDue(
    dispatcher: ToolDispatcher,
    limit: number,
    take: TakePlace,
    after: DueEntry | undefined,
    isWorker = true,
  ): Promise<TakenTasks> {
    let count = 0;
    const { store } = this.#host.records;
    const due = await store.due("task", this.#host.records.now(), limit, after);
    for (const { key, value } of shuffled(due)) {
      await this.#turn(value);
      const record = this.#decoded(key, value);
      if (record === undefined) continue;
      const { tool, idempotent } = record;
      const isUnknown = dispatcher.toolset.resolve(tool) === undefined;
      const isLeft = record.holder === "" || (isWorker && this.#host.judge(record) === record);
      if (isUnknown && isLeft) continue;
      const [, owner = ""] = key.split(".");
      if (this.#host.isFull(owner)) continue;
      const place = take(tool);
      if (place === "full") return { taken: count, last: after };
      if (place === undefined) continue;
      const { lease, died } = await this.#host.engine.claim(key, tool, idempotent).catch(
        (error) => {
          place.end();
          throw error;
        },
      );
      if (lease !== undefined) {
        this.#host.run(dispatcher, lease, place.end);
        count++;
      } else {
        place.end();
        if (died) await this.#host.died(key, tool);
      }
    }
    return { taken: count, last: due.at(-1) };
  }

  /** Lets other work of the process continue from time to time: a store in memory never waits. */
  async #turn({ byteLength }: Uint8Array): Promise<void> {
    this.#readBytes += byteLength + CLAIM_BYTES;
    if (this.#readBytes < TURN_BYTES) return;
    this.#readBytes = 0;
    await new Promise<void>((resolve) => void this.#host.clock.setTimeout(resolve, 0));
  }

  /** Returns the record of a task; `undefined` for a foreign entry, so that later tasks still run. */
  #decoded(key: string, value: Uint8Array): TaskRecord | undefined {
    try {
      const record = this.#host.records.decode(value, key);
      if (typeof record.tool === "string") return record;
      throw new TypeError("it is not a task");
    } catch (error) {
      this.#host.log(new Error(`Cannot read "${key}" in the store of calls`, { cause: error }));
      return undefined;
    }
  }

  /** Returns the records of the tasks that run or wait, without their arguments: the first 1,000. */
  async dueRecords(): Promise<readonly TaskRecord[]> {
    const due = await this.#host.records.store.due("task", Number.MAX_SAFE_INTEGER, MAX_DUE);
    const records: TaskRecord[] = [];
    for (const { key, value } of due) {
      await this.#turn(value);
      const record = this.#decoded(key, value);
      // Its arguments may be large.
      if (record !== undefined) records.push({ ...record, arguments: null });
    }
    return records;
  }
}

/** Several workers read the same tasks: in different orders, they seldom claim the same one. */
function shuffled<T>(items: readonly T[]): readonly T[] {
  return items.map((item) => [Math.random(), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);
}
