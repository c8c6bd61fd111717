import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import {
  type CallStore,
  memoryCallStore,
  storedKeys,
} from "../../../../src/execute/durable/mod.ts";
import {
  deferred,
  FakeClock,
  type FakeTool,
  type Fixture,
  fixture,
  messageOf,
  outcome,
} from "../support.ts";

const KEY = { idempotencyKey: "k", principal: "ann" };

/** Processes that share a store, and what they ran. */
function processes(
  tool: Partial<FakeTool> = {},
  clock: FakeClock = new FakeClock(),
  store: CallStore = memoryCallStore({ clock }),
): { readonly ran: unknown[]; start(): Fixture } {
  const ran: unknown[] = [];
  return {
    ran,
    start: () =>
      fixture([{
        name: "pay",
        execute(args) {
          ran.push(args);
          return ran.length;
        },
        ...tool,
      }], { clock, idempotency: { kept: storedKeys(store), windowMs: 10_000 } }),
  };
}

describe("storedKeys()", () => {
  it("gives the result of another process, and does not run again", async () => {
    const { ran, start } = processes();
    assertEquals(outcome(await start().call("pay", { n: 1 }, KEY)), 1);
    const again = await start().call("pay", { n: 1 }, KEY);
    assertEquals([outcome(again), again.replayed, ran.length], [1, true, 1]);
  });

  it("keeps principals, keys and arguments apart", async () => {
    const { ran, start } = processes();
    await start().call("pay", { n: 1 }, KEY);
    await start().call("pay", { n: 1 }, { ...KEY, principal: "bob" });
    await start().call("pay", { n: 1 }, { ...KEY, idempotencyKey: "l" });
    assertEquals(ran.length, 3);
    const other = await start().call("pay", { n: 2 }, KEY);
    assertEquals([outcome(other), ran.length], ["invalid_arguments", 3]);
    assertStringIncludes(messageOf(other), "was used before with other arguments");
  });

  it("does not run what runs elsewhere, or was cut off", async () => {
    const work = deferred<string>();
    const started = deferred();
    let ran = 0;
    const { start } = processes({ execute: () => (ran++, started.resolve(), work.promise) });
    const first = start().call("pay", {}, KEY);
    await started.promise;
    const other = await start().call("pay", {}, KEY);
    assertEquals([outcome(other), ran], ["unavailable", 1]);
    assertStringIncludes(
      messageOf(other),
      "runs in another process, or was cut off and may have run",
    );
    work.resolve("paid");
    assertEquals(outcome(await first), "paid");
    assertEquals(outcome(await start().call("pay", {}, KEY)), "paid");
  });

  it("lets the calls of one process wait for the first", async () => {
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

  it("gives the key back after a failure that may pass", async () => {
    let tries = 0;
    const { start } = processes({ isAvailable: () => ++tries > 1 });
    assertEquals(outcome(await start().call("pay", {}, KEY)), "unavailable");
    assertEquals(outcome(await start().call("pay", {}, KEY)), 1);
  });

  it("forgets a key after its window", async () => {
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

  it("runs nothing while the store is out of reach, and calls without a key go on", async () => {
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

  it("answers, and tells the log, when a result cannot be kept", async () => {
    const clock = new FakeClock();
    const update = (): Promise<never> => Promise.reject(new Error("The disk is full"));
    const { start } = processes({}, clock, { ...memoryCallStore({ clock }), update });
    const { call, reports } = start();
    assertEquals(outcome(await call("pay", {}, KEY)), 1);
    assertEquals(reports.map(({ error }) => String(error)), ["Error: The disk is full"]);
  });
});
