/** The contract of rate limits and tasks, which use a {@linkcode CallStore}. */

import { describe, it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { ToolDispatcher, ToolRegistry, ToolResult } from "../../mod.ts";
import { type RateLimitStore, storedRateLimits } from "../../src/adapters/http/request_counts.ts";
import { type CallStore, taskQueue, type TaskQueueOptions } from "../../src/execute/durable/mod.ts";
import type { StoreTime } from "./call_store_contract.ts";
import { losesOften, losingStore } from "./losing_store.ts";
import { poll } from "../support/waiting.ts";

/** Declares the tests of the counts of two processes that share them. */
export function describeRateLimits(
  name: string,
  time: () => StoreTime,
  create: (time: StoreTime) => Promise<readonly [RateLimitStore, RateLimitStore]>,
): void {
  const WINDOW = { limit: 5, windowMs: 1_000 };

  describe(name, () => {
    it("counts an amount entirely or not at all, and nothing for an amount of 0", async () => {
      const [first, second] = await create(time());
      const counts = [];
      for (const amount of [0, 4, 2, 1, 1, 0]) {
        const { count } = await (counts.length % 2 ? first : second).take("ann", amount, WINDOW);
        counts.push(count);
      }
      assertEquals(counts, [0, 4, 6, 5, 6, 5]);
    });

    it("counts no more than the limit concurrently", async () => {
      const processes = await create(time());
      const taken = await Promise.all(
        Array.from({ length: 10 }, (_, at) => processes[at % 2 ? 1 : 0].take("ann", 1, WINDOW)),
      );
      assertEquals(taken.map(({ count }) => count).toSorted(), [1, 2, 3, 4, 5, 6, 6, 6, 6, 6]);
    });

    it("opens a window when the previous one has ended", async () => {
      const own = time();
      const [first, second] = await create(own);
      assertEquals((await first.take("ann", 5, WINDOW)).count, 5);
      own.pass(999);
      const { count, resetMs } = await second.take("ann", 1, WINDOW);
      assertEquals([count, own.isReal ? 1 : resetMs], [6, 1]);
      own.pass(1);
      await poll(async () => !own.isReal || (await second.take("ann", 0, WINDOW)).count === 0);
      assertEquals((await first.take("ann", 1, WINDOW)).count, 1);
    });

    it("accepts every string as a key", async () => {
      const [counts] = await create(time());
      for (const key of ["__proto__", "constructor", ""]) {
        assertEquals((await counts.take(key, 1, WINDOW)).count, 1);
      }
    });
  });
}

/** Declares the tests of rate limits and tasks of two processes that share a store. */
export function describeStoreUsers(
  name: string,
  time: () => StoreTime,
  create: (time: StoreTime) => Promise<readonly [CallStore, CallStore]>,
): void {
  describeRateLimits(`storedRateLimits() on ${name}`, time, async (time) => {
    const [first, second] = await create(time);
    const options = { clock: time };
    return [storedRateLimits(first, options), storedRateLimits(second, options)];
  });

  describe(`taskQueue() on ${name}`, () => {
    async function work(
      execute: (params: unknown) => unknown,
      losses: ReturnType<typeof losesOften> = () => undefined,
      options: Partial<TaskQueueOptions> = {},
    ) {
      const open = (store: CallStore) =>
        taskQueue({ store: losingStore(store, losses), pollMs: 5, ...options });
      const [tasks, other] = await create(time()).then(([one, two]) =>
        [open(one), open(two)] as const
      );
      const stop = new AbortController();
      const parameters = { type: "object", properties: { at: { type: "integer" } } };
      const tool = { name: "job", description: "Works.", parameters, idempotent: true, execute };
      const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [tool] }));
      const workers = [tasks, other].map((one) => one.work(dispatcher, { signal: stop.signal }));
      const end = async (): Promise<void> => {
        stop.abort();
        await Promise.all(workers);
      };
      return {
        ...{ tasks, other, stop: end },
        // A worker that a failed test leaves behind would keep the process alive.
        [Symbol.asyncDispose]: end,
        async start(at: number): Promise<string> {
          const task = await tasks.enqueue(dispatcher, { name: "job", arguments: { at } });
          assert("id" in task, JSON.stringify(task));
          return task.id;
        },
        async ended(id: string): Promise<unknown> {
          let result: ToolResult | undefined;
          for await (const state of other.follow(id)) result = state.result;
          return result?.ok ? result.content : result?.error.code;
        },
      };
    }

    for (const when of ["in two processes", "while answers of the store are lost"]) {
      it(`runs each of 20 tasks once ${when}`, async () => {
        const runs: unknown[] = [];
        const losses = when === "in two processes" ? () => undefined : losesOften();
        await using workers = await work((params) => runs.push(params), losses);
        const { start, ended, stop } = workers;
        const ids = await Promise.all(Array.from({ length: 20 }, (_, at) => start(at)));
        await Promise.all(ids.map(ended));
        await stop();
        assertEquals([runs.length, new Set(runs.map((run) => JSON.stringify(run))).size], [20, 20]);
      });
    }

    it("repeats a failed task, marks it as dead, and runs it again on demand", async () => {
      let runs = 0;
      const down = ToolResult.error("unavailable", "The server is away");
      const retries = { job: { maxAttempts: 2, initialDelayMs: 1 } };
      const run = () => ++runs < 3 ? down : runs;
      await using workers = await work(run, undefined, { retries });
      const { tasks, other, start, ended } = workers;
      const id = await start(0);
      assertEquals(await ended(id), "unavailable");
      await poll(async () => (await other.deadTasks()).length > 0);
      assertEquals((await tasks.deadTasks()).map((task) => [task.id, task.attempts]), [[id, 2]]);
      assertEquals((await other.runAgain(id))?.status, "working");
      assertEquals(await ended(id), 3);
      assertEquals(await tasks.deadTasks(), []);
    });
  });
}
