import { afterAll, beforeAll, describe } from "bun:test";
import { assert, assertEquals, assertGreater, assertStringIncludes } from "@std/assert";
import type { ToolDefinition } from "@plue/tools";
import { attemptOf, natsCallStore } from "@plue/tools/nats";
import { missing, TestServer, withServer } from "./server.ts";
import { event, World } from "./world.ts";

const task: ToolDefinition = {
  ...{ name: "build", description: "Builds.", execution: "task", idempotent: true },
  execute: () => "built",
};
/** As short as it can be, because tests wait for it. */
const leaseMs = 1_000;

describe("Durable calls over NATS", () => {
  let server: TestServer;
  beforeAll(async () => {
    if (missing === undefined) server = await TestServer.start();
  });
  afterAll(async () => await server?.stop());
  const open = (): World => new World(server);

  withServer("gives the same call the same result, and runs it once", async () => {
    await using world = open();
    let runs = 0;
    await world.serve([{ ...task, execute: () => ++runs }]);
    const [one, other] = [await world.call(), await world.call()];
    const call = { name: "build", callId: "c1" };
    const results = [];
    for (const { dispatcher } of [one, one, other]) {
      results.push(await dispatcher.dispatch(call, { principal: "ann" }));
    }
    results.push(
      ...await Promise.all([
        one.dispatcher.dispatch({ ...call, callId: "c2" }, { principal: "ann" }),
        other.dispatcher.dispatch({ ...call, callId: "c2" }, { principal: "ann" }),
        other.dispatcher.dispatch(call, { principal: "bob" }),
      ]),
    );
    assertEquals(results.map((result) => result.ok && result.content).slice(0, 3), [1, 1, 1]);
    assertEquals(runs, 3);
  });

  withServer("streams what the tool says meanwhile", async () => {
    await using world = open();
    await world.serve([{
      ...task,
      execute(_, { metadata, progress }) {
        metadata({ at: "the beginning" });
        progress(1, 2);
        return "built";
      },
    }]);
    const { dispatcher } = await world.call();
    const types: string[] = [];
    for await (const { type } of dispatcher.stream({ name: "build" })) types.push(type);
    assertEquals(types, ["metadata", "progress", "result"]);
  });

  withServer("runs a call again whose worker has died, with a higher attempt", async () => {
    await using world = open();
    const began = event();
    const attempts: (number | undefined)[] = [];
    const execute = (isFirst: boolean): NonNullable<ToolDefinition["execute"]> => (_, context) => {
      attempts.push(attemptOf(context));
      began.come();
      return isFirst ? new Promise(() => {}) : "built";
    };
    const first = await world.serve([{ ...task, execute: execute(true) }], { leaseMs });
    const { dispatcher } = await world.call();
    const running = dispatcher.dispatch({ name: "build" });
    await began.came;
    await first.kill();
    await world.serve([{ ...task, execute: execute(false) }], { leaseMs });
    const result = await running;
    assertEquals(result.ok && result.content, "built");
    const [one = 0, two = 0] = attempts;
    assertEquals(attempts.length, 2);
    assertGreater(two, one);
  });

  withServer("says of a call that may not be repeated that it may have run", async () => {
    await using world = open();
    const began = event();
    const once = { ...task, idempotent: false };
    const first = await world.serve([{
      ...once,
      execute() {
        began.come();
        return new Promise(() => {});
      },
    }], { leaseMs });
    const { dispatcher } = await world.call();
    const running = dispatcher.dispatch({ name: "build" });
    await began.came;
    await first.kill();
    await world.serve([once], { leaseMs });
    const result = await running;
    assert(!result.ok);
    assertEquals(result.error.code, "unavailable");
    assertStringIncludes(result.error.message, "may have run");
  });

  withServer("drops the result of a run that has lost its claim", async () => {
    await using world = open();
    const [began, goOn, late] = [event(), event(), event()];
    await world.serve([{
      ...task,
      async execute() {
        began.come();
        await goOn.came;
        late.come();
        return "late";
      },
    }]);
    const { dispatcher } = await world.call();
    const running = dispatcher.dispatch({ name: "build" }, { principal: world.name });
    await began.came;
    const store = await natsCallStore(await server.connect(), { bucket: "plue_results" });
    const json = (value: Uint8Array) => JSON.parse(new TextDecoder().decode(value));
    for await (const { key, value, revision } of store.list("run")) {
      if (json(value).state !== "claimed") continue;
      const record = { state: "done", result: { ok: true, content: "first", durationMs: 0 } };
      await store.update(key, new TextEncoder().encode(JSON.stringify(record)), revision);
    }
    const result = await running;
    goOn.come();
    await late.came;
    assertEquals(result.ok && result.content, "first");
    const states: unknown[] = [];
    for await (const { value } of store.list("run")) states.push(json(value).result.content);
    assertEquals(states.includes("late"), false);
  });

  withServer("waits for a worker", async () => {
    await using world = open();
    const first = await world.serve([task]);
    const { dispatcher } = await world.call();
    await first.close();
    const progress = event();
    const waiting = dispatcher.dispatch({ name: "build" }, { progress: () => progress.come() });
    await world.serve([task]);
    const result = await waiting;
    assertEquals(result.ok && result.content, "built");
  });

  withServer("aborts a call, whether it runs or waits", async () => {
    await using world = open();
    const [began, aborted] = [event(), event()];
    let runs = 0;
    const worker = await world.serve([{
      ...task,
      execute(_, { signal }) {
        runs++;
        began.come();
        return new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => {
            aborted.come();
            reject(signal.reason);
          })
        );
      },
    }]);
    const { dispatcher } = await world.call();
    const abort = new AbortController();
    const running = dispatcher.dispatch({ name: "build" }, { signal: abort.signal });
    await began.came;
    abort.abort();
    await aborted.came;
    const result = await running;
    assertEquals(!result.ok && result.error.code, "aborted");
    await worker.close();
    const waiting = await dispatcher.dispatch({ name: "build", callId: "w" }, { timeoutMs: 100 });
    assertEquals(!waiting.ok && waiting.error.code, "timeout");
    await world.serve([{ ...task, execute: () => ++runs }]);
    const other = await dispatcher.dispatch({ name: "build", callId: "x" });
    assertEquals(other.ok && other.content, 2);
  });

  withServer("goes on when the server was away", async () => {
    const own = await TestServer.start();
    try {
      await using world = new World(own);
      const [began, goOn] = [event(), event()];
      await world.serve([{
        ...task,
        async execute() {
          began.come();
          await goOn.came;
          return "built";
        },
      }]);
      const { dispatcher, connection } = await world.call();
      const running = dispatcher.dispatch({ name: "build" });
      await began.came;
      await own.kill();
      goOn.come();
      await own.start();
      const result = await running;
      assertEquals(result.ok && result.content, "built");
      await connection.flush();
    } finally {
      await own.stop();
    }
  });

  withServer("runs nothing that another hand has written", async () => {
    await using world = open();
    let runs = 0;
    await world.serve([{ ...task, execute: () => ++runs }]);
    const { dispatcher } = await world.call();
    const spy = await server.connect();
    const seen = event<{ readonly subject: string; readonly data: Uint8Array }>();
    spy.subscribe("plue.v1.run.>", {
      callback: (_, { subject, data }) => seen.come({ subject, data: Uint8Array.from(data) }),
    });
    await spy.flush();
    assertEquals((await dispatcher.dispatch({ name: "build" })).ok, true);
    const { subject, data } = await seen.came;
    // Sent again, and changed.
    await spy.request(subject, data);
    data[40] = (data[40] ?? 0) ^ 1;
    await spy.request(subject, data);
    assertEquals((await dispatcher.dispatch({ name: "build" })).ok, true);
    assertEquals(runs, 2);
  });
});
