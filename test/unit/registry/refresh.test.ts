import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { type ToolChange, ToolRegistry, type ToolRegistryOptions } from "../../../mod.ts";

/** A registry with tools whose availability a test controls, and its notifications. */
function switchable(options: Partial<ToolRegistryOptions> = {}) {
  const on = new Set(["a", "b"]);
  let calls = 0;
  const registry = new ToolRegistry({
    tools: [
      ...["a", "b"].map((name) => ({
        name,
        description: "Is there, or is not.",
        isAvailable: () => (calls++, on.has(name)),
      })),
      { name: "always", description: "Is there." },
    ],
    ...options,
  });
  const changes: string[] = [];
  const listen = () =>
    registry.subscribe(({ type, tool }: ToolChange) => changes.push(`${tool.id} ${type}`));
  return { registry, on, changes, listen, calls: () => calls };
}

describe("ToolRegistry.refresh()", () => {
  it("notifies of the tools whose availability has changed, without a new revision", () => {
    const { registry, on, changes, listen } = switchable();
    listen();
    assertEquals(registry.refresh(), []);
    const { revision } = registry;
    on.delete("b");
    assertEquals(registry.refresh().map(({ id }) => id), ["b"]);
    assertEquals(registry.refresh(), []);
    on.add("b").delete("a");
    registry.refresh();
    assertEquals(changes, ["b unavailable", "a unavailable", "b available"]);
    assertEquals(registry.revision, revision);
  });

  it("checks one tool", () => {
    const { registry, on, changes, listen, calls } = switchable();
    listen();
    registry.refresh();
    on.clear();
    assertEquals(registry.refresh("a").map(({ id }) => id), ["a"]);
    assertEquals([changes, calls()], [["a unavailable"], 3]);
    assertEquals(registry.refresh("always"), []);
    assertThrows(
      () => registry.refresh("c"),
      TypeError,
      'Cannot refresh tool "c": the tool is not registered',
    );
  });

  it("notifies of a change that an earlier listing has detected", () => {
    const { registry, on, changes, listen } = switchable();
    assertEquals(registry.getAvailableTools().length, 3);
    on.delete("a");
    assertEquals(registry.getAvailableTools().length, 2);
    listen();
    on.add("a");
    // A caller has received a list without the tool, so the tool is reported as available again.
    registry.refresh();
    assertEquals(changes, ["a available"]);
  });

  it("is not repeated by an availability function that it calls", () => {
    let calls = 0;
    const registry: ToolRegistry = new ToolRegistry({
      tools: [{
        name: "a",
        description: "Refreshes.",
        isAvailable: () => registry.refresh().length === 0 && ++calls > 0,
      }],
    });
    registry.refresh();
    assertEquals(calls, 1);
  });

  it("treats an exception of isAvailable() as false", () => {
    let broken = false;
    const errors: string[] = [];
    const registry = new ToolRegistry({
      tools: [{
        name: "a",
        description: "Breaks.",
        isAvailable: () => {
          if (broken) throw new Error("no connection");
          return true;
        },
      }],
      onError: ({ phase, error }) => errors.push(`${phase} ${(error as Error).message}`),
    });
    registry.refresh();
    broken = true;
    assertEquals(registry.refresh().length, 1);
    assertEquals(errors, ["availability no connection"]);
  });
});
