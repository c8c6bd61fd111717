/** Each criterion has one rule in selections, contexts, builders, filters and policies. */

import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import * as plue from "../../../src/select/mod.ts";
import type { Tool } from "../../../src/tool/mod.ts";
import { fakeTool } from "../registry/fakes.ts";
import data from "./criteria.json" with { type: "json" };

const tools = [
  fakeTool("a:one", { risk: "low", tags: ["x", "y"], category: "git", scopes: ["s"] }),
  fakeTool("a:two", { risk: "high", tags: ["x"], category: "terminal", roles: ["control"] }),
  fakeTool("b:one", { risk: "safe", tags: ["y"], category: "search", roles: ["impl"] }),
  fakeTool("plain"),
];

/** The filter, the policy and the builder's method of a criterion. */
const FORMS: {
  readonly [Name in plue.CriterionName]?: readonly [
    method: keyof plue.ToolsetBuilder,
    filter?: (...values: never[]) => plue.ToolFilter,
    policy?: (...values: never[]) => plue.ToolPolicy,
  ];
} = {
  allowIds: ["withTools", plue.allowIds],
  denyIds: ["excludeTools", plue.denyIds],
  maxRisk: ["withMaxRisk", plue.maxRisk, plue.byMaximumRisk],
  categories: ["withCategories", plue.category, plue.byCategory],
  excludeCategories: ["excludeCategories"],
  tagsAny: ["withTagsAny", plue.tagsAny, plue.byTag],
  tagsAll: ["withTags", plue.tagsAll],
  role: ["withRole", plue.role],
  scopes: ["withScopes", plue.scopes, plue.byScopes],
  namespace: ["withNamespace", plue.namespace, plue.byNamespace],
};

type Row = readonly [
  plue.CriterionName,
  unknown,
  kept: string[],
  removed?: string,
  reason?: string,
];
const ROWS = data.rows as unknown as readonly Row[];

describe("a criterion", () => {
  for (const [name, value, kept, removed, reason] of ROWS) {
    const values = (Array.isArray(value) ? value : [value]) as never[];
    const { step, context } = plue.CRITERIA[name];
    const [method, filter, policy] = FORMS[name] ?? [];
    const isIn = (keeps: (tool: Tool) => boolean) => tools.filter(keeps).map(({ id }) => id);

    it(`keeps the same tools in every form: ${name} ${JSON.stringify(value)}`, () => {
      const selections: plue.Selection[] = [
        ...(plue.isContextFlag(name) ? [] : [{ [name]: value }]),
        ...(context ? [{ context: { [context]: value } }] : []),
      ];
      for (const selection of selections) {
        const toolset = plue.buildToolset(tools, selection);
        assertEquals(toolset.ids, kept);
        if (removed === undefined) continue;
        const explained = toolset.explain(removed);
        assertEquals(explained.removedBy, step);
        assertEquals(explained.reason, `"${removed}" is removed by ${step}: ${reason}`);
      }
      if (method !== undefined) {
        const builder = new plue.ToolsetBuilder("test").fromTools(tools);
        const add = builder[method] as (...values: never[]) => { build(): plue.Toolset };
        assertEquals(add.apply(builder, values).build().ids, kept);
      }
      const keeps = filter?.(...values);
      if (keeps) assertEquals(isIn(keeps), kept);
      const decides = policy?.(...values);
      if (decides) assertEquals(isIn((tool) => decides.allow(tool)), kept);
      const tool = tools.find(({ id }) => id === removed);
      if (decides && tool) assertEquals(decides.reason?.(tool), reason);
      // "Filters and policies are pure functions and should not panic. Allow(nil) must return false."
      for (const nothing of [undefined, null] as unknown as Tool[]) {
        assertEquals([keeps?.(nothing) ?? false, decides?.allow(nothing) ?? false], [false, false]);
      }
    });
  }

  it("has a row for each name", () => {
    assertEquals(new Set(ROWS.map(([name]) => name)), new Set(plue.CRITERION_NAMES));
  });
});
