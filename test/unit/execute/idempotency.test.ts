import { describe, it } from "bun:test";
import { assert, assertEquals, assertNotEquals, assertThrows } from "@std/assert";
import { type DispatchContext, type ToolDispatcherOptions, ToolResult } from "../../../mod.ts";
import { fingerprintOf } from "../../../src/execute/idempotency.ts";
import { deferred, type FakeTool, fixture, messageOf, never, outcome, single } from "./support.ts";

/** A tool that counts its runs. Its calls have a key by default. */
function counting(
  end: (run: number) => unknown = (run) => run,
  options: ToolDispatcherOptions = {},
  tool: Partial<FakeTool> = {},
) {
  let runs = 0;
  const world = single({ execute: () => end(++runs), ...tool }, options);
  return {
    ...world,
    runs: () => runs,
    call: (context: DispatchContext = {}, args: unknown = {}) =>
      world.call(args, { ...KEY, ...context }),
  };
}

const KEY = { idempotencyKey: "k" };

/** A context with another key. */
const key = (idempotencyKey: string): DispatchContext => ({ idempotencyKey });

describe("an idempotency key", () => {
  it("returns the first call's result to a later call", async () => {
    const { call, dispatcher, runs } = counting((run) => ({ run }));
    const first = await call({}, { a: 1, b: 2 });
    const second = await call({}, { b: 2, a: 1 });
    assertEquals([outcome(first), outcome(second)], [{ run: 1 }, { run: 1 }]);
    assertEquals([first.replayed, second.replayed], [undefined, true]);
    assertEquals(runs(), 1);
    assertEquals(dispatcher.metrics().tools[0]?.replayed, 1);
  });

  it("returns a copy to each caller", async () => {
    const { call } = counting(() => ({ list: [1] }));
    const first = await call();
    assert(first.ok);
    (first.content as { list: number[] }).list.push(2);
    const second = await call();
    assertEquals(outcome(second), { list: [1] });
    assertThrows(() =>
      (second.ok ? second.content as { list: number[] } : { list: [] }).list.push(3)
    );
  });

  it("returns a separate long list to each later call", async () => {
    const { call } = counting(() => Array.from({ length: 2_000 }, (_, index) => index));
    const calls = [await call(), await call()];
    for (const result of calls) (result.ok ? result.content as number[] : []).length = 0;
    assertEquals((outcome(await call()) as number[]).length, 2_000);
  });

  it("returns no stored result beyond the limit of a later call", async () => {
    const { call, runs } = counting(() => "x".repeat(500));
    await call();
    const results = [await call({ maxOutputBytes: 200 }), await call({ maxOutputBytes: 502 })];
    const shown = results.map((one) => one.ok || [one.error.code, one.error.ran]);
    assertEquals(shown, [["output_too_large", "yes"], true]);
    assertEquals(runs(), 1);
  });

  it("joins calls while the first still runs", async () => {
    const end = deferred<string>();
    const { call, runs } = counting(() => end.promise);
    const calls = [call(), call(), call()];
    end.resolve("once");
    const results = await Promise.all(calls);
    assertEquals(results.map(outcome), ["once", "once", "once"]);
    assertEquals(results.map(({ replayed }) => replayed), [undefined, true, true]);
    assertEquals(runs(), 1);
  });

  it("counts for one tool, one principal and one session", async () => {
    let runs = 0;
    const tools = ["t", "other"].map((name) => ({ name, execute: () => ++runs }));
    const { call } = fixture(tools);
    await call("t", {}, KEY);
    await call("other", {}, KEY);
    for (
      const context of [
        { principal: "ann" },
        { sessionId: "ann" },
        { principal: "ann", sessionId: "s" },
        key("k2"),
      ]
    ) await call("t", {}, { ...KEY, ...context });
    assertEquals(runs, 6);
    await call("t", {}, { ...KEY, principal: "ann" });
    assertEquals(runs, 6);
  });

  it("counts for one context of the host", async () => {
    const db = { query: () => {} };
    const contexts = [
      undefined,
      null,
      {},
      { tenant: "a" },
      { tenant: "b" },
      // `db` is not JSON, so only the other members are compared.
      { db },
      { tenant: "a", db },
      { tenant: "b", db },
    ];
    const { call, runs } = counting();
    for (const context of contexts) await call({ context });
    assertEquals(runs(), contexts.length);
    for (const context of contexts) {
      const again = await call({ context });
      assertEquals(again.replayed, true);
    }
    const same = await call({ ...KEY, context: JSON.parse('{"tenant":"a"}') });
    assertEquals([outcome(same), runs()], [4, contexts.length]);
  });

  it("is rejected with other arguments", async () => {
    const { call, runs } = counting();
    await call({}, { a: 1 });
    const result = await call({}, { a: 2 });
    assertEquals(outcome(result), "invalid_arguments");
    assertEquals(
      messageOf(result),
      'Cannot call "t": its idempotency key was used before with other arguments; ' +
        "a new call needs a new key",
    );
    assertEquals(runs(), 1);
  });

  it("must be 1 to 256 characters", async () => {
    const { call, runs } = counting();
    for (const idempotencyKey of ["", "x".repeat(257), 7 as never]) {
      assertEquals(outcome(await call({ idempotencyKey })), "invalid_arguments");
    }
    const sessionId = "x".repeat(5_000);
    assertEquals(outcome(await call({ sessionId })), "invalid_arguments");
    assertEquals(runs(), 0);
  });

  it("expires at the end of its window", async () => {
    const { call, clock } = counting(undefined, { idempotency: { windowMs: 100 } });
    await call();
    clock.advance(99);
    assertEquals(outcome(await call()), 1);
    clock.advance(1);
    assertEquals(outcome(await call()), 2);
  });

  it("stores permanent failures, and no others", async () => {
    const rows: readonly (readonly [() => unknown, number])[] = [
      [() => Promise.reject(new Error("no")), 1],
      [() => ToolResult.error("denied", "no"), 1],
      [() => ToolResult.error("unavailable", "later"), 2],
      [() => ToolResult.error("threw", "flaky", { retryable: true }), 2],
    ];
    for (const [end, expected] of rows) {
      const { call, runs } = counting(end);
      await call();
      await call();
      assertEquals(runs(), expected);
    }
  });

  it("stores nothing for a call whose tool did not run", async () => {
    let approved = false;
    const options = { approve: () => approved };
    const { call } = counting(undefined, options, { requiresApproval: true });
    assertEquals(outcome(await call()), "denied");
    approved = true;
    assertEquals(outcome(await call()), 1);
  });

  it("continues the run when a waiting call is aborted", async () => {
    const end = deferred<string>();
    const { call, runs } = counting(() => end.promise);
    const first = call();
    const controller = new AbortController();
    const second = call({ signal: controller.signal });
    controller.abort();
    assertEquals(outcome(await second), "aborted");
    end.resolve("done");
    assertEquals(outcome(await first), "done");
    assertEquals(runs(), 1);
  });

  for (
    const [title, idempotent, outcomes] of [
      ["lets a waiting call run an idempotent tool", true, [2, 2, 2]],
      ["does not run a tool again that may still run", false, ["aborted", "aborted", "aborted"]],
    ] as const
  ) {
    it(`${title} when the first call was aborted`, async () => {
      const end = (run: number) => run === 1 ? never() : run;
      const { call, runs } = counting(end, { graceMs: 0 }, { idempotent });
      const controller = new AbortController();
      const first = call({ signal: controller.signal });
      const others = [call(), call()];
      controller.abort();
      assertEquals(outcome(await first), "aborted");
      others.push(Promise.all(others).then(() => call()));
      assertEquals((await Promise.all(others)).map(outcome), [...outcomes]);
      assertEquals(runs(), idempotent ? 2 : 1);
    });
  }

  it("does not run a stopped tool again unless it is idempotent", async () => {
    for (const [idempotent, expected] of [[false, "aborted"], [true, 2]] as const) {
      let runs = 0;
      const execute: FakeTool["execute"] = (_, { signal }) =>
        ++runs === 1
          ? new Promise((_, reject) => signal.addEventListener("abort", () => reject("stopped")))
          : runs;
      const { call } = single({ execute, idempotent });
      const controller = new AbortController();
      const first = call({}, { ...KEY, signal: controller.signal });
      const waiting = call({}, KEY);
      controller.abort();
      assertEquals(outcome(await first), "aborted");
      assertEquals([await waiting, await call({}, KEY)].map(outcome), [expected, expected]);
      assertEquals(runs, idempotent ? 2 : 1);
    }
  });

  it("is one of a bounded number, of which the oldest is evicted", async () => {
    const { call, runs } = counting(undefined, { idempotency: { maxKeys: 2 } });
    for (const idempotencyKey of ["a", "b", "c"]) await call({ idempotencyKey });
    assertEquals(runs(), 3);
    await call(key("b"));
    assertEquals(runs(), 3);
    await call(key("a"));
    assertEquals(runs(), 4);
  });

  it("is rejected while every key belongs to a running call", async () => {
    const end = deferred();
    const { call } = counting(() => end.promise, { idempotency: { maxKeys: 1 } });
    const first = call();
    assertEquals(outcome(await call(key("other"))), "overloaded");
    end.resolve();
    await first;
    assertEquals(outcome(await call(key("other"))), null);
  });

  it("stores a bounded number of bytes", async () => {
    const { call, runs } = counting(() => "x".repeat(100), { idempotency: { maxBytes: 1_300 } });
    // A string counts with its upper bound of six bytes per character, so two results fit.
    for (const idempotencyKey of ["a", "b", "c"]) await call({ idempotencyKey });
    await call(key("c"));
    await call(key("b"));
    assertEquals(runs(), 3);
    await call(key("a"));
    assertEquals(runs(), 4);
  });

  it("is not evicted by the keys of another principal", async () => {
    const { call, runs } = counting();
    const ann = { ...KEY, principal: "ann" };
    await call(ann);
    for (let index = 0; index < 1_100; index++) {
      await call({ idempotencyKey: `${index}`, principal: "bob" });
    }
    assertEquals(outcome(await call(ann)), 1);
    // Bob may use all the space that Ann does not use.
    await call({ idempotencyKey: "101", principal: "bob" });
    assertEquals(runs(), 1_101);
  });

  it("is not evicted by the large results of another principal", async () => {
    const { call, runs } = counting(() => "x".repeat(100), { idempotency: { maxBytes: 2_000 } });
    const ann = { ...KEY, principal: "ann" };
    await call(ann);
    for (const idempotencyKey of ["a", "b", "c", "d"]) {
      await call({ idempotencyKey, principal: "bob" });
    }
    await call(ann);
    await call({ idempotencyKey: "d", principal: "bob" });
    assertEquals(runs(), 5);
  });

  it("evicts keys of principals above their quota", async () => {
    const { call, runs } = counting(undefined, { idempotency: { maxKeys: 4 } });
    const use = (principal: string, key: string) => call({ principal, idempotencyKey: key });
    for (const key of ["1", "2", "3", "4"]) await use("bob", key);
    for (const key of ["1", "2", "3"]) await use("ann", key);
    assertEquals(runs(), 7);
    // Each principal has two: Bob's newest ones, and Ann's.
    for (const key of ["3", "4"]) await use("bob", key);
    for (const key of ["2", "3"]) await use("ann", key);
    assertEquals(runs(), 7);
    await use("ann", "1");
    assertEquals(runs(), 8);
  });

  it("is not blocked by running calls of another principal", async () => {
    const end = deferred<number>();
    const { call } = counting((run) => run > 1_000 ? run : end.promise);
    const calls = Array.from(
      { length: 1_000 },
      (_, index) => call({ idempotencyKey: `${index}`, principal: "bob" }),
    );
    assertEquals(outcome(await call({ principal: "bob" })), "overloaded");
    assertEquals(outcome(await call({ principal: "ann" })), 1_001);
    end.resolve(0);
    await Promise.all(calls);
  });

  it("does not call hooks or approvers again", async () => {
    const log: string[] = [];
    const { call } = counting(undefined, {
      approve: () => log.push("approve") > 0,
      hooks: { before: () => void log.push("before"), after: () => void log.push("after") },
    }, { requiresApproval: true });
    await call();
    await call();
    assertEquals(log, ["before", "approve", "after"]);
  });
});

describe("fingerprintOf()", () => {
  it("is the same for the same JSON, and for that only", () => {
    assertEquals(
      fingerprintOf({ a: 1, b: [2, { c: null }] }),
      fingerprintOf({ b: [2, { c: null }], a: 1 }),
    );
    const values = [
      ...[{}, [], null, 0, "", "0", [0], [[0]], [0, 0], [1, 2], [12], ["1,2"]],
      ...[{ a: 0 }, { a: "0" }, { a: { b: 0 } }, { a: [], b: [] }, { a: [[]] }],
    ];
    assertEquals(new Set(values.map(fingerprintOf)).size, values.length);
    assertNotEquals(fingerprintOf("ab"), fingerprintOf("ba"));
  });
});
