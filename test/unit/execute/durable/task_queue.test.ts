import { describe, it } from "bun:test";
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { ToolDispatcher, ToolRegistry } from "../../../../mod.ts";
import * as durable from "../../../../src/execute/durable/mod.ts";
import { memoryCallStore } from "../../../../src/execute/durable/mod.ts";
import { type ToolFailure, ToolResult } from "../../../../src/tool/mod.ts";
import { FakeClock, type FakeTool, fakeTool } from "../support.ts";

const ANN = { principal: "ann" };

/** Processes with these tools that share a store and a clock. */
function processes(tools: readonly FakeTool[], options: Partial<durable.TaskQueueOptions> = {}) {
  const clock = new FakeClock();
  const store = options.store ?? memoryCallStore({ clock });
  const controller = new AbortController();
  const errors: unknown[] = [];
  const open = (own: readonly FakeTool[] = tools, name = "here") => {
    const registry = new ToolRegistry({ tools: own.map(fakeTool) });
    const dispatcher = new ToolDispatcher(registry, { clock, graceMs: 0 });
    const onError = (error: unknown): void => void errors.push(error);
    const tasks = durable.taskQueue({ onError, pollMs: 10, name, ...options, store, clock });
    const start = async (tool: string, delayMs = 0): Promise<durable.TaskState> => {
      const task = await tasks.enqueue(dispatcher, { name: tool }, ANN, { delayMs });
      assert("id" in task, JSON.stringify(task));
      return task;
    };
    const work = (work: object = {}): Promise<void> =>
      tasks.work(dispatcher, { signal: controller.signal, ...work });
    return { tasks, dispatcher, start, work };
  };
  return { clock, store, controller, errors, open };
}

/** Lets time pass until a condition holds. */
async function later(clock: FakeClock, isTrue: () => unknown): Promise<void> {
  while (!await isTrue()) await clock.pass(10);
}

describe("taskQueue().enqueue()", () => {
  it("queues a task that a worker runs after the delay", async () => {
    const runs: number[] = [];
    const { clock, open, controller } = processes([{
      name: "job",
      execute: () => void runs.push(clock.timestamp()),
    }]);
    const { start, tasks, work } = open();
    const began = clock.timestamp();
    const { id, status } = await start("job", 1_000);
    assertEquals(status, "working");
    assertEquals(await tasks.recover(open().dispatcher), 0);
    const worked = open().work();
    await later(clock, async () => (await tasks.get(id, ANN))?.status === "completed");
    assert(runs.length === 1 && runs[0] !== undefined && runs[0] >= began + 1_000, `${runs}`);
    controller.abort();
    await worked;
    await work();
  });

  it("leaves a due task while its tool is not available", async () => {
    const job = { name: "job", execute: () => "ran" };
    const { open } = processes([job]);
    const { start, tasks, dispatcher } = open();
    const { id } = await start("job");
    const down = open([{ ...job, isAvailable: () => false }]);
    assertEquals(await down.tasks.recover(down.dispatcher), 0);
    assertEquals((await tasks.get(id, ANN))?.status, "working");
    assertEquals(await tasks.recover(dispatcher), 1);
  });

  it("can be cancelled before it runs", async () => {
    const { clock, open } = processes([{ name: "job", execute: () => "ran" }]);
    const { start, tasks, dispatcher } = open();
    const { id } = await start("job", 50);
    const { status, result } = await tasks.cancel(id, ANN) as durable.TaskState;
    assertEquals([status, (result as ToolFailure).error.ran], ["cancelled", "no"]);
    clock.advance(60);
    assertEquals(await tasks.recover(dispatcher), 0);
    assertEquals((await tasks.state()).waiting, 0);
  });

  it("rejects an invalid delay", async () => {
    const { start } = processes([{ name: "job" }]).open();
    for (const delayMs of [-1, Infinity]) {
      await assertRejects(() => start("job", delayMs), RangeError, "must be a number from 0 to 3");
    }
  });
});

