import { describe, it } from "bun:test";
import { assert, assertEquals, assertNotEquals, assertThrows } from "@std/assert";
import { ToolResult } from "../../../mod.ts";
import { fingerprintOf } from "../../../src/execute/idempotency.ts";
import { deferred, fixture, messageOf, never, outcome } from "./support.ts";

/** A tool that counts its runs. */
function counter(end: (run: number) => unknown = (run) => run): {
  readonly runs: () => number;
  readonly tool: { readonly name: string; readonly execute: () => unknown };
} {
  let runs = 0;
  return { runs: () => runs, tool: { name: "count", execute: () => end(++runs) } };
}

const KEY = { idempotencyKey: "k" };

describe("an idempotency key", () => {
  it("gives a later call the first call's result", async () => {
    const { tool, runs } = counter((run) => ({ run }));
    const { call, dispatcher } = fixture([tool]);
    const first = await call("count", { a: 1, b: 2 }, KEY);
    const second = await call("count", { b: 2, a: 1 }, KEY);
    assertEquals([outcome(first), outcome(second)], [{ run: 1 }, { run: 1 }]);
    assertEquals([first.replayed, second.replayed], [undefined, true]);
    assertEquals(runs(), 1);
    assertEquals(dispatcher.metrics().tools[0]?.replayed, 1);
  });

  it("returns a copy to each caller", async () => {
    const { tool } = counter(() => ({ list: [1] }));
    const { call } = fixture([tool]);
    const first = await call("count", {}, KEY);
    assert(first.ok);
    (first.content as { list: number[] }).list.push(2);
    const second = await call("count", {}, KEY);
    assertEquals(outcome(second), { list: [1] });
    assertThrows(() =>
      (second.ok ? second.content as { list: number[] } : { list: [] }).list.push(3)
    );
  });

  it("gives each later call a long list of its own", async () => {
    const { tool } = counter(() => Array.from({ length: 2_000 }, (_, index) => index));
    const { call } = fixture([tool]);
    const calls = [await call("count", {}, KEY), await call("count", {}, KEY)];
    for (const result of calls) (result.ok ? result.content as number[] : []).length = 0;
    assertEquals((outcome(await call("count", {}, KEY)) as number[]).length, 2_000);
  });

  it("joins calls while the first still runs", async () => {
    const end = deferred<string>();
    const { tool, runs } = counter(() => end.promise);
    const { call } = fixture([tool]);
    const calls = [call("count", {}, KEY), call("count", {}, KEY), call("count", {}, KEY)];
    end.resolve("once");
    const results = await Promise.all(calls);
    assertEquals(results.map(outcome), ["once", "once", "once"]);
    assertEquals(results.map(({ replayed }) => replayed), [undefined, true, true]);
    assertEquals(runs(), 1);
  });

  it("counts for one tool, one principal and one session", async () => {
    const { tool, runs } = counter();
    const { call } = fixture([tool, { ...tool, name: "other" }]);
    await call("count", {}, KEY);
    await call("other", {}, KEY);
    await call("count", {}, { ...KEY, principal: "ann" });
    await call("count", {}, { ...KEY, sessionId: "ann" });
    await call("count", {}, { ...KEY, principal: "ann", sessionId: "s" });
    await call("count", {}, { idempotencyKey: "k2" });
    assertEquals(runs(), 6);
    await call("count", {}, { ...KEY, principal: "ann" });
    assertEquals(runs(), 6);
  });

  it("counts for one context of the host", async () => {
    const db = { query: () => {} };
    const contexts = [
      undefined,
      null,
      {},
      { tenant: "a" },
      { tenant: "b" },
      // Not JSON: the members count that are.
      { db },
      { tenant: "a", db },
      { tenant: "b", db },
    ];
    const { tool, runs } = counter();
    const { call } = fixture([tool]);
    for (const context of contexts) await call("count", {}, { ...KEY, context });
    assertEquals(runs(), contexts.length);
    for (const context of contexts) {
      const again = await call("count", {}, { ...KEY, context });
      assertEquals(again.replayed, true);
    }
    const same = await call("count", {}, { ...KEY, context: JSON.parse('{"tenant":"a"}') });
    assertEquals([outcome(same), runs()], [4, contexts.length]);
  });

  it("is rejected with other arguments", async () => {
    const { tool, runs } = counter();
    const { call } = fixture([tool]);
    await call("count", { a: 1 }, KEY);
    const result = await call("count", { a: 2 }, KEY);
    assertEquals(outcome(result), "invalid_arguments");
    assertEquals(
      messageOf(result),
      'Cannot call "count": its idempotency key was used before with other arguments; ' +
        "a new call needs a new key",
    );
    assertEquals(runs(), 1);
  });

  it("must be 1 to 256 characters", async () => {
    const { tool, runs } = counter();
    const { call } = fixture([tool]);
    for (const idempotencyKey of ["", "x".repeat(257), 7 as never]) {
      assertEquals(outcome(await call("count", {}, { idempotencyKey })), "invalid_arguments");
    }
    const sessionId = "x".repeat(5_000);
    assertEquals(outcome(await call("count", {}, { ...KEY, sessionId })), "invalid_arguments");
    assertEquals(runs(), 0);
  });

  it("is forgotten when its window is over", async () => {
    const { tool } = counter();
    const { call, clock } = fixture([tool], { idempotency: { windowMs: 100 } });
    await call("count", {}, KEY);
    clock.advance(99);
    assertEquals(outcome(await call("count", {}, KEY)), 1);
    clock.advance(1);
    assertEquals(outcome(await call("count", {}, KEY)), 2);
  });

  it("keeps failures that would come again, and no others", async () => {
    const rows: readonly (readonly [() => unknown, number])[] = [
      [() => Promise.reject(new Error("no")), 1],
      [() => ToolResult.error("denied", "no"), 1],
      [() => ToolResult.error("unavailable", "later"), 2],
      [() => ToolResult.error("threw", "flaky", { retryable: true }), 2],
    ];
    for (const [end, expected] of rows) {
      const { tool, runs } = counter(end);
      const { call } = fixture([tool]);
      await call("count", {}, KEY);
      await call("count", {}, KEY);
      assertEquals(runs(), expected);
    }
  });

  it("keeps nothing of a call whose tool did not run", async () => {
    let approved = false;
    const { tool } = counter();
    const { call } = fixture([{ ...tool, requiresApproval: true }], { approve: () => approved });
    assertEquals(outcome(await call("count", {}, KEY)), "denied");
    approved = true;
    assertEquals(outcome(await call("count", {}, KEY)), 1);
  });

  it("lets a waiting call give up without ending the run", async () => {
    const end = deferred<string>();
    const { tool, runs } = counter(() => end.promise);
    const { call } = fixture([tool]);
    const first = call("count", {}, KEY);
    const controller = new AbortController();
    const second = call("count", {}, { ...KEY, signal: controller.signal });
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
      const { tool, runs } = counter((run) => run === 1 ? never() : run);
      const { call } = fixture([{ ...tool, idempotent }], { graceMs: 0 });
      const controller = new AbortController();
      const first = call("count", {}, { ...KEY, signal: controller.signal });
      const others = [call("count", {}, KEY), call("count", {}, KEY)];
      controller.abort();
      assertEquals(outcome(await first), "aborted");
      others.push(Promise.all(others).then(() => call("count", {}, KEY)));
      assertEquals((await Promise.all(others)).map(outcome), [...outcomes]);
      assertEquals(runs(), idempotent ? 2 : 1);
    });
  }

  it("is one of a bounded number, of which the oldest is evicted", async () => {
    const { tool, runs } = counter();
    const { call } = fixture([tool], { idempotency: { maxKeys: 2 } });
    for (const idempotencyKey of ["a", "b", "c"]) await call("count", {}, { idempotencyKey });
    assertEquals(runs(), 3);
    await call("count", {}, { idempotencyKey: "b" });
    assertEquals(runs(), 3);
    await call("count", {}, { idempotencyKey: "a" });
    assertEquals(runs(), 4);
  });

  it("is rejected while every key belongs to a running call", async () => {
    const end = deferred();
    const { tool } = counter(() => end.promise);
    const { call } = fixture([tool], { idempotency: { maxKeys: 1 } });
    const first = call("count", {}, KEY);
    assertEquals(outcome(await call("count", {}, { idempotencyKey: "other" })), "overloaded");
    end.resolve();
    await first;
    assertEquals(outcome(await call("count", {}, { idempotencyKey: "other" })), null);
  });

  it("keeps a bounded number of bytes", async () => {
    const { tool, runs } = counter(() => "x".repeat(100));
    const { call } = fixture([tool], { idempotency: { maxBytes: 1_300 } });
    // A string counts with its upper bound, six bytes to the letter: two results fit.
    for (const idempotencyKey of ["a", "b", "c"]) await call("count", {}, { idempotencyKey });
    await call("count", {}, { idempotencyKey: "c" });
    await call("count", {}, { idempotencyKey: "b" });
    assertEquals(runs(), 3);
    await call("count", {}, { idempotencyKey: "a" });
    assertEquals(runs(), 4);
  });

  it("is not pushed out by the keys of another principal", async () => {
    const { tool, runs } = counter();
    const { call } = fixture([tool]);
    const ann = { ...KEY, principal: "ann" };
    await call("count", {}, ann);
    for (let index = 0; index < 1_100; index++) {
      await call("count", {}, { idempotencyKey: `${index}`, principal: "bob" });
    }
    assertEquals(outcome(await call("count", {}, ann)), 1);
    // Bob may use all the space that Ann does not use.
    await call("count", {}, { idempotencyKey: "101", principal: "bob" });
    assertEquals(runs(), 1_101);
  });

  it("is not pushed out by the large results of another principal", async () => {
    const { tool, runs } = counter(() => "x".repeat(100));
    const { call } = fixture([tool], { idempotency: { maxBytes: 2_000 } });
    const ann = { ...KEY, principal: "ann" };
    await call("count", {}, ann);
    for (const idempotencyKey of ["a", "b", "c", "d"]) {
      await call("count", {}, { idempotencyKey, principal: "bob" });
    }
    await call("count", {}, ann);
    await call("count", {}, { idempotencyKey: "d", principal: "bob" });
    assertEquals(runs(), 5);
  });

  it("evicts keys of principals above their quota", async () => {
    const { tool, runs } = counter();
    const { call } = fixture([tool], { idempotency: { maxKeys: 4 } });
    const use = (principal: string, key: string) =>
      call("count", {}, { principal, idempotencyKey: key });
    for (const key of ["1", "2", "3", "4"]) await use("bob", key);
    for (const key of ["1", "2", "3"]) await use("ann", key);
    assertEquals(runs(), 7);
    // Each has two: Bob's newest, and Ann's.
    for (const key of ["3", "4"]) await use("bob", key);
    for (const key of ["2", "3"]) await use("ann", key);
    assertEquals(runs(), 7);
    await use("ann", "1");
    assertEquals(runs(), 8);
  });

  it("is not blocked by running calls of another principal", async () => {
    const end = deferred<number>();
    const { tool } = counter((run) => run > 1_000 ? run : end.promise);
    const { call } = fixture([tool]);
    const calls = Array.from(
      { length: 1_000 },
      (_, index) => call("count", {}, { idempotencyKey: `${index}`, principal: "bob" }),
    );
    assertEquals(outcome(await call("count", {}, { ...KEY, principal: "bob" })), "overloaded");
    assertEquals(outcome(await call("count", {}, { ...KEY, principal: "ann" })), 1_001);
    end.resolve(0);
    await Promise.all(calls);
  });

  it("does not ask hooks or approvers again", async () => {
    const log: string[] = [];
    const { tool } = counter();
    const { call } = fixture([{ ...tool, requiresApproval: true }], {
      approve: () => log.push("approve") > 0,
      hooks: { before: () => void log.push("before"), after: () => void log.push("after") },
    });
    await call("count", {}, KEY);
    await call("count", {}, KEY);
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
      {},
      [],
      null,
      0,
      "",
      "0",
      [0],
      [[0]],
      [0, 0],
      { a: 0 },
      { "a": "0" },
      {
        a: { b: 0 },
      },
      [1, 2],
      [12],
      ["1,2"],
      { a: [], b: [] },
      { a: [[]] },
    ];
    assertEquals(new Set(values.map(fingerprintOf)).size, values.length);
    assertNotEquals(fingerprintOf("ab"), fingerprintOf("ba"));
  });
});
