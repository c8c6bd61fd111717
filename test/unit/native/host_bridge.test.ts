import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { FrameError, OPERATION_SHIFT, REQUEST } from "../../../src/adapters/native/frames.ts";
import { OPERATION } from "../../../src/adapters/native/host_tools.ts";
import { callTasks, memoryCallStore } from "../../../src/execute/durable/mod.ts";
import { type ToolContext, ToolResult } from "../../../src/tool/mod.ts";
import { FakeClock } from "../execute/support.ts";
import { fakeRegistry, fakeTool } from "../registry/fakes.ts";
import { call, FakeHost, frame, join, settle, strings, toolsOfRegistry } from "./fakes.ts";

const anything = { type: "object" } as const;
const echo = fakeTool("echo", { parameters: anything, execute: (params: unknown) => params });

/** A tool that runs until the test ends it. */
function held(id: string) {
  let end: (value: unknown) => void = () => {};
  let context: ToolContext<never, never> | undefined;
  const tool = fakeTool(id, {
    parameters: anything,
    execute: (_params: unknown, own: ToolContext<never, never>) => {
      context = own;
      return new Promise((resolve) => end = resolve);
    },
  });
  return { tool, end: (value: unknown) => end(value), context: () => context };
}

function hostOf(
  tools: Parameters<typeof fakeRegistry>[0],
  options: Parameters<typeof toolsOfRegistry>[1] = {},
) {
  const registry = fakeRegistry(tools);
  const native = toolsOfRegistry(registry, options);
  return { registry, host: new FakeHost({ load: () => native }) };
}

/** A host that is configured with the defaults. */
async function configured(...args: Parameters<typeof hostOf>): Promise<ReturnType<typeof hostOf>> {
  const made = hostOf(...args);
  await made.host.configure();
  return made;
}

/** A process that has started a job and died, and the tasks of its successor. */
function deadProcess() {
  const store = memoryCallStore();
  const job = fakeTool("job", { idempotent: true, execute: () => new Promise(() => {}) });
  const still = new FakeClock();
  const dead = callTasks({ store, clock: still });
  const { dispatcher } = toolsOfRegistry(fakeRegistry({ tools: [job] }));
  const clock = new FakeClock();
  clock.advance(still.timestamp() + 30_001 - clock.timestamp());
  const tasks = callTasks({ store, clock });
  return { job, clock, tasks, start: () => dead.start(dispatcher, { name: "job" }) };
}

