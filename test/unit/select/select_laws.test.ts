import { assert, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import fc from "fast-check";
import * as plue from "../../../src/select/mod.ts";
import { not, type Selection, tagsAny } from "../../../src/select/mod.ts";
import { KNOWN_CATEGORIES, RISK_LEVELS, type Tool } from "../../../src/tool/mod.ts";
import { fakeTool } from "../registry/fakes.ts";
import { cases } from "../../support/laws.ts";

fc.configureGlobal(cases(100));

const words = ["a", "b", "constructor", "__proto__"];
const ids = ["a", "b", "x:a", "x:b", "y:__proto__", "constructor"];
const some = <T>(from: readonly T[]) => fc.subarray([...from]);
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });

const aTool = (id: string): fc.Arbitrary<Tool> =>
  fc.record({
    risk: fc.constantFrom(...RISK_LEVELS),
    category: maybe(fc.constantFrom<string>(...KNOWN_CATEGORIES, "a")),
    tags: some(words),
    roles: maybe(some(words)),
    scopes: some(words),
    isAvailable: fc.constantFrom<boolean | (() => boolean)>(true, false, () => true, () => false),
  }).map((rest) => fakeTool(id, rest));

const someTools = some(ids).chain((chosen) => fc.tuple(...chosen.map(aTool)));

const aContext: fc.Arbitrary<plue.ToolAvailabilityFields> = fc.record({
  hasWorkspace: maybe(fc.boolean()),
  hasTerminal: maybe(fc.boolean()),
  hasEditor: maybe(fc.boolean()),
  hasGitRepository: maybe(fc.boolean()),
  maxRiskLevel: maybe(fc.constantFrom(...RISK_LEVELS)),
  includedCategories: maybe(some([...KNOWN_CATEGORIES])),
  excludedCategories: maybe(some([...KNOWN_CATEGORIES])),
  enabledToolIds: maybe(some(ids)),
  disabledToolIds: maybe(some(ids)),
  requiredTags: maybe(some(words)),
});

const throwing: plue.ToolFilter = (tool) => {
  if (tool.tags.includes("a")) throw new Error("a");
  return true;
};

const someData = fc.record({
  context: maybe(aContext),
  role: fc.constantFrom(undefined, null, ...words),
  scopes: maybe(some(words)),
  namespace: maybe(some(["x", "y"])),
  allowIds: maybe(some(ids)),
  denyIds: maybe(some(ids)),
  maxRisk: maybe(fc.constantFrom(...RISK_LEVELS)),
  categories: maybe(some([...KNOWN_CATEGORIES, "a"])),
  excludeCategories: maybe(some([...KNOWN_CATEGORIES, "a"])),
  tagsAny: maybe(some(words)),
  tagsAll: maybe(some(words)),
  // Most fields are absent, because a selection with all criteria keeps no tool.
}, { requiredKeys: [] }) as fc.Arbitrary<Selection>;

const filters = some<plue.ToolFilter>([tagsAny("a", "b"), not(tagsAny("b")), throwing]);
const policies = some([plue.byTag("a", "b"), plue.byMaximumRisk("high")]);
const aSelection: fc.Arbitrary<Selection> = fc.tuple(someData, maybe(filters), maybe(policies))
  .map(([data, filters, policies]) => ({ ...data, filters, policies }));

const idsOf = (tools: readonly Tool[], selection: Selection) =>
  plue.buildToolset(tools, selection).ids;
const isWithin = (part: readonly string[], whole: readonly string[]) =>
  part.every((id) => whole.includes(id));

