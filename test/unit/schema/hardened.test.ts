import {
  assert,
  assertEquals,
  assertNotStrictEquals,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import { describe, it } from "bun:test";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { Registry } from "../../../src/core.ts";
import { viewOf } from "../../../src/finding/mod.ts";
import { importTools } from "../../../src/formats/mod.ts";
import { compileOnce, hardened, inheritEngine } from "../../../src/schema/mod.ts";
import { makeTool, type Tool, type ToolDefinition } from "../../../src/tool/mod.ts";

const engine = typeboxEngine({ codeGeneration: false });

/** A schema that takes too many steps to check a list of 1,000 items. */
const COSTLY = {
  type: "object",
  properties: {
    list: { allOf: Array.from({ length: 200 }, () => ({ uniqueItems: true })) },
  },
};
const VALUE = { list: Array.from({ length: 1_000 }, (_, at) => at) };

function importCostly(): Tool {
  const { tools } = importTools("mcp", { tools: [{ name: "costly", inputSchema: COSTLY }] });
  const [tool] = tools;
  assert(tool !== undefined);
  return tool;
}

/** Whether a registry of the core, whose engine is not hardened, accepts the value. */
async function accepts(tool: Tool): Promise<boolean> {
  const registry = new Registry({ engine, tools: [tool] });
  return (await registry.acquire(tool)).parameters.check(VALUE);
}

describe("hardened()", () => {
  it("returns one engine for an engine, and a hardened one as it is", () => {
    assertStrictEquals(hardened(engine), hardened(engine));
    assertStrictEquals(hardened(hardened(engine)), hardened(engine));
    assertNotStrictEquals(hardened(engine), engine);
    assertEquals(hardened(engine).name, "typebox");
  });

  it("bounds the steps of a check, which the engine alone does not", () => {
    assertEquals(compileOnce(engine, COSTLY).check(VALUE), true);
    assertEquals(compileOnce(hardened(engine), COSTLY).check(VALUE), false);
  });

  it("refuses a pattern whose time cannot be bounded, which the engine alone accepts", () => {
    const schema = { properties: { a: { pattern: "^(a)\\1$" } } };
    assertEquals(engine.admit(schema).dialect, "2020-12");
    assertThrows(() => hardened(engine).admit(schema), SyntaxError, '"/properties/a/pattern" must');
    assertEquals(engine.compile(schema).check({ a: "aa" }), true);
    assertEquals(engine.compile(schema).check({ a: "ab" }), false);
  });
});

describe("an imported tool in a registry whose engine is not hardened", () => {
  it("is compiled by the hardened engine", async () => {
    assertEquals(await accepts(importCostly()), false);
  });

  it("stays so when other tools are made of it", async () => {
    const tool = importCostly();
    assertEquals(await accepts(viewOf(tool, { name: "view" })), false);
    assertEquals(await accepts(viewOf(tool, { defaults: { list: [] } })), false);
    assertEquals(await accepts(makeTool({ ...tool, title: "Same" } as ToolDefinition)), false);
  });

  it("does not change how the program's own tools are compiled", async () => {
    assertEquals(
      await accepts(makeTool({ name: "own", description: "Own.", parameters: COSTLY })),
      true,
    );
  });
});

describe("inheritEngine()", () => {
  it("changes nothing for a schema that was made of a trusted one", () => {
    const derived = { ...COSTLY };
    inheritEngine(COSTLY, derived);
    assertEquals(compileOnce(engine, derived).check(VALUE), true);
  });
});
