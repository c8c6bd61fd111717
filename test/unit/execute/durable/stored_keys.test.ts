import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import type { ToolResult } from "../../../../mod.ts";
import {
  type CallStore,
  memoryCallStore,
  storedKeys,
} from "../../../../src/execute/durable/mod.ts";
import * as support from "../support.ts";
import { deferred, FakeClock, messageOf, outcome } from "../support.ts";

const KEY = { idempotencyKey: "k", principal: "ann" };

/** Processes that share a store, and the calls that they ran. */
function processes(
  tool: Partial<support.FakeTool> = {},
  clock: FakeClock = new FakeClock(),
  store: CallStore = memoryCallStore({ clock }),
): { readonly ran: unknown[]; start(): support.Fixture } {
  const ran: unknown[] = [];
  return {
    ran,
    start: () =>
      support.fixture([{
        name: "pay",
        execute(args) {
          ran.push(args);
          return ran.length;
        },
        ...tool,
      }], { clock, idempotency: { kept: storedKeys(store), windowMs: 10_000 } }),
  };
}

/**
 * Begins the call in a process that does not renew its lease, as if it were stopped, until the
 * lease is over. Returns other processes, and a function that lets the first process end the call.
 */
async function cutOff(tool: Partial<support.FakeTool> = {}) {
  const clock = new FakeClock();
  const store = memoryCallStore({ clock });
  const work = deferred<string>();
  const started = deferred();
  const own = new FakeClock();
  const { start } = processes(
    { timeoutMs: 3_600_000, execute: () => (started.resolve(), work.promise), ...tool },
    own,
    store,
  );
  const call = start().call("pay", {}, KEY);
  await started.promise;
  clock.advance(30_001);
  const late = (): Promise<ToolResult> => {
    own.timers.clear();
    own.advance(30_001);
    work.resolve("late");
    return call;
  };
  return { ...processes(tool, clock, store), clock, late };
}

