import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import {
  defineTool,
  type DispatchContext,
  isSuspended,
  ToolDispatcher,
  type ToolDispatcherOptions,
  type ToolHooks,
  ToolRegistry,
  ToolResult,
} from "@plue/tools";
import { type CallStore, memoryCallStore, storedTickets } from "@plue/tools/calls";
import { breakCircuits, cacheResults, limitCalls, retryCalls } from "@plue/tools/resilience";
import { storedRateLimits } from "@plue/tools/hono";
import { z } from "zod";
import {
  deferred,
  FakeClock,
  type FakeTool,
  fakeTool,
  messageOf,
  outcome,
} from "../unit/execute/support.ts";

const unavailable = ToolResult.error("unavailable", "Not now");

/** A dispatcher of one tool, whose runs answer these values in order, the last one again and again. */
function answering(
  answers: readonly unknown[],
  options: ToolDispatcherOptions,
  tool: Partial<FakeTool> = {},
) {
  let runs = 0;
  const execute = (): unknown => {
    const answer = answers[Math.min(runs++, answers.length - 1)];
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const dispatcher = new ToolDispatcher(
    new ToolRegistry({ tools: [fakeTool({ name: "t", idempotent: true, execute, ...tool })] }),
    options,
  );
  const call = (args: unknown = {}, context: DispatchContext = {}) =>
    dispatcher.dispatch({ name: "t", arguments: args }, context);
  return { call, dispatcher, runs: () => runs };
}

/** Moves the time whenever a timer is armed, so that no wait takes any; notes how long they were. */
class QuickClock extends FakeClock {
  readonly waits: number[] = [];

  override setTimeout(wake: () => void, ms: number): () => void {
    this.waits.push(ms);
    const cancel = super.setTimeout(wake, ms);
    queueMicrotask(() => this.advance(ms));
    return cancel;
  }
}

describe("the hook around", () => {
  it("runs the tool as often as it likes, and the first hook is the outermost", async () => {
    const order: string[] = [];
    const hook = (name: string, times: number): ToolHooks => ({
      async around(_, run) {
        order.push(name);
        let result = await run();
        for (let n = 1; n < times; n++) result = await run();
        return result;
      },
    });
    const { call, runs } = answering([1, 2, 3, 4], { hooks: [hook("a", 2), hook("b", 2)] });
    assertEquals([outcome(await call()), runs(), order], [4, 4, ["a", "b", "b"]]);
  });

  it("sees arguments that were checked and approved, and no others", async () => {
    const seen: unknown[] = [];
    const hooks: ToolHooks = {
      around: (call, run) => (seen.push(call.arguments), run()),
    };
    const parameters = { type: "object", properties: { n: { type: "integer" } } } as const;
    const { call } = answering([1], { hooks, approve: () => seen.length === 0 }, {
      parameters,
      requiresApproval: true,
    });
    await call({ n: "x" });
    await call({ n: 1 });
    assertEquals(outcome(await call({ n: 2 })), "denied");
    assertEquals(seen, [{ n: 1 }]);
  });

  it("may answer in the tool's place with what the tool's schema allows", async () => {
    for (const [content, expected] of [["yes", "yes"], [5, "invalid_result"]] as const) {
      const { call, runs } = answering(["no"], {
        hooks: { around: () => ToolResult.ok(content) },
      }, { returns: { type: "string" } });
      assertEquals([outcome(await call()), runs()], [expected, 0]);
    }
  });

  it("refuses where it throws or answers nonsense, and the host is told", async () => {
    const bad = [
      () => {
        throw new Error("no");
      },
      () => Promise.reject(new Error("no")),
      () => "done",
      () => undefined,
    ] as unknown as NonNullable<ToolHooks["around"]>[];
    for (const around of bad) {
      const { call } = answering([1], { hooks: { name: "odd", around } });
      const result = await call();
      assertEquals(outcome(result), "denied");
      assertStringIncludes(messageOf(result), 'the hook "odd" failed, so the result is withheld');
    }
  });

  it("does not run a tool beside itself", async () => {
    const gate = deferred();
    const reports: unknown[] = [];
    const { call, runs } = answering([gate.promise], {
      hooks: {
        async around(_, run) {
          const [first, second] = [run(), run()];
          await second.catch(() => gate.resolve());
          return await first;
        },
      },
      onError: ({ error }) => void reports.push(error),
    });
    assertEquals([outcome(await call()), runs()], [null, 1]);
  });

  it("lets a timeout end the call and its tool", async () => {
    const clock = new FakeClock();
    const { call } = answering([], {
      clock,
      graceMs: 0,
      hooks: { around: (_, run) => run() },
    }, { execute: () => new Promise(() => {}) });
    const ending = call({}, { timeoutMs: 10 });
    await clock.armed();
    clock.advance(10);
    assertEquals(outcome(await ending), "timeout");
  });

  it("lets a tool ask, and a transaction roll back what failed", async () => {
    const ended: string[] = [];
    const { call } = answering([], {
      hooks: { around: (_, run) => run() },
      transactions: {
        begin: () => ({ id: "1" }),
        commit: () => void ended.push("commit"),
        rollback: () => void ended.push("rollback"),
      },
    }, {
      requiresTransaction: true,
      execute: async (_, context) => (await context.ask("sure", { message: "Sure?" })).action,
    });
    const yes = await call({}, { onQuestion: () => ({ action: "accept" }) });
    assertEquals(outcome(yes), "accept");
    assertEquals(outcome(await call()), "input_unavailable");
    assertEquals(ended, ["commit", "rollback"]);
  });

  it("checks a result that a library's schema transforms once", async () => {
    const cache = cacheResults({ tools: { len: { ttlMs: 1_000 } } });
    const tool = defineTool({
      name: "len",
      description: "Counts letters.",
      returns: z.string().transform((text) => text.length).pipe(z.number()),
      execute: () => "four",
    });
    const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [tool] }), { hooks: cache });
    for (const replayed of [undefined, true] as const) {
      const result = await dispatcher.dispatch({ name: "len" });
      assertEquals([outcome(result), result.replayed], [4, replayed]);
    }
  });
});

