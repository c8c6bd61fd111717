import { assert, assertEquals, assertRejects, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  isToolHost,
  type RegistryErrorReport,
  ToolLifecycleError,
} from "../../../src/registry/mod.ts";
import { listSource } from "../../../src/select/mod.ts";
import { deferred, FakeClock } from "../../support/waiting.ts";
import { fakeRegistry, fakeTool } from "./fakes.ts";

/** Waits until all pending promise reactions have run. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await null;
}

/** Starts a call of the tool "a", whose init lasts until `resolve`. */
function startInit() {
  const { promise, resolve } = deferred<string>();
  const disposed: unknown[] = [];
  const tool = fakeTool("a", {
    init: () => promise,
    dispose: (state) => void disposed.push(state),
  });
  const registry = fakeRegistry({ tools: [tool] });
  return { registry, call: registry.acquire(tool), resolve, disposed };
}

describe("ToolRegistry.acquire()", () => {
  it("returns synchronously for a tool without init, with the same object each time", () => {
    const tool = fakeTool("a");
    const registry = fakeRegistry({ tools: [tool] });
    const runtime = registry.acquire(tool);
    assert(!(runtime instanceof Promise));
    assertStrictEquals(runtime.tool, tool);
    assertStrictEquals(registry.acquire(tool), runtime);
  });

  it("runs init once, with services and configuration, and stores its result", async () => {
    const services = { disk: {} };
    const received: unknown[] = [];
    const state = {};
    const tool = fakeTool("a", {
      config: { type: "object" },
      init: (context) => {
        received.push(context);
        return state;
      },
    });
    const registry = fakeRegistry({ tools: [tool], services, config: { a: { root: "/" } } });
    const runtime = await registry.acquire(tool);
    assertStrictEquals(runtime.state, state);
    assertStrictEquals(runtime.services, services);
    assertStrictEquals(registry.acquire(tool), runtime);
    assertEquals(received, [{ services, config: { root: "/" } }]);
  });

  it("runs init once for concurrent calls", async () => {
    const { promise, resolve } = deferred<string>();
    let runs = 0;
    const tool = fakeTool("a", { init: () => (runs++, promise) });
    const registry = fakeRegistry({ tools: [tool] });
    const calls = Promise.all([registry.acquire(tool), registry.acquire(tool), registry.ready()]);
    resolve("state");
    const [first, second] = await calls;
    assertStrictEquals(first, second);
    assertEquals([runs, first.state], [1, "state"]);
  });

  it("fails the calls that share a failed init, and tries again for the next", async () => {
    const secret = new Error("cannot connect with password hunter2");
    let runs = 0;
    const tool = fakeTool("a", {
      init: () => {
        if (++runs === 1) throw secret;
        return "state";
      },
    });
    const registry = fakeRegistry({ tools: [tool] });
    const calls = [registry.acquire(tool), registry.acquire(tool)];
    for (const outcome of await Promise.allSettled(calls)) {
      assert(outcome.status === "rejected");
      assert(outcome.reason instanceof ToolLifecycleError);
      assertEquals(outcome.reason.message, 'Tool "a" is not ready: its init failed');
      assertStrictEquals(outcome.reason.cause, secret);
    }
    assertEquals((await registry.acquire(tool)).state, "state");
    assertEquals(runs, 2);
  });

  it("stops waiting for an init that takes too long, and disposes of its late result", async () => {
    const clock = new FakeClock();
    const { promise, resolve } = deferred<string>();
    const disposed: unknown[] = [];
    let runs = 0;
    const tool = fakeTool("a", {
      init: () => ++runs === 1 ? promise : "second",
      dispose: (state) => void disposed.push(state),
    });
    const registry = fakeRegistry({ tools: [tool], clock, lifecycleTimeoutMs: 500 });
    const call = registry.acquire(tool);
    await settle();
    clock.advance(499);
    assertEquals(clock.timers.size, 1);
    clock.advance(1);
    await assertRejects(
      async () => await call,
      ToolLifecycleError,
      'Tool "a" is not ready: its init did not end within 500 ms',
    );
    assertEquals((await registry.acquire(tool)).state, "second");
    resolve("first");
    await settle();
    assertEquals([disposed, clock.timers.size], [["first"], 0]);
  });

  /** A registry that has stopped waiting for the init of its tool. */
  async function lateInit(dispose: () => Promise<void>) {
    const clock = new FakeClock();
    const { promise, ...init } = deferred();
    const reports: RegistryErrorReport[] = [];
    const tool = fakeTool("a", { init: () => promise, dispose });
    const onError = (report: RegistryErrorReport) => void reports.push(report);
    const registry = fakeRegistry({ tools: [tool], clock, onError });
    const call = registry.acquire(tool);
    await settle();
    clock.advance(30_000);
    await assertRejects(async () => await call, ToolLifecycleError, "within 30000 ms");
    return { registry, reports, init };
  }

  it("reports a late state that cannot be disposed of", async () => {
    const cause = new Error("No");
    const { init, reports } = await lateInit(() => Promise.reject(cause));
    init.resolve();
    await settle();
    assertEquals(reports.map(({ phase, toolId }) => [phase, toolId]), [["dispose", "a"]]);
    assertStrictEquals((reports[0]?.error as Error).cause, cause);
  });

  it("has nothing to dispose of, nor to report, when init fails late", async () => {
    const { registry, init, reports } = await lateInit(() => Promise.reject(new Error("Disposed")));
    init.reject(new Error("No"));
    await settle();
    await registry.dispose();
    assertEquals(reports, []);
  });

  it("leaves no timer when init ends in time", async () => {
    const clock = new FakeClock();
    const tool = fakeTool("a", { init: () => 1 });
    const registry = fakeRegistry({ tools: [tool], clock });
    await registry.acquire(tool);
    assertEquals(clock.timers.size, 0);
  });

  it("rejects an unregistered tool", () => {
    const tool = fakeTool("a");
    const registry = fakeRegistry({ tools: [tool] });
    registry.unregisterTool("a");
    assertThrows(() => registry.acquire(tool), ToolLifecycleError, 'Tool "a" is not registered');
  });

  it("rejects a tool that was replaced, and provides the new one immediately", () => {
    const [old, next] = [fakeTool("a"), fakeTool("a")];
    const registry = fakeRegistry({ tools: [old] });
    registry.acquire(old);
    registry.updateTool(next);
    assertThrows(
      () => registry.acquire(old),
      ToolLifecycleError,
      'Tool "a" was replaced: list the tools again',
    );
    const runtime = registry.acquire(next);
    assert(!(runtime instanceof Promise));
    assertStrictEquals(runtime.tool, next);
  });
});

