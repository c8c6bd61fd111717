/**
 * Schemas with valid and invalid values on which every engine must agree, even if the official
 * suite is absent.
 *
 * @module
 */

import type { Dialect } from "../../src/schema/mod.ts";
import type { JsonSchema } from "../../src/tool/mod.ts";

/** One schema, and what fits it. */
export interface VerdictCase {
  readonly what: string;
  readonly dialect?: Dialect;
  readonly schema: JsonSchema;
  readonly fits: readonly unknown[];
  readonly not: readonly unknown[];
  /** True if an engine that is not hardened would take for ever. */
  readonly isHostile?: boolean;
}

/** An own property named `__proto__`, which a literal would make the prototype. */
const proto = (value: string): unknown => JSON.parse(`{"__proto__": ${value}}`);

const DRAFT_07 = "draft-07";

export const VERDICT_CASES: readonly VerdictCase[] = [
  {
    what: "expressions, whose kinds lead back to all kinds",
    schema: {
      $ref: "#/$defs/expression",
      $defs: {
        expression: {
          oneOf: [
            { type: ["number", "string"] },
            {
              type: "object",
              properties: {
                op: { enum: ["and", "or"] },
                args: { type: "array", items: { $ref: "#/$defs/expression" }, minItems: 1 },
              },
              required: ["op", "args"],
              unevaluatedProperties: false,
            },
            {
              type: "object",
              properties: { op: { const: "not" }, args: { $ref: "#/$defs/expression" } },
              required: ["op", "args"],
              additionalProperties: false,
            },
          ],
        },
      },
    },
    fits: [
      1,
      { op: "not", args: "x" },
      { op: "and", args: [1, { op: "not", args: { op: "or", args: [1, "a"] } }] },
    ],
    not: [
      null,
      [],
      { op: "not", args: [1] },
      { op: "and", args: [] },
      { op: "and", args: [1, { op: "not", args: { op: "or", args: [1, null] } }] },
      { op: "and", args: [1], more: 1 },
    ],
  },
  {
    what: "two views of the same members, one of which looks at what the other left",
    schema: {
      type: "object",
      allOf: [{ properties: { a: { $ref: "#" } } }, {
        patternProperties: { "^[ab]$": { $ref: "#" } },
      }],
      unevaluatedProperties: false,
    },
    fits: [{}, { a: { b: {} } }, { a: {}, b: { a: { a: {} } } }],
    not: [1, { c: {} }, { a: { b: { c: {} } } }, { a: 1 }, { b: { a: [] } }],
  },
  { what: "the schema true", schema: true, fits: [1, null, {}], not: [] },
  { what: "the schema false", schema: false, fits: [], not: [1, null, {}] },
  { what: "an empty schema", schema: {}, fits: [1, null, {}], not: [] },
  {
    what: "the arguments of a tool",
    schema: {
      type: "object",
      properties: {
        city: { type: "string", minLength: 1, maxLength: 10 },
        unit: { enum: ["c", "f"] },
        days: { type: "integer", minimum: 1, maximum: 10 },
        tags: { type: "array", items: { type: "string" }, uniqueItems: true, maxItems: 3 },
      },
      required: ["city"],
      additionalProperties: false,
    },
    fits: [{ city: "Rome" }, { city: "Rome", unit: "f", days: 10, tags: ["a", "b"] }],
    not: [
      {},
      [],
      null,
      "Rome",
      { city: "" },
      { city: 3 },
      { city: "Rome", unit: "k" },
      { city: "Rome", days: 1.5 },
      { city: "Rome", days: 11 },
      { city: "Rome", town: "Rome" },
      { city: "Rome", tags: ["a", "a"] },
    ],
  },
  {
    what: "numbers at their limits",
    schema: { exclusiveMinimum: 0, exclusiveMaximum: 1, multipleOf: 0.1 },
    fits: [0.1, 0.3, 0.7, "not a number"],
    not: [0, 1, 0.25],
  },
  {
    what: "integers, which 2.0 is",
    schema: { type: "integer" },
    fits: [2, 2.0, -1],
    not: [2.5, "2", NaN, Infinity],
  },
  {
    what: "lengths in characters, not in code units",
    schema: { minLength: 2, maxLength: 2 },
    fits: ["ab", "💩💩"],
    not: ["a", "💩", "abc"],
  },
  {
    what: "a pattern that would backtrack",
    isHostile: true,
    schema: { pattern: "^(a+)+$" },
    fits: ["a", "a".repeat(50_000), 1],
    not: ["", "b", `${"a".repeat(50_000)}!`],
  },
  {
    what: "a pattern that would backtrack, negated",
    isHostile: true,
    schema: { type: "string", not: { pattern: "(x+x+)+y" } },
    fits: ["x".repeat(10_000), ""],
    not: [`${"x".repeat(10_000)}y`],
  },
  {
    what: "patterns of names that would backtrack, beside what is left over",
    isHostile: true,
    schema: {
      properties: { a: { type: "integer" }, xb: { type: "integer" } },
      patternProperties: { "^x(\\w+\\w*)*$": { minimum: 5 }, "^y": { type: "string" } },
      additionalProperties: false,
    },
    fits: [{ a: 1, xb: 5, [`x${"c".repeat(5_000)}`]: 7, y: "" }, 1, []],
    not: [{ xb: 4 }, { [`x${"c".repeat(5_000)}`]: 1 }, { [`x${"c".repeat(5_000)}-`]: 7 }, { y: 1 }],
  },
  {
    what: "patterns of names that would backtrack, and what is unevaluated",
    isHostile: true,
    schema: {
      allOf: [{ patternProperties: { "^(x+x+)+$": true } }],
      unevaluatedProperties: false,
    },
    fits: [{ ["x".repeat(5_000)]: 1 }, {}],
    not: [{ [`${"x".repeat(5_000)}y`]: 1 }],
  },
  {
    what: "names that would backtrack",
    isHostile: true,
    schema: { propertyNames: { pattern: "^(\\d|[0-9])+$" } },
    fits: [{ ["1".repeat(5_000)]: 1 }, {}, 1],
    not: [{ [`${"1".repeat(5_000)}x`]: 1 }],
  },
  {
    what: "lookaheads and lookbehinds",
    schema: { pattern: "^(?!.*\\.\\.)(?=.*\\d)[\\w.]+(?<!\\.)$" },
    fits: ["a.1", "a.b.c1", "1".repeat(20_000)],
    not: ["a..1", "a.b", "a1.", ""],
  },
  {
    what: "a pattern that would backtrack, below a schema that leads back to itself",
    isHostile: true,
    schema: {
      anyOf: [
        { type: "string", pattern: "^(?:a|a)+$" },
        { type: "array", items: { $ref: "#" }, minItems: 7 },
        { type: "array", items: { $ref: "#" }, maxItems: 6 },
      ],
    },
    fits: [[["a".repeat(1_000)], "a"]],
    not: [[[`${"a".repeat(1_000)}b`]]],
  },
  {
    what: "patterns, which are not anchored",
    schema: { pattern: "^a\\p{L}+$|b" },
    fits: ["aé", "xbx", 3],
    not: ["a1", "A"],
  },
  {
    what: "equal objects in any order of keys",
    schema: { enum: [{ a: 1, b: [2] }, null] },
    fits: [{ b: [2], a: 1 }, null],
    not: [{ a: 1 }, { a: 1, b: [2], c: 3 }, [], undefined],
  },
  { what: "an empty enum", schema: { enum: [] }, fits: [], not: [1, null] },
  {
    what: "different items, compared by value",
    schema: { uniqueItems: true },
    fits: [[1, "1", true, "true", null, "null", [1], "[1]", { a: 1 }, { a: "1" }], []],
    not: [[1, 1], [0, -0], ["a", "b", "a"], [null, true, null], [{ a: 1, b: 2 }, { b: 2, a: 1 }], [[
      1,
    ], [1]]],
  },
  {
    what: "properties with the names of what every object inherits",
    schema: {
      properties: { constructor: { type: "string" }, toString: { type: "number" } },
      required: ["valueOf"],
    },
    fits: [{ valueOf: 1 }, { valueOf: 1, constructor: "a", toString: 1 }],
    not: [{}, { valueOf: 1, constructor: 1 }, { valueOf: 1, toString: "a" }],
  },
  {
    what: "such names where no other property is expected",
    schema: {
      properties: { toString: { type: "number" }, a: true },
      required: ["toString", "a"],
      additionalProperties: false,
    },
    fits: [{ toString: 1, a: 1 }],
    not: [{ a: 1 }, { toString: "b", a: 1 }, { toString: 1, a: 1, valueOf: 1 }],
  },
  {
    what: "two lists of allowed names",
    schema: {
      properties: { a: true, b: true },
      additionalProperties: false,
      propertyNames: { enum: ["b", "c"] },
      allOf: [{ additionalProperties: { type: "number" } }],
    },
    fits: [{}, { b: 1 }],
    not: [{ a: 1 }, { c: 1 }, { b: "1" }],
  },
  {
    what: "a required property that every object inherits",
    schema: { required: ["constructor", "__proto__"] },
    fits: [JSON.parse('{"constructor": 1, "__proto__": 2}')],
    not: [{}, { constructor: 1 }, proto("2")],
  },
  {
    what: "properties that need others, with the names of what every object inherits",
    schema: {
      dependentRequired: { toString: ["a"], b: ["valueOf"] },
      dependentSchemas: { hasOwnProperty: { required: ["a"] } },
      properties: { items: { items: { required: ["isPrototypeOf"] } } },
      unevaluatedProperties: true,
    },
    fits: [
      {},
      { toString: 1, a: 1 },
      { b: 1, valueOf: 1 },
      { hasOwnProperty: 1, a: 1 },
      "text",
      { items: [1, { isPrototypeOf: 1 }] },
    ],
    not: [{ toString: 1 }, { b: 1 }, { hasOwnProperty: 1 }, { items: [{}] }],
  },
  {
    what: "a property named __proto__",
    schema: { properties: proto('{"type": "number"}') as JsonSchema, additionalProperties: false },
    fits: [{}, proto("1")],
    not: [proto('"x"'), proto("{}"), { a: 1 }],
  },
  {
    what: "a property named __proto__ where none is expected",
    schema: { properties: { a: true }, additionalProperties: false },
    fits: [{ a: 1 }],
    not: [proto("1"), proto('{"a": 1}')],
  },
  {
    what: "inherited names where no property is expected",
    schema: { properties: {}, additionalProperties: false },
    fits: [{}],
    not: [{ constructor: 1 }, { toString: 1 }, { hasOwnProperty: 1 }],
  },
  {
    what: "patterns of properties",
    schema: {
      patternProperties: { "^x-": { type: "string" } },
      properties: { a: true },
      additionalProperties: { type: "number" },
      propertyNames: { maxLength: 5 },
      minProperties: 1,
      maxProperties: 2,
    },
    fits: [{ "x-a": "b" }, { a: null, b: 1 }],
    not: [{}, { "x-a": 1 }, { b: "1" }, { "x-toolong": "a" }, { a: 1, b: 1, c: 1 }],
  },
  {
    what: "names with characters that mean something in patterns",
    schema: {
      properties: { "a.b": true, "c|d": true, "[e]": true, "$f": true },
      additionalProperties: false,
    },
    fits: [{ "a.b": 1, "c|d": 1, "[e]": 1, "$f": 1 }],
    not: [{ axb: 1 }, { c: 1 }, { e: 1 }],
  },
  {
    what: "properties that need others",
    schema: {
      dependentRequired: { card: ["name"] },
      dependentSchemas: { gift: { properties: { price: { maximum: 10 } } } },
    },
    fits: [{}, { card: 1, name: 1 }, { gift: true, price: 10 }, { price: 11 }],
    not: [{ card: 1 }, { gift: true, price: 11 }],
  },
  {
    what: "draft-07 dependencies",
    dialect: DRAFT_07,
    schema: { dependencies: { card: ["name"], gift: { properties: { price: { maximum: 10 } } } } },
    fits: [{}, { card: 1, name: 1 }, { gift: true, price: 10 }],
    not: [{ card: 1 }, { gift: true, price: 11 }],
  },
  {
    what: "draft-07 lists of item schemas",
    dialect: DRAFT_07,
    schema: { items: [{ type: "string" }, true], additionalItems: { type: "number" } },
    fits: [[], ["a"], ["a", null, 1]],
    not: [[1], ["a", 1, "b"]],
  },
  {
    what: "2020-12 lists of item schemas",
    schema: { prefixItems: [{ type: "string" }, true], items: false },
    fits: [[], ["a"], ["a", null]],
    not: [[1], ["a", 1, "b"]],
  },
  {
    what: "items of a kind, counted",
    schema: { contains: { type: "number" }, minContains: 2, maxContains: 3 },
    fits: [[1, 2], ["a", 1, 2, 3]],
    not: [[], [1], [1, 2, 3, 4]],
  },
  {
    what: "draft-07 ignores what stands beside a $ref",
    dialect: DRAFT_07,
    schema: {
      properties: { a: { $ref: "#/definitions/text", maxLength: 1 } },
      definitions: { text: { type: "string" } },
    },
    fits: [{ a: "long" }],
    not: [{ a: 1 }],
  },
  {
    what: "2020-12 asserts what stands beside a $ref",
    schema: {
      properties: { a: { $ref: "#/$defs/text", maxLength: 1 } },
      $defs: { text: { type: "string" } },
    },
    fits: [{ a: "b" }],
    not: [{ a: 1 }, { a: "long" }],
  },
  {
    what: "draft-07 knows no keyword of 2020-12",
    dialect: DRAFT_07,
    schema: {
      prefixItems: [{ type: "string" }],
      dependentRequired: { a: ["b"] },
      unevaluatedProperties: false,
      definitions: {},
    },
    fits: [[1], { a: 1 }],
    not: [],
  },
  {
    what: "2020-12 knows no keyword that only draft-07 had",
    schema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      dependencies: { a: ["b"] },
      additionalItems: false,
      prefixItems: [true],
    },
    fits: [{ a: 1 }, [1, 2]],
    not: [],
  },
  {
    what: "a schema that refers to itself",
    schema: {
      type: "object",
      properties: { value: { type: "number" }, next: { $ref: "#" } },
      required: ["value"],
      additionalProperties: false,
    },
    fits: [{ value: 1 }, { value: 1, next: { value: 2, next: { value: 3 } } }],
    not: [{}, { value: 1, next: {} }, { value: 1, next: { value: 2, next: { other: 3 } } }],
  },
  {
    what: "schemas that refer to each other, by name and by $id",
    schema: {
      $id: "https://example.com/tree",
      $ref: "node",
      $defs: {
        node: {
          $id: "node",
          properties: { branches: { items: { $ref: "#branch" } } },
          $defs: { branch: { $anchor: "branch", required: ["leaf"], $ref: "node" } },
        },
      },
    },
    fits: [{ branches: [] }, { branches: [{ leaf: 1, branches: [{ leaf: 1 }] }] }],
    not: [{ branches: [{}] }, { branches: [{ leaf: 1, branches: [{}] }] }],
  },
  {
    what: "a pointer with escapes",
    schema: {
      properties: { a: { $ref: "#/$defs/x~1y~0z%20w" } },
      $defs: { "x/y~z w": { type: "null" } },
    },
    fits: [{ a: null }],
    not: [{ a: 1 }],
  },
  {
    what: "a $dynamicRef that can mean one place only",
    schema: {
      $dynamicAnchor: "node",
      properties: { children: { items: { $dynamicRef: "#node" } } },
      required: ["id"],
    },
    fits: [{ id: 1, children: [{ id: 2 }] }],
    not: [{ id: 1, children: [{}] }],
  },
  {
    what: "properties that other parts have looked at",
    schema: {
      allOf: [{ properties: { a: true } }],
      anyOf: [{ properties: { b: { const: 1 } }, required: ["b"] }, { required: ["a"] }],
      unevaluatedProperties: false,
    },
    fits: [{ a: 1 }, { a: 1, b: 1 }, { b: 1 }],
    not: [{ a: 1, b: 2 }, { a: 1, c: 1 }],
  },
  {
    what: "properties that other parts have looked at, where there may be an array",
    schema: {
      properties: { a: { unevaluatedProperties: false }, b: { $ref: "#" } },
      patternProperties: { "^c": { items: { required: ["d"] } } },
      minItems: 1,
      unevaluatedProperties: false,
    },
    fits: [{ a: [1], b: [1] }, [1], "text", { b: { a: {}, c: [{ d: 1 }] } }],
    not: [[], { x: 1 }, { a: { x: 1 } }, { b: { x: 1 } }, { c: [{}] }],
  },
  {
    what: "items that other parts have looked at",
    schema: {
      prefixItems: [true],
      anyOf: [{ prefixItems: [true, { type: "string" }] }, { maxItems: 1 }],
      unevaluatedItems: false,
    },
    fits: [[1, "a"], [1]],
    not: [[1, "a", 2], [1, 2]],
  },
  {
    what: "forms, and what is not one",
    schema: {
      oneOf: [{ type: "number" }, { minimum: 5 }],
      not: { const: 7 },
      if: { type: "string" },
      then: { minLength: 2 },
    },
    fits: [1, "ab"],
    not: [6, 7, "a"],
  },
  {
    what: "keywords that nobody knows, with names of the drafts in them",
    schema: {
      "x-type": { type: "nonsense" },
      nullable: true,
      id: 3,
      discriminator: { propertyName: "a" },
      type: "string",
    },
    fits: ["a"],
    not: [null, 1],
  },
  {
    what: "names of keywords that are properties, and schemas that are data",
    schema: {
      properties: {
        $ref: { type: "string" },
        items: { type: "number" },
        type: { const: { $ref: "#/no" } },
      },
      default: { $ref: "#/nowhere" },
    },
    fits: [{ $ref: "#/x", items: 1, type: { $ref: "#/no" } }],
    not: [{ $ref: 1 }, { items: "1" }, { type: {} }],
  },
  {
    what: "formats of the drafts",
    schema: {
      properties: {
        day: { format: "date" },
        at: { format: "date-time" },
        mail: { format: "email" },
        link: { format: "uri" },
        name: { format: "idn-hostname" },
        key: { format: "uuid" },
        for: { format: "duration" },
      },
    },
    fits: [
      { day: "2026-02-28", at: "2026-11-20T09:30:00Z", mail: "a@b.example" },
      { link: "https://a.example/b?c", key: "2eb8aa08-aa98-11ea-b4aa-73b441d16380", for: "P1D" },
      { day: 3 },
    ],
    not: [
      { day: "2026-02-30" },
      { at: "yesterday" },
      { mail: "nobody" },
      { link: "not a link" },
      { name: "-a-" },
      { key: "1" },
      { for: "1 day" },
    ],
  },
  {
    what: "formats of texts with up to 10,000 characters",
    schema: { format: "uri" },
    fits: [`a:${"b".repeat(9_998)}`, []],
    not: [`a:${"b".repeat(9_999)}`, `a:${"b".repeat(1_000_000)}`],
  },
  {
    what: "formats beside other bounds of the length",
    schema: {
      properties: {
        short: { format: "json-pointer", maxLength: 4 },
        long: { format: "json-pointer", maxLength: 20_000 },
        any: { format: "city" },
      },
    },
    fits: [{ short: "/abc", long: "/".repeat(10_000), any: "a".repeat(10_001) }],
    not: [{ short: "/abcd" }, { long: "/".repeat(10_001) }],
  },
  {
    what: "formats that the drafts do not name",
    schema: { format: "city", properties: { a: { format: "int32" }, b: { format: "url" } } },
    fits: ["anything", { a: "x", b: "x" }],
    not: [],
  },
];
