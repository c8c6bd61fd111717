import { describe, it } from "bun:test";
import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import {
  buildToolset,
  systemClock,
  ToolDispatcher,
  type ToolDispatcherOptions,
  ToolRegistry,
  ToolResult,
  type Toolset,
} from "../../../mod.ts";
import { ToolDispatcher as CoreDispatcher } from "../../../src/execute/mod.ts";
import { broken, deferred, fakeTool, fixture, messageOf, outcome, single } from "./support.ts";

const echo = fakeTool({ name: "echo", execute: (params) => params });

describe("new ToolDispatcher()", () => {
  it("rejects a value that is neither a toolset nor a registry", () => {
    for (const source of [undefined, null, {}, [echo], "echo"]) {
      assertThrows(
        () => new ToolDispatcher(source as unknown as Toolset),
        TypeError,
        "Cannot make a dispatcher: the source must be a toolset or a registry",
      );
    }
  });

  it("rejects invalid options by name", () => {
    const wrong: readonly (readonly [unknown, string])[] = [
      [{ timeoutMs: 0 }, "timeoutMs"],
      [{ timeoutMs: 2 ** 31 }, "timeoutMs"],
      [{ graceMs: -1 }, "graceMs"],
      [{ maxOutputBytes: 127 }, "maxOutputBytes"],
      [{ maxArgumentBytes: Number.NaN }, "maxArgumentBytes"],
      [{ limits: { maxConcurrent: 0 } }, "limits.maxConcurrent"],
      [{ limits: { maxQueued: "many" } }, "limits.maxQueued"],
      [{ idempotency: { windowMs: 0 } }, "idempotency.windowMs"],
      [{ outputOverflow: "wrap" }, 'outputOverflow must be one of fail, truncate, not "wrap"'],
      [{ approve: true }, "approve must be a function"],
      [{ hooks: {} }, "a hook must be an object with a before or an after function"],
      [{ hooks: [{ before: 1 }] }, "a hook must be an object"],
      [{ validators: [1] }, "validators must be a list of functions"],
      [{ transactions: { begin() {}, commit() {} } }, "transactions must have a rollback function"],
      // If a misspelt limit were ignored, more calls would run than intended.
      [{ timeout: 5 }, '"/timeout" is not one of its fields: did you mean "timeoutMs"?'],
      [{ aprove: () => true }, '"/aprove" is not one of its fields: did you mean "approve"?'],
      [{ colour: 1 }, '"/colour" is not one of its fields: '],
      [{ limits: { maxConcurent: 1 } }, 'did you mean "maxConcurrent"?'],
      [{ idempotency: { window: 1 } }, 'did you mean "windowMs"?'],
    ];
    const { registry } = fixture([]);
    for (const [options, message] of wrong) {
      const error = assertThrows(
        () => new ToolDispatcher(registry, options as ToolDispatcherOptions),
        Error,
        message,
      );
      assertStringIncludes(error.message, "Cannot make a dispatcher: ");
    }
  });

  it("requires an engine for a toolset that was created from a list", () => {
    assertThrows(
      () => new CoreDispatcher(buildToolset([echo])),
      TypeError,
      "it was made from a list; set the option engine",
    );
  });
});