/** Waits until the promises of a store in memory have settled. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await undefined;
}

describe("storedKeys()", () => {
  it("returns the result of another process, and does not run again", async () => {
    const { ran, start } = processes();
    assertEquals(outcome(await start().call("pay", { n: 1 }, KEY)), 1);
    const again = await start().call("pay", { n: 1 }, KEY);
    assertEquals([outcome(again), again.replayed, ran.length], [1, true, 1]);
  });

  it("does not read a key before its first write", async () => {
    const clock = new FakeClock();
    const store = memoryCallStore({ clock });
    const used: string[] = [];
    const counted: CallStore = {
      ...store,
      get: (key) => (used.push("get"), store.get(key)),
      create: (...entry) => (used.push("create"), store.create(...entry)),
    };
    await processes({}, clock, counted).start().call("pay", {}, KEY);
    assertEquals(used[0], "create");
  });

  it("separates principals, keys and arguments", async () => {
    const { ran, start } = processes();
    await start().call("pay", { n: 1 }, KEY);
    await start().call("pay", { n: 1 }, { ...KEY, principal: "bob" });
    await start().call("pay", { n: 1 }, { ...KEY, idempotencyKey: "l" });
    assertEquals(ran.length, 3);
    const other = await start().call("pay", { n: 2 }, KEY);
    assertEquals([outcome(other), ran.length], ["invalid_arguments", 3]);
    assertStringIncludes(messageOf(other), "was used before with other arguments");
  });

  it("separates contexts of the host", async () => {
    const { ran, start } = processes();
    for (const tenant of ["a", "b", "a"]) {
      await start().call("pay", {}, { ...KEY, context: { tenant } });
    }
    assertEquals(ran.length, 2);
  });

  it("does not run a call that another process is running", async () => {
    const work = deferred<string>();
    const started = deferred();
    let ran = 0;
    const clock = new FakeClock();
    const { start } = processes({
      ...{ idempotent: true, timeoutMs: 3_600_000 },
      execute: () => (ran++, started.resolve(), work.promise),
    }, clock);
    const first = start().call("pay", {}, KEY);
    await started.promise;
    for (let turn = 0; turn < 10; turn++) {
      const other = await start().call("pay", {}, KEY);
      assertEquals([outcome(other), ran], ["unavailable", 1]);
      assertStringIncludes(messageOf(other), "runs in another process; try again later");
      assertEquals(!other.ok && [other.error.retryable, other.error.ran], [true, "yes"]);
      // This is longer than the lease and the window together, so the process renews the lease.
      clock.advance(10_000);
      await settled();
    }
    work.resolve("paid");
    assertEquals(outcome(await first), "paid");
    assertEquals(outcome(await start().call("pay", {}, KEY)), "paid");
    assertEquals(ran, 1);
  });

  it("reports an unknown outcome for a call whose process died", async () => {
    const { ran, start, clock } = await cutOff();
    const again = await start().call("pay", {}, KEY);
    assertEquals([outcome(again), ran.length], ["unavailable", 0]);
    assertEquals(!again.ok && [again.error.retryable, again.error.ran], [false, "unknown"]);
    assertStringIncludes(messageOf(again), "its outcome is unknown");
    assertStringIncludes(messageOf(again), "if not, call again with a new key");
    assertEquals(outcome(await start().call("pay", {}, { ...KEY, idempotencyKey: "new" })), 1);
    clock.advance(10_000);
    assertEquals(outcome(await start().call("pay", {}, KEY)), 2);
  });

  it("runs a call of an idempotent tool again whose process died, once", async () => {
    const { ran, start } = await cutOff({ idempotent: true });
    const all = await Promise.all([1, 2, 3].map(() => start().call("pay", {}, KEY)));
    assertEquals(ran.length, 1);
    assertEquals(all.map(outcome).filter((one) => one !== 1 && one !== "unavailable"), []);
    assertEquals(outcome(await start().call("pay", {}, KEY)), 1);
    assertEquals(outcome(await start().call("pay", { n: 2 }, KEY)), "invalid_arguments");
  });

  it("stores the result of the run that took a key over, not the late result", async () => {
    const { start, late } = await cutOff({ idempotent: true });
    assertEquals(outcome(await start().call("pay", {}, KEY)), 1);
    assertEquals(outcome(await late()), "late");
    assertEquals(outcome(await start().call("pay", {}, KEY)), 1);
  });

  it("stores the result of a late run if no other run has claimed the key", async () => {
    const { start, late } = await cutOff();
    assertEquals(outcome(await start().call("pay", {}, KEY)), "unavailable");
    assertEquals(outcome(await late()), "late");
    assertEquals(outcome(await start().call("pay", {}, KEY)), "late");
  });

  it("rejects an invalid store", () => {
    assertThrows(() => storedKeys({} as CallStore), TypeError, "store must have a get function");
  });

  it("does not run a call again because its result is too large to store", async () => {
    const { start } = processes({ execute: () => "x".repeat(1_048_500) });
    assertEquals((await start().call("pay", {}, KEY)).ok, true);
    const again = await start().call("pay", {}, KEY);
    assertEquals(outcome(again), "output_too_large");
    assertStringIncludes(messageOf(again), "it has run");
  });

  it("makes other calls of the process wait for the first", async () => {
    const work = deferred<string>();
    const started = deferred();
    let ran = 0;
    const { call } = processes({ execute: () => (ran++, started.resolve(), work.promise) }).start();
    const calls = [1, 2, 3].map(() => call("pay", {}, KEY));
    await started.promise;
    work.resolve("paid");
    assertEquals((await Promise.all(calls)).map(outcome), ["paid", "paid", "paid"]);
    assertEquals(ran, 1);
  });

  it("releases the key after a temporary failure", async () => {
    let tries = 0;
    const { start } = processes({ isAvailable: () => ++tries > 1 });
    assertEquals(outcome(await start().call("pay", {}, KEY)), "unavailable");
    assertEquals(outcome(await start().call("pay", {}, KEY)), 1);
  });

  it("runs the call again after the window of its key", async () => {
    const clock = new FakeClock();
    const { ran, start } = processes({}, clock);
    await start().call("pay", {}, KEY);
    clock.advance(9_999);
    await start().call("pay", {}, KEY);
    assertEquals(ran.length, 1);
    clock.advance(1);
    await start().call("pay", {}, KEY);
    assertEquals(ran.length, 2);
  });

  it("releases a key when the store is reachable again after an unanswered claim", async () => {
    const clock = new FakeClock();
    const memory = memoryCallStore({ clock });
    let isAway = false;
    const broken = (): never => {
      throw new Error("No answer");
    };
    const store: CallStore = {
      ...memory,
      get: (key) => isAway ? broken() : memory.get(key),
      async create(...entry) {
        if (!isAway) await memory.create(...entry);
        isAway = true;
        return broken();
      },
    };
    const { start } = processes({}, clock, store);
    assertEquals(outcome(await start().call("pay", {}, KEY)), "unavailable");
    isAway = false;
    clock.advance(1_000);
    await settled();
    assertEquals(outcome(await processes({}, clock, memory).start().call("pay", {}, KEY)), 1);
  });

  it("stores a result for its window even if the clock is set back during the call", async () => {
    const [clock, own] = [new FakeClock(), new FakeClock()];
    const store = memoryCallStore({ clock });
    const { start } = processes({ execute: () => own.advance(-20_000) }, own, store);
    assertEquals((await start().call("pay", {}, KEY)).ok, true);
    const { ran, start: begin } = processes({}, clock, store);
    assertEquals([(await begin().call("pay", {}, KEY)).replayed, ran], [true, []]);
  });

  it("runs only calls without a key while the store is unreachable", async () => {
    const clock = new FakeClock();
    const create = (): Promise<never> => Promise.reject(new Error("The disk is full"));
    const store = { ...memoryCallStore({ clock }), create };
    const { ran, start } = processes({}, clock, store);
    const { call, reports } = start();
    const result = await call("pay", {}, KEY);
    assertEquals([outcome(result), ran.length, reports.length], ["unavailable", 0, 1]);
    assertStringIncludes(messageOf(result), "its idempotency key cannot be looked up now");
    assertEquals(outcome(await call("pay", {})), 1);
  });

  it("returns the result, and logs an error, when it cannot be stored", async () => {
    const clock = new FakeClock();
    const update = (): Promise<never> => Promise.reject(new Error("The disk is full"));
    const { start } = processes({}, clock, { ...memoryCallStore({ clock }), update });
    const { call, reports } = start();
    assertEquals(outcome(await call("pay", {}, KEY)), 1);
    assertEquals(reports.map(({ error }) => String(error)), ["Error: The disk is full"]);
  });
});
