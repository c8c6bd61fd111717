import { assert, assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  allOf,
  allowAll,
  allowIds,
  anyOf,
  buildToolset,
  byTag,
  category,
  denyAll,
  denyIds,
  maxRisk,
  namedFilter,
  namespace,
  not,
  role,
  tagsAny,
  type ToolFilter,
  type ToolPolicy,
} from "../../../src/select/mod.ts";
import type { Tool } from "../../../src/tool/mod.ts";
import { fakeTool } from "../registry/fakes.ts";

const tools = [
  fakeTool("chain:status", { risk: "safe", tags: ["read", "chain"], roles: ["control", "impl"] }),
  fakeTool("file-read", { risk: "low", category: "filesystem", tags: ["read"], scopes: ["fs"] }),
  fakeTool("file-write", {
    risk: "medium",
    category: "filesystem",
    tags: ["write"],
    scopes: ["fs", "fs:write"],
  }),
  fakeTool("task:approve", { risk: "high", tags: ["chain"], roles: ["control"] }),
];

const idsKeptBy = (filter: ToolFilter) => tools.filter(filter).map((tool) => tool.id);

describe("filters", () => {
  const rows: [string, ToolFilter, string[]][] = [
    ["allOf", allOf(tagsAny("chain"), maxRisk("low")), ["chain:status"]],
    ["allOf of nothing keeps everything", allOf(), tools.map((tool) => tool.id)],
    ["anyOf", anyOf(namespace("task"), category("filesystem")), [
      "file-read",
      "file-write",
      "task:approve",
    ]],
    ["anyOf of nothing keeps nothing", anyOf(), []],
    ["not", not(category("filesystem")), ["chain:status", "task:approve"]],
  ];
  for (const [name, filter, ids] of rows) {
    it(`${name} keeps [${ids}]`, () => assertEquals(idsKeptBy(filter), ids));
  }

  // "Filters and policies are pure functions and should not panic."
  for (const [name, filter] of rows) {
    it(`return false for no tool: ${name}`, () => {
      for (const nothing of [undefined, null]) {
        assertEquals(filter(nothing as unknown as Tool), false);
      }
    });
  }

  it("do not confuse a tool named constructor with an inherited member", () => {
    const odd = fakeTool("constructor");
    assertEquals([allowIds("constructor")(odd), denyIds("toString")(odd)], [true, true]);
    assertEquals(allowIds("toString")(odd), false);
  });

  it("treat any value but true and false as false, even negated", () => {
    const truthy = (() => "yes") as unknown as ToolFilter;
    assertEquals(idsKeptBy(allOf(truthy)), []);
    assertEquals(idsKeptBy(anyOf(truthy)), []);
  });

  it("treat a promise as an error, also in a negation", () => {
    const promise = (() => Promise.reject(new Error("The list is down"))) as unknown as ToolFilter;
    for (const filter of [promise, not(promise), not(not(promise)), not(anyOf(promise))]) {
      assertEquals(buildToolset(tools, { filters: [filter] }).ids, []);
    }
    assertThrows(
      () => idsKeptBy(not(promise)),
      TypeError,
      "Cannot use a function's result: the result must not be a promise",
    );
  });

  it("reject invalid arguments", () => {
    const words = (value: unknown) => value as string;
    assertThrows(
      () => maxRisk(words("hgih") as "high"),
      TypeError,
      "Cannot filter by maxRisk: argument 1 must be one of safe, low, medium, high, critical, " +
        'not "hgih"',
    );
    assertThrows(
      () => allowIds("file-read", "a:b:c"),
      TypeError,
      'Cannot filter by allowIds: "arguments/1" must be a tool\'s id, "name" or "namespace:name"',
    );
    assertThrows(() => not(words("x") as never), TypeError, "must be a function");
    assertThrows(() => allOf(maxRisk("low"), {} as never), TypeError, '"arguments/1"');
    assertThrows(() => anyOf(undefined as never), TypeError, "not undefined");
    assertThrows(
      () => tagsAny(...Array.from({ length: 10_001 }, (_, index) => `t${index}`)),
      TypeError,
      "at most 10000 items, not 10001",
    );
  });

  it("have a name that describes the kept tools", () => {
    assertEquals(maxRisk("low").name, "maxRisk(low)");
    assertEquals(
      not(anyOf(tagsAny("a", "b"), role("x"))).name,
      "not(anyOf(tagsAny(a, b), role(x)))",
    );
    assertEquals(allowIds("a", "b", "c", "d", "e", "f").name, "allowIds(a, b, c, d, e, …)");
  });
});

describe("namedFilter()", () => {
  it("names a new function, and does not change the old one", () => {
    const plain = (tool: { id: string }) => tool.id === "file-read";
    const named = namedFilter("the reader", plain);
    assertEquals([named.name, plain.name], ["the reader", "plain"]);
    assertEquals(idsKeptBy(named), ["file-read"]);
    assertEquals(named(undefined as unknown as Tool), false);
  });

  it("rejects an invalid filter", () => {
    assertThrows(() => namedFilter("x", null as never), TypeError, "must be a function");
  });
});

const secret = fakeTool("file-write", {
  category: "filesystem",
  risk: "high",
  tags: ["write"],
  scopes: ["fs", "fs:write"],
});

describe("policies", () => {
  it("allow or deny every tool that exists, with a reason for a denial", () => {
    const nothing = [undefined, null];
    assertEquals([secret, ...nothing].map((tool) => allowAll.allow(tool)), [true, false, false]);
    assertEquals([secret, ...nothing].map((tool) => denyAll.allow(tool)), [false, false, false]);
    assertEquals([allowAll.reason, denyAll.reason?.(secret)], [undefined, "every tool is denied"]);
  });

  it("are frozen, so that no code can change one", () => {
    for (const policy of [allowAll, denyAll, byTag("a")]) assert(Object.isFrozen(policy));
  });

  it("are rejected with a field that would be ignored", () => {
    const allow = () => true;
    const rows: [policy: object, message: string][] = [
      [
        { name: "p", allow, asks: allow },
        'Cannot use policy p: "/asks" is not one of its fields: name, allow, requiresApproval',
      ],
      [
        { allow, requireApproval: allow },
        'Cannot use policy without a name: "/requireApproval" is not one of its fields: did you ' +
        'mean "requiresApproval"?',
      ],
      [{ allow, revisionn: 1 }, 'did you mean "revision"?'],
    ];
    for (const [policy, message] of rows) {
      const policies = [allowAll, policy as ToolPolicy];
      assertThrows(() => buildToolset([secret], { policies }), TypeError, message);
    }
    // An instance of a class may have fields and methods of its own.
    class Limit {
      readonly most = 1;
      allow() {
        return this.most > 0;
      }
    }
    assertEquals(buildToolset([secret], { policies: [new Limit()] }).size, 1);
  });
});
