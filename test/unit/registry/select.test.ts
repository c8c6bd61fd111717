import {
  assert,
  assertEquals,
  assertNotStrictEquals,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import { describe, it } from "bun:test";
import {
  allOf,
  allowAll,
  anyOf,
  askAboveRisk,
  buildToolset,
  byMaximumRisk,
  denyAll,
  maxRisk,
  namedFilter,
  not,
  type Selection,
  ToolAvailabilityContext,
} from "../../../src/select/mod.ts";
import type { Tool } from "../../../src/tool/mod.ts";
import { fakeRegistry, fakeTool } from "./fakes.ts";

describe("ToolRegistry.select()", () => {
  const isLow = maxRisk("low");
  const same: readonly (readonly [string, () => Selection | undefined])[] = [
    ["nothing", () => undefined],
    ["data", () => ({ maxRisk: "low", tagsAny: ["a", "b"] })],
    ["a plain context", () => ({ context: { hasGitRepository: false } })],
    [
      "the same filters and policies",
      () => ({ filters: [isLow], policies: [allowAll], role: "x" }),
    ],
  ];
  for (const [what, selection] of same) {
    it(`returns the same toolset for ${what}, until something changes`, () => {
      const registry = fakeRegistry({ tools: [fakeTool("a", { risk: "low", tags: ["a"] })] });
      const toolset = registry.select(selection());
      assertStrictEquals(registry.select(selection()), toolset);
      registry.registerTool(fakeTool("b", { risk: "safe", tags: ["b"] }));
      const next = registry.select(selection());
      assertEquals([toolset.ids, next.ids], [["a"], ["a", "b"]]);
      assertEquals([toolset.revision, next.revision], [1, 2]);
      assertStrictEquals(next.source, registry);
    });
  }

  it("returns one toolset for the same words in another order", () => {
    const registry = fakeRegistry();
    assertStrictEquals(
      registry.select({ tagsAny: ["a", "b"], role: "x" }),
      registry.select({ role: "x", tagsAny: ["b", "a"] }),
    );
  });

  const different: readonly (readonly [string, Selection, Selection])[] = [
    ["a role from no role", { role: "null" }, { role: null }],
    ["no role from not asked", { role: null }, {}],
    ["filters that look alike", { filters: [() => true] }, { filters: [() => true] }],
    ["a filter from a policy", { filters: [isLow] }, {
      policies: [{ name: "x", allow: () => true }],
    }],
    ["data beside a filter", { filters: [isLow], role: "a" }, { filters: [isLow], role: "b" }],
  ];
  for (const [what, first, second] of different) {
    it(`distinguishes ${what}`, () => {
      const registry = fakeRegistry();
      assertNotStrictEquals(registry.select(first), registry.select(second));
    });
  }

  it("detects that a selection has changed", () => {
    const registry = fakeRegistry({ tools: [fakeTool("a", { roles: ["admin"] })] });
    const filters = [() => true];
    const selection = { role: "admin", filters };
    assertEquals(registry.select(selection).ids, ["a"]);
    selection.role = "guest";
    assertEquals(registry.select(selection).ids, []);
    selection.role = "admin";
    filters.push(() => false);
    assertEquals(registry.select(selection).ids, []);
  });

  it("caches a bounded number of selections", () => {
    const registry = fakeRegistry();
    const select = (caller: number) => registry.select({ role: `caller ${caller}` });
    const first = select(0);
    for (let caller = 1; caller < 256; caller++) select(caller);
    assertStrictEquals(select(0), first);
    select(256);
    assertNotStrictEquals(select(0), first);
  });

  it("treats an absent role and limit as unrestricted only in an empty selection", () => {
    const tools = [fakeTool("a", { risk: "safe" }), fakeTool("b", { roles: ["admin"] })];
    const registry = fakeRegistry({ tools });
    assertThrows(
      () => registry.getToolsForRole(undefined as never),
      TypeError,
      'Cannot select tools: "/role" must be a string that is not empty, or null for a caller ' +
        "without a role, not undefined",
    );
    assertEquals(registry.getToolsForRole(null).map(({ id }) => id), ["a"]);
    assertThrows(
      () => registry.getToolsByRiskLevel(undefined as never),
      TypeError,
      'Cannot select tools: "/maxRisk" must be one of safe, low, medium, high, critical, not undefined',
    );
    assertThrows(() => registry.getToolsByCategory(undefined as never), TypeError, "/categories/0");
    assertThrows(() => registry.getToolsByTag(undefined as never), TypeError, "/tagsAll/0");
  });

  it("reads null as no context", () => {
    const registry = fakeRegistry({ tools: [fakeTool("a")] });
    assertStrictEquals(registry.getAvailableTools(null), registry.getAvailableTools());
    assertStrictEquals(registry.getFunctionDefinitions(null), registry.getFunctionDefinitions());
  });

  it("returns one toolset for a context in any form", () => {
    const registry = fakeRegistry({ tools: [fakeTool("a")] });
    const context = ToolAvailabilityContext.noWorkspace;
    const toolset = registry.select({ context });
    assertStrictEquals(registry.getAvailableTools(context), toolset.available());
    assertStrictEquals(registry.select({ context: context.toJSON() }), toolset);
  });

  it("passes its own list to toolsets, which do not sort it again", () => {
    const registry = fakeRegistry({ tools: [fakeTool("b"), fakeTool("a")] });
    assertStrictEquals(buildToolset(registry).tools, registry.tools);
    assertStrictEquals(registry.select().tools, registry.tools);
  });

  it("keeps a toolset usable after the registry has changed", () => {
    const [a, b] = [fakeTool("a"), fakeTool("b")];
    const registry = fakeRegistry({ tools: [a, b] });
    const toolset = registry.select();
    registry.unregisterTool("a");
    assertEquals(toolset.ids, ["a", "b"]);
    assert(!toolset.explain("a").available);
  });

  it("calls filters and policies again, and returns the same toolset for the same tools", () => {
    const registry = fakeRegistry({ tools: [fakeTool("a"), fakeTool("b")] });
    const denied = new Set<string>();
    const selection: Selection = {
      filters: [(tool) => !denied.has(tool.id)],
      policies: [{ allow: (tool) => !denied.has(`policy ${tool?.id}`) }],
    };
    const all = registry.select(selection);
    assertStrictEquals(registry.select(selection), all);
    denied.add("a");
    const fewer = registry.select(selection);
    assertEquals([all.ids, fewer.ids], [["a", "b"], ["b"]]);
    assertStrictEquals(registry.select(selection), fewer);
    denied.add("policy b");
    assertEquals(registry.select(selection).ids, []);
    denied.clear();
    assertEquals(registry.select(selection).ids, ["a", "b"]);
  });

  it("does not call a filter or a policy again whose revision is the same", () => {
    const registry = fakeRegistry({ tools: [fakeTool("a"), fakeTool("b")] });
    const state = { revision: 1, calls: 0, denied: "" };
    const policy = {
      allow: (tool: Tool | null | undefined) => ++state.calls > 0 && tool?.id !== state.denied,
      get revision() {
        return state.revision;
      },
    };
    const filter = Object.assign((tool: Tool) => policy.allow(tool), {
      revision: () => state.revision,
    });
    for (const selection of [{ policies: [policy] }, { filters: [filter] }] as Selection[]) {
      Object.assign(state, { calls: 0, denied: "" });
      const all = registry.select(selection);
      assertStrictEquals(registry.select(selection), all);
      assertEquals([all.has("a"), all.available().length, state.calls], [true, 2, 2]);
      state.denied = "a";
      assertEquals(registry.select(selection).ids, ["a", "b"]);
      state.revision++;
      assertEquals([registry.select(selection).ids, all.has("a")], [["b"], false]);
      // Another revision has the same results, so the toolset is reused from then on.
      const fewer = registry.select(selection);
      state.revision++;
      assertStrictEquals(registry.select(selection), fewer);
      const { calls } = state;
      assertEquals([registry.select(selection).has("b"), state.calls], [true, calls]);
    }
  });

  const unusable: readonly (readonly [string, unknown])[] = [
    ["throws", () => {
      throw new Error("No revision");
    }],
    ["is a promise", () => Promise.resolve(1)],
    ["is undefined", () => undefined],
  ];
  for (const [what, revision] of unusable) {
    it(`calls a policy again whose revision ${what}`, () => {
      const registry = fakeRegistry({ tools: [fakeTool("a")] });
      let isAllowed = true;
      const selection = { policies: [{ allow: () => isAllowed, revision }] };
      const toolset = registry.select(selection);
      isAllowed = false;
      assertEquals([toolset.has("a"), registry.select(selection).ids], [false, []]);
    });
  }

  it("does not call the filters and policies of plue again", () => {
    const registry = fakeRegistry({ tools: [fakeTool("a", { risk: "low" })] });
    const mayChange = (selection: Selection) => registry.select(selection).mayChange;
    const moody = () => true;
    const ready = [isLow, not(isLow), namedFilter("low", isLow), allOf(isLow, anyOf(isLow))];
    for (const filter of ready) assertEquals(mayChange({ filters: [filter] }), false);
    for (const policy of [allowAll, denyAll, byMaximumRisk("low"), askAboveRisk("low")]) {
      assertEquals(mayChange({ policies: [policy] }), false);
      assertEquals(mayChange({ policies: [{ ...policy, requiresApproval: moody }] }), false);
      assertEquals(mayChange({ policies: [{ ...policy, allow: moody }] }), true);
    }
    for (const filter of [moody, not(moody), namedFilter("x", moody), allOf(isLow, moody)]) {
      assertEquals(mayChange({ filters: [filter] }), true);
    }
  });
});