describe("HostBridge, when it is configured", () => {
  it("sends the tools, then hello, both with the configuration's id", async () => {
    const { host } = hostOf({ tools: [echo] });
    await host.configure(undefined, { id: 9 });
    assertEquals(host.replies.map(({ type, id }) => [type, id]), [["tools", 9], ["hello", 9]]);
    assertEquals(host.of("hello")[0]?.value, { protocol: 2, runtime: "fake 1.0" });
    assertEquals(host.of("hello")[0]?.flags, 2);
    assertEquals(host.sent, 1);
  });

  it("lists the tools that the configuration selects, and calls no others", async () => {
    const { host } = hostOf({
      tools: [echo, fakeTool("rm", { risk: "high", execute: () => "gone" })],
    });
    await host.configure({ maxRisk: "medium" });
    assertEquals(host.names(), ["echo"]);
    await host.execute(1, "rm");
    assertEquals(host.result(1), {
      error: "unknown_tool",
      message: 'Cannot call "rm": there is no such tool',
    });
  });

  it("narrows the host's tools, and never widens them", async () => {
    const tools = ["a", "b", "c"].map((id) => fakeTool(id));
    const { host } = hostOf({ tools }, { selection: { denyIds: ["a"] } });
    await host.configure({ allowIds: ["a", "b"] });
    assertEquals(host.names(), ["b"]);
  });

  it("configures the tools, and undoes that with the next configuration", async () => {
    const tool = fakeTool("greet", {
      config: anything,
      execute: (_params: unknown, { config }: { readonly config: unknown }) => config,
    });
    const { host } = hostOf({ tools: [tool], config: { greet: { word: "hello" } } });
    await host.configure({ config: { greet: { word: "ciao" } } });
    await host.execute(1, "greet");
    assertEquals(host.result(1), { word: "ciao" });
    await host.configure({}, { id: 2 });
    await host.execute(2, "greet");
    assertEquals(host.result(2), { word: "hello" });
  });

  it("resumes tasks of processes that died, immediately and then at intervals", async () => {
    const { start, tasks, clock } = deadProcess();
    await start();
    let ran = 0;
    const done = fakeTool("job", { idempotent: true, execute: () => `${++ran}` });
    const native = { ...toolsOfRegistry(fakeRegistry({ tools: [done] })), tasks };
    const host = new FakeHost({ load: () => native });
    await host.configure();
    const ended = async (): Promise<unknown> => {
      const [task] = (await tasks.list()).tasks;
      for await (const { status } of tasks.follow(task?.id ?? "")) {
        if (status === "completed") return ran;
      }
    };
    assertEquals(await ended(), 1);
    await start();
    clock.advance(30_001);
    for (const tick of host.ticks) tick();
    assertEquals(await ended(), 2);
  });

  it("resumes no task of a tool that the module does not offer", async () => {
    const { job, start, tasks } = deadProcess();
    const started = await start();
    const options = { selection: { denyIds: ["job"] } };
    const native = { ...toolsOfRegistry(fakeRegistry({ tools: [job] }), options), tasks };
    await new FakeHost({ load: () => native }).configure();
    for await (const { result } of tasks.follow("id" in started ? started.id : "")) {
      if (result !== undefined) assertEquals(result.ok || result.error.code, "unknown_tool");
    }
  });

  it("answers every operation on a task when the store fails or does not answer", async () => {
    const errors = [new Error("the store is down"), { message: Symbol() }, Object.create(null)];
    const down = () => Promise.reject(errors.shift());
    const own = { get: down, cancel: down, answer: down, start: () => new Promise(() => {}) };
    const tasks = Object.assign(deadProcess().tasks, own);
    const native = { ...toolsOfRegistry(fakeRegistry({ tools: [echo] })), tasks };
    const host = new FakeHost({ load: () => native });
    await host.configure();
    const { pollTask, cancelTask, answerTask, startTask } = OPERATION;
    for (const operation of [pollTask, cancelTask, answerTask, startTask]) {
      const flags = operation << OPERATION_SHIFT;
      host.bridge.receive(frame(REQUEST.execute, flags, operation, call(7, "task", "{}", "", "")));
      await settle();
      for (const tick of host.ticks) tick();
      await settle();
      assertEquals(host.failure(operation).error, "unavailable");
    }
    assertEquals(host.bridge.running, 0);
    const unread = Array(2).fill("an object without a message");
    const reasons = ["the store is down", ...unread, "no answer in time"];
    assertEquals(
      host.of("log").map(({ value }) => value),
      reasons.map((reason) => `Cannot use the store of tasks: ${reason}`),
    );
  });

  it("reports the problem, and fails the following calls", async () => {
    const { host } = hostOf({ tools: [echo] });
    for (
      const [config, why] of [
        ["{", "Cannot read config_json: it is not JSON"],
        [{ colour: 1 }, '"/colour" is not one of its fields'],
        [{ maxRisk: "huge" }, 'Cannot use config_json: "/maxRisk" must be one of safe, low'],
        [{ role: 1 }, 'Cannot use config_json: "/role" must be a string'],
        [{ context: { x: 1 } }, 'Cannot use config_json: "/context" is invalid'],
        [{ config: { rm: {} } }, 'Cannot use config_json: tool "rm": the tool is not registered'],
        [
          { config: { echo: {} } },
          'Cannot use config_json: tool "echo": the tool declares no config',
        ],
      ] as const
    ) {
      host.replies.length = 0;
      await host.configure(config, { id: 3 });
      assertEquals(host.replies.map(({ type, id, flags }) => [type, id, flags]), [[
        "failed",
        3,
        1,
      ]]);
      assertStringIncludes(String(host.replies[0]?.value), why);
      await host.execute(1, "echo");
      assertEquals(host.of("result")[0]?.message, host.replies[0]?.value);
      assertEquals(host.failure(1).error, "invalid_argument");
    }
  });

  it("rejects another version of the protocol, without blaming the configuration", async () => {
    const { host } = hostOf({ tools: [echo] });
    await host.configure({}, { version: 1 });
    assertEquals(host.of("failed").map(({ flags }) => flags), [0]);
    assertStringIncludes(String(host.of("failed")[0]?.value), "version 1");
    await host.execute(1, "echo");
    assertEquals(host.failure(1).error, "runtime_unavailable");
  });

  it("waits until tools are loaded, and then runs the calls that arrived meanwhile", async () => {
    const native = toolsOfRegistry(fakeRegistry({ tools: [echo] }));
    let loaded = (_tools: typeof native): void => {};
    const modules: unknown[] = [];
    const host = new FakeHost({
      load: (module) => {
        modules.push(module);
        return new Promise((resolve) => loaded = resolve);
      },
    });
    await host.configure({}, { module: "./tools.ts" });
    await host.execute(1, "echo", { a: 1 });
    assertEquals([modules, host.replies], [["./tools.ts"], []]);
    loaded(native);
    await settle();
    assertEquals(host.replies.map(({ type }) => type), ["tools", "hello", "result"]);
    assertEquals(host.result(1), { a: 1 });
  });

  it("reports why tools could not be loaded, then ends, and fails the calls", async () => {
    const events: string[] = [];
    const host = new FakeHost({
      load: () => Promise.reject(new Error("no such module")),
      onFailed: () => events.push(...host.replies.map(({ type }) => type), "onFailed"),
    });
    host.bridge.receive(join(
      frame(REQUEST.configure, 2, 1, strings("x", undefined)),
      frame(REQUEST.execute, 0, 1, call(0, "echo", undefined, undefined, undefined)),
    ));
    await settle();
    assertEquals(events, ["failed", "onFailed"]);
    assertEquals(host.of("failed")[0]?.value, "no such module");
    assertEquals(host.result(1), { error: "runtime_unavailable", message: "no such module" });
  });

  it("releases a configuration that was replaced while its tools were loaded", async () => {
    const registry = fakeRegistry({ tools: [echo] });
    const native = toolsOfRegistry(registry);
    const loads: ((tools: typeof native) => void)[] = [];
    const host = new FakeHost({ load: () => new Promise((resolve) => loads.push(resolve)) });
    await host.configure({}, { id: 1 });
    await host.configure({ allowIds: [] }, { id: 2 });
    for (const load of loads) load(native);
    await settle();
    assertEquals(host.replies.map(({ type, id }) => [type, id]), [["tools", 2], ["hello", 2]]);
    registry.registerTool(fakeTool("new"));
    await settle();
    assertEquals(host.names(), []);
  });

  it("rejects calls before it is ready", async () => {
    const { host } = hostOf({ tools: [echo] });
    await host.execute(1, "echo");
    assertEquals(host.failure(1).error, "runtime_unavailable");
  });
});

