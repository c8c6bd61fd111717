import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import { describe, it } from "bun:test";
import type { Tool } from "../../../src/tool/mod.ts";
import { fakeRegistry, fakeTool } from "./fakes.ts";

/** Numbers that look random and are the same in every run (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe("ToolRegistry.tools", () => {
  it("is the sorted, frozen list of all tools, after any changes", () => {
    const random = randomNumbers(11);
    const registry = fakeRegistry();
    const model = new Map<string, Tool>();
    let changes = 0;
    for (let step = 0; step < 2000; step++) {
      const id = `tool-${Math.floor(random() * 50)}`;
      const tool = fakeTool(id);
      const what = random();
      if (what < 0.4) {
        assertEquals(registry.tryRegisterTool(tool), !model.has(id));
        if (!model.has(id)) {
          model.set(id, tool);
          changes++;
        }
      } else if (what < 0.6) {
        if (model.has(id)) changes++;
        assertEquals(registry.unregisterTool(id), model.delete(id));
      } else if (what < 0.8 && model.has(id)) {
        model.set(id, registry.updateTool(tool));
        changes++;
      } else {
        assertStrictEquals(registry.getTool(id), model.get(id));
        const { ids, tools } = registry;
        assertEquals(ids, [...model.keys()].sort());
        assert(
          Object.isFrozen(tools) && tools.every((one, at) => one === model.get(ids[at] ?? "")),
        );
      }
      assertEquals([registry.count, registry.revision], [model.size, changes]);
    }
  });

  it("is the list of a toolset that keeps all tools, and no list changes while a selection reads it", () => {
    const registry = fakeRegistry();
    registry.registerTool(fakeTool("b"));
    const some = registry.select({ allowIds: ["b"] });
    const all = registry.select();
    assertStrictEquals(all.tools, registry.tools);
    registry.registerTool(fakeTool("a"));
    assertEquals([some.ids, all.ids, registry.ids], [["b"], ["b"], ["a", "b"]]);
  });
});
