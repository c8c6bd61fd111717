import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import * as selection from "../../../src/select/mod.ts";
import { ToolsetBuilder } from "../../../src/select/mod.ts";
import { fakeTool } from "../registry/fakes.ts";

const tools = [
  fakeTool("a:one", { risk: "low", tags: ["x", "y"], category: "git", scopes: ["s", "t"] }),
  fakeTool("a:two", { risk: "high", tags: ["x"], category: "terminal", roles: ["control"] }),
  fakeTool("b:one", { risk: "safe", tags: ["y"], category: "search", roles: ["impl"] }),
  fakeTool("plain"),
];

describe("ToolsetBuilder", () => {
  const from = () => new ToolsetBuilder("test").fromTools(tools);
  it("keeps all tools without a condition, and removes denied tools that are allowed", () => {
    assertEquals(from().build().ids, ["a:one", "a:two", "b:one", "plain"]);
    assertEquals(from().withTools("plain", "a:one").excludeTools("plain").build().ids, ["a:one"]);
  });

  // "In the Builder, filters are AND-composed in the order added."
  const twice: [string, ToolsetBuilder, string[]][] = [
    ["withNamespace", from().withNamespace("a").withNamespace("b"), []],
    ["withFilter", from().withFilter(selection.tagsAny("x")).withFilter(selection.maxRisk("low")), [
      "a:one",
    ]],
    [
      "withPolicy",
      from().withPolicy(selection.byTag("x")).withPolicy(selection.byNamespace("b")),
      [],
    ],
    [
      "withContext",
      from().withContext(selection.ToolAvailabilityContext.create().withTerminal(false))
        .withContext({ maxRiskLevel: "low" }),
      ["a:one", "b:one"],
    ],
  ];
  for (const [method, builder, ids] of twice) {
    it(`adds a condition with each call: ${method} twice keeps [${ids}]`, () => {
      assertEquals(builder.build().ids, ids);
    });
  }

  it('applies the policies last: "Policies apply after all filters"', () => {
    const received: string[] = [];
    const spy = (name: string) => (): boolean => received.push(name) > 0;
    const toolset = new ToolsetBuilder("test").fromTools([fakeTool("plain")])
      .withPolicy({ allow: spy("policy") })
      .withFilter(spy("second filter"))
      .withFilter(spy("third filter"))
      .build();
    assertEquals([toolset.ids, received], [["plain"], ["second filter", "third filter", "policy"]]);
  });

  it("explains which condition removed a tool, in the order added", () => {
    const toolset = from().withTags("y").withNamespace("b").withMaxRisk("safe").build();
    const { steps, reason } = toolset.explain("a:one");
    assertEquals(reason, '"a:one" is removed by namespace: namespace "a" is not among "b"');
    assertEquals(steps.map(({ step, passed }) => [step, passed]), [
      ["availability", true],
      ["tags", true],
      ["namespace", false],
      ["risk", false],
    ]);
  });

  // "Registries provide the tool source for builders: Tools() []*CanonicalTool."
  const sources: [string, selection.ToolCollection, string[]][] = [
    ["a list", { tools }, ["a:one", "a:two", "b:one", "plain"]],
    ["any iterable", { tools: new Set(tools) }, ["a:one", "a:two", "b:one", "plain"]],
    ["a method", {
      tools() {
        return this === undefined ? [] : tools.toReversed();
      },
    }, ["a:one", "a:two", "b:one", "plain"]],
    // "returning nil is treated as empty"
    ["null", { tools: null }, []],
    ["undefined", { tools: undefined }, []],
    ["a function that gives null", { tools: () => null }, []],
    ["a function that gives nothing", { tools: () => undefined }, []],
  ];
  for (const [what, source, ids] of sources) {
    it(`accepts a registry whose tools are ${what}`, () => {
      assertEquals(new ToolsetBuilder("test").fromRegistry(source).build().ids, ids);
      assertEquals(new ToolsetBuilder("test").fromTools(source).build().ids, ids);
      assertEquals(selection.buildToolset(source).ids, ids);
    });
  }

  it("treats an absent list as empty", () => {
    for (const nothing of [null, undefined]) {
      assertEquals(new ToolsetBuilder("test").fromTools(nothing).build().ids, []);
    }
  });

  it("reads a registry when the toolset is built", () => {
    let list = tools.slice(0, 1);
    const builder = new ToolsetBuilder("test").fromRegistry({ tools: () => list });
    list = tools;
    assertEquals(builder.build().size, 4);
  });

  it("names the toolset and keeps the registry as its source", () => {
    const registry = selection.listSource(tools);
    const toolset = new ToolsetBuilder("mine").fromRegistry(registry).withMaxRisk("low").build();
    assertEquals(toolset.name, "mine");
    assertStrictEquals(toolset.source, registry);
  });

  it("uses the tools of another toolset with their source", () => {
    const registry = selection.listSource(tools);
    const wide = selection.buildToolset(registry, { namespace: "a" });
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

  it("reads a list once, when it is passed", () => {
    const list = [...tools];
    const builder = new ToolsetBuilder("test").fromTools(list.values());
    list.push(fakeTool("late"));
    assertEquals(builder.build().size, 4);
    assertEquals(builder.build().size, 4);
  });

  it("rejects a build without a source", () => {
    assertThrows(
      () => new ToolsetBuilder("mine").withTags("x").build(),
      TypeError,
      'Cannot build toolset "mine": the source is missing; call fromRegistry or fromTools first',
    );
    for (const nothing of [null, undefined]) {
      assertThrows(
        () => new ToolsetBuilder("mine").fromRegistry(nothing as never),
        TypeError,
        `Cannot build toolset "mine": the source must be a registry or another object with tools, not ${nothing}`,
      );
    }
  });

  it("rejects an absent role, limit or context, which would remove nothing", () => {
    const absent = undefined as never;
    assertThrows(() => from().withRole(absent), TypeError, '"/role" must be a string');
    assertThrows(() => from().withMaxRisk(absent), TypeError, '"/maxRisk" must be one of');
    assertThrows(
      () => from().withContext(absent),
      TypeError,
      '"/context" is invalid. Cannot read an avail',
    );
  });

  it("rejects a registry whose isAvailable would be ignored", () => {
    const isAvailable = () => false;
    for (
      const source of [{ tools, revision: 1, isAvailable }, { tools: () => tools, isAvailable }]
    ) {
      assertThrows(
        () => new ToolsetBuilder("mine").fromRegistry(source).build(),
        TypeError,
        "Cannot make a toolset: a source with isAvailable must have getTool and a list of tools, too",
      );
    }
  });

  it("rejects a second source", () => {
    assertThrows(() => from().fromTools([]), TypeError, "the source is already set");
  });

  it("rejects a source without tools", () => {
    const mine = (): ToolsetBuilder => new ToolsetBuilder("mine");
    const message = "Cannot make a toolset: the source must be a registry, a toolset or a list";
    for (const builder of [mine().fromRegistry({} as never), mine().fromTools(7 as never)]) {
      assertThrows(() => builder.build(), TypeError, message);
    }
  });

  it("rejects two tools with one id, and invalid values, when it builds", () => {
    const twice = new ToolsetBuilder("x").fromTools([fakeTool("a"), fakeTool("a")]);
    assertThrows(() => twice.build(), TypeError, 'two tools have the id "a"');
    assertThrows(() => from().withMaxRisk("x" as "low").build(), TypeError, "/maxRisk");
    assertThrows(() => from().withTools("a b").build(), TypeError, "/allowIds/0");
    assertThrows(() => from().withFilter(null as never).build(), TypeError, "/filters/0");
    assertThrows(() => new ToolsetBuilder("").fromTools([]).build(), TypeError, "the name");
  });
});
