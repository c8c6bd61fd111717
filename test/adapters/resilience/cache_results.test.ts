import { describe, it } from "bun:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { defineTool, ToolDispatcher, ToolRegistry, ToolResult } from "@plue/tools";
import { memoryCallStore } from "@plue/tools/calls";
import { credentials, fromContext } from "@plue/tools/credentials";
import { cacheResults } from "@plue/tools/resilience";
import { z } from "zod";
import { deferred, FakeClock, outcome } from "../../unit/execute/support.ts";
import { answering, unavailable } from "./support.ts";

describe("cacheResults()", () => {
  const HOUR = 3_600_000;
  const clock = new FakeClock();
  const cached = (more: object = {}) =>
    cacheResults({
      tools: { t: { ttlMs: HOUR, ...more } },
      store: memoryCallStore({ clock }),
      clock,
    });

  it("returns the result of an earlier call as replayed, and it is counted as such", async () => {
    const { call, runs, dispatcher } = answering([{ n: 1 }, { n: 2 }], { layers: [cached()] });
    await call({ a: 1, b: 2 });
    const again = await call({ b: 2, a: 1 });
    assertEquals([outcome(again), again.replayed, runs()], [{ n: 1 }, true, 1]);
    assertEquals(dispatcher.metrics().tools[0]?.replayed, 1);
  });

  for (
    const [what, one, other] of [
      ["principals", {}, { principal: "bob" }],
      ["contexts", { context: { tenant: "a" } }, { context: { tenant: "b" } }],
    ] as const
  ) {
    it(`has one result for each of the ${what}`, async () => {
      const { call, runs } = answering([1, 2], { layers: [cached()] }, {
        context: { type: "object" },
      });
      await call({}, { context: {}, ...one });
      await call({}, { context: {}, ...other });
      assertEquals(runs(), 2);
    });
  }

  it("stores no result of a credential without a principal, because it is another caller's", async () => {
    const source = credentials(fromContext(() => "a-token"));
    const { call } = answering([1, 2, 3], { layers: [cached()], credentials: source }, {
      credentials: { hub: {} },
    });
    const results = [await call(), await call(), await call({}, { principal: "ann" })];
    assertEquals(results.map(outcome), [1, 2, 3]);
    assertEquals(outcome(await call({}, { principal: "ann" })), 3);
  });

  it("has one result for each arguments and definition", async () => {
    const cache = cached();
    const { call, runs } = answering([1, 2], { layers: [cache] });
    await call({ a: 1 });
    await call({ a: 2 });
    assertEquals(runs(), 2);
    const changed = answering([4], { layers: [cache] }, { description: "Another." });
    assertEquals(outcome(await changed.call({ a: 1 })), 4);
  });

  it("stores successes only, until their ttlMs is over", async () => {
    const { call } = answering([unavailable, 1, 2], { layers: [cached()] });
    assertEquals(outcome(await call()), "unavailable");
    assertEquals([outcome(await call()), outcome(await call())], [1, 1]);
    clock.advance(HOUR);
    assertEquals(outcome(await call()), 2);
  });

  it("does not save a call its approval", async () => {
    let count = 0;
    const { call } = answering([1], { layers: [cached()], approve: () => ++count < 2 }, {
      requiresApproval: true,
    });
    assertEquals([outcome(await call()), outcome(await call())], [1, "denied"]);
  });

  it("invalidates by tag, including the result of a running call", async () => {
    const tags = (
      { arguments: args }: { arguments: unknown },
    ) => [`city:${(args as { city: string }).city}`];
    const cache = cached({ tags });
    const started = deferred();
    const gate = deferred<string>();
    const answers = [
      "rome 1",
      "bern 1",
      "rome 2",
      () => (started.resolve(), gate.promise),
      "bern 3",
    ];
    const { call } = answering([], { layers: [cache] }, {
      execute() {
        const answer = answers.shift();
        return typeof answer === "function" ? answer() : answer;
      },
    });
    const cities = async (...names: string[]) => {
      const seen = [];
      for (const city of names) seen.push(outcome(await call({ city })));
      return seen;
    };
    assertEquals(await cities("rome", "bern"), ["rome 1", "bern 1"]);
    await cache.invalidate("city:rome");
    assertEquals(await cities("rome", "bern", "rome"), ["rome 2", "bern 1", "rome 2"]);
    await cache.invalidate("city:bern");
    const running = call({ city: "bern" });
    await started.promise;
    await cache.invalidate("city:bern");
    gate.resolve("bern 2");
    assertEquals(outcome(await running), "bern 2");
    assertEquals(await cities("bern"), ["bern 3"]);
  });

  it("stores blocks as blocks, and no result that was cut", async () => {
    const blocks = ToolResult.blocks([{ type: "text", text: "hello" }]);
    const { call, runs } = answering([blocks], { layers: [cached()] });
    const [first, again] = [await call(), await call()];
    assert(first.ok && again.ok);
    assertEquals([again.content, again.blocks, runs()], [first.content, true, 1]);
    const cut = answering(["x".repeat(500)], {
      layers: [cached()],
      maxOutputBytes: 128,
      outputOverflow: "truncate",
    });
    await cut.call();
    await cut.call();
    assertEquals(cut.runs(), 2);
  });

  it("names the option that is not valid", () => {
    for (
      const [options, message] of [
        [{}, "tools is missing"],
        [{ tools: { t: {} } }, 'ttlMs of "t" is missing'],
        [{ tools: { t: { ttlMs: 1, tags: [""] } } }, 'tags of "t" must be'],
        [{ tools: {}, store: {} }, "store must have"],
        [{ tools: { t: { ttlMs: Infinity } } }, 'ttlMs of "t" must be a number'],
        [{ tools: {}, storeTimeoutMs: Infinity }, '"/storeTimeoutMs" must be a number'],
      ] as const
    ) {
      assertThrows(() => cacheResults(options as never), Error, message);
    }
  });

  it("does not return a result that is larger than the limit of its call", async () => {
    const { call } = answering(["x".repeat(500), "short"], { layers: [cached()] });
    await call();
    assertEquals(outcome(await call({}, { maxOutputBytes: 400 })), "short");
  });

  it("does not apply to other tools, or to tools with transactions", () => {
    const { for: layerFor } = cached();
    for (const tool of [{ id: "x" }, { id: "t", requiresTransaction: true }]) {
      assertEquals(layerFor?.(tool as never, {} as never), undefined);
    }
  });

  it("checks a result that a library's schema transforms once", async () => {
    const cache = cacheResults({ tools: { len: { ttlMs: 1_000 } } });
    const tool = defineTool({
      name: "len",
      description: "Counts letters.",
      returns: z.string().transform((text) => text.length).pipe(z.number()),
      execute: () => "four",
    });
    const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [tool] }), { layers: [cache] });
    for (const replayed of [undefined, true] as const) {
      const result = await dispatcher.dispatch({ name: "len" });
      assertEquals([outcome(result), result.replayed], [4, replayed]);
    }
  });
});