describe("HostBridge, for a call", () => {
  it("sends the tool's result, with the call's id", async () => {
    const { host } = await configured({ tools: [echo] });
    await host.execute(2 ** 33 + 1, "echo", '{"a":[1,"é\\u0000"]}');
    assertEquals(host.result(2 ** 33 + 1), { a: [1, "é\0"] });
    assertEquals(host.of("result")[0]?.flags, 0);
  });

  it("reads NULL and an empty string as no parameters, and sends null for no result", async () => {
    const received: unknown[] = [];
    const tool = fakeTool("a", { execute: (params: unknown) => void received.push(params) });
    const { host } = await configured({ tools: [tool] });
    await host.execute(1, "a");
    await host.execute(2, "a", "");
    assertEquals(received, [{}, {}]);
    assertEquals([host.result(1), host.result(2)], [null, null]);
  });

  it("sends a failure as JSON and its message as text, with all issues", async () => {
    const picky = fakeTool("picky", {
      parameters: { type: "object", required: ["path"] },
      execute: () => 1,
    });
    const { host } = await configured({ tools: [picky] });
    await host.execute(1, "picky", "{}");
    const [reply] = host.of("result");
    const { error, message, issues } = reply?.value as Record<string, unknown>;
    assertEquals([error, (issues as unknown[]).length, reply?.flags], [
      "invalid_arguments",
      1,
      1 | 5 << 1,
    ]);
    assertEquals(reply?.message, message);
  });

  it("sends flags of a result with its JSON", async () => {
    const content = [{ type: "text", text: "long" }] as const;
    const tools = [
      fakeTool("blocks", { execute: () => ToolResult.blocks(content) }),
      fakeTool("look_alike", { execute: () => ({ content, blocks: true, truncated: true }) }),
      fakeTool("long", { execute: () => "x".repeat(500), outputOverflow: "truncate" }),
    ];
    const { host } = await configured({ tools }, { dispatch: { maxOutputBytes: 300 } });
    for (const [index, { id }] of tools.entries()) await host.execute(index, id);
    assertEquals(host.of("result").map(({ flags }) => flags), [1 << 1, 0, 2 << 1]);
    assertEquals(host.result(0), { content });
  });

  it("reports repairs of arguments, even for a failed call", async () => {
    const picky = (id: string, execute: () => unknown) =>
      fakeTool(id, { parameters: { type: "object", required: ["path"] }, execute });
    const denied = (): ToolResult => ToolResult.error("denied", "No");
    const tools = [picky("good", () => 1), picky("bad", denied)];
    const repaired = [{ path: "/path", message: "it was missing" }];
    const repair = () => ({ arguments: { path: "." }, repairs: repaired });
    const { host } = await configured({ tools }, { dispatch: { repair } });
    await host.execute(1, "good", {}, { metadata: true });
    await host.execute(2, "good", {});
    await host.execute(3, "bad", {});
    assertEquals(host.of("metadata").map(({ id, value }) => [id, value]), [
      [1, { type: "repaired", repaired }],
    ]);
    assertEquals(host.of("result").map(({ flags }) => flags), [8 << 1, 8 << 1, 1 | 3 << 1]);
    assertEquals(host.result(3), { error: "denied", message: "No", repaired });
  });

  it("removes a NUL from the text", async () => {
    const tool = fakeTool("a", {
      execute: () => {
        throw new Error("a\0b");
      },
    });
    const { host } = await configured({ tools: [tool] });
    await host.execute(1, "a");
    assertEquals(host.of("result")[0]?.message?.includes("\0"), false);
    assertStringIncludes(host.failure(1).message, "a\0b");
  });

  it("sends all events before the result, in order, to a caller with a callback", async () => {
    const tool = fakeTool("a", {
      async *execute(_params: unknown, { metadata, progress }: ToolContext) {
        metadata({ step: 1 });
        progress(1, 2, "half");
        yield "piece";
        metadata(null);
        return "done";
      },
    });
    const { host } = await configured({ tools: [tool] });
    host.replies.length = 0;
    await host.execute(1, "a", undefined, { metadata: true });
    assertEquals(host.replies.map(({ type, value }) => [type, value]), [
      ["metadata", { step: 1 }],
      ["metadata", { type: "progress", done: 1, total: 2, message: "half" }],
      ["metadata", { type: "output", value: "piece" }],
      ["metadata", null],
      ["result", "done"],
    ]);
  });

  it("sends a failure to a caller with a callback once, even without a dispatcher", async () => {
    const tool = fakeTool("chain:fails", {
      execute: () => {
        throw new Error("the disk is full");
      },
    });
    const { host } = await configured({ tools: [tool] });
    await host.execute(1, "chain:fails", undefined, { metadata: true });
    await host.configure("{", { id: 2 });
    await host.execute(2, "echo", undefined, { metadata: true });
    await host.execute(3, "echo");
    const events = host.of("metadata").map(({ id, value }) => {
      const { type, tool: name, error } = value as Record<string, unknown>;
      return [id, type, name, error];
    });
    assertEquals(events, [
      [1, "error", "chain:fails", "threw"],
      [2, "error", "echo", "invalid_argument"],
    ]);
    assertEquals(host.replies.map(({ type }) => type).slice(-3), ["metadata", "result", "result"]);
  });

  it("sends no event to a caller without a callback", async () => {
    const tool = fakeTool("a", {
      execute: (_params: unknown, { metadata, progress }: ToolContext) => {
        metadata(1);
        progress(1);
      },
    });
    const { host } = await configured({ tools: [tool] });
    await host.execute(1, "a");
    assertEquals(host.of("metadata"), []);
  });

  it("sends events while the tool still runs", async () => {
    const { tool, context, end } = held("a");
    const { host } = await configured({ tools: [tool] });
    await host.execute(1, "a", undefined, { metadata: true });
    context()?.metadata("now");
    await settle();
    assertEquals(host.of("metadata").map(({ value }) => value), ["now"]);
    assertEquals(host.of("result"), []);
    end(null);
    await settle();
    assertEquals(host.of("result").length, 1);
  });

  it("sends the output of a synchronous tool before it becomes too large", async () => {
    const tool = fakeTool("a", {
      execute: (_params: unknown, { metadata }: ToolContext) => {
        for (let n = 0; n < 100; n++) metadata("x".repeat(10_000));
        return host.of("metadata").length;
      },
    });
    const { host } = await configured({ tools: [tool] });
    await host.execute(1, "a", undefined, { metadata: true });
    assertEquals(Number(host.result(1)) > 50, true);
    assertEquals(host.of("metadata").length, 100);
  });

  it("runs many concurrently, and sends the results of one turn together", async () => {
    const { host } = await configured({ tools: [echo] });
    host.sent = 0;
    host.bridge.receive(
      join(
        ...[1, 2, 3].map((id) =>
          frame(REQUEST.execute, 0, id, call(0, "echo", `{"id":${id}}`, undefined, undefined))
        ),
      ),
    );
    await settle();
    assertEquals([1, 2, 3].map((id) => host.result(id)), [{ id: 1 }, { id: 2 }, { id: 3 }]);
    assertEquals(host.sent, 1);
  });
});

