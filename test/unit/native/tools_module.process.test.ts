import { assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { relative } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { loadTools } from "../../../src/adapters/native/tools_module.ts";
import { registry as suiteRegistry } from "../../native/tools.ts";
import { fakeRegistry, fakeTool } from "../registry/fakes.ts";

const module = (name: string): string =>
  fileURLToPath(new URL(`../../native/${name}`, import.meta.url));

describe("loadTools()", () => {
  it("loads a path, a path from here, and a URL", async () => {
    const path = module("tools.ts");
    for (const name of [path, relative(process.cwd(), path), `file://${path}`]) {
      const { registry } = await loadTools(undefined, name);
      assertStrictEquals(registry, suiteRegistry);
    }
  });

  it("takes the module's options for the dispatcher", async () => {
    const { dispatcher } = await loadTools(undefined, module("tools.ts"));
    const text = "x".repeat(2_000_000);
    const result = await dispatcher.dispatch({ name: "echo", arguments: { text } });
    assertEquals(result.ok, true);
  });

  it("prefers the tools that are compiled in", async () => {
    const registry = fakeRegistry({
      tools: [fakeTool("a", { requiresTransaction: true, execute: () => 1 })],
    });
    const begun: string[] = [];
    const tools = await loadTools({
      registry,
      selection: { maxRisk: "low" },
      transactions: {
        begin: () => {
          begun.push("begin");
          return { id: "1" };
        },
        commit: () => {},
        rollback: () => {},
      },
    }, "/nowhere.ts");
    assertStrictEquals(tools.registry, registry);
    assertEquals(tools.selection, { maxRisk: "low" });
    await tools.dispatcher.dispatch({ name: "a" });
    assertEquals(begun, ["begin"]);
  });

  for (
    const [name, why] of [
      [undefined, "no module was named; set PLUE_TOOLS"],
      ["", "no module was named; set PLUE_TOOLS"],
      [module("modules/nowhere.ts"), "Cannot load the tools of"],
      [module("modules/throws.ts"), "the disk is on fire"],
      [module("modules/empty.ts"), 'it must export a ToolRegistry as "registry" or by default'],
    ] as const
  ) {
    it(`refuses ${name?.split("/").at(-1)}: ${why}`, async () => {
      await assertRejects(() => loadTools(undefined, name), Error, why);
    });
  }
});
