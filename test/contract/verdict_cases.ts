/** Schemas with valid and invalid values on which every engine must agree. */

import type { Dialect } from "../../src/schema/mod.ts";
import type { JsonSchema } from "../../src/tool/mod.ts";
import data from "./verdict_cases.json" with { type: "json" };

/** A schema, with valid and invalid values. */
export interface VerdictCase {
  readonly what: string;
  readonly dialect?: Dialect;
  readonly schema: JsonSchema;
  readonly fits: readonly unknown[];
  readonly not: readonly unknown[];
  /** True if an engine that is not hardened would never finish. */
  readonly isHostile?: boolean;
}

/** An own property named `__proto__`, which a literal would make the prototype. */
const proto = (value: string): unknown => JSON.parse(`{"__proto__": ${value}}`);

export const VERDICT_CASES: readonly VerdictCase[] = [
  ...data.cases as never[],
  {
    what: "integers, which 2.0 is",
    schema: { type: "integer" },
    fits: [2, 2.0, -1],
    not: [2.5, "2", NaN, Infinity],
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
    schema: { allOf: [{ patternProperties: { "^(x+x+)+$": true } }], unevaluatedProperties: false },
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
    what: "equal objects in any order of keys",
    schema: { enum: [{ a: 1, b: [2] }, null] },
    fits: [{ b: [2], a: 1 }, null],
    not: [{ a: 1 }, { a: 1, b: [2], c: 3 }, [], undefined],
  },
  {
    what: "different items, compared by value",
    schema: { uniqueItems: true },
    fits: [[1, "1", true, "true", null, "null", [1], "[1]", { a: 1 }, { a: "1" }], []],
    not: [[1, 1], [0, -0], ["a", "b", "a"], [null, true, null], [{ a: 1, b: 2 }, { b: 2, a: 1 }], [[
      1,
    ], [1]]],
  },
  {
    what: "a required property that every object inherits",
    schema: { required: ["constructor", "__proto__"] },
    fits: [JSON.parse('{"constructor": 1, "__proto__": 2}')],
    not: [{}, { constructor: 1 }, proto("2")],
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
    what: "formats of texts with up to 10,000 characters",
    schema: { format: "uri" },
    fits: [`a:${"b".repeat(9_998)}`, []],
    not: [`a:${"b".repeat(9_999)}`, `a:${"b".repeat(1_000_000)}`],
  },
  {
    what: "formats with a maximum length in their standards",
    schema: { properties: { mail: { format: "idn-email" }, host: { format: "idn-hostname" } } },
    fits: [{ mail: `${"a".repeat(60)}@example.com`, host: "例え.jp" }],
    not: [{ mail: `a@${"b".repeat(319)}` }, { host: "a".repeat(256) }],
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
];