describe("HostBridge, for an abort", () => {
  it("aborts that call's signal with the reason, which is also in the failure and its event", async () => {
    const [a, b] = [held("a"), held("b")];
    const { host } = await configured({ tools: [a.tool, b.tool] });
    await host.execute(1, "a", {}, { metadata: true });
    await host.execute(2, "b");
    const signal = a.context()?.signal;
    const other = b.context()?.signal;
    await host.abort(1, "user pressed stop");
    assertEquals((signal?.reason as DOMException).name, "AbortError");
    assertEquals((signal?.reason as DOMException).message, "user pressed stop");
    assertEquals(other?.aborted, false);
    a.end(null);
    b.end(null);
    await settle();
    const { error, message } = host.failure(1);
    assertEquals(error, "aborted");
    assertStringIncludes(message, ": user pressed stop");
    assertEquals(host.of("metadata").map(({ value }) => value), [
      { type: "error", tool: "a", error, message },
    ]);
    assertEquals(host.result(2), null);
    assertEquals(host.of("result").length, 2);
  });

  it("aborts the running calls that carry an abort signal, and no other", async () => {
    const [a, b, c] = [held("a"), held("b"), held("c")];
    const { host } = await configured({ tools: [a.tool, b.tool, c.tool, echo] });
    await host.execute(1, "a", {}, { signal: 7 });
    await host.execute(2, "b", {}, { signal: 7 });
    await host.execute(3, "c", {}, { signal: 8 });
    await host.execute(4, "echo", {}, { signal: 7 });
    await host.abortSignal(7, "window closed");
    await host.abortSignal(7, "twice");
    await host.abortSignal(9, "of no call");
    const signals = [a, b, c].map(({ context }) => context()?.signal);
    assertEquals(signals.map((signal) => signal?.aborted), [true, true, false]);
    assertEquals((signals[1]?.reason as DOMException).message, "window closed");
    for (const { end } of [a, b, c]) end(null);
    await settle();
    assertStringIncludes(host.failure(2).message, ": window closed");
    assertEquals([host.result(3), host.result(4)], [null, {}]);
    // A later call with the same signal id is another call.
    await host.execute(5, "a", {}, { signal: 7 });
    assertEquals(a.context()?.signal.aborted, false);
    a.end(null);
    await settle();
    assertEquals(host.bridge.running, 0);
  });

  it("works without a reason, and ignores a completed call", async () => {
    const { tool, end } = held("a");
    const { host } = await configured({ tools: [tool] });
    await host.execute(1, "a");
    await host.abort(1, "");
    end(null);
    await settle();
    await host.abort(1, "late");
    await host.abort(77, "never was");
    const { message } = host.failure(1);
    assertEquals(message.endsWith("while it was running"), true);
    assertEquals(host.of("result").length, 1);
  });

  it("does not abort a later call", async () => {
    const [a, b] = [held("a"), held("b")];
    const { host } = await configured({ tools: [a.tool, b.tool, echo] });
    await host.execute(1, "a");
    await host.abort(1, "stop");
    await host.execute(2, "echo", {});
    await host.execute(3, "b");
    await host.abort(2, "too late");
    assertEquals(b.context()?.signal.aborted, false);
    await host.abort(3, "now");
    assertEquals((b.context()?.signal.reason as DOMException).message, "now");
    a.end(null);
    b.end(null);
    await settle();
    assertEquals(host.bridge.running, 0);
  });

  it("aborts everything when the host shuts down, and can be configured again", async () => {
    let shutdowns = 0;
    const { tool, context, end } = held("a");
    const native = toolsOfRegistry(fakeRegistry({ tools: [tool] }));
    const host = new FakeHost({ load: () => native, onShutdown: () => shutdowns++ });
    await host.configure();
    await host.execute(1, "a");
    const signal = context()?.signal;
    host.bridge.receive(frame(REQUEST.shutdown, 0, 0));
    assertEquals([signal?.aborted, shutdowns], [true, 1]);
    end(null);
    await host.configure(undefined, { id: 2 });
    assertEquals(host.of("hello").map(({ id }) => id), [1, 2]);
  });
});

