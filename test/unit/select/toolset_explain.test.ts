import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { Registry } from "../../../src/registry/mod.ts";
import * as plue from "../../../src/select/mod.ts";
import { buildToolset } from "../../../src/select/mod.ts";
import { fakeTool } from "../registry/fakes.ts";

const tool = fakeTool("task:start", {
  risk: "high",
  category: "git",
  tags: ["chain"],
  roles: ["control", "owner"],
  scopes: ["read", "write"],
});

/** The explanation of `tool` under a selection. */
const why = (selection: plue.Selection) => {
  const { removedBy, reason } = buildToolset([tool], selection).explain("task:start");
  return `${removedBy} | ${reason.replace('"task:start" is removed by ', "")}`;
};

describe("Toolset.explain()", () => {
  const rows: [plue.Selection, string][] = [
    [
      { context: plue.ToolAvailabilityContext.safeOnly },
      "risk | risk: risk high is above the limit safe",
    ],
    [
      { context: plue.ToolAvailabilityContext.readOnly },
      'tags | tags: the tags "read-only" are not set',
    ],
    [{ filters: [plue.maxRisk("safe")] }, "filter | filter: risk high is above the limit safe"],
    [
      { filters: [plue.namedFilter("office hours", () => false)] },
      "filter | filter: filter office hours does not keep the tool",
    ],
    [{ filters: [() => false] }, "filter | filter: filter without a name does not keep the tool"],
    [
      { policies: [plue.byMaximumRisk("low")] },
      "policy | policy: policy byMaximumRisk denies it: risk high is above the limit low",
    ],
    [
      { policies: [plue.denyAll] },
      "policy | policy: policy denyAll denies it: every tool is denied",
    ],
    [
      { policies: [{ name: "house", allow: () => false }] },
      "policy | policy: policy house denies it",
    ],
    [{ policies: [{ allow: () => false }] }, "policy | policy: policy without a name denies it"],
  ];
  for (const [selection, expected] of rows) {
    it(`explains ${JSON.stringify(selection)}: ${expected.split(": ").slice(1).join(": ")}`, () => {
      assertEquals(why(selection), expected);
    });
  }

  it("reports a visible tool with every criterion that it passed", () => {
    const toolset = buildToolset([tool], { role: "control", maxRisk: "high", filters: [Boolean] });
    assertEquals(toolset.explain("task:start"), {
      id: "task:start",
      selected: true,
      available: true,
      steps: [
        { step: "availability", passed: true },
        { step: "risk", passed: true },
        { step: "role", passed: true },
        { step: "filter", name: "Boolean", passed: true },
      ],
      reason: '"task:start" is in the toolset and available',
    });
  });

  it("names the first step that removed it, and the further steps that would have", () => {
    const { steps, removedBy, selected } = buildToolset([tool], {
      policies: [plue.denyAll],
      role: "impl",
      context: plue.ToolAvailabilityContext.create().withGitRepository(false).withMaxRiskLevel(
        "high",
      ),
      namespace: "task",
    }).explain("task:start");
    assertEquals([removedBy, selected], ["context", false]);
    assertEquals(steps.map(({ step, name, passed }) => [step, name, passed]), [
      ["availability", undefined, true],
      ["risk", undefined, true],
      ["context", "hasGitRepository", false],
      ["role", undefined, false],
      ["namespace", undefined, true],
      ["policy", "denyAll", false],
    ]);
    assertEquals(steps.filter(({ reason }) => reason !== undefined).length, 3);
  });

  it("reports the truncated error of a filter or policy that threw", () => {
    const boom = (): never => {
      throw new Error(`no database ${"x".repeat(1000)}`);
    };
    const byFilter = buildToolset([tool], { filters: [boom] }).explain("task:start");
    assertStringIncludes(byFilter.reason, "filter boom threw: no database xxx");
    assert(byFilter.reason.length < 400);
    const byPolicy = buildToolset([tool], { policies: [{ name: "house", allow: boom }] });
    assertStringIncludes(byPolicy.explain("task:start").reason, "policy house threw: no database");
    const silent = buildToolset([tool], {
      policies: [{ name: "mute", allow: () => false, reason: boom }],
    });
    assertStringIncludes(silent.explain("task:start").reason, "policy mute threw: no database");
  });

  it("suggests an alternative to a policy that returns a promise", () => {
    const slow: plue.ToolPolicy = { name: "slow", allow: (() => Promise.resolve(true)) as never };
    const toolset = buildToolset([fakeTool("a")], { policies: [slow] });
    assertEquals(toolset.ids, []);
    assertEquals(
      toolset.explain("a").reason,
      '"a" is removed by policy: policy slow threw: Cannot use a function\'s result: the ' +
        "result must not be a promise: decide in authorize, and pass the decision to the policy",
    );
  });

  it("does not throw for any thrown value", () => {
    const nasty = [undefined, "a string", Object.create(null), {
      toString() {
        throw new Error("again");
      },
    }, Object.defineProperty(new Error(), "message", { value: 7n })];
    for (const thrown of nasty) {
      const toolset = buildToolset([tool], {
        filters: [() => {
          throw thrown;
        }],
      });
      assertStringIncludes(toolset.explain("task:start").reason, "threw: ");
    }
  });

  it("distinguishes permanently unavailable tools from currently unavailable tools", () => {
    const fixed = buildToolset([fakeTool("off", { isAvailable: false })]).explain("off");
    assertEquals([fixed.selected, fixed.available, fixed.removedBy], [
      false,
      false,
      "availability",
    ]);
    let answer = false;
    const toolset = buildToolset([fakeTool("moody", { isAvailable: () => answer })]);
    const moody = toolset.explain("moody");
    assertEquals([moody.selected, moody.available, moody.removedBy], [true, false, "availability"]);
    assertEquals(
      moody.reason,
      '"moody" is in the toolset, but not available now: ' +
        "the tool's isAvailable function does not return true now",
    );
    answer = true;
    assertEquals(toolset.explain("moody").available, true);
  });

  it("reports that a tool was replaced, removed or added since", () => {
    let source = plue.listSource([tool]);
    let revision = 1;
    const registry = {
      get tools() {
        return source.tools;
      },
      get revision() {
        return revision;
      },
      getTool: (id: string) => source.getTool(id),
      isAvailable: () => true,
    };
    const toolset = buildToolset(registry);
    source = plue.listSource([fakeTool("task:start"), fakeTool("new")]);
    revision++;
    assertStringIncludes(toolset.explain("task:start").reason, "replaced or removed after");
    assertEquals(toolset.explain("task:start").available, false);
    assertEquals(toolset.isAvailable(tool), false);
    assertEquals(toolset.explain("new").reason, 'Tool "new" was added after this toolset was made');
  });

  it("requires the explainer of a ToolRegistry", () => {
    const kernel = new Registry({ engine: typeboxEngine(), tools: [tool] });
    assertThrows(
      () => kernel.select().explain("task:start"),
      TypeError,
      "Cannot explain a tool: the source must be a ToolRegistry",
    );
  });

  it("reports an unknown id", () => {
    const toolset = buildToolset([fakeTool("file-read")]);
    assertEquals(toolset.explain("file-rea"), {
      id: "file-rea",
      selected: false,
      available: false,
      steps: [],
      reason: 'There is no tool "file-rea"',
    });
    assertEquals(toolset.explain("constructor").reason, 'There is no tool "constructor"');
  });

  it("clips an invalid id", () => {
    const explained = buildToolset([tool]).explain("x".repeat(1_000_000));
    assert(JSON.stringify(explained).length < 1000);
  });
});
