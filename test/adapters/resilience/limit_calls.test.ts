import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { isSuspended, ToolDispatcher, ToolRegistry } from "@plue/tools";
import { memoryCallStore, storedTickets } from "@plue/tools/calls";
import type { Layer } from "@plue/tools/core";
import { storedRateLimits } from "@plue/tools/hono";
import { limitCalls } from "@plue/tools/resilience";
import { FakeClock, fakeTool, messageOf, outcome } from "../../unit/execute/support.ts";
import { answering } from "./support.ts";

describe("limitCalls()", () => {
  it("counts by conversation, by message and by principal, each by itself", async () => {
    for (
      const [per, one, other] of [
        ["session", { sessionId: "a" }, { sessionId: "b" }],
        ["message", { sessionId: "a", messageId: "1" }, { sessionId: "a", messageId: "2" }],
        ["principal", { principal: "ann", sessionId: "a" }, { principal: "bob", sessionId: "a" }],
        ["session", { sessionId: "a", principal: "ann" }, { sessionId: "a", principal: "bob" }],
      ] as const
    ) {
      const { call, runs } = answering(["up"], { layers: [limitCalls([{ per, limit: 2 }])] });
      await call({}, one);
      await call({}, one);
      const third = await call({}, one);
      assertEquals([outcome(third), runs()], ["denied", 2]);
      assertStringIncludes(messageOf(third), "2 times in a ");
      assertEquals(outcome(await call({}, other)), "up");
    }
  });

  it("counts calls with equal arguments in any order, and calls with invalid arguments", async () => {
    const { call } = answering(["up"], {
      layers: [limitCalls([{ per: "session", of: "same", limit: 1 }])],
    }, { parameters: { type: "object", properties: { a: { type: "integer" } } } });
    assertEquals(outcome(await call({ a: 1, b: 2 })), "up");
    assertEquals(outcome(await call({ b: 2, a: 1 })), "denied");
    assertEquals(outcome(await call({ a: 2 })), "up");
    assertEquals(outcome(await call({ a: "x" })), "invalid_arguments");
    assertEquals(outcome(await call({ a: "x" })), "denied");
  });

  it("counts a call that waits for answers once", async () => {
    const tickets = storedTickets(memoryCallStore());
    const { dispatcher } = answering(["paid"], {
      layers: [
        limitCalls([{ per: "principal", limit: 1 }, { per: "session", of: "same", limit: 1 }]),
      ],
      tickets,
      approve: "ask",
    }, { requiresApproval: true });
    const pay = () => dispatcher.dispatch({ name: "t", callId: "c" }, { sessionId: "s" });
    const waiting = await pay();
    assert(isSuspended(waiting));
    const yes = { "plue:approval": { action: "accept" } } as const;
    assertEquals(outcome(await dispatcher.resume(waiting.ticket, yes, { sessionId: "s" })), "paid");
    // A new call with the same call id counts as another call.
    assertEquals(outcome(await pay()), "denied");
  });

  it("counts all tools together, each tool, or the named tools", async () => {
    const tools = ["x", "y"].map((name) => fakeTool({ name, execute: () => 1 }));
    const codes = async (layer: Layer) => {
      const dispatcher = new ToolDispatcher(new ToolRegistry({ tools }), { layers: [layer] });
      const results = [];
      for (const name of ["x", "y", "x"]) {
        results.push(outcome(await dispatcher.dispatch({ name })));
      }
      return results;
    };
    const limit = { per: "session", limit: 1 } as const;
    assertEquals(await codes(limitCalls([{ ...limit, of: "all" }])), [1, "denied", "denied"]);
    assertEquals(await codes(limitCalls([{ ...limit, of: "tool" }])), [1, 1, "denied"]);
    assertEquals(await codes(limitCalls([{ ...limit, tools: ["y"] }])), [1, 1, 1]);
  });

  it("evicts the counts of the principal that exceeds its quota only", async () => {
    const { call } = answering(["up"], {
      layers: [limitCalls([
        { per: "principal", limit: 10_100 },
        { per: "session", of: "same", limit: 1 },
      ])],
    });
    const of = async (principal: string, sessionId: string) =>
      outcome(await call({}, { principal, sessionId }));
    assertEquals([await of("ann", "1"), await of("bob", "1")], ["up", "up"]);
    for (let n = 0; n < 10_100; n++) await of("eve", `s${n}`);
    assertEquals([await of("ann", "1"), await of("bob", "1")], ["denied", "denied"]);
    // Only Eve's oldest counts were evicted. Her limit across all sessions was not.
    assertEquals(await of("eve", "s0"), "denied");
    assertEquals(await of("ann", "2"), "up");
  });

  it("evicts counts below their limit before counts at their limit", async () => {
    const { call } = answering(["up"], { layers: [limitCalls([{ per: "principal", limit: 2 }])] });
    const of = async (principal: string) => outcome(await call({}, { principal }));
    assertEquals([await of("ann"), await of("ann"), await of("ann")], ["up", "up", "denied"]);
    for (let n = 0; n < 10_100; n++) await of(`p${n}`);
    assertEquals(await of("ann"), "denied");
  });

  it("counts together with other processes in a store", async () => {
    const store = storedRateLimits(memoryCallStore());
    const process = () =>
      answering(["up"], { layers: [limitCalls([{ per: "session", limit: 1 }], { store })] });
    assertEquals(outcome(await process().call()), "up");
    assertEquals(outcome(await process().call()), "denied");
  });

  it("resets a count after its window", async () => {
    const clock = new FakeClock();
    const layers = [limitCalls([{ per: "session", limit: 1 }], { windowMs: 1_000 })];
    const { call } = answering(["up"], { clock, layers });
    assertEquals([outcome(await call()), outcome(await call())], ["up", "denied"]);
    clock.advance(1_000);
    assertEquals([outcome(await call()), outcome(await call())], ["up", "denied"]);
  });

  it("does not apply to calls of tools without a limit", () => {
    const { for: layerFor } = limitCalls([{ per: "session", limit: 1, tools: ["y"] }]);
    assertEquals(layerFor?.({ id: "x" } as never, {} as never), undefined);
  });

  it("runs no tool whose calls cannot be counted", async () => {
    const noCount = "TypeError: Cannot limit calls: the store must return a count";
    for (
      const [take, message] of [
        [() => Promise.reject(new Error("down")), "Error: down"],
        [() => ({ count: NaN, resetMs: 1 }), noCount],
        [() => ({ count: -1, resetMs: 1 }), noCount],
        [() => Promise.resolve({}), noCount],
      ] as const satisfies readonly (readonly [() => unknown, string])[]
    ) {
      const errors: unknown[] = [];
      const { call, runs } = answering(["up"], {
        layers: [limitCalls([{ per: "session", limit: 1 }], { store: { take } as never })],
        onError: ({ error }) => void errors.push(error),
      });
      assertEquals([outcome(await call()), runs(), String(errors)], ["threw", 0, message]);
    }
  });

  it("rejects invalid limits", () => {
    for (const limit of [Infinity, 1.5]) {
      assertThrows(() => limitCalls([{ per: "session", limit }]), RangeError);
    }
    for (
      const [limits, message] of [
        [[{ per: "day", limit: 1 }], "/0/per must be one of session, message, principal"],
        [[{ per: "session" }], "/0/limit is missing"],
        [[{ per: "session", limit: 1, off: "all" }], "off"],
        [{}, "must be a list"],
      ] as const
    ) {
      assertThrows(() => limitCalls(limits as never), TypeError, message);
    }
  });
});