describe("isToolHost()", () => {
  it("distinguishes a registry from a read-only source", () => {
    assert(isToolHost(fakeRegistry()));
    assertEquals(isToolHost(listSource([fakeTool("a")])), false);
    assertEquals(isToolHost(undefined), false);
  });
});

describe("dispose of a tool", () => {
  /** A tool that records its lifecycle. */
  function watched(id: string, log: string[]) {
    return fakeTool(id, {
      init: () => {
        log.push(`init ${id}`);
        return `state of ${id}`;
      },
      dispose: (state) => void log.push(`dispose ${state}`),
    });
  }

  it("runs on unregister, with the state", async () => {
    const log: string[] = [];
    const tool = watched("a", log);
    const registry = fakeRegistry({ tools: [tool] });
    await registry.ready();
    registry.unregisterTool("a");
    await settle();
    assertEquals(log, ["init a", "dispose state of a"]);
  });

  it("waits for running calls", async () => {
    const log: string[] = [];
    const tool = watched("a", log);
    const registry = fakeRegistry({ tools: [tool] });
    const [first, second] = [await registry.acquire(tool), await registry.acquire(tool)];
    registry.unregisterTool("a");
    registry.release(first);
    await settle();
    assertEquals(log, ["init a"]);
    registry.release(second);
    await settle();
    assertEquals(log, ["init a", "dispose state of a"]);
  });

  it("of a replaced tool waits for its calls, while the new one runs", async () => {
    const log: string[] = [];
    const old = watched("a", log);
    const next = fakeTool("a", { init: () => void log.push("init new") });
    const registry = fakeRegistry({ tools: [old] });
    const call = await registry.acquire(old);
    registry.updateTool(next);
    registry.release(await registry.acquire(next));
    assertEquals(log, ["init a", "init new"]);
    registry.release(call);
    await settle();
    assertEquals(log, ["init a", "init new", "dispose state of a"]);
  });

  it("waits for a running init, whose call still runs", async () => {
    const { registry, call, resolve, disposed } = startInit();
    registry.unregisterTool("a");
    resolve("state");
    const runtime = await call;
    await settle();
    assertEquals([runtime.state, disposed], ["state", []]);
    registry.release(runtime);
    await settle();
    assertEquals(disposed, ["state"]);
  });

  it("does not run when init never ran, or failed", async () => {
    const log: string[] = [];
    const broken = fakeTool("b", {
      init: () => {
        throw new Error("No");
      },
      dispose: () => void log.push("dispose b"),
    });
    const registry = fakeRegistry({ tools: [watched("a", log), broken] });
    await assertRejects(async () => await registry.acquire(broken), ToolLifecycleError);
    await registry.dispose();
    assertEquals(log, []);
  });

  it("runs for a tool without init", async () => {
    const log: unknown[] = [];
    const registry = fakeRegistry({
      tools: [fakeTool("a", { dispose: (state) => void log.push(state) })],
    });
    await registry.dispose();
    assertEquals(log, [undefined]);
  });

  it("that fails is reported immediately, and thrown at the registry's end", async () => {
    const cause = new Error("still locked");
    const reports: RegistryErrorReport[] = [];
    const tool = fakeTool("a", { dispose: () => Promise.reject(cause) });
    const registry = fakeRegistry({ tools: [tool], onError: (report) => reports.push(report) });
    registry.unregisterTool("a");
    await settle();
    const [{ error, ...about } = {}] = reports;
    assertEquals(about, { phase: "dispose", toolId: "a" });
    assert(error instanceof ToolLifecycleError);
    assertEquals(error.message, 'Tool "a" is not disposed of: its dispose failed');
    assertStrictEquals(error.cause, cause);
    const thrown = await assertRejects(() => registry.dispose(), AggregateError);
    assertEquals(thrown.errors, [error]);
  });

  it("that never ends is abandoned", async () => {
    const clock = new FakeClock();
    const tool = fakeTool("a", { dispose: () => new Promise<void>(() => {}) });
    const registry = fakeRegistry({ tools: [tool], clock });
    const ended = registry.dispose();
    await settle();
    clock.advance(30_000);
    const thrown = await assertRejects(() => ended, AggregateError);
    assertEquals(
      thrown.message,
      "Cannot dispose of the registry cleanly: " +
        'Tool "a" is not disposed of: its dispose did not end within 30000 ms',
    );
  });
});

