import { assertEquals, assertNotStrictEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  buildToolset,
  ToolAvailabilityContext,
  ToolAvailabilityContextBuilder,
  type ToolAvailabilityInput,
} from "../../../src/select/mod.ts";
import { fakeTool } from "./fake_tools.ts";

const tools = [
  fakeTool("edit", { category: "editor", risk: "medium" }),
  fakeTool("fetch", { category: "network", risk: "low", tags: ["web"] }),
  fakeTool("log", { category: "git", risk: "low", tags: ["read"] }),
  fakeTool("plain", { risk: "safe" }),
  fakeTool("read", { category: "filesystem", risk: "low", tags: ["read"] }),
  fakeTool("root", { category: "workspace", risk: "safe", tags: ["read"] }),
  fakeTool("run", { category: "terminal", risk: "high" }),
  fakeTool("wipe", { category: "filesystem", risk: "critical" }),
];

const idsIn = (context: ToolAvailabilityInput) => buildToolset(tools, { context }).ids;
const without = (...gone: string[]) =>
  tools.map((tool) => tool.id).filter((id) => !gone.includes(id));

describe("ToolAvailabilityContext", () => {
  const presets: [string, ToolAvailabilityContext, string[]][] = [
    ["default", ToolAvailabilityContext.default, without()],
    ["noWorkspace", ToolAvailabilityContext.noWorkspace, without("read", "root", "wipe", "log")],
    ["safeOnly", ToolAvailabilityContext.safeOnly, ["plain", "root"]],
    ["lowRiskOnly", ToolAvailabilityContext.lowRiskOnly, [
      "fetch",
      "log",
      "plain",
      "read",
      "root",
    ]],
    ["fileSystemOnly", ToolAvailabilityContext.fileSystemOnly, ["read", "wipe"]],
    ["readOnly", ToolAvailabilityContext.readOnly, ["fetch", "log", "plain", "read", "root"]],
  ];
  for (const [name, context, ids] of presets) {
    it(`has a preset ${name} that keeps [${ids}]`, () => assertEquals(idsIn(context), ids));
  }

  const fields: [ToolAvailabilityInput, string[]][] = [
    [{}, without()],
    [{ hasWorkspace: false }, without("read", "root", "wipe")],
    [{ hasTerminal: false }, without("run")],
    [{ hasEditor: false }, without("edit")],
    [{ hasGit: false }, without("log")],
    [{ readOnly: true }, without("edit", "run", "wipe")],
    [{ maxRiskLevel: "medium" }, without("run", "wipe")],
    [{ includedCategories: ["git", "network"] }, ["fetch", "log"]],
    [{ includedCategories: [] }, []],
    [{ excludedCategories: ["git", "network"] }, without("fetch", "log")],
    [{ enabledTools: ["plain", "run"] }, ["plain", "run"]],
    [{ enabledTools: ["plain", "run"], disabledTools: ["run"] }, ["plain"]],
    [{ enabledTools: [] }, []],
    [{ disabledTools: ["run"] }, without("run")],
    [{ allowedTags: ["web", "x"] }, ["fetch"]],
    [{ allowedTags: [] }, []],
  ];
  for (const [context, ids] of fields) {
    it(`keeps [${ids}] for ${JSON.stringify(context)}`, () => assertEquals(idsIn(context), ids));
  }

  it("cannot be changed", () => {
    const context = new ToolAvailabilityContext({ excludedCategories: ["git"] });
    assertThrows(() => Object.assign(context, { hasTerminal: false }), TypeError);
    assertThrows(() => (context.excludedCategories as string[]).push("network"), TypeError);
    assertEquals(context.hasTerminal, true);
  });

  it("does not keep the caller's lists", () => {
    const list = ["git"];
    const context = new ToolAvailabilityContext({ excludedCategories: list });
    list.push("network");
    assertEquals(context.excludedCategories, ["git"]);
  });

  it("makes a changed copy with with()", () => {
    const low = ToolAvailabilityContext.lowRiskOnly;
    const changed = low.with({ hasGit: false });
    assertEquals(changed.toJSON(), { hasGit: false, maxRiskLevel: "low" });
    assertEquals(low.toJSON(), { maxRiskLevel: "low" });
    assertEquals(changed.with({ maxRiskLevel: undefined }).toJSON(), { hasGit: false });
  });

  it("writes only what differs from the default, and reads it back", () => {
    assertEquals(ToolAvailabilityContext.default.toJSON(), {});
    const context = new ToolAvailabilityContext({
      hasEditor: true,
      disabledTools: ["b", "a", "b"],
      enabledTools: [],
      excludedCategories: [],
    });
    assertEquals(context.toJSON(), { enabledTools: [], disabledTools: ["a", "b"] });
    const read = ToolAvailabilityContext.fromJSON(JSON.parse(JSON.stringify(context)));
    assertEquals(read.toJSON(), context.toJSON());
    assertEquals(read.enabledTools, []);
  });

  it("has one key for all contexts that say the same", () => {
    const one = new ToolAvailabilityContext({ disabledTools: ["b", "a"], hasGit: false });
    const other = ToolAvailabilityContext.create().withGit(false).disableTools("a", "b", "a");
    assertEquals(one.key, other.build().key);
    assertEquals(one.key === ToolAvailabilityContext.default.key, false);
  });

  const wrong: [json: unknown, message: string][] = [
    [{ hasTerminl: false }, '"/hasTerminl" is not one of its fields: did you mean "hasTerminal"?'],
    [{ "a/b~c": 1 }, '"/a~1b~0c" is not one of its fields'],
    [JSON.parse('{"__proto__":{"hasGit":false}}'), '"/__proto__" is not one of its fields'],
    [{ constructor: true }, '"/constructor" is not one of its fields'],
    [{ hasTerminal: "false" }, '"/hasTerminal" must be true or false, not "false"'],
    [{ hasGit: null }, '"/hasGit" must be true or false, not null'],
    [{ readOnly: 1 }, '"/readOnly" must be true or false, not 1'],
    [
      { maxRiskLevel: "LOW" },
      '"/maxRiskLevel" must be one of safe, low, medium, high, critical, not "LOW"',
    ],
    [{ includedCategories: "git" }, '"/includedCategories" must be a list, not "git"'],
    [
      { excludedCategories: ["git", ""] },
      '"/excludedCategories/1" must be a string that is not empty, not ""',
    ],
    [{ enabledTools: ["a", 7] }, '"/enabledTools/1" must be a tool\'s id'],
    [{ disabledTools: ["a b"] }, '"/disabledTools/0" must be a tool\'s id'],
    [{ allowedTags: {} }, '"/allowedTags" must be a list, not an object'],
    [{ allowedTags: Array(10_001).fill("a") }, '"/allowedTags" must have at most 10000 items'],
    ["{}", 'it must be a plain object, not "{}"'],
    [null, "it must be a plain object, not null"],
    [[], "it must be a plain object, not a list"],
    [new Map(), "it must be a plain object, not an object"],
  ];
  for (const [json, message] of wrong) {
    it(`refuses JSON with ${message.slice(0, 60)}`, () => {
      const error = assertThrows(() => ToolAvailabilityContext.fromJSON(json), TypeError);
      assertEquals(
        error.message.startsWith(`Cannot read an availability context: ${message}`),
        true,
      );
    });
  }

  it("reads contexts and builders of another copy of plue by what they say", () => {
    const json = { hasTerminal: false };
    class OtherContext {
      toJSON(): unknown {
        return json;
      }
    }
    class OtherBuilder {
      build(): unknown {
        return new OtherContext();
      }
    }
    for (const other of [new OtherContext(), new OtherBuilder()]) {
      assertEquals(ToolAvailabilityContext.from(other as never).toJSON(), json);
    }
  });
});

