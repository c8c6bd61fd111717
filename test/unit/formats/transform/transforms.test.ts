import { assertEquals, assertNotStrictEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import {
  booleansToObjects,
  constToEnum,
  dropKeywords,
  enumToText,
  exclusiveToInclusive,
  tuplesToLists,
} from "../../../../src/formats/transform/keywords.ts";
import {
  inlineRefs as inline,
  mergeAllOf,
} from "../../../../src/formats/transform/merge_all_of.ts";
import {
  normalizeDraft,
  normalizeOpenApi30,
} from "../../../../src/formats/transform/older_dialects.ts";
import {
  closeObjects,
  nullToFlag,
  optionalToNullable,
  renameKeys,
} from "../../../../src/formats/transform/properties.ts";
import { flattenRoot, oneOfToAnyOf } from "../../../../src/formats/transform/unions.ts";
import type { JsonSchema } from "../../../../src/tool/mod.ts";
import { type Rewritten, runPass } from "../run_pass.ts";

const inlineRefs = runPass(inline);

/** A short form of a loss: pointer, kind, and direction. */
type Short = readonly [path: string, grade: string, effect: "" | "wider" | "narrower" | "either"];

interface Row {
  readonly title: string;
  readonly from: JsonSchema;
  readonly to: JsonSchema;
  readonly losses?: readonly Short[];
}

function short({ losses }: Rewritten): Short[] {
  return losses.map(({ path, grade, widens, narrows }) => [
    path,
    grade,
    widens && narrows ? "either" : widens ? "wider" : narrows ? "narrower" : "",
  ]);
}

function check(
  name: string,
  transform: (schema: JsonSchema) => Rewritten,
  rows: readonly Row[],
): void {
  describe(name, () => {
    for (const { title, from, to, losses = [] } of rows) {
      it(title, () => {
        const before = JSON.stringify(from);
        const result = transform(from);
        assertEquals(result.schema, to);
        assertEquals(short(result), losses);
        assertEquals(JSON.stringify(from), before);
      });
    }
    it("returns the same schema if there is nothing to do", () => {
      const schema = { type: "object", properties: {}, required: [], additionalProperties: false };
      assertStrictEquals(transform(schema).schema, schema);
    });
  });
}

check("normalizeDraft()", runPass((root, { trace }) => normalizeDraft(trace, root, "draft-07")), [
  {
    title: "moves definitions, and the references to them",
    from: {
      properties: { a: { $ref: "#/definitions/x~1y" } },
      definitions: { "x/y": { type: "string" } },
    },
    to: { properties: { a: { $ref: "#/$defs/x~1y" } }, $defs: { "x/y": { type: "string" } } },
  },
  {
    title: "leaves a property that is named definitions",
    from: { properties: { definitions: { type: "string" } }, $ref: "#/properties/definitions" },
    to: { $ref: "#/properties/definitions" },
  },
  {
    title: "writes a tuple as prefixItems, with references into it",
    from: { items: [{ $ref: "#/items/1" }, { type: "string" }], additionalItems: false },
    to: { prefixItems: [{ $ref: "#/prefixItems/1" }, { type: "string" }], items: false },
  },
  { title: "drops an empty tuple", from: { items: [], minItems: 1 }, to: { minItems: 1 } },
  {
    title: "drops additionalItems without a tuple, which says nothing",
    from: { items: { type: "string" }, additionalItems: false },
    to: { items: { type: "string" } },
  },
  {
    title: "splits dependencies",
    from: { dependencies: { a: ["b"], c: { required: ["d"] } } },
    to: { dependentRequired: { a: ["b"] }, dependentSchemas: { c: { required: ["d"] } } },
  },
  {
    title: "keeps only words beside a $ref",
    from: { properties: { a: { $ref: "#", description: "A", minLength: 1 } } },
    to: { properties: { a: { $ref: "#", description: "A" } } },
  },
  {
    title: "leaves out keywords that draft-07 does not know",
    from: {
      $schema: "http://json-schema.org/draft-07/schema#",
      unevaluatedProperties: false,
      type: "object",
    },
    to: { type: "object" },
  },
  { title: "writes a plain-name $id as $anchor", from: { $id: "#a" }, to: { $anchor: "a" } },
]);

check("normalizeOpenApi30()", normalizeOpenApi30, [
  {
    title: "writes nullable as a type, and in the enum",
    from: { type: "string", nullable: true, enum: ["a"] },
    to: { type: ["string", "null"], enum: ["a", null] },
  },
  {
    title: "reads nullable without a type as accepting null, and says that it is a guess",
    from: { allOf: [{ $ref: "#/components/schemas/A" }], nullable: true },
    to: { anyOf: [{ allOf: [{ $ref: "#/components/schemas/A" }] }, { type: "null" }] },
    losses: [["/nullable", "ambiguous", "wider"]],
  },
  {
    title: "writes exclusive flags as numbers",
    from: { minimum: 1, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false },
    to: { exclusiveMinimum: 1, maximum: 9 },
  },
  { title: "writes example as examples", from: { example: 1 }, to: { examples: [1] } },
  {
    title: "writes byte and binary as content",
    from: { properties: { a: { type: "string", format: "byte" }, b: { format: "binary" } } },
    to: {
      properties: {
        a: { type: "string", contentEncoding: "base64" },
        b: { contentMediaType: "application/octet-stream" },
      },
    },
  },
  {
    title: "drops what has no counterpart, and says so",
    from: { discriminator: { propertyName: "kind" }, type: "object" },
    to: { type: "object" },
    losses: [["/discriminator", "lost", ""]],
  },
]);

check("inlineRefs()", inlineRefs, [
  {
    title: "follows references, with what stands beside them",
    from: {
      properties: { a: { $ref: "#/$defs/x", description: "An A" } },
      $defs: { x: { type: "string", description: "An X", minLength: 1 } },
    },
    to: { properties: { a: { description: "An A", type: "string", minLength: 1 } } },
  },
  {
    title: "cuts recursion after one round",
    from: {
      properties: { child: { $ref: "#/$defs/node" } },
      $defs: {
        node: { type: "object", properties: { child: { $ref: "#/$defs/node" } } },
      },
    },
    to: {
      properties: {
        child: { type: "object", properties: { child: { type: "object" } } },
      },
    },
    losses: [["/$defs/node/properties/child/$ref", "weakened", "wider"]],
  },
  {
    title: "finds anchors",
    from: { items: { $ref: "#here" }, $defs: { x: { $anchor: "here", type: "null" } } },
    to: { items: { type: "null" } },
  },
]);

describe("inlineRefs()", () => {
  it("does not look outside of the schema", () => {
    assertThrows(
      () => inlineRefs({ $ref: "https://example.com/x" }),
      TypeError,
      'Cannot inline the reference "https://example.com/x": it leads outside of the schema',
    );
  });

  it("gives up on references that double at each step", () => {
    const $defs: Record<string, JsonSchema> = { d0: { type: "string" } };
    for (let step = 1; step < 40; step++) {
      const $ref = `#/$defs/d${step - 1}`;
      $defs[`d${step}`] = { properties: { a: { $ref }, b: { $ref } } };
    }
    assertThrows(() => inlineRefs({ $ref: "#/$defs/d39", $defs }), RangeError, "20000 subschemas");
  });
});

check("mergeAllOf()", runPass(mergeAllOf), [
  {
    title: "takes the tighter of two bounds",
    from: { allOf: [{ minimum: 1, maxLength: 9 }, { minimum: 3, maxLength: 5 }] },
    to: { minimum: 3, maxLength: 5 },
  },
  {
    title: "intersects types and enums",
    from: {
      type: ["string", "number"],
      allOf: [{ type: ["integer", "null"] }, { enum: [1, 2] }, { enum: [2, 3] }],
    },
    to: { type: "integer", enum: [2] },
  },
  {
    title: "merges properties, also against a closed object",
    from: {
      properties: { a: { type: "string" } },
      additionalProperties: false,
      allOf: [{ properties: { a: { minLength: 1 }, b: { type: "null" } }, required: ["a"] }],
    },
    to: {
      properties: { a: { type: "string", minLength: 1 }, b: false },
      additionalProperties: false,
      required: ["a"],
    },
  },
  {
    title: "follows a reference in a branch",
    from: { allOf: [{ $ref: "#/$defs/x" }], $defs: { x: { type: "string" } } },
    to: { $defs: { x: { type: "string" } }, type: "string" },
  },
  {
    title: "joins what depends on what, and names of properties",
    from: {
      dependentRequired: { a: ["b"] },
      dependentSchemas: { a: { minProperties: 1 } },
      propertyNames: { minLength: 1 },
      multipleOf: 2,
      allOf: [{
        dependentRequired: { a: ["c"], d: ["e"] },
        dependentSchemas: { a: { minProperties: 3 } },
        propertyNames: { maxLength: 9 },
        multipleOf: 6,
      }],
    },
    to: {
      dependentRequired: { a: ["b", "c"], d: ["e"] },
      dependentSchemas: { a: { minProperties: 3 } },
      propertyNames: { minLength: 1, maxLength: 9 },
      multipleOf: 6,
    },
  },
  {
    title: "keeps apart what only means something together",
    from: { if: { minLength: 1 }, allOf: [{ if: { maxLength: 1 }, then: false }], type: "string" },
    to: { if: { minLength: 1 }, type: "string", allOf: [{ if: { maxLength: 1 }, then: false }] },
  },
  {
    title: "leaves what cannot be one keyword",
    from: { pattern: "a", allOf: [{ pattern: "b", minLength: 1 }] },
    to: { pattern: "a", minLength: 1, allOf: [{ pattern: "b" }] },
  },
  {
    title: "says false where nothing fits",
    from: { type: "string", allOf: [{ type: "null" }] },
    to: false,
  },
]);

check("oneOfToAnyOf()", runPass(oneOfToAnyOf), [
  {
    title: "loses nothing where a constant tells the branches apart",
    from: {
      oneOf: [
        { type: "object", properties: { kind: { const: "a" } }, required: ["kind"] },
        { type: "object", properties: { kind: { enum: ["b", "c"] } }, required: ["kind"] },
      ],
    },
    to: {
      anyOf: [
        { type: "object", properties: { kind: { const: "a" } }, required: ["kind"] },
        { type: "object", properties: { kind: { enum: ["b", "c"] } }, required: ["kind"] },
      ],
    },
  },
  {
    title: "reports branches that may hold at once",
    from: { oneOf: [{ type: "integer" }, { type: "number" }] },
    to: { anyOf: [{ type: "integer" }, { type: "number" }] },
    losses: [["/oneOf", "weakened", "wider"]],
  },
  {
    title: "narrows under a negation",
    from: { not: { oneOf: [{ minLength: 1 }, { minimum: 1 }] } },
    to: { not: { anyOf: [{ minLength: 1 }, { minimum: 1 }] } },
    losses: [["/not/oneOf", "weakened", "narrower"]],
  },
]);

check("optionalToNullable()", runPass(optionalToNullable), [
  {
    title: "adds null to the type and to the enum",
    from: { properties: { a: { type: "string", enum: ["x"] } } },
    to: { properties: { a: { type: ["string", "null"], enum: ["x", null] } }, required: ["a"] },
  },
  {
    title: "wraps a reference and keeps the words outside",
    from: { type: "object", properties: { a: { $ref: "#", description: "A" } }, required: [] },
    to: {
      type: "object",
      properties: { a: { description: "A", anyOf: [{ $ref: "#" }, { type: "null" }] } },
      required: ["a"],
    },
  },
  {
    title: "says where leaving out and null become one",
    from: { properties: { a: { type: ["string", "null"] } } },
    to: { properties: { a: { type: ["string", "null"] } }, required: ["a"] },
    losses: [["/properties/a", "ambiguous", "narrower"]],
  },
  {
    title: "says so where a reference leads to what may be null",
    from: {
      properties: { a: { $ref: "#/$defs/b" }, c: { $ref: "#/$defs/d" } },
      $defs: {
        b: { $ref: "#/$defs/maybe", description: "B" },
        maybe: { anyOf: [{ type: "string" }, { type: "null" }] },
        d: { $ref: "#/$defs/maybe", not: { type: "null" } },
      },
    },
    to: {
      properties: {
        a: { $ref: "#/$defs/b" },
        c: { anyOf: [{ $ref: "#/$defs/d" }, { type: "null" }] },
      },
      required: ["a", "c"],
      $defs: {
        b: { $ref: "#/$defs/maybe", description: "B" },
        maybe: { anyOf: [{ type: "string" }, { type: "null" }] },
        d: { $ref: "#/$defs/maybe", not: { type: "null" } },
      },
    },
    // Under "not" a reference may turn the effect.
    losses: [["/properties/a", "ambiguous", "either"]],
  },
]);

check("nullToFlag()", runPass(nullToFlag), [
  {
    title: "writes a union with null as the other branch",
    from: { description: "A", anyOf: [{ type: "string", minLength: 1 }, { type: "null" }] },
    to: { type: "string", minLength: 1, description: "A", nullable: true },
  },
  {
    title: "writes a list of types as a union",
    from: { type: ["string", "number", "null"], description: "A" },
    to: { description: "A", anyOf: [{ type: "string" }, { type: "number" }], nullable: true },
  },
  {
    title: "has no word for null alone",
    from: { type: "null" },
    to: { type: "string", nullable: true },
    losses: [["/type", "weakened", "wider"]],
  },
]);

check("closeObjects()", runPass(closeObjects), [
  {
    title: "closes every object and says what cannot be sent",
    from: { type: "object", properties: { a: { type: "object", additionalProperties: true } } },
    to: {
      type: "object",
      properties: { a: { type: "object", additionalProperties: false, properties: {} } },
      additionalProperties: false,
    },
    losses: [
      ["/additionalProperties", "weakened", "narrower"],
      ["/properties/a/additionalProperties", "lost", "narrower"],
    ],
  },
]);

check("tuplesToLists()", runPass(tuplesToLists), [
  {
    title: "joins the items, once each",
    from: { prefixItems: [{ type: "null" }, { type: "null" }], items: false, maxItems: 9 },
    to: { items: { type: "null" }, maxItems: 2 },
    losses: [["/prefixItems", "weakened", ""]],
  },
  {
    title: "says that an open tuple becomes narrower too",
    from: { prefixItems: [{ type: "null" }, { type: "string" }] },
    to: { items: { anyOf: [{ type: "null" }, { type: "string" }] } },
    losses: [["/prefixItems", "weakened", "either"]],
  },
]);

check("exclusiveToInclusive()", runPass(exclusiveToInclusive), [
  {
    title: "is exact for integers",
    from: { type: "integer", exclusiveMinimum: 0.5, exclusiveMaximum: 10, maximum: 20 },
    to: { type: "integer", minimum: 1, maximum: 9 },
  },
  {
    title: "lets the bound of other numbers in",
    from: { type: "number", exclusiveMinimum: 0 },
    to: { type: "number", minimum: 0 },
    losses: [["/exclusiveMinimum", "weakened", "wider"]],
  },
  {
    title: "says nothing where another bound is tighter",
    from: { exclusiveMinimum: 0, minimum: 2 },
    to: { minimum: 2 },
  },
]);

check("constToEnum()", runPass(constToEnum), [
  { title: "makes an enum of one", from: { const: null }, to: { enum: [null] } },
  { title: "sees that nothing fits", from: { enum: [1], const: 2 }, to: false },
]);

check("enumToText()", runPass(enumToText), [
  {
    title: "writes numbers and booleans as texts",
    from: { type: "integer", enum: [1, 2], minimum: 1 },
    to: { type: "string", enum: ["1", "2"] },
  },
  {
    title: "gives up where two would look alike",
    from: { enum: [1, "1"] },
    to: { description: 'One of: [1,"1"]' },
    losses: [["/enum", "moved", "wider"]],
  },
]);

check("booleansToObjects()", runPass(booleansToObjects), [
  {
    title: "leaves out what can never be there",
    from: { properties: { a: false, b: true }, additionalProperties: false },
    to: { properties: { b: {} }, additionalProperties: false },
  },
  {
    title: "leaves out branches that never hold",
    from: { anyOf: [false, true] },
    to: { anyOf: [{}] },
  },
  { title: "empties a list", from: { items: false }, to: { items: {}, maxItems: 0 } },
  {
    title: "says false in the open",
    from: { properties: { a: false } },
    to: { properties: { a: { not: {} } } },
  },
]);

check("flattenRoot()", runPass(flattenRoot), [
  {
    title: "joins the branches of a union, and the constants that tell them apart",
    from: {
      type: "object",
      oneOf: [
        {
          properties: { kind: { const: "a" }, x: { type: "string" } },
          required: ["kind"],
          additionalProperties: false,
        },
        { properties: { kind: { const: "b" } }, required: ["kind"], additionalProperties: false },
      ],
    },
    to: {
      type: "object",
      properties: { kind: { enum: ["a", "b"] }, x: { type: "string" } },
      required: ["kind"],
      additionalProperties: false,
      description:
        'Exactly one of these fits: [{"properties":{"kind":{"const":"a"},"x":{"type":"string"}},"required":["kind"],"additionalProperties":false},{"properties":{"kind":{"const":"b"}},"required":["kind"],"additionalProperties":false}]',
    },
    losses: [["/oneOf", "moved", "wider"]],
  },
  {
    title: "merges a reference at the root, and goes on from there",
    from: {
      type: "object",
      $ref: "#/$defs/a",
      $defs: { a: { properties: { next: { $ref: "#/$defs/a" } } } },
    },
    to: {
      type: "object",
      properties: { next: { $ref: "#/$defs/a" } },
      $defs: { a: { properties: { next: { $ref: "#/$defs/a" } } } },
    },
  },
]);

check(
  "dropKeywords()",
  runPass(dropKeywords, {
    fateOf: (keyword) => ["minLength", "not", "default"].includes(keyword) ? "drop" : "keep",
  }),
  [
    {
      title: "moves what is named into the description, and points at the first schema",
      from: {
        properties: { "a/b": { type: "string", description: "A", minLength: 2, default: "xx" } },
      },
      to: {
        properties: {
          "a/b": { type: "string", description: 'A. At least 2 characters. Default: "xx"' },
        },
      },
      losses: [
        ["/properties/a~1b/default", "moved", ""],
        ["/properties/a~1b/minLength", "moved", "wider"],
      ],
    },
  ],
);

check("renameKeys()", runPass(renameKeys, { keys: { also: "", max: 16, separator: "_" } }), [
  {
    title: "renames a key wherever it is spoken of, and keeps names apart",
    from: {
      properties: { "a b": { type: "string" }, a_b: { type: "null" } },
      required: ["a b"],
      dependentRequired: { "a b": ["a_b"] },
      additionalProperties: false,
    },
    to: {
      properties: { a_b_10a3f9f2: { type: "string" }, a_b: { type: "null" } },
      required: ["a_b_10a3f9f2"],
      dependentRequired: { a_b_10a3f9f2: ["a_b"] },
      additionalProperties: false,
    },
  },
]);

describe("transforms", () => {
  it("share what did not change", () => {
    const kept = { type: "string" };
    const from = { properties: { a: kept, b: { type: "integer", exclusiveMinimum: 0 } } };
    const { schema } = runPass(exclusiveToInclusive)(from);
    assertNotStrictEquals(schema, from);
    assertStrictEquals((schema as typeof from).properties.a, kept);
  });

  it("keep a property that is named __proto__", () => {
    const from = JSON.parse('{"properties":{"__proto__":{"type":"string"}}}');
    const { schema } = runPass(optionalToNullable)(from);
    assertEquals(
      JSON.stringify(schema),
      '{"properties":{"__proto__":{"type":["string","null"]}},"required":["__proto__"]}',
    );
  });
});