describe("ToolDispatcher.dispatch()", () => {
  it("runs a tool and returns its duration", async () => {
    const { call, clock } = single(() => clock.advance(5));
    const result = await call();
    assertEquals(outcome(result), null);
    assertEquals(result.durationMs, 5);
  });

  it("returns the same result for a hidden tool and an unknown tool", async () => {
    const hidden = fakeTool({ name: "hidden", risk: "critical", execute: () => "secret" });
    const { registry } = fixture([]);
    registry.registerTools([echo, hidden]);
    const dispatcher = new ToolDispatcher(registry.select({ maxRisk: "low" }));
    const concealed = await dispatcher.dispatch({ name: "hidden" });
    const absent = await dispatcher.dispatch({ name: "absent" });
    assertEquals(outcome(concealed), "unknown_tool");
    assertEquals(messageOf(concealed), 'Cannot call "hidden": there is no such tool');
    assertEquals(messageOf(absent), 'Cannot call "absent": there is no such tool');
  });

  it("fails calls of permanently and currently unavailable tools in the same way", async () => {
    const { registry } = fixture([
      { name: "never", isAvailable: false },
      { name: "now", isAvailable: () => false },
      { name: "hidden", isAvailable: false, risk: "high" },
    ]);
    const dispatcher = new ToolDispatcher(registry.select({ maxRisk: "low" }));
    const results = await dispatcher.dispatchAll(
      ["never", "now", "hidden"].map((name) => ({ name })),
    );
    assertEquals(results.map(outcome), ["unavailable", "unavailable", "unknown_tool"]);
  });

  it("suggests similar names of the caller's available tools only", async () => {
    const { registry } = fixture([
      { name: "file-read" },
      { name: "file-reed", risk: "high" },
      { name: "file-raed", isAvailable: () => false },
    ]);
    const dispatcher = new ToolDispatcher(registry.select({ maxRisk: "low" }));
    assertEquals(
      messageOf(await dispatcher.dispatch({ name: "fileRead" })),
      'Cannot call "fileRead": there is no such tool. Did you mean "file-read"?',
    );
  });

  it("returns a failure for any value that is not a call", async () => {
    const { dispatcher } = fixture([{ name: "echo", execute: () => 1 }]);
    const hostile: never = new Proxy({}, { get: broken }) as never;
    const odd = [null, undefined, 1, {}, { name: 7 }, { name: "x".repeat(10_000) }, hostile];
    for (const call of odd) {
      const result = await dispatcher.dispatch(call as never);
      assertEquals(outcome(result), "unknown_tool");
      assert(messageOf(result).length < 200);
    }
    for (const nameless of [{ arguments: {} }, "echo"]) {
      assertEquals(
        messageOf(await dispatcher.dispatch(nameless as never, {})),
        "Cannot call a tool: a call is { name, arguments }; decodeCalls() reads what providers send",
      );
    }
    assertEquals(outcome(await dispatcher.dispatch({ name: "echo" }, hostile)), "threw");
    const trap = Object.defineProperty({ name: "echo" }, "arguments", { get: broken });
    assertEquals(outcome(await dispatcher.dispatch(trap)), "threw");
  });

  it("returns a failure if a toolset of the host throws", async () => {
    const { registry } = fixture([]);
    const toolset = {
      ...{ name: "broken", source: registry, tools: [], available: () => [] },
      ...{ narrow: () => toolset, resolve: broken },
    } as unknown as Toolset;
    const dispatcher = new ToolDispatcher(toolset);
    assertEquals(outcome(await dispatcher.dispatch({ name: "x" })), "threw");
    const [event] = await Array.fromAsync(dispatcher.stream({ name: "x" }));
    assertEquals(event?.type, "result");
  });

  it("checks availability at each call", async () => {
    let open = true;
    const { call } = single({ isAvailable: () => open, execute: () => "in" });
    assertEquals(outcome(await call()), "in");
    open = false;
    const result = await call();
    assertEquals(outcome(result), "unavailable");
    assertEquals(!result.ok && result.error.retryable, true);
  });

  it("follows a registry as it changes", async () => {
    const { registry, call } = fixture([{ name: "old", execute: () => "old" }]);
    assertEquals(outcome(await call("new")), "unknown_tool");
    registry.registerTool(fakeTool({ name: "new", execute: () => "new" }));
    assertEquals(outcome(await call("new")), "new");
    registry.updateTool(fakeTool({ name: "new", execute: () => "newer" }));
    assertEquals(outcome(await call("new")), "newer");
    registry.unregisterTool("new");
    assertEquals(outcome(await call("new")), "unknown_tool");
  });

  it("rejects a tool that was removed or replaced since the toolset was created", async () => {
    const { registry } = fixture([
      { name: "gone", execute: () => 1 },
      { name: "changed", execute: () => 1 },
    ]);
    const dispatcher = new ToolDispatcher(registry.select({}));
    registry.unregisterTool("gone");
    registry.updateTool(fakeTool({ name: "changed", execute: () => 2 }));
    assertEquals(outcome(await dispatcher.dispatch({ name: "gone" })), "unavailable");
    assertEquals(outcome(await dispatcher.dispatch({ name: "changed" })), "unavailable");
  });

  it("waits for init once", async () => {
    let started = 0;
    const { call } = single({
      init: async () => ({ connection: await Promise.resolve(++started) }),
      execute: (_, { state }) => state,
    });
    const results = await Promise.all([call(), call()]);
    assertEquals(results.map(outcome), [{ connection: 1 }, { connection: 1 }]);
  });

  it("reports a failure of init to the host only", async () => {
    const { call, reports } = single({
      init() {
        throw new Error("the password is hunter2");
      },
      execute: () => 1,
    });
    const result = await call();
    assertEquals(outcome(result), "unavailable");
    assertEquals(messageOf(result).includes("hunter2"), false);
    assertEquals(reports.map(({ phase }) => phase), ["init"]);
  });

  it("passes services, config and the host's context to the tool", async () => {
    const registry = new ToolRegistry({
      services: { words: ["a", "b"] },
      config: { look: { deep: true } },
    });
    registry.registerTool(fakeTool({
      name: "look",
      config: { type: "object" },
      execute(_, { services: { words }, config, callId, sessionId, messageId, transaction }) {
        const hasTransaction = transaction !== undefined;
        return { words, config, callId, sessionId, messageId, hasTransaction };
      },
    }));
    const result = await new ToolDispatcher(registry).dispatch(
      { name: "look", callId: "call-1" },
      { sessionId: "s", messageId: "m" },
    );
    assertEquals(outcome(result), {
      ...{ words: ["a", "b"], config: { deep: true }, hasTransaction: false },
      ...{ callId: "call-1", sessionId: "s", messageId: "m" },
    });
  });

  it("assigns a different id to each call without an id", async () => {
    const { call } = single((_, { callId }) => callId);
    const ids = [outcome(await call()), outcome(await call())];
    assertEquals(new Set(ids).size, 2);
    assert(ids.every((id) => typeof id === "string" && id.startsWith("call_")));
  });

  it("returns a result that the tool created, even a result of another dispatch", async () => {
    const inner = fixture([{ name: "inner", execute: () => [1] }]);
    const { call } = fixture([
      { name: "denies", execute: () => ToolResult.error("denied", "Not on Sundays") },
      { name: "grants", execute: () => ToolResult.ok("yes") },
      { name: "delegates", execute: () => inner.call("inner") },
      { name: "fails", execute: () => inner.call("nothing") },
      { name: "resembles", execute: () => ({ ok: true, content: 1, durationMs: 0 }) },
    ]);
    const denied = await call("denies");
    assertEquals([outcome(denied), messageOf(denied)], ["denied", "Not on Sundays"]);
    assertEquals(outcome(await call("grants")), "yes");
    assertEquals(outcome(await call("delegates")), [1]);
    assertEquals(outcome(await call("fails")), "unknown_tool");
    assertEquals(outcome(await call("resembles")), { ok: true, content: 1, durationMs: 0 });
  });

  for (
    const [what, thrown, message] of [
      ["an error", new Error("The disk is full"), "The disk is full"],
      ["a long message", new Error("x".repeat(100_000)), `${"x".repeat(499)}…`],
      ["nothing", undefined, "nothing"],
    ] as const
  ) {
    it(`reports a tool that throws ${what}, without a stack`, async () => {
      const execute = (): never => {
        throw thrown;
      };
      for (const tool of [{ execute }, { execute: () => Promise.reject(thrown) }]) {
        const { call, reports } = single(tool);
        const result = await call();
        assertEquals(outcome(result), "threw");
        assertEquals(messageOf(result), `Cannot call "t": the tool threw: ${message}`);
        assertEquals(reports.map(({ error }) => error), [thrown]);
      }
    });
  }

  it("fails the call if a thenable throws", async () => {
    const { call } = single(() => ({ then: broken }));
    assertEquals(messageOf(await call()), 'Cannot call "t": the tool threw: broken');
  });

  it("ignores callbacks that throw, and values that are not JSON", async () => {
    const { call, reports } = single((_, { metadata, progress }) => {
      metadata({ a: 1 });
      metadata(1n);
      progress(Number.NaN);
      return "done";
    });
    let heard = 0;
    const result = await call({}, {
      metadata: () => (heard++, broken()),
      progress: () => void heard++,
    });
    assertEquals([outcome(result), heard], ["done", 1]);
    assertEquals(reports.map(({ phase }) => phase), ["metadata", "metadata", "metadata"]);
  });

  it("drops yields that cannot be sent, and continues when the caller's callback fails", async () => {
    const taken: unknown[] = [];
    const { call, reports } = single(async function* () {
      yield "x".repeat(500);
      yield 1n;
      yield "fine";
      return "end";
    }, { maxOutputBytes: 200 });
    const result = await call({}, { output: (value) => (taken.push(value), broken()) });
    assertEquals([outcome(result), taken], ["end", ["fine"]]);
    assertEquals(reports.map(({ error }) => (error as Error).message), [
      "Cannot send a value: it is larger than 200 bytes of JSON",
      "Cannot send a value: it is a bigint, which is not JSON",
      "broken",
    ]);
  });

  it("passes a generator's yields to the caller one by one, and waits for it", async () => {
    const taken: unknown[] = [];
    const [gate, reached] = [deferred(), deferred()];
    const { call } = single(async function* () {
      yield { n: 1 };
      taken.push("second");
      yield { n: 2 };
      return "end";
    });
    const result = call({}, {
      output: async (value) => {
        taken.push(value);
        reached.resolve();
        await gate.promise;
      },
    });
    await reached.promise;
    assertEquals(taken, [{ n: 1 }]);
    gate.resolve();
    assertEquals(outcome(await result), "end");
    assertEquals(taken, [{ n: 1 }, "second", { n: 2 }]);
  });
});