describe("ToolRegistry.ready()", () => {
  it("runs every init that has not run, concurrently", async () => {
    const { promise, resolve } = deferred();
    const log: string[] = [];
    const registry = fakeRegistry({
      tools: ["a", "b"].map((id) => fakeTool(id, { init: () => (log.push(id), promise) })),
    });
    const ready = registry.ready();
    await settle();
    assertEquals(log, ["a", "b"]);
    resolve();
    await ready;
    registry.registerTool(fakeTool("c", { init: () => void log.push("c") }));
    await registry.ready();
    assertEquals(log, ["a", "b", "c"]);
  });

  it("reports all that failed, in order of id", async () => {
    const slow = deferred();
    const registry = fakeRegistry({
      tools: [
        fakeTool("slow", { init: () => slow.promise }),
        fakeTool("fine", { init: () => {} }),
        fakeTool("bad", { init: () => Promise.reject("no reason") }),
      ],
      config: { absent: {} },
    });
    const ready = registry.ready();
    await settle();
    slow.reject(new Error("No"));
    const thrown = await assertRejects(() => ready, AggregateError);
    assertEquals(thrown.errors.map((error: Error) => error.message), [
      'Tool "bad" is not ready: its init failed',
      'Tool "slow" is not ready: its init failed',
      'Cannot configure tool "absent": the tool is not registered',
    ]);
    assertEquals(
      thrown.message,
      'Cannot make the registry ready: Tool "bad" is not ready: its init failed, and 2 more',
    );
  });

  it("ends every call, so that dispose does not wait", async () => {
    const tool = fakeTool("a", { init: () => 1 });
    const registry = fakeRegistry({ tools: [tool] });
    await registry.ready();
    await registry.dispose();
    assertEquals(registry.count, 0);
  });
});