describe("taskQueue().work()", () => {
  it("runs each task of a store once, with several workers", async () => {
    const runs: string[] = [];
    const { clock, open, controller } = processes([{
      name: "job",
      execute: (_, { callId }) => void runs.push(callId),
    }]);
    const { start, tasks } = open();
    for (let count = 0; count < 40; count++) await start("job");
    assertEquals((await tasks.state()).waiting, 40);
    const workers = ["a", "b", "c"].map((name) => open(undefined, name).work());
    await later(clock, () => runs.length >= 40);
    await later(clock, async () => (await tasks.state()).running.length === 0);
    assertEquals([runs.length, new Set(runs).size], [40, 40]);
    controller.abort();
    await Promise.all(workers);
  });

  it("limits the concurrent tasks, of all tools and of one tool", async () => {
    const ends: (() => void)[] = [];
    const running = { slow: 0, other: 0 };
    const slow = (name: "slow" | "other"): FakeTool => ({
      name,
      timeoutMs: 3_600_000,
      execute: () => {
        running[name]++;
        return new Promise<void>((resolve) => ends.push(() => (running[name]--, resolve())));
      },
    });
    const { clock, open, controller } = processes([slow("slow"), slow("other")]);
    const { start, tasks, work } = open();
    for (const tool of ["slow", "slow", "slow", "other", "other", "other"]) await start(tool);
    const worked = work({ concurrency: 3, toolConcurrency: { slow: 1 } });
    await later(clock, () => running.slow + running.other === 3);
    assert(running.slow <= 1, `${running.slow}`);
    const { running: shown, waiting, oldestMs } = await tasks.state();
    assertEquals([shown.length, waiting, oldestMs > 0], [3, 3, true]);
    assertEquals(new Set(shown.map(({ worker }) => worker)), new Set(["here"]));
    let ended = 0;
    while (ended < 6) {
      await later(clock, () => ends.length > 0);
      ends.shift()?.();
      ended++;
      assert(running.slow <= 1 && running.slow + running.other <= 3);
    }
    await later(clock, async () => (await tasks.state()).running.length === 0);
    controller.abort();
    await worked;
  });

  it("does not take tasks of tools that only other workers have", async () => {
    const { clock, open, controller } = processes([
      { name: "job", execute: () => "done" },
      { name: "other" },
    ]);
    const { start, tasks } = open();
    const { id } = await start("job");
    const without = open([{ name: "other" }]);
    assertEquals(await without.tasks.recover(without.dispatcher), 0);
    const worked = open().work();
    await later(clock, async () => (await tasks.get(id, ANN))?.status === "completed");
    controller.abort();
    await worked;
  });

  it("does not block timers of its process, although its store never waits", async () => {
    const ended = Promise.withResolvers<void>();
    const registry = new ToolRegistry({
      tools: [fakeTool({ name: "job", execute: () => void (--left === 0 && ended.resolve()) })],
    });
    const dispatcher = new ToolDispatcher(registry);
    const tasks = durable.taskQueue({ store: memoryCallStore() });
    let left = 1_000;
    for (let count = 0; count < left; count++) {
      await tasks.enqueue(dispatcher, { name: "job" }, ANN);
    }
    const controller = new AbortController();
    let most = 0;
    let at = performance.now();
    const timer = setInterval(() => {
      most = Math.max(most, left);
      at = performance.now();
    }, 1);
    const worked = tasks.work(dispatcher, { signal: controller.signal });
    await ended.promise;
    clearInterval(timer);
    controller.abort();
    await worked;
    assert(most > 0, `no timer ran for ${performance.now() - at} ms`);
  });

  it("finds a task behind thousands that it cannot run, as recover() does", async () => {
    const runs: string[] = [];
    const job = { name: "job", execute: () => void runs.push("job") };
    const busy = { name: "busy", execute: () => new Promise(() => {}), timeoutMs: 3_600_000 };
    const { clock, open, controller } = processes([{ name: "far" }, busy, job]);
    const { start } = open();
    for (let at = 0; at < 2_200; at++) await start(at % 2 === 0 ? "far" : "busy");
    clock.advance(1);
    await start("job");
    void open([busy, job]).work({ toolConcurrency: { busy: 1 }, concurrency: 2 });
    await later(clock, () => runs.length === 1);
    controller.abort();
    await start("job");
    const { tasks, dispatcher } = open([job]);
    const recovered = tasks.recover(dispatcher);
    await later(clock, () => runs.length === 2);
    assertEquals(await recovered, 1);
  });

  it("waits for its running tasks when its signal aborts, and reports errors of the store", async () => {
    const work = Promise.withResolvers<string>();
    const memory = memoryCallStore();
    let isAway = true;
    const { clock, open, controller, errors } = processes(
      [{ name: "job", execute: () => work.promise, timeoutMs: 3_600_000 }],
      {
        store: {
          ...memory,
          due: (...query) => isAway ? Promise.reject(new Error("Away")) : memory.due(...query),
        },
      },
    );
    const { start, tasks, ...process } = open();
    const { id } = await start("job");
    let hasEnded = false;
    const worked = process.work().then(() => hasEnded = true);
    await later(clock, () => errors.length > 0);
    isAway = false;
    await later(clock, async () => (await tasks.state()).running.length === 1);
    controller.abort();
    await clock.pass(100);
    assertEquals(hasEnded, false);
    work.resolve("done");
    await worked;
    assertEquals((await tasks.get(id, ANN))?.status, "completed");
  });

  it("skips entries that are not tasks, and reports them", async () => {
    const { store, open, errors } = processes([{ name: "job" }]);
    const { start, tasks, dispatcher } = open();
    for (const text of ["null", "{}", "wrong"]) {
      const value = new TextEncoder().encode(text.padEnd(text.length + 16));
      await store.create(`task.ann.${text.length}`, value, { dueAt: 0 });
    }
    await start("job");
    assertEquals([(await tasks.state()).waiting, errors.length], [1, 3]);
    assertEquals(await tasks.recover(dispatcher), 1);
  });

  it("limits the tasks of a principal to maxRunning, even in a store with short pages", async () => {
    const memory = memoryCallStore();
    const due: typeof memory.due = (kind, before, _, after) => memory.due(kind, before, 1, after);
    const { open } = processes([
      { name: "job", execute: () => new Promise(() => {}), timeoutMs: 3_600_000 },
    ], { maxRunning: 2, store: { ...memory, due } });
    const { start, tasks, dispatcher } = open();
    for (let count = 0; count < 4; count++) await start("job");
    assertEquals(await tasks.recover(dispatcher), 2);
  });

  it("runs a tool that has the name of a property of all objects, once", async () => {
    let runs = 0;
    const { clock, open, controller } = processes([{
      name: "constructor",
      execute: () => (runs++, ToolResult.error("unavailable", "The mail server is away")),
    }]);
    const { start, tasks, work } = open();
    const { id } = await start("constructor");
    const worked = work();
    await later(clock, async () => (await tasks.get(id, ANN))?.result !== undefined);
    controller.abort();
    await worked;
    assertEquals([runs, (await tasks.get(id, ANN))?.status], [1, "failed"]);
  });

  it("rejects invalid options", async () => {
    const { work } = processes([]).open();
    for (
      const options of [{ concurrency: 0 }, { toolConcurrency: { a: 0 } }, { signal: 1 }, { x: 1 }]
    ) {
      await assertRejects(() => work(options), Error, "Cannot work on tasks");
    }
  });
});