describe("retryCalls()", () => {
  it("keeps the answers and the steps of a tool that runs again", async () => {
    const done: string[] = [];
    const { call } = answering([], { hooks: retryCalls({ clock: new QuickClock() }) }, {
      async execute(_args, { ask, step }) {
        await step("reserve", () => void done.push("reserved"));
        const { action } = await ask("sure", { message: "Sure?" });
        done.push(action);
        return done.length < 4 ? unavailable : done;
      },
    });
    const onQuestion = () => {
      done.push("asked");
      return { action: "accept" } as const;
    };
    const result = await call({}, { onQuestion });
    assertEquals(outcome(result), ["reserved", "asked", "accept", "accept"]);
  });

  it("runs an idempotent tool again while its failure may pass", async () => {
    const clock = new QuickClock();
    const { call, runs } = answering([unavailable, unavailable, "up"], {
      hooks: retryCalls({ clock }),
    });
    assertEquals([outcome(await call()), runs(), clock.waits.length], ["up", 3, 2]);
  });

  it("gives up after the attempts, with the last failure", async () => {
    const { call, runs } = answering([unavailable], {
      hooks: retryCalls({ maxAttempts: 4, clock: new QuickClock() }),
    });
    assertEquals([outcome(await call()), runs()], ["unavailable", 4]);
  });

  for (
    const [what, answer, tool, options] of [
      ["a tool that is not idempotent", unavailable, { idempotent: false }, {}],
      ["a failure that will not pass", ToolResult.error("denied", "No"), {}, {}],
      ["a tool that throws, by default", new Error("no"), {}, {}],
      [
        "a failure that wants a longer wait",
        ToolResult.error("overloaded", "Later", { retryAfterMs: 11 }),
        {},
        { maxDelayMs: 10, initialDelayMs: 1 },
      ],
    ] as const
  ) {
    it(`does not retry ${what}`, async () => {
      const hooks = retryCalls({ clock: new QuickClock(), ...options });
      const { call, runs } = answering([answer, "up"], { hooks }, tool);
      assert(!(await call()).ok);
      assertEquals(runs(), 1);
    });
  }

  it("retries what throws where it is told to", async () => {
    const hooks = retryCalls({ clock: new QuickClock(), codes: ["threw"] });
    const { call, runs } = answering([new Error("no"), "up"], { hooks });
    assertEquals([outcome(await call()), runs()], ["up", 2]);
  });

  it("does not retry inside a transaction", async () => {
    const { call, runs } = answering([unavailable, "up"], {
      hooks: retryCalls({ clock: new QuickClock() }),
      transactions: { begin: () => ({ id: "1" }), commit() {}, rollback() {} },
    }, { requiresTransaction: true });
    assertEquals([outcome(await call()), runs()], ["unavailable", 1]);
  });

  it("waits as long as the failure asks", async () => {
    const clock = new QuickClock();
    const late = ToolResult.error("overloaded", "Later", { retryAfterMs: 900 });
    const { call } = answering([late, "up"], { hooks: retryCalls({ initialDelayMs: 1, clock }) });
    assertEquals([outcome(await call()), clock.waits], ["up", [900]]);
  });

  it("answers at once where the call has no time for the wait", async () => {
    const clock = new QuickClock();
    const late = ToolResult.error("overloaded", "Later", { retryAfterMs: 5_000 });
    const { call, runs } = answering([late, "up"], {
      hooks: retryCalls({ clock }),
      timeoutMs: 4_000,
    });
    assertEquals([outcome(await call()), runs(), clock.waits], ["overloaded", 1, []]);
  });

  it("stops waiting when the call is aborted", async () => {
    const clock = new FakeClock();
    const controller = new AbortController();
    const { call, runs } = answering([unavailable, "up"], { hooks: retryCalls({ clock }) });
    const ending = call({}, { signal: controller.signal });
    await clock.armed();
    controller.abort();
    assertEquals([outcome(await ending), runs()], ["aborted", 1]);
    assertEquals(clock.timers.size, 0);
  });
});