describe("ToolDispatcher.dispatchAll()", () => {
  it("runs calls concurrently, and returns their results in order", async () => {
    const first = deferred<string>();
    const { dispatcher } = fixture([
      { name: "slow", execute: () => first.promise },
      { name: "fast", execute: () => (first.resolve("slow"), "fast") },
    ]);
    const results = await dispatcher.dispatchAll([
      { name: "slow", callId: "same" },
      { name: "fast", callId: "same" },
      { name: "none" },
    ]);
    assertEquals(results.map(outcome), ["slow", "fast", "unknown_tool"]);
  });

  it("yields to the event loop between the calls of a large batch", async () => {
    let isWaiting = true;
    const { dispatcher } = single(() => isWaiting);
    setTimeout(() => isWaiting = false, 0);
    const results = await dispatcher.dispatchAll(Array(100).fill({ name: "t" }));
    assertEquals(results.filter((_, index) => index % 99 === 0).map(outcome), [true, false]);
  });

  it("rejects calls beyond its limit, and runs the others", async () => {
    const { dispatcher } = single(() => 1, { maxCallsPerBatch: 2 });
    const results = await dispatcher.dispatchAll(Array(4).fill({ name: "t" }));
    assertEquals(results.map(outcome), [1, 1, "overloaded", "overloaded"]);
  });

  it("extends an idempotency key by the position of each call", async () => {
    let runs = 0;
    const { dispatcher } = single(() => ++runs);
    const calls = [1, 2].map((a) => ({ name: "t", arguments: { a } }));
    const first = await dispatcher.dispatchAll(calls, { idempotencyKey: "k" });
    const second = await dispatcher.dispatchAll(calls, { idempotencyKey: "k" });
    assertEquals([...first, ...second].map(outcome), [1, 2, 1, 2]);
  });
});