describe("the retries of taskQueue()", () => {
  /** Starts a task whose tool returns these results in order, and waits until the task ends. */
  async function attempts(
    results: readonly (string | ToolResult)[],
    retry: NonNullable<durable.TaskQueueOptions["retries"]>[string],
  ) {
    const times: number[] = [];
    const { clock, open, controller } = processes([{
      name: "job",
      execute: () => {
        times.push(clock.timestamp());
        return results[times.length - 1] ?? "too many";
      },
    }], { retries: { job: retry } });
    const process = open();
    const worked = process.work();
    const { id } = await process.start("job");
    await later(clock, async () => (await process.tasks.get(id, ANN))?.result !== undefined);
    controller.abort();
    await worked;
    const task = await process.tasks.get(id, ANN);
    return {
      ...process,
      clock,
      task,
      id,
      waits: times.slice(1).map((time, at) => time - (times[at] ?? 0)),
    };
  }
  const down = ToolResult.error("unavailable", "The mail server is away");
  const wrong = ToolResult.error("threw", "It is broken");

  it("run a failed task again with growing delays", async () => {
    const { task, waits } = await attempts([down, down, "sent"], { initialDelayMs: 1_000 });
    assertEquals(task?.result?.ok && task.result.content, "sent");
    const [first = 0, second = 0] = waits;
    assert(first >= 500 && first <= 1_050 && second >= 1_000 && second <= 2_050, `${waits}`);
  });

  it("wait for the retryAfterMs of the failure", async () => {
    const busy = ToolResult.error("overloaded", "Busy", { retryAfterMs: 5_000 });
    const { waits } = await attempts([busy, "sent"], { initialDelayMs: 10 });
    assert((waits[0] ?? 0) >= 5_000, `${waits}`);
  });

  it("do not repeat a permanent failure, unless its code is listed", async () => {
    assertEquals((await attempts([wrong, "sent"], {})).waits.length, 0);
    const { task } = await attempts([wrong, "sent"], { codes: ["threw"], initialDelayMs: 10 });
    assertEquals(task?.status, "completed");
  });

  it("do not count rejections of the call as attempts", async () => {
    const refused = ToolResult.error("overloaded", "Busy", { ran: "no" });
    const results = [refused, refused, refused, down, "sent"];
    const { task } = await attempts(results, { maxAttempts: 2, initialDelayMs: 10 });
    assertEquals(task?.status, "completed");
  });

  it("end after a hundred rejections, or if the tool is missing for longer than the task is stored", async () => {
    const refused = ToolResult.error("overloaded", "Busy", { ran: "no" });
    const { waits } = await attempts(Array(200).fill(refused), { initialDelayMs: 0 });
    assertEquals(waits.length, 100);
    const away = ToolResult.error("unavailable", "Away", { retryAfterMs: 1e15 });
    assertEquals((await attempts([away], {})).task?.status, "failed");
  });

  it("hold the idempotency key of their call", async () => {
    let runs = 0;
    const { clock, open, controller } = processes([{
      name: "job",
      execute: () => ++runs === 1 ? down : "sent",
    }], { retries: { job: { initialDelayMs: 10 } } });
    const { tasks, dispatcher, work } = open();
    const keyed = { ...ANN, idempotencyKey: "order-7" };
    const task = await tasks.enqueue(dispatcher, { name: "job" }, keyed);
    assert("id" in task);
    const worked = work();
    await later(clock, async () => (await tasks.get(task.id, ANN))?.result !== undefined);
    controller.abort();
    await worked;
    const again = await dispatcher.dispatch({ name: "job" }, keyed);
    assertEquals([again.ok && again.content, again.replayed, runs], ["sent", true, 2]);
  });

  it("list a task whose process died, with its earlier runs", async () => {
    let runs = 0;
    const { clock, store, open, controller } = processes([{
      name: "job",
      execute: () => ++runs === 1 ? down : new Promise(() => {}),
      timeoutMs: 3_600_000,
    }], { retries: { job: { initialDelayMs: 10 } } });
    const { start, work } = open();
    const ids = [await start("job"), await start("job")].map(({ id }) => id);
    void work();
    await later(clock, () => runs === 3);
    controller.abort();
    const timestamp = (): number => clock.timestamp() + 31_000;
    const setTimeout = clock.setTimeout.bind(clock);
    const late = { now: () => clock.now(), timestamp, setTimeout };
    const alive = durable.taskQueue({ store, retries: { job: {} }, clock: late });
    assertEquals((await alive.get(ids[0] ?? "", ANN))?.status, "failed");
    assertEquals(await alive.recover(open().dispatcher), 0);
    const dead = await alive.deadTasks();
    assertEquals(dead.map(({ id }) => id).sort(), [...ids].sort());
    assertEquals(dead.map(({ attempts }) => attempts).sort(), [1, 2]);
  });

  it("list a task that has failed in all its attempts, and run it again on demand", async () => {
    const { id, tasks, dispatcher, task } = await attempts([down, down, "sent"], {
      maxAttempts: 2,
      initialDelayMs: 10,
    });
    assertEquals(task?.status, "failed");
    const [dead, ...more] = await tasks.deadTasks();
    assertEquals(
      [dead?.id, dead?.principal, dead?.attempts, dead?.error?.code, more.length],
      [id, "ann", 2, "unavailable", 0],
    );
    assertEquals(await tasks.runAgain(id, { principal: "bob" }), undefined);
    assertEquals((await tasks.runAgain(id, ANN))?.status, "working");
    assertEquals(await tasks.runAgain(id, ANN), undefined);
    assertEquals(await tasks.deadTasks(), []);
    assertEquals(await tasks.recover(dispatcher), 1);
    while ((await tasks.get(id, ANN))?.status !== "completed") await Promise.resolve();
  });

  it("are rejected if they are invalid", () => {
    const store = memoryCallStore();
    const retries = (retry: object) => () => durable.taskQueue({ store, retries: { job: retry } });
    assertThrows(
      retries({ maxAttempts: 0 }),
      RangeError,
      '"/retries/job/maxAttempts" must be a whole number',
    );
    assertThrows(retries({ codes: ["never"] }), TypeError, "a list of failure codes");
    assertThrows(retries({ attempts: 1 }), TypeError, '"/attempts" is not one of its fields');
  });
});