describe("breakCircuits()", () => {
  /** Does work at another time, which is Cockatiel's `Date.now`. */
  async function at<T>(ms: number, work: () => Promise<T>): Promise<T> {
    const { now } = Date;
    const time = now();
    Date.now = () => time + ms;
    try {
      return await work();
    } finally {
      Date.now = now;
    }
  }
  const minute = { failures: 2, coolDownMs: 60_000 };

  it("leaves a tool alone that fails, tries it later, and goes on when it works", async () => {
    const no = new Error("no");
    const { call, runs } = answering([no, no, no, "up"], { hooks: breakCircuits(minute) });
    assertEquals([outcome(await call()), outcome(await call())], ["threw", "threw"]);
    const open = await call();
    assert(!open.ok);
    assertEquals([open.error.code, runs()], ["unavailable", 2]);
    assert((open.error.retryAfterMs ?? 0) > 50_000);
    assertEquals(await at(61_000, async () => outcome(await call())), "threw");
    assertEquals([outcome(await at(62_000, call)), runs()], ["unavailable", 3]);
    assertEquals([outcome(await at(200_000, call)), outcome(await call())], ["up", "up"]);
  });

  it("does not count what is the caller's fault", async () => {
    const denied = ToolResult.error("denied", "No");
    const { call, runs } = answering([denied], { hooks: breakCircuits(minute) });
    for (let n = 0; n < 4; n++) await call();
    assertEquals(runs(), 4);
  });

  it("keeps the circuits of tools apart", async () => {
    const fail = () => {
      throw new Error("no");
    };
    const tools = [
      fakeTool({ name: "bad", execute: fail }),
      fakeTool({ name: "good", execute: () => 1 }),
    ];
    const dispatcher = new ToolDispatcher(new ToolRegistry({ tools }), {
      hooks: breakCircuits(minute),
    });
    for (let n = 0; n < 3; n++) await dispatcher.dispatch({ name: "bad" });
    assertEquals(outcome(await dispatcher.dispatch({ name: "good" })), 1);
  });

  it("keeps the circuits of principals apart, unless it is told to count them together", async () => {
    const execute = (_: unknown, { principal }: { principal?: string | undefined }) => {
      if (principal === "bob") throw new Error("His token is bad");
      return "up";
    };
    for (const [per, others] of [[undefined, "up"], ["tool", "unavailable"]] as const) {
      const { call } = answering([], { hooks: breakCircuits({ ...minute, per }) }, { execute });
      const outcomes = [];
      for (const principal of ["bob", "bob", "bob", "ann", undefined]) {
        outcomes.push(outcome(await call({}, { principal })));
      }
      assertEquals(outcomes, ["threw", "threw", "unavailable", others, others]);
    }
  });

  it("keeps a bounded number of circuits, those that were used lately", async () => {
    const { call, runs } = answering([new Error("no")], {
      hooks: breakCircuits({ ...minute, failures: 1 }),
    });
    await call({}, { principal: "first" });
    for (let n = 0; n < 999; n++) await call({}, { principal: `p${n}` });
    assertEquals(outcome(await call({}, { principal: "first" })), "unavailable");
    await call({}, { principal: "one more" });
    assertEquals(runs(), 1_001);
    assertEquals(outcome(await call({}, { principal: "first" })), "unavailable");
    assertEquals(outcome(await call({}, { principal: "p0" })), "threw");
  });

  it("lets no call wait for the one that tries the tool again", async () => {
    const gate = deferred<string>();
    const started = deferred();
    let broken = true;
    const { call } = answering([], { hooks: breakCircuits(minute) }, {
      execute() {
        if (broken) throw new Error("no");
        started.resolve();
        return gate.promise;
      },
    });
    await call();
    await call();
    broken = false;
    const trial = at(61_000, call);
    await started.promise;
    const meanwhile = await call();
    assert(!meanwhile.ok);
    assertEquals([meanwhile.error.code, meanwhile.error.retryAfterMs], ["unavailable", 1_000]);
    gate.resolve("up");
    assertEquals([outcome(await trial), outcome(await call())], ["up", "up"]);
  });

  it("refuses numbers that are no bounds", () => {
    for (
      const make of [
        () => breakCircuits({ failures: 1.5 }),
        () => breakCircuits({ failures: Infinity }),
        () => breakCircuits({ coolDownMs: Infinity }),
        () => retryCalls({ maxAttempts: 1.5 }),
        () => retryCalls({ initialDelayMs: Infinity }),
        () => limitCalls([{ per: "session", limit: Infinity }]),
        () => limitCalls([{ per: "session", limit: 1.5 }]),
        () => cacheResults({ tools: { t: { ttlMs: Infinity } } }),
        () => cacheResults({ tools: {}, storeTimeoutMs: Infinity }),
      ]
    ) assertThrows(make, RangeError);
    assertThrows(() => retryCalls({ clock: 5 as never }), TypeError, "a clock, with a function");
  });

  it("refuses other words", () => {
    assertThrows(
      () => breakCircuits({ per: "session" as never }),
      TypeError,
      '"/per" must be "principal" or "tool"',
    );
  });

  it("counts timeouts of a tool that ignores its signal, and tries it again", async () => {
    const clock = new FakeClock();
    let hangs = true;
    const { call } = answering([], { clock, graceMs: 0, hooks: breakCircuits(minute) }, {
      execute: () => hangs ? new Promise(() => {}) : "up",
    });
    const late = async (): Promise<unknown> => {
      const ending = call({}, { timeoutMs: 10 });
      await clock.armed();
      clock.advance(10);
      return outcome(await ending);
    };
    assertEquals([await late(), await late()], ["timeout", "timeout"]);
    assertEquals(outcome(await call()), "unavailable");
    assertEquals(await at(61_000, late), "timeout");
    assertEquals(outcome(await at(62_000, call)), "unavailable");
    hangs = false;
    assertEquals(outcome(await at(200_000, call)), "up");
  });
});

