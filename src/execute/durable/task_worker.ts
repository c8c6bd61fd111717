/** Claims the tasks that wait in a store, and runs them in this process. */

import { fail, TIME_OVER, within } from "../../tool/mod.ts";
import type { ToolDispatcher } from "../tool_dispatcher.ts";
import type { DueEntry } from "./call_store.ts";
import type { Lease } from "./records.ts";
import { beginRun } from "./task_engine.ts";
import type { TaskRecord } from "./task_records.ts";
import type { TaskRuns } from "./task_runs.ts";

/** The slot of a running task in a process. */
interface Taken {
  end(): void;
}

export interface TakenTasks {
  readonly taken: number;
  /** The entry after which the next page begins; absent after the last page. */
  readonly last?: DueEntry | undefined;
}

/** Returns a slot; `undefined` if the tool cannot run here now; `"full"` if no tool can. */
export type TakePlace = (tool: string) => Taken | "full" | undefined;

/** The number of tasks that a read after the first read returns. */
export const PAGE = 128;
/** The maximum number of tasks that `recover` runs, and that `state` reads. */
export const MAX_DUE = 1_000;
/** The bytes of tasks after which the worker lets other work of the process run. */
const TURN_BYTES = 262_144;
/** The size of a task that takes as long as its claim, in bytes. */
const CLAIM_BYTES = 4_096;

export class TaskWorker {
  readonly #host: TaskRuns;
  /** The bytes of tasks that were read since other work last ran. */
  #readBytes = 0;

  constructor(host: TaskRuns) {
    this.#host = host;
  }

  async recover(dispatcher: ToolDispatcher): Promise<number> {
    const take: TakePlace = () => ({ end() {} });
    let [count, after] = [0, undefined as DueEntry | undefined];
    do {
      const { taken, last } = await this.takeDue(dispatcher, PAGE, take, after, false);
      count += taken;
      after = last;
    } while (after !== undefined && count < MAX_DUE);
    return count;
  }

  /**
   * Claims tasks that are due, and runs them in this process.
   *
   * @param after The entry after which they are read.
   * @param isWorker If true, tasks of dead processes with an unknown tool are left to other workers.
   */
  async takeDue(
    dispatcher: ToolDispatcher,
    limit: number,
    take: TakePlace,
    after: DueEntry | undefined,
    isWorker = true,
  ): Promise<TakenTasks> {
    let count = 0;
    const { store } = this.#host.records;
    const due = await store.due("task", this.#host.records.now(), limit, after);
    for (const entry of shuffled(due)) {
      const { key } = entry;
      const record = await this.read(entry);
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
        this.#runAgain(dispatcher, lease, place.end);
        count++;
      } else {
        place.end();
        if (died) await this.#host.failed(key, tool);
      }
    }
    return { taken: count, last: due.at(-1) };
  }

  /** Runs a stored call from its beginning. */
  #runAgain(dispatcher: ToolDispatcher, lease: Lease<TaskRecord>, ended: () => void): void {
    const { tool: name, arguments: args, callId, attempts, ...ids } = lease.record;
    const { sessionId, messageId, principal } = ids;
    // From the second run on without the key: the run of a process that died may still hold it.
    const idempotencyKey = attempts === 1 ? ids.idempotencyKey : undefined;
    const context = {
      ...{ principal: principal ?? undefined, sessionId, messageId },
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    };
    const run = beginRun(context, async (own) => {
      const context = await this.#contextOf(dispatcher, lease.record);
      const call = { name, arguments: args, callId };
      return await dispatcher.dispatch(call, { ...own, ...(context !== undefined && { context }) });
    });
    this.#host.keep(lease, run, undefined, ended);
  }

  /** Returns the context of a resumed call from the host, if its tool declares one. */
  async #contextOf({ toolset }: ToolDispatcher, record: TaskRecord): Promise<unknown> {
    const { tool, principal, sessionId, messageId } = record;
    if (toolset.resolve(tool)?.context === undefined) return undefined;
    const { callContext, clock, records: { leaseMs }, log } = this.#host;
    try {
      const call = { tool, principal: principal ?? undefined, sessionId, messageId };
      const context = await within(clock, leaseMs, Promise.resolve(callContext?.(call)));
      return context === TIME_OVER ? fail("take up a task", "callContext took too long") : context;
    } catch (error) {
      log(error);
      return undefined;
    }
  }

  /**
   * Returns the record of a task; `undefined` for a foreign entry, so that later tasks still run. Lets
   * other work of the process continue from time to time: a store in memory never waits.
   */
  async read({ key, value }: DueEntry): Promise<TaskRecord | undefined> {
    this.#readBytes += value.byteLength + CLAIM_BYTES;
    if (this.#readBytes >= TURN_BYTES) {
      this.#readBytes = 0;
      await new Promise<void>((resolve) => void this.#host.clock.setTimeout(resolve, 0));
    }
    try {
      const record = this.#host.records.decode(value, key);
      if (typeof record.tool === "string") return record;
      throw new TypeError("it is not a task");
    } catch (error) {
      this.#host.log(new Error(`Cannot read "${key}" in the store of calls`, { cause: error }));
      return undefined;
    }
  }
}

/** Several workers read the same tasks. In different orders, they seldom claim the same task. */
function shuffled<T>(items: readonly T[]): readonly T[] {
  return items.map((item) => [Math.random(), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);
}
