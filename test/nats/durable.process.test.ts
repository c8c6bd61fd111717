import { describe } from "bun:test";
import {
  assert,
  assertEquals,
  assertGreater,
  assertMatch,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { DiscardPolicy, jetstreamManager, RetentionPolicy } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { TimeoutError } from "@nats-io/nats-core";
import { isSuspended, type ToolDefinition, ToolDispatcher, ToolResult } from "@plue/tools";
import { memoryCallStore, storedKeys, storedTickets } from "@plue/tools/calls";
import { attemptOf, natsCallStore } from "@plue/tools/nats";
import { DurableCalls } from "../../src/adapters/nats/durable_calls.ts";
import { NEW_RUN, runKey, Runs } from "../../src/adapters/nats/runs.ts";
import { ownerDigest } from "../../src/execute/durable/mod.ts";
import { Seal } from "../../src/adapters/nats/seal.ts";
import { SECRET, TestServer, withServer } from "./server.ts";
import { followChanges } from "../support/changes.ts";
import {
  assertContent,
  assertFailed,
  endlessTool,
  event,
  linkOf,
  slowTool,
  spyOn,
  useWorlds,
  withOwnServer,
} from "./world.ts";
import { poll } from "../support/waiting.ts";

const task: ToolDefinition = {
  ...{ name: "build", description: "Builds.", execution: "task", idempotent: true },
  execute: () => "built",
};

/** The prefix of the keys of a principal's calls. */
const ownerPrefix = async (principal: string): Promise<string> =>
  `run.${await ownerDigest(principal)}`;

/** The shortest possible lease, because tests wait for its end. */
const leaseMs = 1_000;

describe("Durable calls over NATS", () => {
  const { server, withWorld } = useWorlds();
  withWorld("returns the same result for the same call, and runs it once", async (world) => {
    let runs = 0;
    await world.serve([{ ...task, execute: () => ++runs }]);
    const [one, other] = [await world.call(), await world.call()];
    const call = { name: "build", callId: "c1" };
    const [ann, bob] = ["ann", "bob"].map((principal) => ({ principal, messageId: "m1" }));
    const results = [];
    for (const { dispatcher } of [one, one, other]) {
      results.push(await dispatcher.dispatch(call, ann));
    }
    results.push(
      ...await Promise.all([
        one.dispatcher.dispatch({ ...call, callId: "c2" }, ann),
        other.dispatcher.dispatch({ ...call, callId: "c2" }, ann),
        other.dispatcher.dispatch(call, bob),
      ]),
    );
    assertEquals(results.map((result) => result.ok && result.content).slice(0, 3), [1, 1, 1]);
    assertEquals(runs, 3);
    // Calls without a message id may have the ids of earlier calls, and so they run again.
    for (const { dispatcher } of [one, other]) {
      results.push(await dispatcher.dispatch(call, { principal: "ann" }));
    }
    assertEquals(results.slice(-2).map((result) => result.ok && result.content), [4, 5]);
  });

  withWorld("does not run an aborted call again, and reports that", async (world) => {
    const { began, aborted, tool, runs } = endlessTool(task);
    await world.serve([tool]);
    const { dispatcher } = await world.call();
    const call = { name: "build", callId: "c1" };
    const abort = new AbortController();
    const running = dispatcher.dispatch(call, { messageId: world.name, signal: abort.signal });
    await began.came;
    abort.abort();
    await aborted.came;
    await running;
    const again = await dispatcher.dispatch(call, { messageId: world.name });
    assertFailed(again, "aborted");
    assertEquals([again.error.retryable, runs()], [false, 1]);
  });

  withServer("reports that a call rejected by the server has not run", async () => {
    await using own = await TestServer.start();
    const connection = await own.connect();
    const link = linkOf(connection);
    const calls = new DurableCalls(link, "_INBOX");
    const { signal } = new AbortController();
    const context = { signal, throwIfAborted() {} } as never;
    const run = () =>
      calls.run({ tool: "build", path: "test./.build.digest", request: {}, context });
    const waits = run();
    const manager = await jetstreamManager(connection);
    while (calls.waiting === 0) await connection.flush();
    await poll(async () => (await manager.streams.info("PLUE_CALLS")).state.messages > 0);
    await manager.streams.update("PLUE_CALLS", { max_msg_size: 10 });
    assertFailed(await run(), "unavailable", "nothing has run", "no");
    // The other call still waits.
    assertEquals(calls.waiting, 1);
    calls.stop();
    assertEquals([(await waits).ok, calls.waiting], [false, 0]);
  });

  withServer("reads the store less often the longer a call waits", async () => {
    const connection = await server.connect();
    const link = linkOf(connection);
    const calls = new DurableCalls(link, "_INBOX");
    const sixth = event();
    const delays: number[] = [];
    const { setTimeout } = globalThis;
    const patched = (wake: () => void, ms: number): unknown => {
      if (![2_000, 4_000, 8_000, 16_000, 30_000].includes(ms)) return setTimeout(wake, ms);
      if (delays.push(ms) === 6) sixth.come();
      return setTimeout(wake, 0);
    };
    globalThis.setTimeout = patched as typeof setTimeout;
    try {
      const { signal } = new AbortController();
      const context = { signal, throwIfAborted() {} } as never;
      const path = "look./.build.digest";
      const waits = calls.run({ tool: "build", path, request: {}, context });
      await sixth.came;
      calls.stop();
      assertEquals((await waits).ok, false);
    } finally {
      globalThis.setTimeout = setTimeout;
    }
    assertEquals(delays.slice(0, 6), [2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    assertEquals(link.errors, []);
  });

  withOwnServer("has results as large as a message, and names the limit", async (world) => {
    let size = 129_000;
    await world.serve([{ ...task, execute: () => "x".repeat(size) }]);
    const { dispatcher } = await world.call();
    const result = await dispatcher.dispatch({ name: "build" });
    assertEquals(result.ok && (result.content as string).length, size);
    size = 131_000;
    const large = await dispatcher.dispatch({ name: "build" });
    assertFailed(large, "output_too_large", "max_payload of the server allows", "yes");
  }, { lines: "max_payload: 131072" });

  withOwnServer("reports that the server or a caller's quota is full", async (world, own) => {
    await new Kvm(await own.connect()).create("plue_results", { max_bytes: 800_000 });
    const store = await natsCallStore(await own.connect(), { bucket: "plue_results" });
    for (let owner = 0; owner < 7; owner++) {
      await store.create(`a.${owner}`, new Uint8Array(95_000));
    }
    let size = 98_000;
    await world.serve([{ ...task, execute: () => "x".repeat(size) }]);
    const { dispatcher } = await world.call();
    const run = (principal: string) => dispatcher.dispatch({ name: "build" }, { principal });
    assertEquals((await run("ann")).ok, true);
    assertFailed(await run("bob"), "unavailable", "its result cannot be stored; it has run");
    size = 120_000;
    const why = "the quota of its principal is exhausted); it has run";
    assertFailed(await run("cid"), "output_too_large", why);
    size = 10;
    assertEquals((await run("bob")).ok, true);
  });

  withOwnServer("limits the records of aborts that a caller writes", async (_, own) => {
    const connection = await own.connect();
    await new Kvm(connection).create("plue_results", { max_bytes: 80_000 });
    const { records } = await Runs.open(linkOf(connection), {});
    const abort = async (key: string): Promise<void> => {
      for (let at = 0; at < 80; at++) await records.change(`run.${key}.${at}`, () => NEW_RUN);
    };
    await assertRejects(() => abort("ann"), RangeError, "the quota of its principal is exhausted");
    await records.change("run.bob.1", () => NEW_RUN);
  });

  withOwnServer("reports that a caller's quota is full, even repeatedly", async (world, own) => {
    await new Kvm(await own.connect()).create("plue_results", { max_bytes: 800_000 });
    let runs = 0;
    await world.serve([{ ...task, idempotent: true, execute: () => `${++runs}`.repeat(60_000) }]);
    const { dispatcher } = await world.call();
    const run = (callId: string) =>
      dispatcher.dispatch({ name: "build", callId }, { principal: "ann", messageId: callId });
    assertEquals((await run("a")).ok, true);
    for (
      const expected of [
        ["output_too_large", false, "it has run", 2],
        // The failure is stored.
        ["output_too_large", false, "it has run", 2],
      ]
    ) {
      const result = await run("b");
      assert(!result.ok);
      const { code, retryable, message } = result.error;
      assertEquals([code, retryable, message.slice(-10), runs], expected);
    }
    // Uses up the space, so that not even a lease can be stored.
    const store = await natsCallStore(await own.connect(), { bucket: "plue_results" });
    const owner = await ownerDigest("ann");
    for (let size = 30_000; size > 10; size = Math.floor(size / 2)) {
      await store.create(`a.${owner}.${size}`, new Uint8Array(size)).catch(() => {});
    }
    for (let time = 0; time < 2; time++) {
      assertFailed(await run("c"), "overloaded", "nothing has run", "no");
      assertEquals(runs, 2);
    }
  });

  withOwnServer("limits the waiting calls of a caller until others end", async (world, own) => {
    const { began, goOn, tool } = slowTool(task, "built");
    await world.serve([tool], { concurrency: 1 });
    const [one, other] = [
      await world.call({ maxOwnerBytes: 3_072 }),
      await world.call({ maxOwnerBytes: 3_072 }),
    ];
    // The names are long, so that each call has nearly 1 KiB.
    const run = ({ dispatcher }: typeof one, name: string) =>
      dispatcher.dispatch({ name: "build" }, { principal: name.padEnd(400, "-") });
    const waiting = [run(one, "ann")];
    await began.came;
    const spy = await own.connect();
    const manager = await jetstreamManager(spy);
    const wait = (count: number): Promise<void> =>
      poll(async () => (await manager.streams.info("PLUE_CALLS")).state.messages >= count);
    waiting.push(run(one, "ann"), run(one, "ann"));
    await wait(3);
    for (const caller of [one, other]) {
      const full = await run(caller, "ann");
      const why = "the waiting calls of this principal have used up its quota; nothing has run";
      assertFailed(full, "overloaded", why, "no");
      assertEquals(full.error.retryAfterMs, 10_000);
    }
    waiting.push(run(one, "bob"));
    await wait(4);
    goOn.come();
    const results = await Promise.all(waiting);
    assertEquals(results.map((result) => result.ok && result.content), Array(4).fill("built"));
    // Completed tasks do not count.
    assertContent(await run(one, "ann"), "built");
  });

  withOwnServer(
    "uses the stream of an operator, and rejects an invalid one",
    async (world, own) => {
      const manager = await jetstreamManager(await own.connect());
      const subjects = ["plue.v1.run.>"];
      await manager.streams.add({ name: "PLUE_CALLS", subjects });
      const error = await assertRejects(() => world.serve([task]), Error);
      assertStringIncludes(error.message, 'required are subjects "plue.v1.run.>"');
      assertStringIncludes(error.message, 'retention "workqueue"');
      await manager.streams.delete("PLUE_CALLS");
      await manager.streams.add({
        ...{ name: "PLUE_CALLS", subjects, max_bytes: 1_000_000 },
        ...{ retention: RetentionPolicy.Workqueue, discard: DiscardPolicy.New },
      });
      await world.serve([task]);
      const { dispatcher } = await world.call();
      assertEquals((await dispatcher.dispatch({ name: "build" })).ok, true);
    },
  );

  const claimed = { holder: "x", heldUntil: 8.64e15, attempts: 1, refusals: 0 };
  for (
    const [what, record, isSigned] of [
      ["done, and not signed", { ...claimed, result: { ok: true, content: "forged" } }, false],
      ["claimed, and not signed", claimed, false],
      ["signed, and has a result of another type", { ...claimed, result: "built" }, true],
      ["signed, and claimed for ever", { ...claimed, heldUntil: "for ever" }, true],
      ["signed, and no record", "forged", true],
    ] as const
  ) {
    withWorld(`rejects a record that is ${what}`, async (world) => {
      const { goOn, ...slow } = slowTool(task, "built");
      const { running } = await world.begin(slow, { principal: world.name });
      const store = await natsCallStore(await server.connect(), { bucket: "plue_results" });
      for await (const { key, revision } of store.list(await ownerPrefix(world.name))) {
        const value = isSigned
          ? new Seal("test", SECRET).wrap(record, `plue_results.${key}`)
          : new TextEncoder().encode(JSON.stringify(record));
        await store.update(key, value, revision);
      }
      goOn.come();
      const result = await running;
      assertFailed(result, "unavailable", "is damaged, or has a wrong signature");
    });
  }

  withWorld("streams the metadata and the progress of the tool", async (world) => {
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

  withWorld("streams metadata once, even if it is replayed", async (world) => {
    const goOn = event();
    await world.serve([{
      ...task,
      async execute(_, { metadata }) {
        metadata("a");
        await goOn.came;
        metadata("b");
      },
    }]);
    let isReplayed = false;
    const spy = await spyOn(server, "_INBOX.>", {
      callback(_, { subject, data }) {
        if (isReplayed || !new TextDecoder().decode(data).includes('"metadata"')) return;
        isReplayed = true;
        for (let time = 0; time < 3; time++) spy.publish(subject, Uint8Array.from(data));
        void spy.flush().then(() => goOn.come());
      },
    });
    const { dispatcher } = await world.call();
    const seen: unknown[] = [];
    for await (const one of dispatcher.stream({ name: "build" })) {
      if (one.type === "metadata") seen.push(one.value);
    }
    assertEquals(seen, ["a", "b"]);
    // The server would deliver tasks to inboxes without another reader.
    await spy.close();
  });

  withWorld("runs a call again if its worker has died, with a higher attempt", async (world) => {
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
    assertContent(await running, "built");
    const [one = 0, two = 0] = attempts;
    assertEquals(attempts.length, 2);
    assertGreater(two, one);
  });

  for (const execution of ["sync", "task"] as const) {
    withWorld(`resumes an answered call (${execution}) if its worker died`, async (world) => {
      const began = event();
      const asking = (isFirst: boolean): ToolDefinition => ({
        ...{ ...task, execution },
        async execute(_, { ask }) {
          const { action } = await ask("sure", { message: "Really?" });
          began.come();
          return isFirst ? await new Promise(() => {}) : action;
        },
      });
      const first = await world.serve([asking(true)], { leaseMs });
      const { dispatcher } = await world.call();
      const running = dispatcher.dispatch({ name: "build" }, {
        onQuestion: () => ({ action: "accept" }),
      });
      await began.came;
      await first.kill();
      await world.serve([asking(false)], { leaseMs });
      assertContent(await running, "accept");
    });
  }

  withWorld("reports that a rejected call may have run if its first worker died", async (world) => {
    const { began, tool } = endlessTool(task);
    const first = await world.serve([tool], { leaseMs });
    const { dispatcher } = await world.call();
    const running = dispatcher.dispatch({ name: "build" });
    await began.came;
    await first.kill();
    const parameters = { type: "object", required: ["at"] };
    await world.serve([{ ...task, parameters }], { leaseMs });
    assertFailed(await running, "invalid_arguments", "", "unknown");
  });

  withWorld("reports that a call that is not repeated may have run", async (world) => {
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
    assertFailed(await running, "unavailable", "may have run", "unknown");
    // The operator's log has the same message, because the caller may have disconnected.
    assertMatch(world.errors.map(String).join("\n"), /the tool may have run \(task "run\.\S+"\)/);
  });

  withWorld("runs a task that its tool rejects later, with increasing delays", async (world) => {
    let runs = 0;
    await world.serve([{
      ...task,
      idempotent: false,
      execute() {
        if (++runs === 3) return "built";
        const details = runs === 2 ? { retryAfterMs: 2_500 } : {};
        return ToolResult.error("overloaded", "too many requests", details);
      },
    }]);
    const delays: number[] = [];
    const spy = await spyOn(server, "$JS.ACK.PLUE_CALLS.>", {
      callback(_, message) {
        const [, details] = /^-NAK (.+)$/.exec(message.string()) ?? [];
        if (details !== undefined) delays.push(JSON.parse(details).delay / 1e6);
      },
    });
    const { dispatcher } = await world.call();
    assertContent(await dispatcher.dispatch({ name: "build" }), "built");
    await spy.flush();
    assertEquals([runs, delays], [3, [1_000, 2_500]]);
  });

  withWorld("stores the answer of a task that its worker cannot continue now", async (world) => {
    const { began, goOn, tool: slow } = slowTool({ name: "slow", description: "Waits." });
    const ask: ToolDefinition = {
      ...task,
      execute: async (_, context) => (await context.ask("sure", { message: "Really?" })).action,
    };
    await world.serve([ask, slow], { dispatcher: { limits: { maxConcurrent: 1, maxQueued: 0 } } });
    const { registry } = await world.call();
    const tickets = storedTickets(memoryCallStore());
    const dispatcher = new ToolDispatcher(registry, { tickets });
    const context = { principal: world.name };
    const waiting = await dispatcher.dispatch({ name: "build" }, context);
    assert(isSuspended(waiting));
    const waits = dispatcher.dispatch({ name: "slow" });
    await began.came;
    let writes = 0;
    await spyOn(server, `$KV.plue_results.${await ownerPrefix(world.name)}.>`, {
      // The lease of the answered call, and the return of the call to the stream.
      callback: () => void (++writes === 2 && goOn.come()),
    });
    const answers = { sure: { action: "accept" } } as const;
    assertContent(await dispatcher.resume(waiting.ticket, answers, context), "accept");
    await waits;
  });

  withWorld("loses no task to the limits of its workers", async (world) => {
    let runs = 0;
    await world.serve([{
      ...task,
      idempotent: false,
      async execute() {
        await (await server.connect()).flush();
        return ++runs;
      },
    }], { concurrency: 4, dispatcher: { limits: { maxConcurrent: 1, maxQueued: 0 } } });
    const { dispatcher } = await world.call();
    const results = await Promise.all(
      Array.from({ length: 4 }, () => dispatcher.dispatch({ name: "build" })),
    );
    assertEquals(results.filter((result) => !result.ok), []);
    assertEquals(runs, 4);
  });

  withWorld("fetches no more tasks than the limits of its calls allow", async (world) => {
    await world.serve([{ ...task, execute: () => server.connect().then((one) => one.flush()) }], {
      dispatcher: { limits: { maxConcurrent: 2, maxQueued: 0 } },
    });
    let refused = 0;
    const spy = await spyOn(server, "$JS.ACK.PLUE_CALLS.>", {
      callback: (_, message) => void (message.string().startsWith("-NAK {") && refused++),
    });
    const { dispatcher } = await world.call();
    const results = await Promise.all(
      Array.from({ length: 12 }, () => dispatcher.dispatch({ name: "build" })),
    );
    await spy.flush();
    assertEquals([results.filter(({ ok }) => !ok), refused], [[], 0]);
  });

  withWorld("fetches no tasks without a free slot: other workers run them", async (world) => {
    const { goOn, ...slow } = slowTool(task, "first");
    const { running: first, dispatcher } = await world.begin(slow, {}, { concurrency: 1 });
    const second = dispatcher.dispatch({ name: "build" }, { timeoutMs: 10_000 });
    await world.serve([{ ...task, execute: () => "second" }]);
    assertContent(await second, "second");
    goOn.come();
    assertContent(await first, "first");
  });

  withWorld("limits the concurrent tasks of a tool to its concurrency", async (world) => {
    const [began, goOn] = [event(), event()];
    let running = 0;
    let most = 0;
    const slow: ToolDefinition = {
      ...task,
      async execute() {
        most = Math.max(most, ++running);
        began.come();
        await goOn.came;
        running--;
      },
    };
    await world.serve([slow, { ...task, name: "other" }], { toolConcurrency: { build: 1 } });
    const { dispatcher } = await world.call();
    const slowOnes = [1, 2, 3].map(() => dispatcher.dispatch({ name: "build" }));
    await began.came;
    assertEquals((await dispatcher.dispatch({ name: "other" })).ok, true);
    goOn.come();
    assertEquals((await Promise.all(slowOnes)).map(({ ok }) => ok), [true, true, true]);
    assertEquals(most, 1);
  });

  const clocks = [[-60_000, "60 s behind"], [90_000_000, "at least 3600 s ahead of"]] as const;
  for (const [ms, skew] of clocks) {
    withWorld(`returns tasks while its clock is ${skew} the server's`, async (world) => {
      const { began, goOn, tool } = slowTool(task, "built");
      const [seen, refused] = [event(), event()];
      const onError = (error: unknown): void => {
        if (`${error}`.includes(`this machine's clock is ${skew} the server's`)) refused.come();
      };
      await world.serve([tool], { concurrency: 1, leaseMs, onError });
      const { dispatcher } = await world.call();
      let sent = 0;
      await spyOn(server, `plue.v1.run.${world.name}.>`, {
        callback: () => void (++sent === 2 && seen.come()),
      });
      const first = dispatcher.dispatch({ name: "build" });
      await began.came;
      const second = dispatcher.dispatch({ name: "build" });
      await seen.came;
      const now = Date.now;
      Date.now = () => now() + ms;
      try {
        goOn.come();
        await refused.came;
      } finally {
        Date.now = now;
      }
      const results = await Promise.all([first, second]);
      assertEquals(results.map((result) => result.ok && result.content), ["built", "built"]);
    });
  }

  for (const refused of ["$JS.API.STREAM.INFO.PLUE_CALLS", "plue.v1.run."]) {
    withWorld(`sends a call again while no server responds to "${refused}"`, async (world) => {
      await world.serve([task]);
      const { dispatcher, connection } = await world.call();
      const request = connection.request.bind(connection);
      let failures = 0;
      connection.request = (subject, ...rest) =>
        subject.startsWith(refused) && ++failures < 3
          ? Promise.reject(new TimeoutError())
          : request(subject, ...rest);
      const result = await dispatcher.dispatch({ name: "build" });
      assertContent(result, "built");
      assertEquals(world.errors.length, 1);
    });
  }

  withWorld("runs a call once for its key if the answer and the leader are lost", async (world) => {
    let runs = 0;
    const pay = { ...task, idempotent: false, execute: () => ++runs };
    const worker = await world.serve([pay]);
    const { connection, registry } = await world.call();
    await worker.close();
    const dispatcher = new ToolDispatcher(registry, {
      timeoutMs: 3_000,
      idempotency: { kept: storedKeys(memoryCallStore()) },
    });
    const request = connection.request.bind(connection);
    let requests = 0;
    connection.request = async (subject, ...rest) => {
      if (!subject.startsWith("plue.v1.run.")) return await request(subject, ...rest);
      if (++requests > 1) return await request("nobody.is.here", ...rest);
      await request(subject, ...rest);
      throw new TimeoutError();
    };
    const context = { principal: "ann", idempotencyKey: "k" };
    const results = [await dispatcher.dispatch({ name: "build" }, context)];
    connection.request = request;
    await world.serve([pay]);
    results.push(await dispatcher.dispatch({ name: "build" }, context));
    for (const result of results) assert(!result.ok && result.error.ran === "unknown");
    assert(runs <= 1);
  });

  withWorld("waits for a worker", async (world) => {
    const first = await world.serve([task]);
    const { dispatcher } = await world.call();
    await first.close();
    const progress = event();
    const waiting = dispatcher.dispatch({ name: "build" }, { progress: () => progress.come() });
    await world.serve([task]);
    const result = await waiting;
    assertContent(result, "built");
  });

  withWorld("aborts a call, whether it runs or waits", async (world) => {
    const { aborted, runs, ...slow } = endlessTool(task);
    const abort = new AbortController();
    const { running, dispatcher, worker } = await world.begin(slow, { signal: abort.signal });
    abort.abort();
    await aborted.came;
    assertFailed(await running, "aborted", "", "yes");
    await worker.close();
    // The tool has not run, even after the call was repeated.
    const messageId = world.name;
    const waiting = { name: "build", callId: "w" };
    for (const [code, timeoutMs] of [["timeout", 500], ["aborted", 60_000]] as const) {
      const result = await dispatcher.dispatch(waiting, { messageId, timeoutMs });
      assertFailed(result, code, "", "no");
    }
    await world.serve([task]);
    const other = await dispatcher.dispatch({ name: "build", callId: "x" });
    assertEquals([other.ok && other.content, runs()], ["built", 1]);
  });

  withWorld("does not report a tool as stopped if it continues after an abort", async (world) => {
    const { began, goOn, tool, runs } = slowTool({ ...task, idempotent: false });
    await world.serve([tool], { dispatcher: { graceMs: 1 } });
    const { registry } = await world.call();
    const dispatcher = new ToolDispatcher(registry, {
      ...{ graceMs: 50, idempotency: { kept: storedKeys(memoryCallStore()) } },
    });
    const abort = new AbortController();
    const run = (signal?: AbortSignal) =>
      dispatcher.dispatch({ name: "build" }, { idempotencyKey: "k", signal });
    const running = run(abort.signal);
    await began.came;
    abort.abort();
    for (const result of [await running, await run()]) {
      assert(!result.ok);
      const { code, ran, retryable } = result.error;
      assertEquals([code, ran, retryable, runs()], ["aborted", "unknown", false, 1]);
    }
    goOn.come();
  });

  withServer("counts the calls of a principal that arrive in one turn", async () => {
    const calls = new DurableCalls(linkOf(await server.connect()), "_INBOX");
    const abort = new AbortController();
    const context = { signal: abort.signal, throwIfAborted() {} } as never;
    const call = { tool: "build", path: "turn./.build.digest", context };
    const ended = Array.from(
      { length: 2_049 },
      (_, at) => calls.run({ ...call, request: { arguments: { at } } }),
    );
    assertFailed(await ended[2_048] as ToolResult, "overloaded", "", "no");
    abort.abort();
    for (const result of (await Promise.all(ended)).slice(0, 2_048)) {
      assertFailed(result, "aborted");
    }
  });

  withOwnServer("ignores sizes that a message cannot have", async (world) => {
    await world.serve([task]);
    const { dispatcher, connection } = await world.call({ maxOwnerBytes: 65_536 });
    const owner = await ownerDigest("ann");
    for (const size of [2_000, 40, -1, "x"]) {
      connection.publish(`plue.v1.run.x./.y.d.${owner}.${size}`, "");
    }
    // A measurement is skipped until the stream holds more than one quota.
    for (let at = 0; at < 70; at++) {
      connection.publish("plue.v1.run.x./.y.d.other.0", new Uint8Array(1_000));
    }
    const result = await dispatcher.dispatch({ name: "build" }, { principal: "ann" });
    assertContent(result, "built");
  });

  withOwnServer("closes a worker in time if the server is lost at a result", async (world, own) => {
    const { goOn, ...slow } = slowTool(task);
    const { worker } = await world.begin(slow, {}, { drainTimeoutMs: 0 });
    await own.kill();
    goOn.come();
    await worker.close();
    assertEquals(worker.running, 0);
  });

  withOwnServer("continues after the server was unreachable", async (world, own) => {
    const { goOn, ...slow } = slowTool(task, "built");
    const { running, connection } = await world.begin(slow);
    await own.kill();
    goOn.come();
    await own.start();
    assertContent(await running, "built");
    await connection.flush();
  });

  withOwnServer("continues after the server has lost streams and buckets", async (world, own) => {
    const worker = await world.serve([task]);
    const { dispatcher, registry } = await world.call();
    const store = await natsCallStore(await own.connect(), { secret: SECRET });
    const { streams } = await jetstreamManager(await own.connect());
    for (const name of ["PLUE_CALLS", "KV_plue_results", "KV_plue_calls", "KV_plue_tools"]) {
      await streams.delete(name);
    }
    assertContent(await dispatcher.dispatch({ name: "build" }), "built");
    assertGreater(await store.create("a.b.c", new Uint8Array(1)) ?? 0, 0);
    const changes = followChanges(registry);
    worker.registry.registerTool({ ...task, name: "later" });
    assertEquals((await changes.next()).tool.id, "later");
  });

  withWorld("does not run changed or repeated messages", async (world) => {
    let runs = 0;
    await world.serve([{ ...task, execute: () => ++runs }]);
    const { dispatcher } = await world.call();
    const seen = event<{ readonly subject: string; readonly data: Uint8Array }>();
    const spy = await spyOn(server, "plue.v1.run.>", {
      callback: (_, { subject, data }) => seen.come({ subject, data: Uint8Array.from(data) }),
    });
    assertEquals((await dispatcher.dispatch({ name: "build" })).ok, true);
    const { subject, data } = await seen.came;
    // Repeats the message, unchanged and then changed.
    await spy.request(subject, data);
    data[40] = (data[40] ?? 0) ^ 1;
    await spy.request(subject, data);
    assertEquals((await dispatcher.dispatch({ name: "build" })).ok, true);
    assertEquals(runs, 2);
  });

  withWorld("renews the lease of a long call, so that it runs once", async (world) => {
    let runs = 0;
    const goOn = event();
    const tool = {
      ...task,
      async execute() {
        // If the tool ran a second time, neither run would wait.
        if (++runs > 1) goOn.come();
        await goOn.came;
        return "built";
      },
    };
    await world.serve([tool], { leaseMs });
    await world.serve([tool], { leaseMs });
    const { dispatcher } = await world.call();
    const own = await ownerPrefix(world.name);
    let writes = 0;
    await spyOn(server, `$KV.plue_results.${own}.>`, {
      // The first write is the lease. The four others renew it, each after a third of its duration.
      callback: () => void (++writes === 5 && goOn.come()),
    });
    const result = await dispatcher.dispatch({ name: "build" }, { principal: world.name });
    assertEquals([result.ok && result.content, runs], ["built", 1]);
  });

  withWorld("extends a lease by the allowed difference of clocks", async (world) => {
    const runs = await Runs.open(linkOf(await server.connect()), {});
    for (const [ms, isHeld] of [[4_000, true], [6_000, false]] as const) {
      const key = `run.${world.name}.${ms}`;
      await runs.records.change(key, () => ({
        ...NEW_RUN,
        ...{ holder: "another", heldUntil: Date.now() - ms },
      }));
      assertEquals(await runs.isHeld(key), isHeld);
    }
    const now = Date.now;
    Date.now = () => now() + 60_000;
    const claimed = runs.engine.claim(`run.${world.name}.4000`, "build", false, NEW_RUN);
    await assertRejects(() => claimed, Error, "60.0 s ahead").finally(() => Date.now = now);
  });

  withWorld("removes calls that cannot be run from the stream", async (world) => {
    const systemNow = Date.now;
    let runs = 0;
    await world.serve([{ ...task, execute: () => ++runs }]);
    const { dispatcher } = await world.call();
    const subject = event<string>();
    const spy = await spyOn(server, `plue.v1.run.${world.name}.>`, {
      callback: (_, message) => subject.come(message.subject),
    });
    assertEquals((await dispatcher.dispatch({ name: "build" })).ok, true);
    const to = await subject.came;
    const seal = new Seal("test", SECRET);
    const sent = event<Uint8Array>();
    spy.subscribe("told", { callback: (_, { data }) => sent.come(data) });
    const path = to.split(".").slice(3, -2).join(".");
    const call = { id: await runKey(path, { nonce: "x" }), nonce: "x", inbox: "told" };
    const now = Date.now();
    const early = { ...call, time: now + 60_000 };
    // Both records have expired: the first before it was sent again, and the second after that.
    const [old, aged] = [86_400_001, 86_398_000].map((ms) => ({ ...call, time: now - ms }));
    const invalid = { ...call, time: now, id: 7 };
    // Moves the clock by less than the allowed difference.
    Date.now = () => systemNow() + 4_000;
    for (const message of [{}, "no call", invalid, early, old, aged]) {
      await spy.request(to, seal.wrap(message, to));
    }
    const { streams } = await jetstreamManager(spy);
    const left = async (): Promise<number> => {
      const { state } = await streams.info("PLUE_CALLS", { subjects_filter: to });
      return state.subjects?.[to] ?? 0;
    };
    await poll(async () => await left() === 0);
    Date.now = systemNow;
    const { result } = seal.unwrap(await sent.came, "told") as {
      readonly result: { readonly error: { readonly message: string; readonly ran: string } };
    };
    // The server's clock advanced while the message was in transit.
    assertMatch(result.error.message, /(5\d\.\d|60) s ahead of the NATS server's; nothing has run/);
    assertEquals(result.error.ran, "no");
    assertEquals(runs, 1);
    assertEquals(world.errors.length, 6);
  });
});
