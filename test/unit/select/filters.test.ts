import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  allOf,
  allowIds,
  anyOf,
  buildToolset,
  category,
  denyIds,
  maxRisk,
  namedFilter,
  namespace,
  not,
  role,
  scopes,
  tagsAll,
  tagsAny,
  type ToolFilter,
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
    it(`answer false for no tool: ${name}`, () => {
      for (const nothing of [undefined, null]) {
        assertEquals(filter(nothing as unknown as Tool), false);
      }
    });
  }

  it("keep a tool called constructor apart from what every object has", () => {
    const odd = fakeTool("constructor");
    assertEquals([allowIds("constructor")(odd), denyIds("toString")(odd)], [true, true]);
    assertEquals(allowIds("toString")(odd), false);
  });

  it("treat anything but true and false as a no, also negated", () => {
    const truthy = (() => "yes") as unknown as ToolFilter;
    assertEquals(idsKeptBy(allOf(truthy)), []);
    assertEquals(idsKeptBy(anyOf(truthy)), []);
  });

  it("take a promise for a throw, so that no negation keeps a tool for it", () => {
    const promise = (() => Promise.reject(new Error("The list is down"))) as unknown as ToolFilter;
    for (const filter of [promise, not(promise), not(not(promise)), not(anyOf(promise))]) {
      assertEquals(buildToolset(tools, { filters: [filter] }).ids, []);
    }
    assertThrows(
      () => idsKeptBy(not(promise)),
      TypeError,
      "Cannot use an answer: it is a promise, and must be given at once",
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
    assertThrows(() => denyIds(""), TypeError, 'not ""');
    assertThrows(() => tagsAny(words(["read"])), TypeError, "not a list");
    assertThrows(() => tagsAll(words(undefined)), TypeError, "not undefined");
    assertThrows(
      () => category("git", "FileSystem"),
      TypeError,
      'is "FileSystem": did you mean "filesystem"?',
    );
    assertThrows(() => category(""), TypeError, "must be a string that is not empty");
    assertThrows(() => namespace(words(7)), TypeError, "not 7");
    assertThrows(() => role(""), TypeError, "Cannot filter by role");
    assertThrows(() => scopes(words(null)), TypeError, "not null");
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
  it("names a new function and leaves the old one alone", () => {
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
