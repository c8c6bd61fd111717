import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { FrameError, REQUEST, YIELD } from "../../../src/adapters/native/frames.ts";
import { STATUS } from "../../../src/adapters/native/replies.ts";
import { memoryCallStore, storedTickets } from "../../../src/execute/durable/mod.ts";
import { ToolDispatcher } from "../../../src/execute/mod.ts";
import type { ToolContext } from "../../../src/tool/mod.ts";
import { fakeRegistry, fakeTool } from "../registry/fakes.ts";
import {
  call,
  FakeHost,
  frame,
  registration,
  settle,
  strings,
  toolsOfRegistry,
  yielded,
} from "./fakes.ts";

const ADD = {
  name: "host:add",
  description: "Adds two numbers.",
  parameters: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
};
const ANY = { name: "any", description: "Takes anything.", parameters: { type: "object" } };

async function hostOf() {
  const registry = fakeRegistry({ tools: [fakeTool("own", { execute: () => 1 })] });
  const native = toolsOfRegistry(registry);
  const host = new FakeHost({ load: () => native });
  await host.configure();
  return { host, registry };
}

describe("a tool of the host", () => {
  it("is listed before its registration is answered with its id", async () => {
    const { host, registry } = await hostOf();
    host.replies.length = 0;
    await host.register(7, 1, ADD);
    assertEquals(host.replies.map(({ type }) => type), ["tools", "result"]);
    assertEquals(host.names(), ["host:add", "own"]);
    assertEquals(host.result(7), "host:add");
    assertEquals(registry.getTool("host:add")?.description, ADD.description);
  });

  it("is called by its number, with the call that waits for it", async () => {
    const { host } = await hostOf();
    await host.register(1, 4, ADD);
    await host.execute(2, "host:add", { a: 1, b: 2 }, { session: "S" });
    const [invoke] = host.of("invoke");
    assertEquals(invoke?.value, {
      tool: 4,
      call: 2,
      params: { a: 1, b: 2 },
      session: "S",
      message: undefined,
    });
    await host.yield(invoke?.id ?? 0, YIELD.result, yielded('{"sum":3}'));
    assertEquals(host.result(2), { sum: 3 });
  });

  it("is called by an alias or through the bridge with the call that waits for it", async () => {
    const { host } = await hostOf();
    await host.register(1, 4, { ...ADD, aliases: ["plus"] });
    await host.execute(2, "plus", { a: 1, b: 2 });
    await host.configure({ bridge: true }, { id: 2 });
    await host.execute(3, "call_tool", { name: "host:add", arguments: { a: 1, b: 2 } });
    const calls = host.of("invoke").map(({ value }) => (value as { call: number }).call);
    assertEquals(calls, [2, 3]);
  });

  it("is called by others for no call of the host", async () => {
    const { host, registry } = await hostOf();
    await host.register(1, 4, ADD);
    const result = new ToolDispatcher(registry).dispatch({
      name: "host:add",
      arguments: { a: 1, b: 2 },
    });
    await settle();
    const [invoke] = host.of("invoke");
    assertEquals((invoke?.value as { call: number }).call, 0);
    await host.yield(invoke?.id ?? 0, YIELD.result, yielded("3"));
    const { ok, content } = await result as { ok: boolean; content?: unknown };
    assertEquals([ok, content], [true, 3]);
  });

  it("sends progress, metadata and output while it runs", async () => {
    const { host } = await hostOf();
    await host.register(1, 1, ANY);
    await host.execute(2, "any", {}, { metadata: true });
    const id = host.of("invoke")[0]?.id ?? 0;
    await host.yield(id, YIELD.metadata, yielded('{"m":1}'));
    await host.yield(id, YIELD.metadata, yielded("no JSON"));
    await host.yield(id, YIELD.progress, yielded("half", [0.5, 1], true));
    await host.yield(id, YIELD.progress, yielded("", [0.5, 0], true));
    await host.yield(id, YIELD.output, yielded('"part"'));
    await host.yield(id, YIELD.result, yielded("null"));
    assertEquals(host.of("metadata").map(({ value }) => value), [
      { m: 1 },
      "no JSON",
      { type: "progress", done: 0.5, total: 1, message: "half" },
      { type: "progress", done: 0.5 },
      { type: "output", value: "part" },
    ]);
    assertEquals(host.result(2), null);
  });

  it("returns blocks if it is registered with them; otherwise similar JSON is a value", async () => {
    const { host } = await hostOf();
    await host.register(1, 1, { ...ANY, blocks: true });
    await host.register(2, 2, { ...ANY, name: "value", blocks: false });
    const content = [
      { type: "text", text: "A dot." },
      { type: "audio", data: "AAAA", mimeType: "audio/wav", _meta: { kept: true } },
      { type: "resource", resource: { uri: "a:b", text: "" } },
      { type: "resource", resource: { uri: "a:b", blob: "AAAA" } },
      { type: "resource_link", uri: "a:b", name: "b" },
    ];
    const result = { content, structuredContent: 1, metadata: { file: "b" } };
    for (const [call, name, flags] of [[3, "any", 1 << 1], [4, "value", 0]] as const) {
      await host.execute(call, name, {});
      const id = host.of("invoke").at(-1)?.id ?? 0;
      await host.yield(id, YIELD.result, yielded(JSON.stringify(result)));
      assertEquals(host.of("result").at(-1), { type: "result", id: call, flags, value: result });
    }
  });

  it("receives the index of an invalid block", async () => {
    const { host } = await hostOf();
    await host.register(1, 1, { ...ANY, blocks: true });
    const image = { type: "image", data: "AAAA", mimeType: "image/png" };
    const wrong: readonly (readonly [unknown, string])[] = [
      [null, '"/content" must be a list'],
      [{ content: {} }, '"/content" must be a list'],
      [{ content: [], metadata: 1 }, '"/metadata" must be an object'],
      [{ content: [], meta: {} }, '"/meta" is not one of'],
      [{ content: [image, 1] }, '"/content/1/type" must be text or image or'],
      [{ content: [{ type: "constructor" }] }, '"/content/0/type" must be'],
      [{ content: [image, { ...image, data: 1 }] }, '"/content/1/data" must be a text'],
      [
        { content: [{ type: "resource", resource: { uri: "a:b" } }] },
        '"uri", and "text" or "blob"',
      ],
    ];
    for (const [index, [value, part]] of wrong.entries()) {
      await host.execute(10 + index, "any", {});
      const id = host.of("invoke").at(-1)?.id ?? 0;
      await host.yield(id, YIELD.result, yielded(JSON.stringify(value)));
      const { error, message } = host.failure(10 + index);
      assertEquals(error, "invalid_result");
      assertStringIncludes(message, part);
    }
    await host.execute(30, "any", {});
    const failing = host.of("invoke").at(-1)?.id ?? 0;
    await host.yield(failing, YIELD.failure, yielded("No", [STATUS.denied, 0]));
    assertEquals(host.failure(30).error, "denied");
    await host.register(31, 3, { ...ANY, name: "more", blocks: "yes" });
    assertStringIncludes(
      host.of("result").at(-1)?.message ?? "",
      '"/blocks" must be true or false',
    );
  });

  it("receives the abort of its call with the reason", async () => {
    const { host } = await hostOf();
    await host.register(1, 1, ANY);
    await host.execute(2, "any", {});
    const id = host.of("invoke")[0]?.id ?? 0;
    await host.abort(2, "enough");
    assertEquals(host.of("cancel").map(({ id, value }) => [id, value]), [[id, "enough"]]);
    await host.yield(id, YIELD.result, yielded("1"));
    // Frames after the end are ignored.
    await host.yield(id, YIELD.result, yielded("2"));
    assertEquals(host.failure(2).error, "aborted");
  });

  it("may be registered before the tools are loaded, and again", async () => {
    const native = toolsOfRegistry(fakeRegistry({ tools: [fakeTool("own")] }));
    const host = new FakeHost({ load: () => Promise.resolve(native) });
    await host.register(0, 1, ADD, 0);
    await host.register(0, 2, { ...ANY, name: "own" }, 0);
    await host.register(0, 3, "{", 0);
    await host.configure();
    assertEquals(host.names(), ["host:add", "own"]);
    const logged = host.of("log").map(({ value }) => String(value));
    assertStringIncludes(logged[0] ?? "", "not JSON");
    assertStringIncludes(logged[1] ?? "", "own");
    await host.register(9, 1, ADD);
    assertEquals(host.result(9), "host:add");
  });

  it("is removed when it is unregistered, or its host disconnects", async () => {
    const { host, registry } = await hostOf();
    await host.register(1, 1, ADD);
    await host.register(2, 2, ANY);
    host.bridge.receive(frame(REQUEST.unregister, 0, 3, registration(1, "").subarray(0, 8)));
    await settle();
    assertEquals([host.result(3), host.names()], [null, ["any", "own"]]);
    await host.execute(4, "any", {});
    host.bridge.close("gone");
    await settle();
    assertEquals(registry.tools.map(({ id }) => id), ["own"]);
    assertEquals(host.failure(4).error, "aborted");
  });

  it("is not read from a truncated frame", async () => {
    const { host } = await hostOf();
    for (const type of [REQUEST.register, REQUEST.unregister, REQUEST.yield]) {
      assertThrows(() => host.bridge.receive(frame(type, 0, 1, new Uint8Array(7))), FrameError);
    }
    const short = new Uint8Array([...strings("x")].slice(0, 4));
    assertThrows(() => host.bridge.receive(frame(REQUEST.yield, 0, 1, short)), FrameError);
  });
});

