import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  buildToolset,
  denyAll,
  listSource,
  ToolAvailabilityContext,
  ToolsetBuilder,
} from "../../../src/select/mod.ts";
import { fakeTool } from "./fake_tools.ts";

const tools = [
  fakeTool("a:one", { risk: "low", tags: ["x", "y"], category: "git", scopes: ["s", "t"] }),
  fakeTool("a:two", { risk: "high", tags: ["x"], category: "terminal", roles: ["control"] }),
  fakeTool("b:one", { risk: "safe", tags: ["y"], category: "search", roles: ["impl"] }),
  fakeTool("plain"),
];

describe("ToolsetBuilder", () => {
  const from = () => new ToolsetBuilder("test").fromTools(tools);
  const rows: [string, ToolsetBuilder, string[]][] = [
    ["nothing else", from(), ["a:one", "a:two", "b:one", "plain"]],
    ["withNamespace", from().withNamespace("a"), ["a:one", "a:two"]],
    ["withNamespace twice", from().withNamespace("a").withNamespace("b"), [
      "a:one",
      "a:two",
      "b:one",
    ]],
    ["withTags", from().withTags("y"), ["a:one", "b:one"]],
    ["withTags twice", from().withTags("y").withTags("x"), ["a:one", "a:two", "b:one"]],
    ["withTags of nothing", from().withTags(), []],
    ["withAllTags", from().withAllTags("y").withAllTags("x"), ["a:one"]],
    ["withCategories", from().withCategories("git", "search"), ["a:one", "b:one"]],
    ["excludeCategories", from().excludeCategories("git", "search"), ["a:two", "plain"]],
    ["withTools", from().withTools("plain").withTools("a:one"), ["a:one", "plain"]],
    ["excludeTools", from().excludeTools("plain").excludeTools("a:one"), ["a:two", "b:one"]],
    [
      "excludeTools wins",
      from().withTools("plain", "a:one").excludeTools("plain"),
      ["a:one"],
    ],
    [
      "withFilter twice",
      from().withFilter((tool) => tool.name === "one").withFilter((tool) => tool.risk === "low"),
      ["a:one"],
    ],
    ["withPolicy", from().withPolicy(denyAll), []],
    ["withRole", from().withRole("impl"), ["a:one", "b:one", "plain"]],
    ["withRole null", from().withRole(null), ["a:one", "plain"]],
    ["withScopes", from().withScopes("s").withScopes("t"), ["a:one", "a:two", "b:one", "plain"]],
    ["withScopes of nothing", from().withScopes(), ["a:two", "b:one", "plain"]],
    ["withMaxRisk", from().withMaxRisk("low"), ["a:one", "b:one"]],
    ["withMaxRisk, the last", from().withMaxRisk("safe").withMaxRisk("low"), ["a:one", "b:one"]],
    [
      "withContext",
      from().withContext(ToolAvailabilityContext.create().withTerminal(false)),
      ["a:one", "b:one", "plain"],
    ],
  ];
  for (const [name, builder, ids] of rows) {
    it(`${name} keeps [${ids}]`, () => assertEquals(builder.build().ids, ids));
  }

  it("names the toolset and keeps the registry as its source", () => {
    const registry = listSource(tools);
    const toolset = new ToolsetBuilder("mine").fromRegistry(registry).withMaxRisk("low").build();
    assertEquals(toolset.name, "mine");
    assertStrictEquals(toolset.source, registry);
  });

  it("takes the tools of another toolset with their source", () => {
    const registry = listSource(tools);
    const wide = buildToolset(registry, { namespace: "a" });
    const toolset = new ToolsetBuilder("mine").fromTools(wide).withMaxRisk("low").build();
    assertEquals([toolset.ids.join(), toolset.name], ["a:one", "mine"]);
    assertStrictEquals(toolset.source, registry);
  });

  it("builds independent toolsets", () => {
    const builder = from().withNamespace("a");
    const first = builder.build();
    const second = builder.withMaxRisk("low").build();
    assertEquals([first.ids.length, second.ids.length], [2, 1]);
    assertEquals(builder.build() === second, false);
  });

  it("reads a list once, when it is given", () => {
    const list = [...tools];
    const builder = new ToolsetBuilder("test").fromTools(list.values());
    list.push(fakeTool("late"));
    assertEquals(builder.build().size, 4);
    assertEquals(builder.build().size, 4);
  });

  it("refuses to build without a source", () => {
    assertThrows(
      () => new ToolsetBuilder("mine").withTags("x").build(),
      TypeError,
      'Cannot build toolset "mine": it has no source; call fromRegistry or fromTools first',
    );
  });

  it("refuses a second source", () => {
    assertThrows(() => from().fromTools([]), TypeError, "it has a source already");
  });

  it("refuses two tools with one id, and values that are wrong, when it builds", () => {
    const twice = new ToolsetBuilder("x").fromTools([fakeTool("a"), fakeTool("a")]);
    assertThrows(() => twice.build(), TypeError, 'two tools have the id "a"');
    assertThrows(() => from().withMaxRisk("x" as "low").build(), TypeError, "/maxRisk");
    assertThrows(() => from().withTools("a b").build(), TypeError, "/allowIds/0");
    assertThrows(() => from().withFilter(null as never).build(), TypeError, "/filters/0");
    assertThrows(() => new ToolsetBuilder("").fromTools([]).build(), TypeError, "its name");
  });
});
