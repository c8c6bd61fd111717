import { assert, assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { buildToolset, defineTool, ToolDispatcher, ToolRegistry } from "../../../mod.ts";
import { decodeCalls, exportTools } from "../../../src/formats/mod.ts";
import type { Tool, ToolDefinition } from "../../../src/tool/mod.ts";

const named = (name: string, ...aliases: readonly string[]): ToolDefinition => ({
  name,
  description: "Answers.",
  aliases,
  execute: () => name,
});

const registryOf = (...tools: readonly ToolDefinition[]): ToolRegistry =>
  new ToolRegistry({ tools });

describe("aliases", () => {
  it("are accepted by calls, and counted", async () => {
    const dispatcher = new ToolDispatcher(registryOf(named("read", "file:read", "cat")));
    for (const name of ["read", "cat", "file:read"]) {
      const result = await dispatcher.dispatch({ name });
      assertEquals(result.ok && result.content, "read");
    }
    const { tools, unknownTool } = dispatcher.metrics();
    assertEquals(tools.map(({ id, calls, aliased }) => ({ id, calls, aliased })), [
      { id: "read", calls: 3, aliased: 2 },
    ]);
    assertEquals(unknownTool, 0);
  });

  it("are never listed", () => {
    const registry = registryOf(named("read", "cat"));
    const toolset = registry.select();
    assertEquals([registry.ids, toolset.ids], [["read"], ["read"]]);
    assertEquals([registry.hasTool("cat"), toolset.has("cat")], [false, false]);
    for (const target of ["openai.chat", "anthropic", "mcp@2026-07-28"] as const) {
      assert(!JSON.stringify(exportTools(toolset, target)).includes("cat"), target);
    }
  });

  it("do not resolve to a tool that is hidden from the caller", async () => {
    const registry = registryOf({ ...named("rm", "delete"), risk: "high" }, named("read"));
    const dispatcher = new ToolDispatcher(registry.select({ maxRisk: "medium" }));
    const result = await dispatcher.dispatch({ name: "delete" });
    assertEquals(!result.ok && result.error.code, "unknown_tool");
  });

  it("deny their tool if a deny-list contains them", () => {
    const registry = registryOf(named("read", "cat"));
    assertEquals(registry.select({ denyIds: ["cat"] }).ids, []);
  });

  it("are decoded from the name that they had on the wire", () => {
    const registry = registryOf(
      named("now", "fs:then"),
      named("a__b"),
      named("c", "a:b"),
      named("d", "x:y"),
      named("e", "x__y"),
    );
    const { names } = exportTools(registry.select(), "openai.chat");
    const decoded = (name: string): unknown =>
      decodeCalls(
        "openai.chat",
        {
          choices: [{
            message: { tool_calls: [{ id: "1", function: { name, arguments: "{}" } }] },
          }],
        },
        names,
      )[0]?.name;
    assertEquals(decoded("fs__then"), "fs:then");
    // An exported name of a tool is never read as an alias, and neither is a name of two aliases.
    assertEquals([decoded("a__b"), decoded("x__y")], ["a__b", undefined]);
  });

  const clashes: readonly (readonly [string, readonly ToolDefinition[], string])[] = [
    ["another's id", [named("a"), named("b", "a")], 'its alias "a" is the id or an alias of "a"'],
    ["another's alias", [named("a", "x"), named("b", "x")], 'its alias "x" is the id or an'],
    ["the id of a later tool", [named("a", "b"), named("b")], "its id is the id or an alias of"],
    ["its own id", [named("a", "a")], '"/aliases" must not contain "a"'],
    ["no id", [named("a", "not an id")], "must be a list of ids"],
  ];
  for (const [what, tools, message] of clashes) {
    it(`are rejected at registration if one is ${what}`, () => {
      assertThrows(() => registryOf(...tools), TypeError, message);
      assertThrows(
        () => {
          const registry = registryOf();
          for (const tool of tools) registry.registerTool(tool);
        },
        TypeError,
        message,
      );
      assertThrows(
        () => buildToolset(tools.map((tool) => defineTool(tool) as Tool)),
        TypeError,
        message,
      );
    });
  }

  it("can be used again when their tool is removed or has other aliases", () => {
    const registry = registryOf(named("a", "x", "y"));
    registry.updateTool(named("a", "y", "z"));
    registry.registerTool(named("b", "x"));
    assertThrows(() => registry.updateTool(named("b", "z")), TypeError, 'its alias "z" is');
    registry.unregisterTool("a");
    registry.registerTool(named("z"));
    assertEquals(registry.ids, ["b", "z"]);
  });
});
