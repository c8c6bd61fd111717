import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { ASSERTED_FORMATS } from "../../../src/schema/semantics.ts";
import type { Dialect } from "../../../src/schema/mod.ts";
import { normalizeSchema } from "../../../src/schema/normalize.ts";
import type { JsonSchema } from "../../../src/tool/mod.ts";

const URI = "https://json-schema.org/draft/2020-12/schema";

function normalized(schema: JsonSchema, dialect: Dialect = "2020-12"): JsonSchema {
  return normalizeSchema(schema, dialect, { formats: ASSERTED_FORMATS }).schema;
}

describe("normalizeSchema()", () => {
  const ROWS: readonly (readonly [string, Dialect, JsonSchema, JsonSchema])[] = [
    [
      "keeps what validates, and leaves out the rest",
      "2020-12",
      { $comment: "c", title: "t", default: 1, "x-own": 2, type: "string", minLength: 1 },
      { type: "string", minLength: 1 },
    ],
    [
      "turns draft-07 lists of item schemas into prefixItems",
      "draft-07",
      { items: [{ type: "string" }], additionalItems: false },
      { prefixItems: [{ type: "string" }], items: false },
    ],
    [
      "splits draft-07 dependencies",
      "draft-07",
      { dependencies: { a: ["b"], c: { required: ["d"] } } },
      { dependentRequired: { a: ["b"] }, dependentSchemas: { c: { required: ["d"] } } },
    ],
    [
      "leaves out what draft-07 ignores beside a $ref, and resolves it all the same",
      "draft-07",
      { properties: { a: { $ref: "#/definitions/b", type: "null" } }, definitions: { b: {} } },
      { properties: { a: { $ref: "#/$defs/0" } }, $defs: { "0": {} } },
    ],
    [
      "makes every reference flat, and keeps each target once",
      "2020-12",
      {
        $id: "https://example.com/a",
        properties: {
          a: { $ref: "b" },
          c: { $ref: "#d" },
          e: { $ref: "https://example.com/b#/$defs/f" },
          g: { $ref: "#" },
          h: { $ref: "b" },
        },
        $defs: {
          b: { $id: "b", type: "string", $defs: { f: { type: "number" } } },
          d: { $anchor: "d", type: "boolean" },
          unused: { type: "null" },
        },
      },
      {
        properties: {
          a: { $ref: "#/$defs/0" },
          c: { $ref: "#/$defs/1" },
          e: { $ref: "#/$defs/2" },
          g: { $ref: "#" },
          h: { $ref: "#/$defs/0" },
        },
        $defs: { "0": { type: "string" }, "1": { type: "boolean" }, "2": { type: "number" } },
      },
    ],
    [
      "turns a $dynamicRef that can mean one place only into a $ref",
      "2020-12",
      { $dynamicAnchor: "a", items: { $dynamicRef: "#a", $ref: "#/$defs/b" }, $defs: { b: {} } },
      { items: { $ref: "#/$defs/0", allOf: [{ $ref: "#" }] }, $defs: { "0": {} } },
    ],
    [
      "keeps the formats that are asserted, with a bound of the length",
      "2020-12",
      { properties: { a: { format: "date" }, format: { format: "city", maxLength: 10_001 } } },
      { properties: { a: { format: "date", maxLength: 10_000 }, format: { maxLength: 10_001 } } },
    ],
    [
      "leaves data alone",
      "2020-12",
      { const: { $id: "a", title: "b" }, enum: [{ format: "c" }] },
      { const: { $id: "a", title: "b" }, enum: [{ format: "c" }] },
    ],
  ];
  for (const [what, dialect, schema, expected] of ROWS) {
    it(what, () => {
      assertEquals(normalized(schema, dialect), { $schema: URI, ...expected as object });
    });
  }

  it("rewrites a schema once for each meaning of its $dynamicRef", () => {
    const list = {
      $id: "list",
      items: { $dynamicRef: "#item" },
      $defs: { any: { $dynamicAnchor: "item" } },
    };
    const of = (type: string) => ({
      $id: type,
      $ref: "list",
      $defs: { i: { $dynamicAnchor: "item", type } },
    });
    const schema = {
      properties: { a: { $ref: "string" }, b: { $ref: "number" }, c: { $ref: "list" } },
      $defs: { list, string: of("string"), number: of("number") },
    };
    assertEquals(normalized(schema), {
      $schema: URI,
      properties: { a: { $ref: "#/$defs/0" }, b: { $ref: "#/$defs/1" }, c: { $ref: "#/$defs/2" } },
      $defs: {
        "0": { $ref: "#/$defs/3" },
        "1": { $ref: "#/$defs/4" },
        "2": { items: { $ref: "#/$defs/5" } },
        "3": { items: { $ref: "#/$defs/6" } },
        "4": { items: { $ref: "#/$defs/7" } },
        "5": {},
        "6": { type: "string" },
        "7": { type: "number" },
      },
    });
  });

  it("says whether a check may exhaust the stack", () => {
    const may = (schema: JsonSchema): boolean =>
      normalizeSchema(schema, "2020-12", { formats: ASSERTED_FORMATS }).mayExhaustStack;
    assertEquals(may({ properties: { a: { type: "string" } } }), false);
    assertEquals(may({ properties: { a: { $ref: "#" } } }), true);
    assertEquals(may({ anyOf: Array.from({ length: 300 }, () => ({})) }), true);
  });

  it("keeps the keywords that the engine knows", () => {
    const { schema } = normalizeSchema({ items: { even: true, odd: true } }, "2020-12", {
      formats: new Set(),
      keywords: ["even"],
    });
    assertEquals(schema, { $schema: URI, items: { even: true } });
  });
});
