import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  asDraft2020,
  checkSchema,
  checkWithoutEngine,
  type Dialect,
} from "../../../src/schema/mod.ts";
import { ASSERTED_FORMATS, normalizeSchema } from "../../../src/schema/normalize.ts";
import type { JsonSchema, JsonSchemaObject } from "../../../src/tool/mod.ts";

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

  it("returns whether a check may exhaust the stack", () => {
    const may = (schema: JsonSchema): boolean =>
      normalizeSchema(schema, "2020-12", { formats: ASSERTED_FORMATS }).mayExhaustStack;
    assertEquals(may({ properties: { a: { type: "string" } } }), false);
    assertEquals(may({ properties: { a: { $ref: "#" } } }), true);
    assertEquals(may({ anyOf: Array.from({ length: 300 }, () => ({})) }), true);
  });

  it("keeps the keywords that the engine supports", () => {
    const { schema } = normalizeSchema({ items: { even: true, odd: true } }, "2020-12", {
      formats: new Set(),
      keywords: ["even"],
    });
    assertEquals(schema, { $schema: URI, items: { even: true } });
  });
});

const DRAFT_04 = "http://json-schema.org/draft-04/schema#";
const DRAFT_06 = "http://json-schema.org/draft-06/schema#";
const DRAFT_2019_09 = "https://json-schema.org/draft/2019-09/schema";

interface Case {
  readonly fact: string;
  readonly schema: JsonSchemaObject;
  readonly fits: readonly unknown[];
  readonly fails: readonly unknown[];
}

const CASES: readonly Case[] = [
  {
    fact: "draft-04 leaves a limit out by a flag beside it",
    schema: { $schema: DRAFT_04, minimum: 1, exclusiveMinimum: true, maximum: 3 },
    fits: [2, 3],
    fails: [1, 4],
  },
  {
    fact: "a flag of draft-04 that is false leaves the limit in",
    schema: { $schema: DRAFT_04, maximum: 3, exclusiveMaximum: false },
    fits: [3],
    fails: [4],
  },
  {
    fact: "draft-04 knows no const, contains, propertyNames or if",
    schema: {
      $schema: DRAFT_04,
      const: 1,
      contains: { type: "string" },
      propertyNames: { maxLength: 1 },
      if: true,
      then: { not: {} },
    },
    fits: [2, [3], { long: 1 }],
    fails: [],
  },
  {
    fact: "draft-04 names places by id",
    schema: {
      $schema: DRAFT_04,
      id: "https://example.com/root",
      properties: { a: { $ref: "#whole" }, b: { $ref: "part" } },
      definitions: {
        whole: { id: "#whole", type: "integer" },
        part: { id: "part", type: "string" },
      },
    },
    fits: [{ a: 1, b: "x" }],
    fails: [{ a: "x" }, { b: 1 }],
  },
  {
    fact: "draft-06 knows const and no if",
    schema: { $schema: DRAFT_06, const: 1, if: true, then: false },
    fits: [1],
    fails: [2],
  },
  {
    fact: "draft-06 ignores what stands beside a reference",
    schema: {
      $schema: DRAFT_06,
      properties: { a: { $ref: "#/definitions/text", maxLength: 1 } },
      definitions: { text: { type: "string" } },
    },
    fits: [{ a: "long" }],
    fails: [{ a: 1 }],
  },
  {
    fact: "2019-09 has lists in items, and what comes after them in additionalItems",
    schema: {
      $schema: DRAFT_2019_09,
      items: [{ type: "string" }, { $ref: "#/items/0" }],
      additionalItems: { $ref: "#/$defs/more" },
      $defs: { more: { type: "integer" } },
    },
    fits: [["a", "b", 1]],
    fails: [["a", 1], ["a", "b", "c"]],
  },
  {
    fact: "2019-09 reads what stands beside a reference, also a recursive one",
    schema: {
      $schema: DRAFT_2019_09,
      $recursiveAnchor: true,
      properties: { child: { $recursiveRef: "#", required: ["name"] }, name: { type: "string" } },
    },
    fits: [{ name: "a", child: { name: "b" } }],
    fails: [{ child: {} }, { child: { name: "b", child: { name: 1 } } }],
  },
  {
    fact: "2019-09 keeps both of two references",
    schema: {
      $schema: DRAFT_2019_09,
      properties: {
        child: { $ref: "#/$defs/named", $recursiveRef: "#", allOf: [{ maxProperties: 2 }] },
      },
      required: ["id"],
      $defs: { named: { required: ["name"] } },
    },
    fits: [{ id: 1, child: { id: 2, name: "b" } }],
    fails: [{ id: 1, child: { id: 2 } }, { id: 1, child: { name: 2 } }, {
      id: 1,
      child: { id: 2, name: "b", x: 1 },
    }],
  },
  {
    fact: "2019-09 knows no prefixItems and no dynamic references",
    schema: { $schema: DRAFT_2019_09, prefixItems: [false], $dynamicRef: "#nowhere" },
    fits: [[1]],
    fails: [],
  },
];

describe("schemas of older drafts", () => {
  for (const { fact, schema, fits, fails } of CASES) {
    it(fact, () => {
      checkSchema(schema);
      const check = checkWithoutEngine(schema);
      assertEquals(fits.filter((value) => !check(value)), []);
      assertEquals(fails.filter((value) => check(value)), []);
    });
  }

  it("of 2019-09 may have one recursive anchor, because 2020-12 has other words for several", () => {
    assertThrows(
      () =>
        checkSchema({
          $schema: DRAFT_2019_09,
          $recursiveAnchor: true,
          $defs: { a: { $id: "a", $recursiveAnchor: true } },
        }),
      TypeError,
      '"/$defs/a/$recursiveAnchor" must stand in one place: write several as "$dynamicAnchor"',
    );
  });

  it("leave no word of theirs behind", () => {
    const schema = { $schema: DRAFT_2019_09, $recursiveAnchor: true, $recursiveRef: "#" };
    assertEquals<unknown>(asDraft2020(schema, "2019-09"), { $ref: "#" });
  });

  it("of draft-04 are rejected if a limit's flag is a number", () => {
    assertThrows(
      () => checkSchema({ $schema: DRAFT_04, exclusiveMinimum: 1 }),
      TypeError,
      '"/exclusiveMinimum" must be true or false, not 1',
    );
  });
});