describe("HostBridge, as its registry changes", () => {
  it("sends the new list, once for many changes", async () => {
    const { host, registry } = hostOf({ tools: [echo] });
    await host.configure(undefined, { id: 5 });
    registry.registerTool(fakeTool("a"));
    registry.registerTool(fakeTool("b"));
    registry.unregisterTool("echo");
    await settle();
    assertEquals(host.names(), ["a", "b"]);
    assertEquals(host.of("tools").map(({ id }) => id), [5, 5]);
  });

  it("calls tools that were registered later, and no removed tools", async () => {
    const { host, registry } = await configured({ tools: [echo] });
    registry.registerTool(fakeTool("late", { execute: () => "here" }));
    registry.unregisterTool("echo");
    await host.execute(1, "late");
    await host.execute(2, "echo");
    assertEquals(host.result(1), "here");
    assertEquals(host.failure(2).error, "unknown_tool");
  });

  it("sends the list that a tool changed before the tool's result", async () => {
    const { host, registry } = await configured({
      tools: [fakeTool("grow", { execute: () => void registry.registerTool(fakeTool("new")) })],
    });
    host.replies.length = 0;
    await host.execute(1, "grow");
    assertEquals(host.replies.map(({ type }) => type), ["tools", "result"]);
  });

  it("does not send an unchanged list", async () => {
    const { host, registry } = hostOf({ tools: [echo] });
    await host.configure({ allowIds: ["echo"] });
    host.bridge.refresh();
    registry.registerTool(fakeTool("other"));
    registry.unregisterTool("other");
    await settle();
    assertEquals(host.names(), ["echo"]);
    assertEquals(host.of("tools").length <= 2, true);
  });

  it("calls availability functions at intervals, only if there are any", async () => {
    let isThere = false;
    const { host, registry } = await configured({ tools: [echo] });
    assertEquals(host.ticks.size, 0);
    registry.registerTool(fakeTool("maybe", { isAvailable: () => isThere }));
    await settle();
    assertEquals([host.names(), host.ticks.size], [["echo"], 1]);
    isThere = true;
    for (const tick of host.ticks) tick();
    await settle();
    assertEquals(host.names(), ["echo", "maybe"]);
    registry.unregisterTool("maybe");
    await settle();
    assertEquals(host.ticks.size, 0);
  });

  it("notifies the host immediately when the registry is refreshed", async () => {
    let isThere = false;
    const { host, registry } = await configured({
      tools: [echo, fakeTool("maybe", { isAvailable: () => isThere })],
    });
    assertEquals(host.names(), ["echo"]);
    isThere = true;
    registry.refresh();
    await settle();
    assertEquals(host.names(), ["echo", "maybe"]);
  });

  it("calls them again after a call, but not after each of many", async () => {
    let count = 0;
    let isThere = false;
    const { host } = hostOf({
      tools: [
        fakeTool("appear", { execute: () => void (isThere = true) }),
        fakeTool("maybe", {
          isAvailable: () => {
            count++;
            return isThere;
          },
        }),
      ],
    });
    await host.configure();
    host.time = 1_000;
    await host.execute(1, "appear");
    assertEquals(host.names(), ["appear", "maybe"]);
    assertEquals(host.replies.map(({ type }) => type).slice(-2), ["tools", "result"]);
    const before = count;
    for (let id = 2; id < 20; id++) await host.execute(id, "appear");
    assertEquals(count, before);
  });
});