describe("the context of calls", () => {
  it("may be null", async () => {
    const { dispatcher } = single(() => 1);
    const call = { name: "t" };
    assertEquals(outcome(await dispatcher.dispatch(call, null)), 1);
    assertEquals((await dispatcher.dispatchAll([call], null)).map(outcome), [1]);
    for await (const event of dispatcher.stream(call, null)) assertEquals(event.type, "result");
  });

  it("fails each of several calls if it cannot be read", async () => {
    const { dispatcher } = single(() => 1);
    const context = Object.defineProperty({}, "idempotencyKey", { get: broken });
    const results = await dispatcher.dispatchAll([{ name: "t" }, { name: "t" }], context);
    assertEquals(results.map(outcome), ["threw", "threw"]);
  });

  it("belongs to a list of calls", async () => {
    const { dispatcher } = fixture([]);
    const message = "Cannot dispatch calls: the calls must be a list";
    await assertRejects(() => dispatcher.dispatchAll(null as never), TypeError, message);
  });
});

describe("ToolDispatcher.withToolset()", () => {
  it("shows another caller other tools, and shares limits, keys and metrics", async () => {
    const release = deferred();
    const { registry, dispatcher } = fixture(
      [
        { name: "safe", execute: () => release.promise },
        { name: "risky", risk: "high", execute: () => "ran" },
      ],
      { limits: { maxConcurrent: 1, maxQueued: 0 } },
    );
    const view = dispatcher.withToolset(registry.select({ maxRisk: "low" }));
    assertEquals(outcome(await view.dispatch({ name: "risky" })), "unknown_tool");
    assertEquals(outcome(await dispatcher.dispatch({ name: "risky" })), "ran");
    const running = view.dispatch({ name: "safe" });
    assertEquals(outcome(await dispatcher.dispatch({ name: "risky" })), "overloaded");
    release.resolve();
    await running;
    assertEquals(view.metrics(), dispatcher.metrics());
    assertEquals(view.metrics().calls, 4);
  });

  it("runs a toolset made from a list with the dispatcher's engine", async () => {
    const dispatcher = new ToolDispatcher(buildToolset([]));
    const view = dispatcher.withToolset(buildToolset([echo]));
    assertEquals(outcome(await view.dispatch({ name: "echo", arguments: "{}" })), {});
  });
});

describe("a toolset that was made from a list", () => {
  it("shares its tools' state with the other toolsets of that list", async () => {
    let started = 0;
    const all = buildToolset([
      fakeTool({ name: "db", init: () => ++started, execute: (_, { state }) => state }),
      fakeTool({ name: "rm", risk: "high" }),
    ]);
    const dispatcher = new ToolDispatcher(all);
    const view = dispatcher.withToolset(buildToolset(all, { maxRisk: "low" }));
    assertEquals(outcome(await dispatcher.dispatch({ name: "db" })), 1);
    assertEquals(outcome(await view.dispatch({ name: "db" })), 1);
    assertEquals(outcome(await view.dispatch({ name: "rm" })), "unknown_tool");
  });
});

describe("the clock of the runtime", () => {
  it("returns the time and fires timers", async () => {
    const before = systemClock.now();
    await new Promise<void>((resolve) => systemClock.setTimeout(resolve, 0));
    assert(systemClock.now() >= before);
    assert(systemClock.timestamp() > 1_700_000_000_000);
    let woken = false;
    systemClock.setTimeout(() => woken = true, 0)();
    await new Promise<void>((resolve) => systemClock.setTimeout(resolve, 0));
    assertEquals(woken, false);
  });
});
