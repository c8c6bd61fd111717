import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { fakeRegistry, fakeTool } from "./fakes.ts";

const needsRoot = { type: "object", required: ["root"] };

/** A tool with a configuration whose fields are all optional. */
function configurable(id: string, events: string[] = []) {
  return fakeTool(id, {
    config: { type: "object" },
    init: ({ config }) => {
      const state = JSON.stringify(config);
      events.push(`init ${state}`);
      return state;
    },
    dispose: (state: string) => void events.push(`dispose ${state}`),
  });
}

describe("ToolRegistry.updateTool() with a configuration", () => {
  it("passes the new configuration to the next call", async () => {
    const tool = configurable("a");
    const registry = fakeRegistry({ tools: [tool], config: { a: { root: "/old" } } });
    registry.updateTool(tool, { config: { root: "/new" } });
    const runtime = await registry.acquire(tool);
    assertEquals(runtime.config, { root: "/new" });
    assertEquals(runtime.state, '{"root":"/new"}');
  });

  it("keeps the old state for calls in flight, and disposes of it at their end", async () => {
    const events: string[] = [];
    const tool = configurable("a", events);
    const registry = fakeRegistry({ tools: [tool], config: { a: { root: "/old" } } });
    const running = await registry.acquire(tool);
    registry.updateTool(tool, { config: { root: "/new" } });
    const next = await registry.acquire(tool);
    assertEquals(running.config, { root: "/old" });
    assertEquals(events, ['init {"root":"/old"}', 'init {"root":"/new"}']);
    registry.release(running);
    registry.release(next);
    await registry.dispose();
    assertEquals(events.slice(2), ['dispose {"root":"/old"}', 'dispose {"root":"/new"}']);
  });

  it("can restore the old configuration, which getConfig() returns", async () => {
    const [a, b] = [configurable("a"), configurable("b")];
    const registry = fakeRegistry({ tools: [a, b], config: { a: { root: "/old" } } });
    for (const tool of [a, b]) {
      const before = registry.getConfig(tool.id);
      registry.updateTool(tool, { config: { root: "/new" } });
      assertEquals(registry.getConfig(tool.id), { root: "/new" });
      registry.updateTool(tool, { config: before });
    }
    assertEquals((await registry.acquire(a)).config, { root: "/old" });
    assertEquals((await registry.acquire(b)).config, {});
  });

  it("keeps the configuration when the tool is updated", async () => {
    const registry = fakeRegistry({ tools: [configurable("a")] });
    registry.updateTool(configurable("a"), { config: { root: "/new" } });
    const tool = registry.updateTool(configurable("a"));
    assertEquals((await registry.acquire(tool)).config, { root: "/new" });
  });

  it("changes nothing if the configuration is invalid", async () => {
    const tool = fakeTool("b", { config: needsRoot });
    const registry = fakeRegistry({ tools: [tool], config: { b: { root: "/b" } } });
    const { revision } = registry;
    assertThrows(
      () => registry.updateTool(tool, { config: {} }),
      TypeError,
      'Cannot update tool "b": its configuration is invalid',
    );
    assertEquals((await registry.acquire(tool)).config, { root: "/b" });
    assertEquals(registry.revision, revision);
  });

  it("rejects an unregistered tool, and a tool without configuration", () => {
    const registry = fakeRegistry({ tools: [fakeTool("plain")] });
    assertThrows(
      () => registry.updateTool(configurable("other"), { config: {} }),
      TypeError,
      'Cannot update tool "other": the tool is not registered',
    );
    assertThrows(
      () => registry.updateTool(fakeTool("plain"), { config: {} }),
      TypeError,
      'Cannot update tool "plain": the tool declares no config',
    );
  });

  it("notifies subscribers that the tool was updated", () => {
    const tool = configurable("a");
    const registry = fakeRegistry({ tools: [tool] });
    const changes: unknown[] = [];
    registry.subscribe(({ type, tool }) => changes.push(type, tool));
    registry.updateTool(tool, { config: { root: "/new" } });
    assertEquals(changes[0], "updated");
    assertStrictEquals(changes[1], tool);
  });
});
