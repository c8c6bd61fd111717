import { describe, it } from "bun:test";
import { assertEquals, assertThrows } from "@std/assert";
import { type DispatchContext, Dispatcher, type Layer, Registry } from "../../../../src/core.ts";
import { typeboxEngine } from "../../../../src/adapters/typebox/mod.ts";
import { ToolResult } from "../../../../src/tool/mod.ts";
import * as support from "../support.ts";
import { around, core, outcome } from "../support.ts";

const SHORT = { timeoutMs: 100, graceMs: 0, closeTimeoutMs: 20 };

/** The outcome of a call that waits for the clock only, and the number of reports. */
async function outcomeInTime(
  layers: readonly Layer[],
  tool: Partial<support.FakeTool> = {},
): Promise<readonly [unknown, number]> {
  const { call, clock, reports } = core(layers, tool, SHORT);
  const pending = call();
  let hasEnded = false;
  void pending.then(() => hasEnded = true);
  while (!hasEnded) {
    await Promise.race([pending, clock.armed()]);
    clock.advance(100);
  }
  return [outcome(await pending), reports.length];
}

const denies: Layer = around((call) => call.fail("denied", "no"));

describe("a condition of a layer", () => {
  it("is a function, or a field that the context of a call may have", () => {
    const fields: { readonly [Name in keyof Required<DispatchContext>]: true } = {
      sessionId: true,
      messageId: true,
      principal: true,
      services: true,
      context: true,
      trace: true,
      signal: true,
      timeoutMs: true,
      idempotencyKey: true,
      maxOutputBytes: true,
      outputOverflow: true,
      metadata: true,
      progress: true,
      onQuestion: true,
      output: true,
    };
    const use = (when: unknown): unknown => core([{ ...denies, when: when as "sessionId" }]);
    for (const when of [undefined, () => true, ...Object.keys(fields)]) use(when);
    for (const when of ["sessionID", "", null, 7]) {
      const message = 'Cannot use the layer "own": its when must be one of sessionId, messageId,';
      assertThrows(() => use(when), TypeError, message);
    }
  });

  it("reads the arguments, in a call that other layers skip", async () => {
    const { call } = core([{
      ...denies,
      when: (call) => ((call.arguments as { amount: number } | undefined)?.amount ?? 0) > 100,
    }]);
    const outcomes = [await call({ amount: 1 }), await call({ amount: 1_000 })].map(outcome);
    assertEquals(outcomes, ["done", "denied"]);
  });

  for (
    const [title, layer, code] of [
      ["whose condition does not hold", { ...denies, when: "sessionId" }, "denied"],
      ["that passes over the tool", { for: () => undefined }, "approval_required"],
      ["that only observes", { observe: () => ({}) }, "approval_required"],
    ] as const satisfies readonly (readonly [string, Partial<Layer>, string])[]
  ) {
    it(`never runs a tool without its required approval: a layer ${title}`, async () => {
      const approves: Layer = { name: "approves", stage: "run", meets: "approval", ...layer };
      const { call } = core([approves], { requiresApproval: true });
      assertEquals(outcome(await call()), code);
    });
  }
});

describe("a call", () => {
  it("ends at its timeout while a library checks the result", async () => {
    assertEquals(await outcomeInTime([], { returns: support.standardSchema(support.never) }), [
      "timeout",
      0,
    ]);
  });

  it("is not run again by a layer of the stage call", async () => {
    let runs = 0;
    const twice = around(async (call, next) => {
      await next(call);
      return await next(call);
    }, "call");
    const { call } = core([twice], { execute: () => ++runs });
    assertEquals([outcome(await call()), runs], ["threw", 1]);
  });

  it("ends for a layer that waits for ever after the call was closed", async () => {
    const waits = around(async (call, next) => {
      await next(call);
      return await call.wait("waiting for a log", support.never());
    }, "call");
    assertEquals((await outcomeInTime([waits]))[0], "threw");
  });

  it("is passed on by an inner layer when the tool has ended", async () => {
    const order: string[] = [];
    const go = support.deferred();
    const transaction = around(async (call, next) => {
      const result = await next(call);
      order.push("commit");
      return result;
    });
    const hedge = around(async (call, next) => {
      void next(call);
      setTimeout(() => go.resolve());
      return await Promise.resolve(ToolResult.ok("fallback"));
    });
    const { call } = core([transaction, hedge], {
      async execute() {
        await go.promise;
        order.push("wrote");
      },
    });
    assertEquals([outcome(await call()), order], ["fallback", ["wrote", "commit"]]);
  });

  for (
    const [title, atEnd] of [
      ["throws", support.broken],
      ["rejects", async () => await support.broken()],
      ["never settles", support.never],
      ["gives nothing", () => undefined as never],
    ] as const
  ) {
    it(`ends if a change of its result ${title}`, async () => {
      const changes = around((call, next) => {
        call.atEnd(atEnd);
        return next(call);
      });
      assertEquals(await outcomeInTime([changes]), ["threw", 1]);
    });
  }

  it("does not end the process with a check that rejects after the abort", async () => {
    const abort = new AbortController();
    const { call } = core([], {
      // Reading the signal makes the deadline subscribe to the caller's signal.
      validate: (_params: unknown, { signal }: { readonly signal: AbortSignal }) => {
        abort.abort();
        return Promise.reject(new Error(`the rule fails, ${signal.aborted}`));
      },
    } as Partial<support.FakeTool>);
    const result = await call({}, { signal: abort.signal });
    // An unhandled rejection would end the process, or fail this test, in one of these turns.
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setTimeout(resolve));
    assertEquals(outcome(result), "aborted");
  });
});

describe("the function of a layer", () => {
  it("is created once for each tool, where two registries have tools of one id", async () => {
    let created = 0;
    const layer: Layer = {
      name: "counts",
      stage: "run",
      for: () => {
        created++;
        return (call, next) => next(call);
      },
    };
    const registryOf = (): Registry =>
      new Registry({
        engine: typeboxEngine(),
        tools: [support.fakeTool({ name: "pay", execute: () => "paid" })],
      });
    const first = new Dispatcher(registryOf(), { layers: [layer] });
    const second = first.withToolset(registryOf().select());
    for (let call = 0; call < 4; call++) {
      await first.dispatch({ name: "pay" });
      await second.dispatch({ name: "pay" });
    }
    assertEquals(created, 2);
  });
});
