/** Layers of stage `run` that run the tool once, again, or not at all. */

import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { ToolResult } from "../../../../mod.ts";
import type { Layer } from "../../../../src/execute/mod.ts";
import { around, deferred, messageOf, outcome, single } from "../support.ts";

describe("a layer of stage run", () => {
  it("runs the tool as often as it calls next(), inside the layers before it", async () => {
    const order: string[] = [];
    const twice = (name: string): Layer =>
      around(async (call, next) => {
        order.push(name);
        await next(call);
        return await next(call);
      });
    let runs = 0;
    const { call } = single(() => ++runs, { layers: [twice("a"), twice("b")] });
    assertEquals([outcome(await call()), order], [4, ["a", "b", "b"]]);
  });

  it("receives arguments that are valid and approved", async () => {
    const seen: unknown[] = [];
    const { call } = single({
      requiresApproval: true,
      parameters: { type: "object", properties: { n: { type: "integer" } } },
      execute: () => 1,
    }, {
      approve: () => seen.length === 0,
      layers: [around((call, next) => (seen.push(call.arguments), next(call)))],
    });
    await call({ n: "x" });
    await call({ n: 1 });
    assertEquals(outcome(await call({ n: 2 })), "denied");
    assertEquals(seen, [{ n: 1 }]);
  });

  it("may return a result instead of the tool's", async () => {
    let runs = 0;
    const layers = [around(() => ToolResult.ok("stored"))];
    const { call } = single(() => ++runs, { layers });
    assertEquals([outcome(await call()), runs], ["stored", 0]);
  });

  it("cannot run the tool while it runs", async () => {
    const gate = deferred();
    let runs = 0;
    const { call, reports } = single(() => (runs++, gate.promise), {
      layers: [around(async (call, next) => {
        const [first, second] = [next(call), next(call)];
        assertEquals(messageOf(await second), messageOf(ToolResult.error("threw", MISUSE)));
        gate.resolve();
        return await first;
      })],
    });
    assertEquals([outcome(await call()), runs], [null, 1]);
    assertStringIncludes(String(reports[0]?.error), "Cannot run the tool again: it still runs");
  });

  it("returns the stored answers to repeated questions", async () => {
    const log: string[] = [];
    const { call } = single(async (_, { ask, step }) => {
      await step("first", () => void log.push("step"));
      const { action } = await ask("sure", { message: "Sure?" });
      log.push(action);
    }, {
      layers: [around(async (call, next) => {
        await next(call);
        return await next(call);
      })],
    });
    const onQuestion = () => (log.push("asked"), { action: "accept" } as const);
    assertEquals(outcome(await call({}, { onQuestion })), null);
    assertEquals(log, ["step", "asked", "accept", "accept"]);
  });

  it("is inside the transaction", async () => {
    const ended: string[] = [];
    const { call } = single({
      requiresTransaction: true,
      execute: async (_, { ask }) => (await ask("sure", { message: "Sure?" })).action,
    }, {
      layers: [around(async (call, next) => {
        const result = await next(call);
        ended.push("layer");
        return result;
      })],
      transactions: {
        begin: () => ({ id: "1" }),
        commit: () => void ended.push("commit"),
        rollback: () => void ended.push("rollback"),
      },
    });
    const yes = await call({}, { onQuestion: () => ({ action: "accept" }) });
    assertEquals(outcome(yes), "accept");
    assertEquals(outcome(await call()), "input_unavailable");
    assertEquals(ended, ["layer", "commit", "layer", "rollback"]);
  });
});

const MISUSE = 'Cannot call "t": an internal error; the arguments are not the cause';
