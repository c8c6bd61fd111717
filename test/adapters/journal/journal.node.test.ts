import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { ToolDispatcher, type ToolDispatcherOptions, ToolRegistry } from "@plue/tools";
import { memoryCallStore, storedTickets } from "@plue/tools/calls";
import { journal, type JournalSink, verifyJournal } from "@plue/tools/journal";
import { deny, type Rule, rules } from "@plue/tools/rules";
import type { Layer } from "@plue/tools/core";
import { IS_WORKERS } from "../../../src/adapters/http/mod.ts";
import { note } from "../../../src/execute/mod.ts";
import { maybe } from "../../support/skip.ts";
import { describeLayer, stopped } from "../../contract/layer_contract.ts";
import { broken, deferred, type FakeTool } from "../../unit/execute/support.ts";
import { bytesOf, memorySink, recorded, recordsIn } from "./support.ts";

const PAY: FakeTool = {
  name: "pay",
  risk: "high",
  parameters: { type: "object", properties: { euros: { type: "number" } }, required: ["euros"] },
  execute: () => ({ paid: true }),
};

/** Each way in which a call can end, and its outcome. */
const ENDS: readonly (readonly [
  what: string,
  outcome: string,
  attempts: number,
  tool: Partial<FakeTool>,
  options?: ToolDispatcherOptions,
  args?: unknown,
])[] = [
  ["succeeds", "ok", 1, {}],
  ["has wrong arguments", "invalid_arguments", 0, {}, {}, {}],
  ["has arguments that are not JSON", "invalid_arguments", 0, {}, {}, "{"],
  ["throws", "threw", 1, { execute: broken }],
  ["has a wrong result", "invalid_result", 1, { returns: { type: "string" } }],
  ["is not available", "unavailable", 0, { isAvailable: () => false }],
  ["needs an approver that is missing", "approval_required", 0, { requiresApproval: true }],
  ["needs a transaction", "transaction_failed", 0, { requiresTransaction: true }],
  ["is refused by a hook", "denied", 0, {}, { hooks: { before: () => ({ refuse: "No" }) } }],
  ["is too large", "output_too_large", 1, { execute: () => "x".repeat(200) }, {
    maxOutputBytes: 128,
  }],
  ["asks without tickets", "input_unavailable", 1, {
    execute: async (_, context) => await context.ask("a", { message: "Sure?" }),
  }],
  ["names no tool", "unknown_tool", 0, { name: "other" }],
];

