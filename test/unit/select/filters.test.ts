import { assert, assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import * as plue from "../../../src/select/mod.ts";
import { anyOf, not } from "../../../src/select/mod.ts";
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

const idsKeptBy = (filter: plue.ToolFilter) => tools.filter(filter).map((tool) => tool.id);

describe("filters", () => {
  const rows: [string, plue.ToolFilter, string[]][] = [
    ["allOf", plue.allOf(plue.tagsAny("chain"), plue.maxRisk("low")), ["chain:status"]],
    ["allOf of nothing keeps everything", plue.allOf(), tools.map((tool) => tool.id)],
    ["anyOf", anyOf(plue.namespace("task"), plue.category("filesystem")), [
      "file-read",
      "file-write",
      "task:approve",
    ]],
    ["anyOf of nothing keeps nothing", anyOf(), []],
    ["not", not(plue.category("filesystem")), ["chain:status", "task:approve"]],
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
    assertEquals([plue.allowIds("constructor")(odd), plue.denyIds("toString")(odd)], [true, true]);
    assertEquals(plue.allowIds("toString")(odd), false);
  });

  it("treat any value but true and false as false, even negated", () => {
    const truthy = (() => "yes") as unknown as plue.ToolFilter;
    assertEquals(idsKeptBy(plue.allOf(truthy)), []);
    assertEquals(idsKeptBy(anyOf(truthy)), []);
  });

  it("treat a promise as an error, even in a negation", () => {
    const promise =
      (() => Promise.reject(new Error("The list is down"))) as unknown as plue.ToolFilter;
    for (const filter of [promise, not(promise), not(not(promise)), not(anyOf(promise))]) {
      assertEquals(plue.buildToolset(tools, { filters: [filter] }).ids, []);
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
      () => plue.maxRisk(words("hgih") as "high"),
      TypeError,
      "Cannot filter by maxRisk: argument 1 must be one of safe, low, medium, high, critical, " +
        'not "hgih"',
    );
    assertThrows(
      () => plue.allowIds("file-read", "a:b:c"),
      TypeError,
      'Cannot filter by allowIds: "arguments/1" must be a tool\'s id, "name" or "namespace:name"',
    );
    assertThrows(() => not(words("x") as never), TypeError, "must be a function");
    assertThrows(() => plue.allOf(plue.maxRisk("low"), {} as never), TypeError, '"arguments/1"');
    assertThrows(() => anyOf(undefined as never), TypeError, "not undefined");
    assertThrows(
      () => plue.tagsAny(...Array.from({ length: 10_001 }, (_, index) => `t${index}`)),
      TypeError,
      "at most 10000 items, not 10001",
    );
  });

  it("have a name that describes the kept tools", () => {
    assertEquals(plue.maxRisk("low").name, "maxRisk(low)");
    assertEquals(
      not(anyOf(plue.tagsAny("a", "b"), plue.role("x"))).name,
      "not(anyOf(tagsAny(a, b), role(x)))",
    );
    assertEquals(plue.allowIds("a", "b", "c", "d", "e", "f").name, "allowIds(a, b, c, d, e, …)");
  });
});

describe("namedFilter()", () => {
  it("names a new function, and does not change the old one", () => {
    const plain = (tool: { id: string }) => tool.id === "file-read";
    const named = plue.namedFilter("the reader", plain);
    assertEquals([named.name, plain.name], ["the reader", "plain"]);
    assertEquals(idsKeptBy(named), ["file-read"]);
    assertEquals(named(undefined as unknown as Tool), false);
  });

  it("rejects an invalid filter", () => {
    assertThrows(() => plue.namedFilter("x", null as never), TypeError, "must be a function");
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
    assertEquals([secret, ...nothing].map((tool) => plue.allowAll.allow(tool)), [
      true,
      false,
      false,
    ]);
    assertEquals([secret, ...nothing].map((tool) => plue.denyAll.allow(tool)), [
      false,
      false,
      false,
    ]);
    assertEquals([plue.allowAll.reason, plue.denyAll.reason?.(secret)], [
      undefined,
      "every tool is denied",
    ]);
  });

  it("are frozen, so that no code can change one", () => {
    for (const policy of [plue.allowAll, plue.denyAll, plue.byTag("a")]) {
      assert(Object.isFrozen(policy));
    }
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
      const policies = [plue.allowAll, policy as plue.ToolPolicy];
      assertThrows(() => plue.buildToolset([secret], { policies }), TypeError, message);
    }
    // An instance of a class may have fields and methods of its own.
    class Limit {
      readonly most = 1;
      allow() {
        return this.most > 0;
      }
    }
    assertEquals(plue.buildToolset([secret], { policies: [new Limit()] }).size, 1);
  });
});
