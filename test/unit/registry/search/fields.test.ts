import { assertEquals, assertLessOrEqual } from "@std/assert";
import { describe, it } from "bun:test";
import { searchFields } from "../../../../src/registry/search/words.ts";
import { makeTool } from "../../../../src/tool/mod.ts";

function texts(parameters?: object, more: object = {}): string[] {
  return searchFields(makeTool({ name: "n", description: "d", parameters, ...more }))
    .map(([text]) => text);
}

const NAMES = 6;
const TEXTS = 7;

describe("searchFields()", () => {
  it("returns every field of a tool", () => {
    assertEquals(
      texts(
        { type: "object", properties: { path: { type: "string", description: "Where it is" } } },
        { title: "Title", namespace: "space", tags: ["one", "two"], category: "git" },
      ),
      ["n", "Title", "space", "one two", "git", "d", "path", "Where it is"],
    );
  });

  it("reads nested parameters of any form", () => {
    const deep = (name: string) => ({ type: "object", properties: { [name]: { type: "string" } } });
    const fields = texts({
      type: "object",
      properties: { top: deep("inner"), list: { type: "array", items: deep("item") } },
      anyOf: [deep("either"), deep("or")],
      $defs: { shared: deep("defined") },
    });
    assertEquals(
      fields[NAMES]?.split(" ").sort(),
      ["defined", "either", "inner", "item", "list", "or", "top"],
    );
  });

  it("reads the values that a parameter lists", () => {
    const fields = texts({
      type: "object",
      properties: { method: { enum: ["squash", "rebase", 3, null] }, kind: { const: "fixed" } },
    });
    assertEquals(fields[NAMES]?.split(" ").sort(), ["fixed", "kind", "method", "rebase", "squash"]);
  });

  it("indexes parameters that have the names of keywords", () => {
    const fields = texts({
      type: "object",
      properties: {
        description: { type: "string", description: "Says what it is" },
        properties: { type: "object" },
        enum: { type: "string" },
      },
    });
    assertEquals(fields[NAMES], "description properties enum");
    assertEquals(fields[TEXTS], "Says what it is");
  });

  it("reads a bounded part of a large schema, from its root", () => {
    const wide = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, index) => [`p${index}`, { description: "x".repeat(50) }]),
    );
    const fields = texts({ type: "object", properties: { ...wide, last: { properties: wide } } });
    assertEquals(fields[NAMES]?.startsWith("p0 p1 p2 "), true);
    assertLessOrEqual(fields[NAMES]?.split(" ").length ?? 0, 256);
    assertLessOrEqual(fields[TEXTS]?.length ?? 0, 8_192);
  });

  it("cuts texts that are too long", () => {
    assertEquals(texts(undefined, { description: "word ".repeat(10_000) })[5]?.length, 8_192);
  });
});
