import { assertEquals, assertLess, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import * as plue from "../../../src/select/mod.ts";
import { type Selection, selectionKey, ToolAvailabilityContext } from "../../../src/select/mod.ts";
import type { Tool } from "../../../src/tool/mod.ts";
import { fakeTool } from "../registry/fakes.ts";

const tools = [
  fakeTool("a:one", { risk: "low", tags: ["x", "y"], category: "git", scopes: ["s"] }),
  fakeTool("a:two", { risk: "high", tags: ["x"], roles: ["control"] }),
  fakeTool("b:one", { risk: "safe", tags: ["y"], category: "search", roles: ["impl"] }),
  fakeTool("off", { isAvailable: false }),
  fakeTool("plain"),
];

const idsOf = (selection: Selection) => plue.buildToolset(tools, selection).ids;

describe("Selection", () => {
  const rows: [Selection, string[]][] = [
    [{}, ["a:one", "a:two", "b:one", "plain"]],
    [{ role: undefined }, ["a:one", "a:two", "b:one", "plain"]],
    [{ namespace: "a" }, ["a:one", "a:two"]],
    [{ allowIds: ["plain", "a:one", "off"] }, ["a:one", "plain"]],
    [{ allowIds: ["plain", "a:one"], denyIds: ["plain"] }, ["a:one"]],
    [{ categories: ["git", "search"], excludeCategories: ["git"] }, ["b:one"]],
    [{ tagsAll: new Set(["x", "y"]), allowIds: new Set(["a:one", "plain"]) }, ["a:one"]],
    [{ filters: [(tool) => tool.name === "one", (tool) => tool.risk === "safe"] }, ["b:one"]],
    [{ policies: [plue.allowAll] }, ["a:one", "a:two", "b:one", "plain"]],
    [{ policies: [plue.allowAll, plue.denyAll] }, []],
    [{ context: ToolAvailabilityContext.lowRiskOnly, maxRisk: "safe" }, ["b:one"]],
    [{ context: ToolAvailabilityContext.safeOnly, maxRisk: "high" }, ["b:one"]],
    [{ context: { enabledToolIds: ["plain", "a:one"] }, allowIds: ["plain", "a:two"] }, ["plain"]],
  ];
  for (const [selection, ids] of rows) {
    it(`${JSON.stringify(selection)} keeps [${ids}]`, () => assertEquals(idsOf(selection), ids));
  }

  it("applies criteria in one order, each only to the tools that the earlier ones kept", () => {
    const received: string[] = [];
    const spy = (name: string, keep: (tool: Tool) => boolean): plue.ToolFilter => (tool) => {
      received.push(`${name} ${tool.id}`);
      return keep(tool);
    };
    plue.buildToolset(tools, {
      policies: [{ name: "last", allow: (tool) => spy("policy", () => true)(tool as Tool) }],
      filters: [spy("first", (tool) => tool.id !== "a:two"), spy("second", () => true)],
      maxRisk: "high",
      namespace: "a",
    });
    assertEquals(received, ["first a:one", "second a:one", "policy a:one", "first a:two"]);
  });

  it("removes a tool if a filter throws or does not return true", () => {
    const answers: unknown[] = [1, "true", {}, Promise.resolve(true), undefined];
    for (const answer of answers) {
      assertEquals(idsOf({ filters: [(() => answer) as unknown as plue.ToolFilter] }), []);
    }
    const throwing: plue.ToolFilter = (tool) => {
      // deno-lint-ignore no-throw-literal -- anything can be thrown
      if (tool.id === "plain") throw undefined;
      return true;
    };
    assertEquals(idsOf({ filters: [throwing] }), ["a:one", "a:two", "b:one"]);
  });

  it("removes a tool if a policy throws or does not return true", () => {
    const throwing = {
      name: "throws",
      allow: (tool: Tool | undefined): boolean => {
        if (tool?.id === "plain") throw new Error("no database");
        return true;
      },
    };
    assertEquals(idsOf({ policies: [throwing] }), ["a:one", "a:two", "b:one"]);
    const slow = { name: "slow", allow: () => Promise.resolve(true) as unknown as boolean };
    assertEquals(idsOf({ policies: [slow] }), []);
  });

  it('needs no more of a policy than its decision: "Allow(tool) bool"', () => {
    const policy = { allow: (tool: Tool | null | undefined) => tool?.id === "plain" };
    assertEquals(idsOf({ policies: [policy] }), ["plain"]);
  });

  it("does not change a toolset when the selection is changed later", () => {
    const allowIds = ["plain"];
    const filters: plue.ToolFilter[] = [];
    const toolset = plue.buildToolset(tools, { allowIds, filters });
    allowIds.push("a:one");
    filters.push(() => false);
    assertEquals(toolset.ids, ["plain"]);
    assertEquals(toolset.narrow({}).ids, ["plain"]);
    assertEquals(toolset.explain("plain").selected, true);
  });

  it("finds each tool of a long list without a linear search", () => {
    const count = 400;
    let reads = 0;
    // The list of a custom source is used unchanged.
    const list = Array.from(
      { length: count },
      (_, n) =>
        new Proxy(fakeTool(`t${100 + n}`, { description: ({ locale }) => `${locale} ${n}` }), {
          get(tool, field) {
            if (field === "id") reads++;
            return Reflect.get(tool, field);
          },
        }),
    );
    const byId = new Map(list.map((tool) => [tool.id, tool]));
    const source = {
      tools: list,
      revision: 0,
      getTool: (id: string) => byId.get(id),
      isAvailable: () => true,
    };
    const toolset = plue.buildToolset(source, { context: { locale: "de" } });
    reads = 0;
    for (const id of byId.keys()) {
      assertEquals(toolset.explain(id).selected, true);
      assertEquals(toolset.get(id)?.id, id);
    }
    assertLess(reads, 20 * count);
  });

  const wrong: [selection: unknown, message: string][] = [
    [{ maxrisk: "low" }, '"/maxrisk" is not one of its fields: did you mean "maxRisk"?'],
    [{ requiredTags: ["x"] }, '"/requiredTags" is not one of its fields: it belongs in "context"'],
    [{ maxRisk: "lo" }, '"/maxRisk" must be one of safe, low, medium, high, critical, not "lo"'],
    [{ role: "" }, '"/role" must be a string that is not empty, or null for a caller without'],
    [{ role: ["control"] }, '"/role" must be'],
    [{ scopes: "s" }, '"/scopes" must be a list, not "s"'],
    [{ namespace: ["a", 1] }, '"/namespace/1" must be a namespace, 1 to 128 letters'],
    [{ allowIds: ["x y"] }, '"/allowIds/0" must be a tool\'s id'],
    [{ denyIds: [""] }, '"/denyIds/0" must be a tool\'s id'],
    [{ categories: null }, '"/categories" must be a list, not null'],
    [{ excludeCategories: [undefined] }, '"/excludeCategories/0" must be'],
    [{ tagsAny: [[]] }, '"/tagsAny/0" must be a string that is not empty, not a list'],
    [{ tagsAll: new Map([["a", 1]]) }, '"/tagsAll" must be a list, not an object'],
    [{ categories: ["Git"] }, '"/categories/0" is "Git": did you mean "git"?'],
    [{ filters: () => true }, '"/filters" must be a list, not a function'],
    [{ filters: ["x"] }, '"/filters/0" must be a function, not "x"'],
    [{ policies: [{ name: "x" }] }, '"/policies/0" must be a policy, with an allow function'],
    [{ policies: [{ name: 1, allow: () => true }] }, '"/policies/0" must be a policy'],
    [{ policies: [null] }, '"/policies/0" must be a policy'],
    [
      { context: "noGit" },
      '"/context" is invalid. Cannot read an availability context: the context must be a plain object, not "noGit"',
    ],
    [
      { context: { hasGitRepository: 0 } },
      '"/context" is invalid. Cannot read an availability context: "/h',
    ],
    [ToolAvailabilityContext.default, "the selection must be a plain object, not an object"],
    [ToolAvailabilityContext.create(), "the selection must be a plain object"],
    [null, "the selection must be a plain object, not null"],
    [[], "the selection must be a plain object, not a list"],
  ];
  for (const [selection, message] of wrong) {
    it(`rejects invalid input: ${message.slice(0, 60)}`, () => {
      const error = assertThrows(() => idsOf(selection as Selection), TypeError);
      assertEquals(error.message.slice(0, message.length + 21), `Cannot select tools: ${message}`);
    });
  }
});

describe("selectionKey()", () => {
  it("is equal for equal selections", () => {
    const one: Selection = {
      role: "control",
      namespace: "a",
      tagsAny: ["y", "x", "y"],
      context: { hasGitRepository: false },
    };
    const other: Selection = {
      context: ToolAvailabilityContext.create().withGitRepository(false),
      tagsAny: ["x", "y"],
      namespace: ["a"],
      role: "control",
      maxRisk: undefined,
    };
    assertEquals(selectionKey(one), selectionKey(other));
  });

  it("differs for different selections", () => {
    const different: Selection[] = [
      {},
      { role: null },
      { role: "null" },
      { scopes: [] },
      { allowIds: [] },
      { denyIds: [] },
      { maxRisk: "low" },
      { context: { maxRiskLevel: "low" } },
      { tagsAny: ["a"] },
      { tagsAll: ["a"] },
      { tagsAll: ["a", "b"] },
      { categories: ["a"] },
      { excludeCategories: ["a"] },
      { namespace: "a" },
    ];
    assertEquals(new Set(different.map(selectionKey)).size, different.length);
  });

  it("does not exist for a selection with predicates", () => {
    assertEquals(selectionKey({ filters: [() => true] }), undefined);
    assertEquals(selectionKey({ policies: [plue.allowAll] }), undefined);
    assertEquals(selectionKey({ filters: [], policies: [] }), selectionKey({}));
  });

  it("rejects an invalid selection", () => {
    assertThrows(() => selectionKey({ maxRisk: "x" as "low" }), TypeError, "/maxRisk");
  });
});
