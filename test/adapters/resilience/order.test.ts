/** The order of the layers of resilience, as listed in docs/calling.md. */

import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import { type Answer, type ToolDispatcherOptions, ToolRegistry } from "@plue/tools";
import { Dispatcher, type Layer } from "@plue/tools/core";
import { approval, questions } from "@plue/tools/layers";
import { breakCircuits, cacheResults, limitCalls, retryCalls } from "@plue/tools/resilience";
import { fakeTool, outcome } from "../../unit/execute/support.ts";
import { answering, unavailable } from "./support.ts";

/** The layers in the order of the guide. */
function inOrder({ limit = 10, failures = 2 } = {}): readonly Layer[] {
  return [
    limitCalls([{ per: "session", of: "same", limit }]),
    cacheResults({ tools: { t: { ttlMs: 60_000 } } }),
    breakCircuits({ failures, coolDownMs: 60_000 }),
    retryCalls({ maxAttempts: 2, initialDelayMs: 0 }),
  ];
}

/** A log of the layers in a call of a tool with all requirements. */
function logged(layers: readonly Layer[]) {
  const log: string[] = [];
  const options: ToolDispatcherOptions = {
    hooks: { before: () => void log.push("before"), after: () => void log.push("after") },
    approve: () => log.push("approve") > 0,
    layers,
  };
  const { call } = answering([], options, {
    requiresApproval: true,
    execute: () => log.push("run") && unavailable,
  });
  return { log, call };
}

describe("the layers of resilience in a ToolDispatcher", () => {
  it("do not run the tool for a stored result, even if its circuit is open", async () => {
    const { call, runs } = answering([1, unavailable], { layers: inOrder() });
    assertEquals(outcome(await call({ a: 1 })), 1);
    for (let n = 0; n < 2; n++) assertEquals(outcome(await call({ a: 2 })), "unavailable");
    // Each call has run the tool twice. Now the circuit is open.
    assertEquals(runs(), 5);
    assertEquals([outcome(await call({ a: 2 })), runs()], ["unavailable", 5]);
    assertEquals([outcome(await call({ a: 1 })), runs()], [1, 5]);
  });

  it("count a call that is retried as one failure", async () => {
    const { call, runs } = answering([unavailable, unavailable, unavailable, "up"], {
      layers: inOrder(),
    });
    assertEquals([outcome(await call()), runs()], ["unavailable", 2]);
    assertEquals([outcome(await call()), runs()], ["up", 4]);
  });

  it("limit calls also if their results are stored", async () => {
    const { call, runs } = answering([1, 2], { layers: inOrder({ limit: 2 }) });
    const outcomes = [];
    for (let n = 0; n < 3; n++) outcomes.push(outcome(await call()));
    assertEquals([outcomes, runs()], [[1, 1, "denied"], 1]);
  });

  it("limit after the before hooks, and retry inside the approval", async () => {
    const { log, call } = logged(inOrder({ limit: 1 }));
    await call();
    assertEquals(log, ["before", "approve", "run", "run", "after"]);
    log.length = 0;
    await call();
    assertEquals(log, ["before", "after"]);
  });

  it("run in the order of the list", async () => {
    // In the reverse order, each run of the tool counts as a failure.
    const { call, runs } = answering([unavailable], { layers: inOrder().toReversed() });
    assertEquals([outcome(await call()), runs()], ["unavailable", 2]);
    assertEquals([outcome(await call()), runs()], ["unavailable", 2]);
  });
});

describe("the layers of resilience in a Dispatcher of the core", () => {
  it("work together with its other layers", async () => {
    const received: string[] = [];
    let runs = 0;
    const questioning = questions();
    const dispatcher = new Dispatcher(
      new ToolRegistry({
        tools: [fakeTool({
          name: "t",
          idempotent: true,
          requiresApproval: true,
          execute: async (_, { ask }) => {
            const answer = await ask("name", { message: "Your name?" });
            return ++runs === 1 ? unavailable : answer;
          },
        })],
      }),
      { layers: [approval(() => true), questioning, ...inOrder(), questioning.again] },
    );
    const onQuestion = ({ message }: { readonly message: string }): Answer => {
      received.push(message);
      return { action: "accept" };
    };
    const result = await dispatcher.dispatch({ name: "t" }, { onQuestion });
    assertEquals([outcome(result), runs, received], [{ action: "accept" }, 2, ["Your name?"]]);
  });
});