describe("HostBridge", () => {
  it("returns a ping with its id", async () => {
    const { host } = hostOf({ tools: [] });
    host.bridge.receive(frame(REQUEST.ping, 0, 31));
    await settle();
    assertEquals(host.of("pong").map(({ id }) => id), [31]);
  });

  it("rejects an unknown frame", () => {
    const { host } = hostOf({ tools: [] });
    assertThrows(() => host.bridge.receive(frame(15, 0, 0)), FrameError, "there is no type 15");
  });

  it("returns the number of bytes in complete frames", () => {
    const { host } = hostOf({ tools: [] });
    const ping = frame(REQUEST.ping, 0, 1);
    assertEquals(host.bridge.receive(join(ping, ping.subarray(0, 5))), 16);
  });

  it("does not begin with tools that were loaded after it was closed", async () => {
    const registry = fakeRegistry({ tools: [echo] });
    let loaded = (_tools: ReturnType<typeof toolsOfRegistry>): void => {};
    const host = new FakeHost({ load: () => new Promise((resolve) => loaded = resolve) });
    await host.configure();
    host.bridge.close("the end");
    loaded(toolsOfRegistry(registry));
    await settle();
    registry.registerTool(fakeTool("new"));
    await settle();
    assertEquals(host.replies, []);
  });

  it("releases everything when it is closed", async () => {
    const { tool, context } = held("a");
    const maybe = fakeTool("maybe", { isAvailable: () => true });
    const { host, registry } = await configured({ tools: [tool, maybe] });
    await host.execute(1, "a");
    const signal = context()?.signal;
    host.bridge.close("the end");
    assertEquals((signal?.reason as DOMException).message, "the end");
    assertEquals(host.ticks.size, 0);
    host.replies.length = 0;
    registry.registerTool(fakeTool("new"));
    await settle();
    assertEquals(host.of("tools"), []);
  });
});

