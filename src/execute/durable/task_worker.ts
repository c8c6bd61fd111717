/** Claims waiting tasks of a store, and runs these tasks in this process. */

import { fail, TIME_OVER, within } from "../../tool/mod.ts";
import type { ToolDispatcher } from "../tool_dispatcher.ts";
import type { DueEntry } from "./call_store.ts";
import type { Lease } from "./records.ts";
import { beginRun } from "./task_engine.ts";
import type { TaskRecord } from "./task_records.ts";
import type { RecoveredCall, TaskRuns } from "./task_runs.ts";

export interface TakenTasks {
  readonly taken: number;
  /** The entry after which the next page begins; absent after the last page. */
  readonly last?: DueEntry | undefined;
}

/**
 * Takes a slot of this process for a task; returns `undefined` if the tool has no free slot, and
 * `"full"` if no tool has one.
 */
export type TakeSlot = (tool: string) => { end(): void } | "full" | undefined;

/** The maximum number of tasks that one read returns. */
export const PAGE = 128;
/** The maximum number of tasks that `recover` runs, and that `state` reads. */
export const MAX_DUE = 1_000;
/** After reading this number of bytes, the worker pauses for other work of the process. */
const TURN_BYTES = 262_144;
/** The cost of claiming a task: the number of bytes that could be read in the same time. */
const CLAIM_BYTES = 4_096;

export class TaskWorker {
  readonly #host: TaskRuns;
  /** The bytes of tasks that were read since the last pause. */
  #readBytes = 0;

  constructor(host: TaskRuns) {
    this.#host = host;
  }

  async recover(dispatcher: ToolDispatcher): Promise<number> {
    const take: TakeSlot = () => ({ end() {} });
    let [count, after] = [0, undefined as DueEntry | undefined];
    do {
      const { taken, last } = await this.takeDue(dispatcher, PAGE, take, after, false);
      count += taken;
      after = last;
    } while (after !== undefined && count < MAX_DUE);
    return count;
  }

  /**
   * Claims due tasks, and runs these tasks in this process.
   *
   * @param after The entry after which the tasks are read.
   * @param isWorker If true, other workers run tasks of dead processes with an unknown tool.
   */
  async takeDue(
    dispatcher: ToolDispatcher,
    limit: number,
    take: TakeSlot,
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
      const found = dispatcher.toolset.resolve(tool);
      const isUnknown = found === undefined || !dispatcher.toolset.isAvailable(found);
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
    const { tool, arguments: args, callId, attempts, tenant, ...ids } = lease.record;
    const { sessionId, messageId } = ids;
    // Later runs have no key, because the run of a process that has died may still hold the key.
    const idempotencyKey = attempts === 1 ? ids.idempotencyKey : undefined;
    const caller = { principal: ids.principal ?? undefined, sessionId, messageId };
    const run = beginRun({ ...caller, idempotencyKey }, async (own) => {
      const context = await this.#contextOf(dispatcher, { tool, tenant, ...caller });
      return await dispatcher.dispatch({ name: tool, arguments: args, callId }, {
        ...own,
        context,
      });
    });
    this.#host.keep(lease, run, undefined, ended);
  }

  /** Returns the context of a resumed call: from the host if its tool declares one, or its tenant. */
  async #contextOf({ toolset }: ToolDispatcher, call: RecoveredCall): Promise<unknown> {
    const { tool, tenant } = call;
    // Rules and credentials need the tenant.
    const known = tenant === undefined ? undefined : { tenant };
    if (toolset.resolve(tool)?.context === undefined) return known;
    const { callContext, clock, records: { leaseMs }, log } = this.#host;
    try {
      const context = await within(clock, leaseMs, Promise.resolve(callContext(call)));
      return context === TIME_OVER ? fail("resume a task", "callContext was too slow") : context;
    } catch (error) {
      log(error);
      return undefined;
    }
  }

  /**
   * Returns the record of a task; `undefined` for a foreign entry, so that later tasks still run.
   * Pauses from time to time for other work of the process, because a store in memory never waits.
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
      throw new TypeError("it is a task without a tool");
    } catch (error) {
      this.#host.log(new Error(`Cannot read "${key}" in the store of calls`, { cause: error }));
      return undefined;
    }
  }
}

/** Returns a random order, so that workers seldom claim the same task at the same time. */
function shuffled<T>(items: readonly T[]): readonly T[] {
  return items.map((item) => [Math.random(), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);
}
