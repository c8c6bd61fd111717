import { describe, it } from "bun:test";
import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { buildToolset, type Toolset } from "../../../mod.ts";
import { ToolDispatcher as CoreDispatcher } from "../../../src/execute/mod.ts";
import {
  systemClock,
  ToolDispatcher,
  type ToolDispatcherOptions,
  ToolRegistry,
  ToolResult,
} from "../../../mod.ts";
import { deferred, fakeTool, fixture, messageOf, outcome } from "./support.ts";

const echo = fakeTool({ name: "echo", execute: (params) => params });

describe("new ToolDispatcher()", () => {
  it("rejects a value that is neither a toolset nor a registry", () => {
    for (const source of [undefined, null, {}, [echo], "echo"]) {
      assertThrows(
        () => new ToolDispatcher(source as unknown as Toolset),
        TypeError,
        "Cannot make a dispatcher: it needs a toolset or a registry",
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
      // A limit that is ignored lets in more than was meant.
      [{ timeout: 5 }, '"/timeout" is not one of its fields: did you mean "timeoutMs"?'],
      [{ aprove: () => true }, '"/aprove" is not one of its fields: did you mean "approve"?'],
      [{ colour: 1 }, '"/colour" is not one of its fields: '],
      [{ limits: { maxConcurent: 1 } }, 'did you mean "maxConcurrent"?'],
      [{ idempotency: { window: 1 } }, 'did you mean "windowMs"?'],
    ];
    const { registry } = fixture([]);
    for (const [options, says] of wrong) {
      const error = assertThrows(
        () => new ToolDispatcher(registry, options as ToolDispatcherOptions),
        Error,
        says,
      );
      assertStringIncludes(error.message, "Cannot make a dispatcher: ");
    }
  });

  it("requires an engine for a toolset that was created from a list", () => {
    assertThrows(
      () => new CoreDispatcher(buildToolset([echo])),
      TypeError,
      "its tools came from a list: set the option engine",
    );
  });
});

describe("ToolDispatcher.dispatch()", () => {
  it("runs a tool and returns its duration", async () => {
    const { call, clock } = fixture([{ name: "wait", execute: () => clock.advance(5) }]);
    const result = await call("wait");
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
    const codes = ["never", "now", "hidden"].map(async (name) =>
      outcome(await dispatcher.dispatch({ name }))
    );
    assertEquals(await Promise.all(codes), ["unavailable", "unavailable", "unknown_tool"]);
  });

  it("suggests near names, of the caller's own tools that are available only", async () => {
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

  it("answers whatever a call looks like", async () => {
    const { dispatcher } = fixture([{ name: "echo", execute: () => 1 }]);
    const hostile = new Proxy({}, {
      get: () => {
        throw new Error("no");
      },
    });
    for (const call of [null, undefined, 1, {}, { name: 7 }, { name: "x".repeat(10_000) }]) {
      const result = await dispatcher.dispatch(call as never);
      assertEquals(outcome(result), "unknown_tool");
      assert(messageOf(result).length < 200);
    }
    assertEquals(outcome(await dispatcher.dispatch(hostile as never)), "unknown_tool");
    for (const nameless of [{ arguments: {} }, "echo"]) {
      assertEquals(
        messageOf(await dispatcher.dispatch(nameless as never, {})),
        "Cannot call a tool: a call is { name, arguments }; decodeCalls() reads what providers send",
      );
    }
    assertEquals(outcome(await dispatcher.dispatch({ name: "echo" }, hostile as never)), "threw");
    const trap = {
      name: "echo",
      get arguments(): never {
        throw new Error("no");
      },
    };
    assertEquals(outcome(await dispatcher.dispatch(trap)), "threw");
  });

  it("answers also when a toolset of somebody's own breaks", async () => {
    const { registry } = fixture([]);
    const broken: Toolset = {
      name: "broken",
      source: registry,
      tools: [],
      available: () => [],
      narrow: () => broken,
      resolve: () => {
        throw new Error("no");
      },
    } as unknown as Toolset;
    const dispatcher = new ToolDispatcher(broken);
    assertEquals(outcome(await dispatcher.dispatch({ name: "x" })), "threw");
    const [event] = await Array.fromAsync(dispatcher.stream({ name: "x" }));
    assertEquals(event?.type, "result");
  });

  it("checks availability at each call", async () => {
    let open = true;
    const { call } = fixture([{ name: "door", isAvailable: () => open, execute: () => "in" }]);
    assertEquals(outcome(await call("door")), "in");
    open = false;
    const result = await call("door");
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

  it("waits for init once, and reports its failure", async () => {
    let started = 0;
    const { call, reports } = fixture([
      {
        name: "db",
        init: async () => ({ connection: await Promise.resolve(++started) }),
        execute: (_, context) => context.state,
      },
      {
        name: "broken",
        init: () => {
          throw new Error("the password is hunter2");
        },
        execute: () => 1,
      },
    ]);
    const [first, second] = await Promise.all([call("db"), call("db")]);
    assertEquals([outcome(first), outcome(second)], [{ connection: 1 }, { connection: 1 }]);
    const broken = await call("broken");
    assertEquals(outcome(broken), "unavailable");
    assertEquals(messageOf(broken).includes("hunter2"), false);
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
      execute: (_, { services, config, callId, sessionId, messageId, transaction }) => ({
        words: services["words"],
        config,
        callId,
        sessionId,
        messageId,
        transaction: transaction ?? null,
      }),
    }));
    const result = await new ToolDispatcher(registry).dispatch(
      { name: "look", callId: "call-1" },
      { sessionId: "s", messageId: "m" },
    );
    assertEquals(outcome(result), {
      words: ["a", "b"],
      config: { deep: true },
      callId: "call-1",
      sessionId: "s",
      messageId: "m",
      transaction: null,
    });
  });

  it("gives each call without an id a different id", async () => {
    const { call } = fixture([{ name: "id", execute: (_, { callId }) => callId }]);
    const ids = [outcome(await call("id")), outcome(await call("id"))];
    assertEquals(new Set(ids).size, 2);
    assert(ids.every((id) => typeof id === "string" && id.startsWith("call_")));
  });

  it("passes on a result that the tool created, even a result of another dispatch", async () => {
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

  it("reports any thrown value, and never a stack", async () => {
    const thrown: readonly (readonly [unknown, string])[] = [
      [new Error("The disk is full"), "The disk is full"],
      [new Error("x".repeat(100_000)), `${"x".repeat(499)}…`],
      [undefined, "nothing"],
    ];
    for (const [value, says] of thrown) {
      const { call, reports } = fixture([
        {
          name: "sync",
          execute: () => {
            throw value;
          },
        },
        { name: "async", execute: () => Promise.reject(value) },
      ]);
      for (const name of ["sync", "async"]) {
        const result = await call(name);
        assertEquals(outcome(result), "threw");
        assertEquals(messageOf(result), `Cannot call "${name}": the tool threw: ${says}`);
      }
      assertEquals(reports.map(({ error }) => error), [value, value]);
    }
  });

  it("survives a thenable that throws", async () => {
    const { call } = fixture([{
      name: "odd",
      execute: () => ({
        then() {
          throw new Error("in then");
        },
      }),
    }]);
    assertEquals(messageOf(await call("odd")), 'Cannot call "odd": the tool threw: in then');
  });

  it("ignores callbacks that throw, and values that are not JSON", async () => {
    const { call, reports } = fixture([{
      name: "sends",
      execute: (_, { metadata, progress }) => {
        metadata({ a: 1 });
        metadata(1n);
        progress(Number.NaN);
        return "done";
      },
    }]);
    let heard = 0;
    const result = await call("sends", {}, {
      metadata: () => {
        heard++;
        throw new Error("no");
      },
      progress: () => void heard++,
    });
    assertEquals(outcome(result), "done");
    assertEquals(heard, 1);
    assertEquals(reports.map(({ phase }) => phase), ["metadata", "metadata", "metadata"]);
  });

  it("drops yields that cannot be sent, and continues when the caller's callback fails", async () => {
    const taken: unknown[] = [];
    const { call, reports } = fixture([{
      name: "yields",
      async *execute() {
        yield "x".repeat(500);
        yield 1n;
        yield "fine";
        return "end";
      },
    }], { maxOutputBytes: 200 });
    const result = await call("yields", {}, {
      output: (value) => {
        taken.push(value);
        throw new Error("no");
      },
    });
    assertEquals(outcome(result), "end");
    assertEquals(taken, ["fine"]);
    assertEquals(reports.map(({ error }) => (error as Error).message), [
      "Cannot send a value: it is larger than 200 bytes of JSON",
      "Cannot send a value: it is a bigint, which is not JSON",
      "no",
    ]);
  });

  it("hands a generator's yields to the caller one by one, and waits for it", async () => {
    const taken: unknown[] = [];
    const gate = deferred();
    const { call } = fixture([{
      name: "yields",
      async *execute() {
        yield { n: 1 };
        taken.push("second");
        yield { n: 2 };
        return "end";
      },
    }]);
    const reached = deferred();
    const result = call("yields", {}, {
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
  it("runs calls side by side and keeps their order", async () => {
    const first = deferred<string>();
    const { dispatcher } = fixture([
      { name: "slow", execute: () => first.promise },
      {
        name: "fast",
        execute: () => {
          first.resolve("slow");
          return "fast";
        },
      },
    ]);
    const results = await dispatcher.dispatchAll([
      { name: "slow", callId: "same" },
      { name: "fast", callId: "same" },
      { name: "none" },
    ]);
    assertEquals(results.map(outcome), ["slow", "fast", "unknown_tool"]);
  });

  it("rejects calls beyond its limit, and runs the others", async () => {
    const { dispatcher } = fixture([{ name: "one", execute: () => 1 }], { maxCallsPerBatch: 2 });
    const results = await dispatcher.dispatchAll(Array(4).fill({ name: "one" }));
    assertEquals(results.map(outcome), [1, 1, "overloaded", "overloaded"]);
  });

  it("makes of one idempotency key a key per call", async () => {
    let runs = 0;
    const { dispatcher } = fixture([{ name: "count", execute: () => ++runs }]);
    const calls = [{ name: "count", arguments: { a: 1 } }, { name: "count", arguments: { a: 2 } }];
    const first = await dispatcher.dispatchAll(calls, { idempotencyKey: "k" });
    const second = await dispatcher.dispatchAll(calls, { idempotencyKey: "k" });
    assertEquals([...first, ...second].map(outcome), [1, 2, 1, 2]);
  });
});

describe("ToolDispatcher without a context", () => {
  it("accepts null as absent", async () => {
    const { dispatcher } = fixture([{ name: "one", execute: () => 1 }]);
    // JavaScript callers pass values that the types exclude.
    const none = null as unknown as undefined;
    const call = { name: "one" };
    assertEquals(outcome(await dispatcher.dispatch(call, none)), 1);
    assertEquals((await dispatcher.dispatchAll([call], none)).map(outcome), [1]);
    for await (const event of dispatcher.stream(call, none)) assertEquals(event.type, "result");
  });

  it("answers each call of several where the context cannot be read", async () => {
    const { dispatcher } = fixture([{ name: "one", execute: () => 1 }]);
    const context = {
      get idempotencyKey(): string {
        throw new Error("no");
      },
    };
    const results = await dispatcher.dispatchAll([{ name: "one" }, { name: "one" }], context);
    assertEquals(results.map(outcome), ["threw", "threw"]);
  });

  it("rejects calls that are not a list", async () => {
    const { dispatcher } = fixture([]);
    await assertRejects(
      () => dispatcher.dispatchAll(null as unknown as []),
      TypeError,
      "Cannot dispatch calls: they must be a list",
    );
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