describe("HostBridge, with a bridge in the configuration", () => {
  const rm = fakeTool("rm", { risk: "high", execute: () => "gone" });

  it("lists the bridge's tools, and forwards calls to the tools that the host selects", async () => {
    const { host } = hostOf({ tools: [echo, rm] });
    await host.configure({ bridge: true, maxRisk: "medium" });
    assertEquals(host.names(), ["call_tool", "describe_tools", "search_tools"]);
    await host.execute(1, "call_tool", { name: "echo", arguments: { a: 1 } });
    assertEquals(host.result(1), { a: 1 });
    await host.execute(2, "call_tool", { name: "rm" });
    assertEquals(host.result(2), {
      error: "unknown_tool",
      message: 'Cannot call "rm": there is no such tool',
    });
    await host.execute(3, "search_tools", { query: "echo" });
    assertEquals(host.result(3), { tools: ["echo(object): The tool echo."] });
  });

  it("applies the bridge's options, and follows the registry", async () => {
    const { host, registry } = hostOf({ tools: [echo] });
    await host.configure({ bridge: { pinned: ["rm"] } });
    assertEquals(host.names().includes("rm"), false);
    registry.registerTool(rm);
    await host.execute(1, "call_tool", { name: "rm" });
    assertEquals(host.result(1), "gone");
    assertEquals(host.names().includes("rm"), true);
  });

  it("reports invalid options", async () => {
    const { host } = hostOf({ tools: [echo] });
    await host.configure({ bridge: { limit: 0 } });
    assertStringIncludes(
      String(host.of("failed").at(-1)?.value),
      'Cannot use config_json: "/limit" must be a whole number from 1 to 50',
    );
  });
});