describe("ToolRegistry.dispose()", () => {
  it("disposes of the tools in reverse order of registration, one after another", async () => {
    const log: string[] = [];
    const { promise, resolve } = deferred();
    const registry = fakeRegistry({
      tools: [
        fakeTool("b", { dispose: () => void log.push("b") }),
        fakeTool("a", { dispose: () => void log.push("a") }),
        fakeTool("c", {
          dispose: async () => {
            log.push("c begins");
            await promise;
            log.push("c ends");
          },
        }),
      ],
    });
    // An updated tool keeps its position in the order.
    registry.updateTool(fakeTool("b", { dispose: () => void log.push("new b") }));
    await settle();
    const ended = registry.dispose();
    await settle();
    assertEquals(log, ["b", "c begins"]);
    resolve();
    await ended;
    assertEquals(log, ["b", "c begins", "c ends", "a", "new b"]);
  });

  it("rejects new calls immediately, and waits for running calls", async () => {
    const log: string[] = [];
    const tool = fakeTool("a", { dispose: () => void log.push("disposed") });
    const registry = fakeRegistry({ tools: [tool] });
    const runtime = await registry.acquire(tool);
    const ended = registry.dispose().then(() => log.push("ended"));
    assertThrows(() => registry.acquire(tool), ToolLifecycleError, "not registered");
    await settle();
    assertEquals(log, []);
    registry.release(runtime);
    await ended;
    assertEquals(log, ["disposed", "ended"]);
  });

  it("waits no longer for calls once the signal aborts", async () => {
    const log: string[] = [];
    const tool = fakeTool("a", { dispose: () => void log.push("disposed") });
    const registry = fakeRegistry({ tools: [tool] });
    const runtime = await registry.acquire(tool);
    const controller = new AbortController();
    const ended = registry.dispose({ signal: controller.signal });
    await settle();
    assertEquals(log, []);
    controller.abort();
    await ended;
    assertEquals(log, ["disposed"]);
    registry.release(runtime);
    await settle();
    assertEquals(log, ["disposed"]);
  });

  it("disposes of a tool whose init ends after the timeout", async () => {
    const { registry, call, resolve, disposed } = startInit();
    await registry.dispose({ signal: AbortSignal.abort() });
    resolve("state");
    await assertRejects(async () => await call, ToolLifecycleError, 'Tool "a" is not registered');
    assertEquals(disposed, ["state"]);
  });

  it("runs once, and resolves for all callers", async () => {
    let disposed = 0;
    const registry = fakeRegistry({ tools: [fakeTool("a", { dispose: () => void disposed++ })] });
    const first = registry.dispose();
    assertStrictEquals(registry.dispose(), first);
    await first;
    await registry.dispose();
    assertEquals(disposed, 1);
  });

  it("continues after a tool that fails, and throws all errors", async () => {
    const log: string[] = [];
    const bad = (id: string) =>
      fakeTool(id, {
        dispose: () => {
          throw new Error(id);
        },
      });
    const registry = fakeRegistry({
      tools: [bad("a"), fakeTool("b", { dispose: () => void log.push("b") }), bad("c")],
    });
    const thrown = await assertRejects(() => registry.dispose(), AggregateError);
    assertEquals(thrown.errors.map((error: Error) => (error.cause as Error).message), ["c", "a"]);
    assertEquals(log, ["b"]);
  });

  it("waits for tools that were unregistered before", async () => {
    const { promise, resolve } = deferred();
    const registry = fakeRegistry({ tools: [fakeTool("a", { dispose: () => promise })] });
    registry.unregisterTool("a");
    let ended = false;
    const end = registry.dispose().then(() => ended = true);
    await settle();
    assertEquals(ended, false);
    resolve();
    await end;
    assert(ended);
  });

  it("empties the registry, which then rejects tools", async () => {
    const registry = fakeRegistry({ tools: [fakeTool("a"), fakeTool("b")] });
    const toolset = registry.select();
    await registry.dispose();
    assertEquals([registry.count, registry.tools, registry.revision], [0, [], 4]);
    assertEquals(registry.getAvailableTools(), []);
    assertEquals(toolset.isAvailable(fakeTool("a")), false);
    assertThrows(
      () => registry.registerTool(fakeTool("c")),
      TypeError,
      'Cannot register tool "c": the registry is disposed of',
    );
    assertEquals(registry.count, 0);
  });

  it("runs at the end of await using", async () => {
    let disposed = false;
    {
      await using registry = fakeRegistry({
        tools: [fakeTool("a", { dispose: () => void (disposed = true) })],
      });
      assertEquals(registry.count, 1);
    }
    assert(disposed);
  });
});
