import { assertEquals, assertNotStrictEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import * as plue from "../../../src/select/mod.ts";
import { ToolAvailabilityContext } from "../../../src/select/mod.ts";
import { fakeTool } from "../registry/fakes.ts";

const tools = [
  fakeTool("edit", { category: "editor", risk: "medium" }),
  fakeTool("fetch", { category: "network", risk: "low", tags: ["web"] }),
  fakeTool("log", { category: "git", risk: "low", tags: ["read", "read-only"] }),
  fakeTool("plain", { risk: "safe" }),
  fakeTool("read", { category: "filesystem", risk: "low", tags: ["read", "read-only"] }),
  fakeTool("root", { category: "workspace", risk: "safe", tags: ["read"] }),
  fakeTool("run", { category: "terminal", risk: "high" }),
  fakeTool("wipe", { category: "filesystem", risk: "critical" }),
];

const idsIn = (context: plue.ToolAvailabilityInput) => plue.buildToolset(tools, { context }).ids;
const without = (...gone: string[]) =>
  tools.map((tool) => tool.id).filter((id) => !gone.includes(id));

describe("ToolAvailabilityContext", () => {
  const fields: [plue.ToolAvailabilityInput, string[]][] = [
    [{}, without()],
    [{ includedCategories: [] }, []],
    [{ enabledToolIds: [] }, []],
    [{ requiredTags: ["read", "web"] }, []],
    [{ requiredTags: [] }, without()],
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

  it("copies the caller's lists", () => {
    const list = ["git"];
    const context = new ToolAvailabilityContext({ excludedCategories: list });
    list.push("network");
    assertEquals(context.excludedCategories, ["git"]);
  });

  it("makes a changed copy with with()", () => {
    const low = ToolAvailabilityContext.lowRiskOnly;
    const changed = low.with({ hasGitRepository: false });
    assertEquals(changed.toJSON(), { hasGitRepository: false, maxRiskLevel: "low" });
    assertEquals(low.toJSON(), { maxRiskLevel: "low" });
  });

  it('keeps what with() is given as nothing: "maxRiskLevel ?? MaxRiskLevel"', () => {
    const context = new ToolAvailabilityContext({
      hasTerminal: false,
      maxRiskLevel: "low",
      enabledToolIds: ["a"],
      disabledToolIds: ["b"],
      requiredTags: ["c"],
    });
    for (const nothing of [undefined, null]) {
      const changed = context.with({
        hasTerminal: nothing,
        maxRiskLevel: nothing,
        enabledToolIds: nothing,
        disabledToolIds: nothing,
        requiredTags: nothing,
      });
      assertEquals(changed.toJSON(), context.toJSON());
    }
  });

  it("treats a field that is null as absent", () => {
    const nothing = {
      hasTerminal: null,
      maxRiskLevel: null,
      enabledToolIds: null,
      disabledToolIds: null,
      requiredTags: null,
      locale: null,
    };
    const { default: open, fromJSON } = ToolAvailabilityContext;
    assertEquals(new ToolAvailabilityContext(nothing).toJSON(), {});
    assertEquals(fromJSON(JSON.parse(JSON.stringify(nothing))).key, open.key);
    assertEquals(fromJSON({ ...nothing, maxRiskLevel: "low" }).toJSON(), { maxRiskLevel: "low" });
    assertEquals(new ToolAvailabilityContext(nothing).requiredTags, []);
    assertEquals(idsIn(nothing), idsIn(open));
  });

  it("rejects changes that are not a plain object", () => {
    for (const changes of [null, [], ToolAvailabilityContext.create()]) {
      assertThrows(
        () => ToolAvailabilityContext.default.with(changes as never),
        TypeError,
        "Cannot change an availability context: the argument must be a plain object",
      );
    }
  });

  it('takes sets where it takes lists: "IReadOnlySet<string>? EnabledToolIds"', () => {
    const lists = {
      enabledToolIds: ["b", "a"],
      disabledToolIds: ["c"],
      includedCategories: ["git"],
      excludedCategories: ["network"],
      requiredTags: ["x", "y"],
    };
    const sets = Object.fromEntries(
      Object.entries(lists).map(([field, list]) => [field, new Set(list)]),
    );
    assertEquals(
      new ToolAvailabilityContext(sets).toJSON(),
      new ToolAvailabilityContext(lists).toJSON(),
    );
    assertThrows(
      () => new ToolAvailabilityContext({ requiredTags: new Set([""]) }),
      TypeError,
      '"/requiredTags/0" must be a string that is not empty',
    );
  });

  it("writes only what differs from the default, and reads it back", () => {
    assertEquals(ToolAvailabilityContext.default.toJSON(), {});
    const context = new ToolAvailabilityContext({
      hasEditor: true,
      disabledToolIds: ["b", "a", "b"],
      enabledToolIds: [],
      excludedCategories: [],
    });
    assertEquals(context.toJSON(), { enabledToolIds: [], disabledToolIds: ["a", "b"] });
    const read = ToolAvailabilityContext.fromJSON(JSON.parse(JSON.stringify(context)));
    assertEquals(read.toJSON(), context.toJSON());
    assertEquals(read.enabledToolIds, []);
  });

  it("has one key for all equal contexts", () => {
    const one = new ToolAvailabilityContext({
      disabledToolIds: ["b", "a"],
      hasGitRepository: false,
    });
    const other = ToolAvailabilityContext.create().withGitRepository(false).disableTools(
      "a",
      "b",
      "a",
    );
    assertEquals(one.key, other.build().key);
    assertEquals(one.key === ToolAvailabilityContext.default.key, false);
  });

  const wrong: [json: unknown, message: string][] = [
    [{ hasTerminl: false }, '"/hasTerminl" is not one of its fields: did you mean "hasTerminal"?'],
    [{ "a/b~c": 1 }, '"/a~1b~0c" is not one of its fields'],
    [
      JSON.parse('{"__proto__":{"hasGitRepository":false}}'),
      '"/__proto__" is not one of its fields',
    ],
    [{ constructor: true }, '"/constructor" is not one of its fields'],
    [{ hasTerminl: null }, '"/hasTerminl" is not one of its fields: did you mean "hasTerminal"?'],
    [{ hasTerminal: "false" }, '"/hasTerminal" must be true or false, not "false"'],
    [{ requiredTags: ["a", 1] }, '"/requiredTags/1" must be a string that is not empty, not 1'],
    [
      { includedCategories: ["git", "FileSystem"] },
      '"/includedCategories/1" is "FileSystem": did you mean "filesystem"?',
    ],
    [
      { maxRiskLevel: "LOW" },
      '"/maxRiskLevel" must be one of safe, low, medium, high, critical, not "LOW"',
    ],
    [{ includedCategories: "git" }, '"/includedCategories" must be a list, not "git"'],
    [
      { excludedCategories: ["git", ""] },
      '"/excludedCategories/1" must be a string that is not empty, not ""',
    ],
    [{ enabledToolIds: ["a", 7] }, '"/enabledToolIds/1" must be a tool\'s id'],
    [{ disabledToolIds: ["a b"] }, '"/disabledToolIds/0" must be a tool\'s id'],
    [{ allowedTags: ["a"] }, '"/allowedTags" is not one of its fields'],
    [{ requiredTags: {} }, '"/requiredTags" must be a list, not an object'],
    [{ requiredTags: Array(10_001).fill("a") }, '"/requiredTags" must have at most 10000 items'],
    ["{}", 'the context must be a plain object, not "{}"'],
    [null, "the context must be a plain object, not null"],
    [[], "the context must be a plain object, not a list"],
    [new Map(), "the context must be a plain object, not an object"],
  ];
  for (const [json, message] of wrong) {
    it(`rejects JSON with ${message.slice(0, 60)}`, () => {
      const error = assertThrows(() => ToolAvailabilityContext.fromJSON(json), TypeError);
      assertEquals(
        error.message.startsWith(`Cannot read an availability context: ${message}`),
        true,
      );
    });
  }

  it("rejects an absent context", () => {
    for (const nothing of [null, undefined]) {
      for (const read of [ToolAvailabilityContext.from, ToolAvailabilityContext.fromJSON]) {
        assertThrows(
          () => read(nothing as never),
          TypeError,
          `Cannot read an availability context: the context must be a plain object, not ${nothing}`,
        );
      }
    }
  });

  it("reads the data of contexts and builders of another copy of plue", () => {
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
  it("extends lists and replaces single values", () => {
    const builder = new plue.ToolAvailabilityContextBuilder().disableTools("b").disableTools("a")
      .withMaxRiskLevel("low").withMaxRiskLevel("high")
      .withTerminal(false).withTerminal(true);
    assertEquals(builder.build().toJSON(), { maxRiskLevel: "high", disabledToolIds: ["a", "b"] });
  });

  it("is accepted instead of a context", () => {
    assertEquals(idsIn(ToolAvailabilityContext.create().withTerminal(false)), without("run"));
  });

  it("continues without changing contexts that it has built", () => {
    const builder = ToolAvailabilityContext.create().withGitRepository(false);
    const first = builder.build();
    const second = builder.withEditor(false).build();
    assertNotStrictEquals(first, second);
    assertEquals(first.toJSON(), { hasGitRepository: false });
    assertStrictEquals(ToolAvailabilityContext.from(first), first);
  });

  it("rejects an invalid value at the step that sets it", () => {
    const builder = ToolAvailabilityContext.create();
    assertThrows(() => builder.withMaxRiskLevel("x" as "low"), TypeError, "/maxRiskLevel");
    assertThrows(() => builder.withTerminal("no" as never), TypeError, "/hasTerminal");
    assertThrows(() => builder.disableTools("no such"), TypeError, "/disabledToolIds/0");
    assertEquals(builder.build().toJSON(), {});
  });
});