describe("journal()", () => {
  for (const [what, outcome, attempts, tool, options, args = { euros: 5 }] of ENDS) {
    it(`writes one record of a call that ${what}`, async () => {
      const { call, records } = recorded([{ ...PAY, ...tool }], {}, options);
      await call("pay", args, { principal: "ann", sessionId: "s1" });
      const [record, ...others] = await records();
      assertEquals(others, []);
      assertEquals(
        [record?.tool, record?.outcome, record?.attempts, record?.principal, record?.session],
        ["pay", outcome, attempts, "ann", "s1"],
      );
    });
  }

  it("names the criterion that hides a tool, but no criterion if no tool has the name", async () => {
    const { registry, dispatcher, records } = recorded([PAY]);
    const guest = dispatcher.withToolset(registry.select({ maxRisk: "low" }));
    await guest.dispatch({ name: "pay", callId: "c1" });
    await guest.dispatch({ name: "none" });
    const [hidden, unknown] = await records();
    assertEquals([hidden?.outcome, hidden?.callId], ["unknown_tool", "c1"]);
    const reason = "risk high is above the limit low";
    assertEquals(hidden?.decisions, [{ by: "criterion", name: "risk", verdict: "deny", reason }]);
    assertEquals(unknown?.decisions, undefined);
  });

  it("records the decisions of a rule, the approver and the caller, with their reasons", async () => {
    const limit: Rule = {
      name: "limit",
      decide: ({ callId }) => callId === "c3" ? deny("full") : "allow",
    };
    const { call, dispatcher, records } = recorded([{ ...PAY, requiresApproval: true }], {
      arguments: "redacted",
    }, {
      rules: rules([limit]),
      approve: ({ principal }) => principal === "ann" ? "ask" : { approved: false, reason: "late" },
    });
    const onQuestion = () => ({ action: "accept" as const });
    await call("pay", { euros: 5 }, { principal: "ann", onQuestion });
    await call("pay", { euros: 5 }, { principal: "bob" });
    await dispatcher.dispatch({ name: "pay", arguments: { euros: 5 }, callId: "c3" });
    const [approved, denied, ruled] = await records();
    assertEquals(approved?.decisions, [{ by: "caller", verdict: "allow" }]);
    assertEquals(denied?.decisions, [{ by: "approver", verdict: "deny", reason: "late" }]);
    const decision = { by: "rule", name: "limit", verdict: "deny", reason: "full" } as const;
    assertEquals(ruled?.decisions, [decision]);
  });

  const canCopy = maybe(!IS_WORKERS, "workerd runs one bundle, without a second copy of a module");
  canCopy("records the decisions of a module with its own copy of the package", async () => {
    const path = "../../../src/execute/layer.ts?copy";
    const copy: typeof import("../../../src/execute/layer.ts") = await import(path);
    assert(copy.note !== note);
    const decision = { by: "rule", name: "own", verdict: "deny" } as const;
    const layer: Layer = {
      name: "own",
      stage: "run",
      for: () => (call, next) => (copy.note(call, decision), next(call)),
    };
    const { call, records } = recorded([PAY], {}, { layers: [layer] });
    await call("pay", { euros: 5 });
    assertEquals((await records()).map(({ decisions }) => decisions), [[decision]]);
  });

  it("records a suspended call and its continuation", async () => {
    const tickets = storedTickets(memoryCallStore());
    const { call, dispatcher, records } = recorded([{ ...PAY, requiresApproval: true }], {}, {
      approve: "ask",
      tickets,
    });
    const suspended = await call("pay", { euros: 5 });
    assert(!suspended.ok && suspended.ticket !== undefined && suspended.questions !== undefined);
    const [question] = suspended.questions;
    await dispatcher.resume(suspended.ticket, { [question?.key ?? ""]: { action: "accept" } });
    const [first, second] = await records();
    assertEquals([first?.outcome, first?.questions?.length], ["input_required", 1]);
    assertEquals([second?.outcome, second?.attempts], ["ok", 1]);
    assertEquals(second?.callId, first?.callId);
  });

  it("records the arguments before the tool can change them", async () => {
    const { call, records } = recorded([{
      ...PAY,
      execute: (params: { euros: number }) => void (params.euros = 1_000),
    }], { arguments: "full" });
    await call("pay", { euros: 5 });
    await call("pay", '{"euros":6}');
    assertEquals((await records()).map((record) => record.arguments), [{ euros: 5 }, { euros: 6 }]);
  });

  it("counts the attempts of a tool that is retried, and the calls that run at the same time", async () => {
    const gate = deferred<void>();
    const twiceMore: Layer = {
      name: "twice-more",
      stage: "run",
      for: ({ id }) =>
        id !== "pay" ? undefined : async (call, next) => {
          await next(call);
          await next(call);
          return await next(call);
        },
    };
    const { call, records } = recorded(
      [PAY, { name: "slow", execute: () => gate.promise }],
      {},
      { layers: [twiceMore] },
    );
    const slow = call("slow");
    await call("pay", { euros: 5 });
    gate.resolve();
    await slow;
    assertEquals(
      (await records()).map(({ tool, attempts }) => [tool, attempts]),
      [["pay", 3], ["slow", 1]],
    );
  });

  it("has the id of the trace in the headers, and marks a replayed result", async () => {
    const { call, records } = recorded([PAY]);
    const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    const headers = new Map([["traceparent", `00-${trace}-00f067aa0ba902b7-01`]]);
    await call("pay", { euros: 5 }, { trace: { headers }, idempotencyKey: "k" });
    await call("pay", { euros: 5 }, { idempotencyKey: "k" });
    const [first, again] = await records();
    assertEquals([first?.trace, first?.replayed, again?.replayed], [trace, undefined, true]);
  });

  it("records arguments, digests or nothing, by the option arguments", async () => {
    for (
      const [detail, shown, hasDigest] of [
        ["none", undefined, false],
        ["digest", undefined, true],
        ["redacted", { euros: 5, password: "[redacted]" }, true],
        ["full", { euros: 5, password: "sesame" }, true],
      ] as const
    ) {
      const { call, records } = recorded([PAY], { arguments: detail });
      await call("pay", { euros: 5, password: "sesame" });
      const [record] = await records();
      assertEquals(record?.arguments, shown);
      assertEquals(record?.argumentsDigest !== undefined, hasDigest);
      assertEquals(record?.result !== undefined, hasDigest);
    }
  });

  it("has digests that do not depend on a secret, and depend on everything else", async () => {
    const { call, records } = recorded([PAY]);
    for (const [euros, password] of [[5, "a"], [5, "b"], [6, "a"]]) {
      await call("pay", { euros, password });
    }
    const [a, b, c] = (await records()).map(({ argumentsDigest }) => argumentsDigest?.digest);
    assertEquals(a, b);
    assert(a !== c);
  });

  it("has another digest for another definition of a tool", async () => {
    const { call, registry, records } = recorded([PAY]);
    await call("pay", { euros: 5 });
    registry.updateTool({ ...PAY, description: "Pays at once." } as never);
    await call("pay", { euros: 5 });
    const [before, after] = await records();
    assertMatch(before?.definition ?? "", /^[\w-]{43}$/);
    assert(before?.definition !== after?.definition);
  });

  it("continues the chain of an earlier journal", async () => {
    const { call, journal: first, sink } = recorded([PAY]);
    await call("pay", { euros: 5 });
    await first.close();
    const next = journal({ sink: memorySink(sink.lines), onFailure: "drop-and-count" });
    await next.flush();
    const kinds = recordsIn(sink.lines).map(({ kind = "call", sequence }) => [kind, sequence]);
    assertEquals(kinds, [["begin", 1], ["call", 2], ["end", 3], ["begin", 4]]);
    assert((await verifyJournal(bytesOf(sink.lines))).ok);
  });

  it("does not continue a journal whose last record was changed", async () => {
    const { journal: first, sink } = recorded([PAY]);
    await first.close();
    const changed = sink.lines.map((line) => line.replace('"kind":"end"', '"kind":"END"'));
    const next = journal({ sink: memorySink(changed), onFailure: "drop-and-count" });
    await assertRejects(() => next.flush(), Error, "the last record or the key was changed");
  });

  it("records a call with any JSON, and the calls written with it", async () => {
    for (const text of ['"\\ud800 alone"', `${"[".repeat(50_000)}${"]".repeat(50_000)}`]) {
      for (const detail of ["digest", "redacted"] as const) {
        const { call, records } = recorded([PAY], { arguments: detail });
        await call("pay", { euros: 5 });
        await call("none", { value: JSON.parse(text) });
        await call("pay", { euros: 6 });
        assertEquals((await records()).map(({ tool }) => tool), ["pay", "none", "pay"]);
      }
    }
  });

  it("writes the number of dropped calls at its end, although no record waits", async () => {
    const { call, journal: kept, sink } = recorded([PAY], { maxBuffered: 10 });
    await call("pay", { euros: 5 });
    await kept.close();
    assertEquals(recordsIn(sink.lines).map(({ kind, count }) => [kind, count]), [
      ["begin", undefined],
      ["dropped", 1],
      ["end", undefined],
    ]);
  });

  it("counts calls that still run when it is closed", async () => {
    const { promise, resolve } = deferred<void>();
    const { call, journal: kept, sink } = recorded([{ ...PAY, execute: () => promise }]);
    const paying = call("pay", { euros: 5 });
    await kept.close();
    resolve();
    await paying;
    const { ok, interrupted, dropped } = await verifyJournal(bytesOf(sink.lines));
    assertEquals([ok, interrupted, dropped, kept.stats().dropped], [true, [], 1, 1]);
    assertEquals(recordsIn(sink.lines).map(({ kind }) => kind), ["begin", "dropped", "end"]);
  });

  it("creates few large records at a time", async () => {
    const sizes: number[] = [];
    const sink = {
      ...memorySink(),
      append: (l: readonly string[]) => (sizes.push(l.length), Promise.resolve()),
    };
    const { call, journal: kept } = recorded([PAY], { sink, arguments: "full" });
    for (let times = 0; times < 6; times++) await call("pay", { euros: 5, x: "x".repeat(200_000) });
    await kept.flush();
    assertEquals(sizes, [1, 2, 2, 2]);
  });

  it("yields the records that the sink stores, newest first, and the records of one call", async () => {
    const { call, dispatcher, journal: kept } = recorded([PAY]);
    await call("pay", { euros: 5 }, { principal: "ann" });
    await dispatcher.dispatch({ name: "pay", callId: "c7", arguments: { callId: "c8" } });
    await kept.close();
    const all = await Array.fromAsync(kept.records(), ({ kind, principal }) => kind ?? principal);
    assertEquals(all, ["end", undefined, "ann", "begin"]);
    const [one, ...others] = await Array.fromAsync(kept.records({ callId: "c7" }));
    assertEquals([one?.outcome, others], ["invalid_arguments", []]);
    assertEquals(await Array.fromAsync(kept.records({ callId: "c8" })), []);
  });

  it("rejects unknown options, and options that are missing", () => {
    const sink = memorySink();
    assertThrows(() => journal({ sink } as never), TypeError, "sink and onFailure are required");
    for (
      const options of [{ argument: "full" }, { key: "short" }, { sink: {} }, { onFailure: "stop" }]
    ) {
      assertThrows(
        () => journal({ sink, onFailure: "refuse-calls", ...options } as never),
        TypeError,
      );
    }
  });
});

