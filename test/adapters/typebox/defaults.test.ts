import { assert, assertEquals, assertFalse, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  buildToolset,
  type SchemaEngine,
  type Tool,
  ToolDispatcher,
  ToolRegistry,
} from "../../../mod.ts";
import { Registry } from "../../../src/core.ts";
import { hardened, withSchemaCheck } from "../../../src/schema/mod.ts";
import { defaultEngine } from "../../../src/adapters/typebox/mod.ts";
import { makeTool } from "../../../src/tool/mod.ts";

const double: Tool = makeTool({
  name: "double",
  description: "Doubles a number.",
  parameters: { type: "object", properties: { value: { type: "number" } }, required: ["value"] },
  execute: (params) => 2 * (params as { readonly value: number }).value,
});

/** An engine that accepts everything. */
const acceptAll: SchemaEngine = withSchemaCheck({
  name: "accept-all",
  compile: () => ({ check: () => true, issues: () => [] }),
});

describe("ToolRegistry of mod.ts", () => {
  it("uses TypeBox's engine by default", async () => {
    const registry = new ToolRegistry({ tools: [double] });
    assertEquals(registry.engine.name, "typebox");
    const { parameters } = await registry.acquire(double);
    assert(parameters.check({ value: 1 }));
    assertFalse(parameters.check({ value: "1" }));
  });

  it("is a registry of the core, with one engine for all", () => {
    const registry = new ToolRegistry();
    assert(registry instanceof Registry);
    assertStrictEquals(registry.engine, new ToolRegistry().engine);
    assertStrictEquals(registry.engine, defaultEngine());
  });

  it("hardens the passed engine", () => {
    assertStrictEquals(new ToolRegistry({ engine: acceptAll }).engine, hardened(acceptAll));
    assertStrictEquals(
      new ToolRegistry({ engine: hardened(acceptAll) }).engine,
      hardened(acceptAll),
    );
  });

  it("reports all issues of a configuration", () => {
    const tool = makeTool({
      name: "disk",
      description: "x",
      config: { type: "object", properties: { root: { type: "string" } } },
    });
    const error = assertThrows(
      () => new ToolRegistry({ tools: [tool], config: { disk: { root: 7 } } }),
      TypeError,
      'Cannot register tool "disk": its configuration is invalid: ',
    );
    assert(error.message.includes("root"), error.message);
  });
});

describe("ToolRegistry of mod.ts with tools instead of options", () => {
  it("contains their pointers", () => {
    assertThrows(
      () => new ToolRegistry([double] as object),
      TypeError,
      "Cannot make a registry: pass the tools as the option tools",
    );
  });
});

describe("ToolDispatcher of mod.ts", () => {
  it("checks calls of a toolset that was made from a list", async () => {
    const dispatcher = new ToolDispatcher(buildToolset([double]));
    const right = await dispatcher.dispatch({ name: "double", arguments: { value: 21 } });
    assertEquals(right.ok && right.content, 42);
    const wrong = await dispatcher.dispatch({ name: "double", arguments: { value: "21" } });
    assertEquals(!wrong.ok && wrong.error.code, "invalid_arguments");
  });

  it("does not replace the engine of a registry", async () => {
    const registry = new ToolRegistry({ tools: [double], engine: acceptAll });
    const result = await new ToolDispatcher(registry).dispatch({
      name: "double",
      arguments: { value: "21" },
    });
    assertEquals(result.ok && result.content, 42);
  });

  it("uses the passed engine for a list", async () => {
    const dispatcher = new ToolDispatcher(buildToolset([double]), { engine: acceptAll });
    const result = await dispatcher.dispatch({ name: "double", arguments: { value: "21" } });
    assertEquals(result.ok && result.content, 42);
  });
});