describe("selection, for any tools and any selection", () => {
  it("keeps a part of the source, in its order", () => {
    fc.assert(fc.property(someTools, aSelection, (tools, selection) => {
      const source = plue.listSource(tools);
      const { tools: kept } = plue.buildToolset(source, selection);
      assertEquals(kept, source.tools.filter((tool) => kept.includes(tool)));
    }));
  });

  it("never adds a tool with one more criterion", () => {
    fc.assert(fc.property(someTools, aSelection, aSelection, (tools, first, second) => {
      const more: Selection = {
        ...first,
        filters: [...first.filters ?? [], ...second.filters ?? []],
        policies: [...first.policies ?? [], ...second.policies ?? []],
      };
      assert(isWithin(idsOf(tools, more), idsOf(tools, first)));
    }));
  });

  it("narrows to exactly what both selections keep", () => {
    fc.assert(fc.property(someTools, aSelection, aSelection, (tools, first, second) => {
      const both = idsOf(tools, first).filter((id) => idsOf(tools, second).includes(id));
      assertEquals(plue.buildToolset(tools, first).narrow(second).ids, both);
    }));
  });

  it("never keeps a tool that is denied by id", () => {
    fc.assert(fc.property(someTools, aSelection, some(ids), (tools, selection, denyIds) => {
      const kept = idsOf(tools, { ...selection, allowIds: ids, denyIds });
      assertEquals(kept.filter((id) => denyIds.includes(id)), []);
    }));
  });

  it("does not depend on the order in which fields and list items are written", () => {
    fc.assert(fc.property(someTools, someData, (tools, selection) => {
      const turned = Object.fromEntries(
        Object.entries(selection).reverse().map(([field, value]) => [
          field,
          Array.isArray(value) ? value.toReversed() : value,
        ]),
      ) as Selection;
      assertEquals(idsOf(tools, turned), idsOf(tools, selection));
      assertEquals(plue.selectionKey(turned), plue.selectionKey(selection));
    }));
  });

  it("has equal keys only for selections that keep the same", () => {
    fc.assert(fc.property(someTools, someData, someData, (tools, one, other) => {
      const same = plue.selectionKey(one) === plue.selectionKey(other);
      if (same) assertEquals(idsOf(tools, one), idsOf(tools, other));
    }));
  });

  it("is explained in agreement with the decision", () => {
    fc.assert(fc.property(someTools, aSelection, (tools, selection) => {
      const toolset = plue.buildToolset(tools, selection);
      const listed = toolset.available();
      for (const tool of tools) {
        const explained = toolset.explain(tool.id);
        assertEquals(explained.selected, toolset.has(tool.id));
        assertEquals(explained.available, listed.includes(tool));
        assertEquals(explained.available, toolset.isAvailable(tool));
        assertEquals(explained.removedBy, explained.steps.find((step) => !step.passed)?.step);
        assertEquals(explained.available, explained.removedBy === undefined);
        assertEquals(JSON.parse(JSON.stringify(explained)), explained);
      }
    }));
  });
});

describe("filters, for any tool", () => {
  it("obey the laws of logic", () => {
    const filter = fc.constantFrom(tagsAny("a"), tagsAny("b"), tagsAny("a", "b"));
    fc.assert(fc.property(aTool("t"), filter, filter, (tool, one, other) => {
      assertEquals(not(not(one))(tool), one(tool));
      assertEquals(plue.allOf(one, other)(tool), one(tool) && other(tool));
      assertEquals(plue.anyOf(one, other)(tool), one(tool) || other(tool));
      assertEquals(not(plue.allOf(one, other))(tool), plue.anyOf(not(one), not(other))(tool));
    }));
  });
});

describe("ToolAvailabilityContext, for any fields", () => {
  it("is unchanged after JSON, with its key", () => {
    fc.assert(fc.property(aContext, (fields) => {
      const context = new plue.ToolAvailabilityContext(fields);
      const read = plue.ToolAvailabilityContext.fromJSON(JSON.parse(JSON.stringify(context)));
      assertEquals({ ...read }, { ...context });
      assertEquals(read.key, context.key);
    }));
  });

  it("has equal keys exactly for equal contexts", () => {
    fc.assert(fc.property(aContext, aContext, (one, other) => {
      const a = new plue.ToolAvailabilityContext(one);
      const b = new plue.ToolAvailabilityContext(other);
      assertEquals(a.key === b.key, JSON.stringify({ ...a }) === JSON.stringify({ ...b }));
    }));
  });
});