describe("a question of a call", () => {
  const confirm = fakeTool("confirm", {
    execute: async (_params: unknown, context: ToolContext<never, never>) =>
      (await context.ask("sure", { kind: "approval", message: "Really?" })).action,
  });
  const ANSWERS = 2;
  const RESUME = 1 << 2;

  async function asking(flags: number) {
    const registry = fakeRegistry({ tools: [confirm] });
    const tickets = storedTickets(memoryCallStore());
    const native = toolsOfRegistry(registry, { dispatch: { tickets } });
    const host = new FakeHost({ load: () => native });
    await host.configure();
    host.bridge.receive(frame(REQUEST.execute, flags, 1, call(0, "confirm", "{}", "S", undefined)));
    await settle();
    return host;
  }

  it("is sent to the host that answers questions, as a call of its function 0", async () => {
    const host = await asking(ANSWERS);
    const [invocation] = host.of("invoke");
    const { params, ...rest } = invocation?.value as { params: Record<string, unknown> };
    assertEquals(rest, { tool: 0, call: 1, session: undefined, message: undefined });
    assertEquals([params["key"], params["kind"], params["message"], params["tool"]], [
      "sure",
      "approval",
      "Really?",
      "confirm",
    ]);
    await host.yield(invocation?.id ?? 0, YIELD.result, yielded('{"action":"decline"}'));
    assertEquals(host.result(1), "decline");
  });

  it("is not answered by a value that is not an object", async () => {
    const host = await asking(0);
    for (const [index, answers] of ["[", "[]", "1"].entries()) {
      const resume = call(0, "secret", answers, undefined, undefined);
      host.bridge.receive(frame(REQUEST.execute, RESUME | 1, 10 + index, resume));
      await settle();
      const { error } = host.result(10 + index) as { readonly error: string };
      assertEquals(error, "invalid_argument");
    }
    assertEquals(JSON.stringify(host.replies).includes("secret"), false);
  });
});

describe("a task", () => {
  it("needs a store of tasks", async () => {
    const { host } = await hostOf();
    const START = 2 << 2;
    host.bridge.receive(
      frame(REQUEST.execute, START, 1, call(0, "own", "{}", undefined, undefined)),
    );
    await settle();
    const { error, message } = host.failure(1);
    assertEquals(error, "invalid_argument");
    assertStringIncludes(message, "`tasks`");
  });
});