/** A sink that fails until it is repaired. */
function failing(method: "open" | "append") {
  const sink = memorySink();
  const state = { isBroken: true };
  const fails: JournalSink = {
    ...sink,
    [method]: (...args: [never]) =>
      state.isBroken
        ? Promise.reject(new Error("The disk is full"))
        : (sink[method] ?? (() => Promise.resolve()))(...args),
  };
  return { fails, state, lines: sink.lines };
}

describe("a journal whose sink fails", () => {
  for (const method of ["open", "append"] as const) {
    it(`rejects calls after ${method} has failed, reports it once, and loses no record`, async () => {
      const { fails, state, lines } = failing(method);
      const { call, journal: kept, reports } = recorded([PAY], {
        sink: fails,
        onFailure: "refuse-calls",
      });
      assert((await call("pay", { euros: 5 })).ok);
      await assertRejects(() => kept.flush(), Error, "The disk is full");
      await assertRejects(() => kept.flush(), Error, "The disk is full");
      const refused = await call("pay", { euros: 6 });
      assert(!refused.ok);
      assertEquals([refused.error.code, refused.error.ran], ["unavailable", "no"]);
      assertEquals(reports.map(({ error }) => (error as Error).message), ["The disk is full"]);
      assertEquals(kept.stats().failure, "The disk is full");
      state.isBroken = false;
      await kept.flush();
      assert((await call("pay", { euros: 7 })).ok);
      await kept.close();
      assertEquals(
        recordsIn(lines).map(({ kind, outcome }) => kind ?? outcome),
        ["begin", "ok", "unavailable", "ok", "end"],
      );
    });
  }

  it("runs calls, and counts the calls that do not fit into its full buffer", async () => {
    const { fails, state, lines } = failing("append");
    const { call, journal: kept, reports } = recorded([PAY], { sink: fails, maxBuffered: 2_000 });
    for (let times = 0; times < 10; times++) assert((await call("pay", { euros: 5 })).ok);
    const { waiting, dropped, failure } = kept.stats();
    assertEquals(waiting + dropped, 10);
    assert(dropped > 5);
    assertMatch(failure ?? "", /buffer of the journal is full/);
    assertEquals(reports.length, 1);
    state.isBroken = false;
    await kept.close();
    assertEquals(recordsIn(lines).find(({ kind }) => kind === "dropped")?.count, dropped);
  });

  for (const reason of [undefined, "No disk", null]) {
    it(`rejects calls after a write was rejected with ${reason} instead of an error`, async () => {
      const sink = { ...memorySink(), append: () => Promise.reject(reason) };
      const { clock } = recorded([]); // The system's clock would keep the process alive.
      const { call, journal: kept } = recorded([PAY], { sink, onFailure: "refuse-calls", clock });
      await kept.flush().catch(() => {});
      const refused = await call("pay", { euros: 5 });
      assertEquals(!refused.ok && refused.error.code, "unavailable");
      assertEquals(typeof kept.stats().failure, "string");
    });
  }

  it("rejects calls while the buffer is full", async () => {
    const { call } = recorded([PAY], { onFailure: "refuse-calls", maxBuffered: 700 });
    assert((await call("pay", { euros: 5 })).ok);
    assert((await call("pay", { euros: 5 })).ok);
    const third = await call("pay", { euros: 5 });
    assertEquals(!third.ok && third.error.code, "unavailable");
  });

  it("ends its closing although the sink hangs", async () => {
    const { clock } = recorded([PAY]);
    const hangs = { ...memorySink(), append: () => new Promise<void>(() => {}) };
    const kept = journal({ sink: hangs, onFailure: "drop-and-count", clock });
    const closing = assertRejects(() => kept.close(), RangeError, "its sink exceeded 10000 ms");
    for (let turns = 0; turns < 20; turns++) await Promise.resolve();
    clock.advance(10_000);
    await closing;
  });
});

describeLayer("journal", () => ({
  layers: [journal({ sink: memorySink(), onFailure: "refuse-calls" })],
}), [
  stopped("fails a call whose record cannot be kept", "unavailable", [
    (() => {
      const closed = journal({ sink: memorySink(), onFailure: "refuse-calls" });
      void closed.close();
      return closed;
    })(),
  ], 1),
]);

describe("a dispatcher of the core with a journal", () => {
  it("records calls of unknown tools without an explanation", async () => {
    const { journal: kept, sink } = recorded([]);
    const registry = new ToolRegistry({ tools: [] });
    const dispatcher = new ToolDispatcher(registry, { layers: [kept] });
    await dispatcher.dispatch({ name: "x" });
    await dispatcher.dispatch(null as never);
    await kept.flush();
    assertEquals(recordsIn(sink.lines).map(({ outcome }) => outcome), [
      undefined,
      "unknown_tool",
      "unknown_tool",
    ]);
  });
});