describe("ToolAvailabilityContextBuilder", () => {
  it("says everything that the fields say", () => {
    const context = ToolAvailabilityContext.create()
      .withWorkspace(false)
      .withTerminal(false)
      .withEditor(false)
      .withGit(false)
      .withReadOnly()
      .withMaxRiskLevel("high")
      .includeCategories("search")
      .excludeCategories("network")
      .enableTools("grep")
      .disableTools("rm")
      .allowTags("read")
      .build();
    assertEquals(context.toJSON(), {
      hasWorkspace: false,
      hasTerminal: false,
      hasEditor: false,
      hasGit: false,
      readOnly: true,
      maxRiskLevel: "high",
      includedCategories: ["search"],
      excludedCategories: ["network"],
      enabledTools: ["grep"],
      disabledTools: ["rm"],
      allowedTags: ["read"],
    });
  });

  it("adds lists up and replaces single values", () => {
    const builder = new ToolAvailabilityContextBuilder()
      .disableTools("b").disableTools("a")
      .withMaxRiskLevel("low").withMaxRiskLevel("high")
      .withTerminal(false).withTerminal(true);
    assertEquals(builder.build().toJSON(), { maxRiskLevel: "high", disabledTools: ["a", "b"] });
  });

  it("is accepted where a context is", () => {
    assertEquals(idsIn(ToolAvailabilityContext.create().withTerminal(false)), without("run"));
  });

  it("goes on without changing what it built", () => {
    const builder = ToolAvailabilityContext.create().withGit(false);
    const first = builder.build();
    const second = builder.withEditor(false).build();
    assertNotStrictEquals(first, second);
    assertEquals(first.toJSON(), { hasGit: false });
    assertStrictEquals(ToolAvailabilityContext.from(first), first);
  });

  it("refuses a wrong value at the step that gave it", () => {
    const builder = ToolAvailabilityContext.create();
    assertThrows(() => builder.withMaxRiskLevel("x" as "low"), TypeError, "/maxRiskLevel");
    assertThrows(() => builder.withTerminal("no" as never), TypeError, "/hasTerminal");
    assertThrows(() => builder.disableTools("no such"), TypeError, "/disabledTools/0");
    assertEquals(builder.build().toJSON(), {});
  });
});
