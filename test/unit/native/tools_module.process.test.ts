import { assertEquals, assertMatch, assertRejects, assertStrictEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
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

  it("uses the module's options for the dispatcher", async () => {
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

  it("reports the position of a syntax error", async () => {
    const folder = mkdtempSync(join(tmpdir(), "plue-tools-module-"));
    const file = join(folder, "broken.ts");
    writeFileSync(
      file,
      "export const a: number = 1;\nexport const b = ;\n".concat("let = ;\n".repeat(9)),
    );
    const error = await assertRejects(() => loadTools(undefined, file), Error);
    rmSync(folder, { recursive: true });
    // Bun and Deno also print the column.
    assertMatch(error.message, /broken\.ts:2\b/);
    assertEquals(error.message.includes("\x1b"), false);
    assertEquals(error.message.length < 1_500, true, error.message);
  });

  it("reports the position at which a module throws, even in an imported module", async () => {
    const folder = mkdtempSync(join(tmpdir(), "plue-tools-module-"));
    writeFileSync(join(folder, "inner.mjs"), "\n\nthrow new Error('the disk is on fire');\n");
    const file = join(folder, "outer.mjs");
    writeFileSync(file, 'import "./inner.mjs";\n');
    const error = await assertRejects(() => loadTools(undefined, file), Error);
    rmSync(folder, { recursive: true });
    assertMatch(error.message, /the disk is on fire \(\/.*\/inner\.mjs:3:\d+\)$/);
  });

  for (
    const [name, why] of [
      [undefined, "no module is set; set PLUE_TOOLS"],
      ["", "no module is set; set PLUE_TOOLS"],
      [module("modules/nowhere.ts"), "there is no such file"],
      [module("modules/throws.ts"), "the disk is on fire"],
      [module("modules/empty.ts"), 'it must export a ToolRegistry as "registry" or by default'],
    ] as const
  ) {
    it(`rejects ${name?.split("/").at(-1)}: ${why}`, async () => {
      await assertRejects(() => loadTools(undefined, name), Error, why);
    });
  }
});