describe("limitCalls()", () => {
  it("counts by conversation, message and principal, and keeps them apart", async () => {
    for (
      const [per, one, other] of [
        ["session", { sessionId: "a" }, { sessionId: "b" }],
        ["message", { sessionId: "a", messageId: "1" }, { sessionId: "a", messageId: "2" }],
        ["principal", { principal: "ann", sessionId: "a" }, { principal: "bob", sessionId: "a" }],
        ["session", { sessionId: "a", principal: "ann" }, { sessionId: "a", principal: "bob" }],
      ] as const
    ) {
      const { call, runs } = answering(["up"], { hooks: limitCalls([{ per, limit: 2 }]) });
      await call({}, one);
      await call({}, one);
      const third = await call({}, one);
      assertEquals([outcome(third), runs()], ["denied", 2]);
      assertStringIncludes(messageOf(third), "2 times in a ");
      assertEquals(outcome(await call({}, other)), "up");
    }
  });

  it("counts the same call, whatever the order of its arguments, and wrong ones too", async () => {
    const { call } = answering(["up"], {
      hooks: limitCalls([{ per: "session", of: "same", limit: 1 }]),
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
      hooks: limitCalls([{ per: "principal", limit: 1 }, { per: "session", of: "same", limit: 1 }]),
      tickets,
      approve: "ask",
    }, { requiresApproval: true });
    const pay = () => dispatcher.dispatch({ name: "t", callId: "c" }, { sessionId: "s" });
    const waiting = await pay();
    assert(isSuspended(waiting));
    const yes = { "plue:approval": { action: "accept" } } as const;
    assertEquals(outcome(await dispatcher.resume(waiting.ticket, yes, { sessionId: "s" })), "paid");
    // A new call under the name of that one is another call.
    assertEquals(outcome(await pay()), "denied");
  });

  it("counts all tools together, or those that are named", async () => {
    const tools = ["x", "y"].map((name) => fakeTool({ name, execute: () => 1 }));
    const codes = async (hooks: ToolHooks) => {
      const dispatcher = new ToolDispatcher(new ToolRegistry({ tools }), { hooks });
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

  it("forgets the counts of who fills them, and not of others", async () => {
    const { call } = answering(["up"], {
      hooks: limitCalls([
        { per: "principal", limit: 10_100 },
        { per: "session", of: "same", limit: 1 },
      ]),
    });
    const of = async (principal: string, sessionId: string) =>
      outcome(await call({}, { principal, sessionId }));
    assertEquals([await of("ann", "1"), await of("bob", "1")], ["up", "up"]);
    for (let n = 0; n < 10_100; n++) await of("eve", `s${n}`);
    assertEquals([await of("ann", "1"), await of("bob", "1")], ["denied", "denied"]);
    // Her own oldest counts are gone, but not the limit that does not ask for a session.
    assertEquals(await of("eve", "s0"), "denied");
    assertEquals(await of("ann", "2"), "up");
  });

  it("counts together with other processes in a store", async () => {
    const store = storedRateLimits(memoryCallStore());
    const process = () =>
      answering(["up"], { hooks: limitCalls([{ per: "session", limit: 1 }], { store }) });
    assertEquals(outcome(await process().call()), "up");
    assertEquals(outcome(await process().call()), "denied");
  });

  it("names what is wrong with a limit", () => {
    for (
      const [limits, says] of [
        [[{ per: "day", limit: 1 }], '/0/per must be "session", "message" or "principal"'],
        [[{ per: "session" }], "/0/limit is missing"],
        [[{ per: "session", limit: 1, off: "all" }], "off"],
        [{}, "must be a list"],
      ] as const
    ) {
      assertThrows(() => limitCalls(limits as never), TypeError, says);
    }
  });
});

describe("cacheResults()", () => {
  const HOUR = 3_600_000;
  const clock = new FakeClock();
  const cached = (more: object = {}) =>
    cacheResults({
      tools: { t: { ttlMs: HOUR, ...more } },
      store: memoryCallStore({ clock }),
      clock,
    });

  it("gives the result of an earlier call, which says so, and counts as replayed", async () => {
    const { call, runs, dispatcher } = answering([{ n: 1 }, { n: 2 }], { hooks: cached() });
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
    it(`keeps ${what} apart`, async () => {
      const { call, runs } = answering([1, 2], { hooks: cached() }, {
        context: { type: "object" },
      });
      await call({}, { context: {}, ...one });
      await call({}, { context: {}, ...other });
      assertEquals(runs(), 2);
    });
  }

  it("keeps arguments, definitions and what the host says apart", async () => {
    const cache = cached({ vary: ({ sessionId }: { sessionId?: string }) => String(sessionId) });
    const { call, runs } = answering([1, 2, 3], { hooks: cache });
    await call({ a: 1 });
    await call({ a: 2 });
    await call({ a: 1 }, { sessionId: "s" });
    assertEquals(runs(), 3);
    const changed = answering([4], { hooks: cache }, { description: "Another." });
    assertEquals(outcome(await changed.call({ a: 1 })), 4);
  });

  it("keeps nothing where what it depends on is not said by a text", async () => {
    for (const answer of [undefined, Promise.resolve("s"), 1]) {
      const errors: unknown[] = [];
      const hooks = cacheResults({
        tools: { t: { ttlMs: HOUR, vary: () => answer as never } },
        onError: (error) => void errors.push(error),
      });
      const { call } = answering([1, 2], { hooks });
      assertEquals([outcome(await call()), outcome(await call())], [1, 2]);
      assertStringIncludes(String(errors[0]), 'vary of "t" must answer a text');
    }
  });

  it("keeps successes only, for as long as it is told", async () => {
    const { call } = answering([unavailable, 1, 2], { hooks: cached() });
    assertEquals(outcome(await call()), "unavailable");
    assertEquals([outcome(await call()), outcome(await call())], [1, 1]);
    clock.advance(HOUR);
    assertEquals(outcome(await call()), 2);
  });

  it("asks for approval each time", async () => {
    let asked = 0;
    const { call } = answering([1], { hooks: cached(), approve: () => ++asked < 2 }, {
      requiresApproval: true,
    });
    assertEquals([outcome(await call()), outcome(await call())], [1, "denied"]);
  });

  it("forgets by tag, also the result of a call that runs meanwhile", async () => {
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
    const { call } = answering([], { hooks: cache }, {
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

  it("keeps blocks as blocks, and nothing that was cut", async () => {
    const blocks = ToolResult.blocks([{ type: "text", text: "hello" }]);
    const { call, runs } = answering([blocks], { hooks: cached() });
    const [first, again] = [await call(), await call()];
    assert(first.ok && again.ok);
    assertEquals([again.content, again.blocks, runs()], [first.content, true, 1]);
    const cut = answering(["x".repeat(500)], {
      hooks: cached(),
      maxOutputBytes: 128,
      outputOverflow: "truncate",
    });
    await cut.call();
    await cut.call();
    assertEquals(cut.runs(), 2);
  });

  it("does without a store that is out of reach, and tells the log", async () => {
    const errors: unknown[] = [];
    const down = () => Promise.reject(new Error("down"));
    const store = { get: down, create: down, update: down, delete: down, list: down };
    const hooks = cacheResults({
      tools: { t: { ttlMs: HOUR } },
      store: store as unknown as CallStore,
      onError: (error) => void errors.push(error),
    });
    const { call } = answering([1, 2], { hooks });
    assertEquals([outcome(await call()), outcome(await call()), errors.length], [1, 2, 2]);
  });

  it("waits for a store no longer than it is told", async () => {
    const hang = (): Promise<never> => new Promise(() => {});
    for (const method of ["get", "create"] as const) {
      const errors: unknown[] = [];
      const hooks = cacheResults({
        tools: { t: { ttlMs: HOUR } },
        store: Object.assign(memoryCallStore(), { [method]: hang }),
        onError: (error) => void errors.push(error),
        storeTimeoutMs: 5,
      });
      const { call, runs } = answering(["up"], { hooks });
      assertEquals([outcome(await call()), runs(), errors.length], ["up", 1, 1]);
      assertStringIncludes(String(errors[0]), "the store took too long");
    }
  });

  it("names what is wrong with its options", () => {
    for (
      const [options, says] of [
        [{}, "tools is missing"],
        [{ tools: { t: {} } }, 'ttlMs of "t" is missing'],
        [{ tools: { t: { ttlMs: 1, tags: [""] } } }, 'tags of "t" must be'],
        [{ tools: {}, store: {} }, "store must have"],
      ] as const
    ) {
      assertThrows(() => cacheResults(options as never), TypeError, says);
    }
  });
});
