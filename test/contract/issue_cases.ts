/**
 * Invalid values, and the exact messages for the model. Every engine returns the same messages.
 *
 * @module
 */

import type { JsonSchema } from "../../src/tool/mod.ts";

/** A schema, a value, and the messages about it. */
export interface IssueCase {
  readonly what: string;
  readonly schema: JsonSchema;
  readonly value: unknown;
  readonly messages: readonly string[];
}

const WEATHER: JsonSchema = {
  type: "object",
  properties: {
    city: { type: "string", minLength: 2 },
    unit: { enum: ["c", "f"] },
    days: { type: "integer", minimum: 1, maximum: 10 },
    filePath: { type: "string" },
  },
  required: ["city"],
  additionalProperties: false,
};

const SHAPES: JsonSchema = {
  properties: {
    shape: {
      oneOf: [
        {
          type: "object",
          properties: { kind: { const: "circle" }, radius: { type: "number" } },
          required: ["kind", "radius"],
        },
        {
          type: "object",
          properties: { kind: { const: "square" }, side: { type: "number" } },
          required: ["kind", "side"],
        },
      ],
    },
  },
};

export const ISSUE_CASES: readonly IssueCase[] = [
  {
    what: "a wrong type",
    schema: WEATHER,
    value: { city: 3 },
    messages: ["/city must be a string, not a number"],
  },
  {
    what: "a value of another type altogether",
    schema: WEATHER,
    value: "Rome",
    messages: ["The value must be an object, not a string"],
  },
  {
    what: "a fraction where a whole number is wanted",
    schema: WEATHER,
    value: { city: "Rome", days: 1.5 },
    messages: ["/days must be an integer"],
  },
  {
    what: "several types",
    schema: { type: ["string", "null"] },
    value: 3,
    messages: ["The value must be a string or null, not a number"],
  },
  {
    what: "a value that is not in the list",
    schema: WEATHER,
    value: { city: "Rome", unit: "k" },
    messages: ['/unit must be one of "c", "f"'],
  },
  {
    what: "a constant",
    schema: { const: { a: [1] } },
    value: 2,
    messages: ['The value must be {"a":[1]}'],
  },
  {
    what: "a missing property",
    schema: WEATHER,
    value: {},
    messages: ['The value must have the property "city"'],
  },
  {
    what: "a property with a slip of the pen",
    schema: WEATHER,
    value: { city: "Rome", dyas: 3 },
    messages: ['The value must not have the property "dyas": did you mean "days"?'],
  },
  {
    what: "a property in another spelling",
    schema: WEATHER,
    value: { city: "Rome", file_path: "a" },
    messages: ['The value must not have the property "file_path": did you mean "filePath"?'],
  },
  {
    what: "a property that is like no other",
    schema: WEATHER,
    value: { city: "Rome", verbose: true },
    messages: [
      'The value must not have the property "verbose": it may have "city", "unit", "days", "filePath"',
    ],
  },
  {
    what: "a property of what has none",
    schema: { type: "object", properties: {}, additionalProperties: false },
    value: { a: 1 },
    messages: ['The value must not have the property "a": it has no properties'],
  },
  {
    what: "several things at once, in the order of the schema's checks",
    schema: WEATHER,
    value: { unit: 1, days: 0, extra: 1 },
    messages: [
      'The value must have the property "city"',
      '/unit must be one of "c", "f"',
      "/days must be at least 1",
      'The value must not have the property "extra": it may have "city", "unit", "days", "filePath"',
    ],
  },
  {
    what: "limits of numbers",
    schema: {
      items: { maximum: 3, exclusiveMinimum: 0, exclusiveMaximum: 3, multipleOf: 0.5 },
    },
    value: [4, 0, 3, 0.7],
    messages: [
      "/0 must be at most 3",
      "/0 must be less than 3",
      "/1 must be more than 0",
      "/2 must be less than 3",
      "/3 must be a multiple of 0.5",
    ],
  },
  {
    what: "limits of texts",
    schema: {
      properties: {
        a: { minLength: 1 },
        b: { maxLength: 2 },
        c: { pattern: "^x" },
        d: { format: "date" },
      },
    },
    value: { a: "", b: "abc", c: "y", d: "today" },
    messages: [
      "/a must have at least 1 character, and has 0",
      "/b must have at most 2 characters, and has 3",
      '/c must match the pattern "^x"',
      '/d must match the format "date"',
    ],
  },
  {
    what: "limits of lists",
    schema: {
      properties: {
        a: { minItems: 2 },
        b: { maxItems: 1 },
        c: { uniqueItems: true },
        d: { contains: { type: "string" } },
        e: { prefixItems: [true], items: false },
      },
    },
    value: { a: [1], b: [1, 2], c: [3, 4, 3], d: [1], e: [1, 2] },
    messages: [
      "/a must have at least 2 items, and has 1",
      "/b must have at most 1 item, and has 2",
      "/c must not have the same item twice: 0 and 2 are the same",
      "/d must have at least 1 item of the kind it needs, and has 0",
      "/e/1 must be absent",
    ],
  },
  {
    what: "limits of objects",
    schema: {
      properties: {
        a: { minProperties: 1 },
        b: { maxProperties: 1 },
        c: { propertyNames: { pattern: "^[a-z]+$" } },
        d: { dependentRequired: { card: ["name"] } },
        e: { unevaluatedProperties: false },
      },
    },
    value: { a: {}, b: { x: 1, y: 2 }, c: { "X": 1 }, d: { card: 1 }, e: { x: 1 } },
    messages: [
      "/a must have at least 1 property, and has 0",
      "/b must have at most 1 property, and has 2",
      '/c must not have the property "X": its name must match the pattern "^[a-z]+$"',
      '/d must have the property "name", because it has "card"',
      '/e must not have the property "x"',
    ],
  },
  {
    what: "places deep inside, as JSON Pointers",
    schema: { properties: { "a/b": { items: { properties: { "c~d": { type: "null" } } } } } },
    value: { "a/b": [{}, { "c~d": 1 }] },
    messages: ["/a~1b/1/c~0d must be null, not a number"],
  },
  {
    what: "a reference",
    schema: {
      properties: { next: { $ref: "#/$defs/node" } },
      $defs: { node: { required: ["id"], properties: { next: { $ref: "#/$defs/node" } } } },
    },
    value: { next: { id: 1, next: {} } },
    messages: ['/next/next must have the property "id"'],
  },
  {
    what: "a choice of types",
    schema: { anyOf: [{ type: "string" }, { type: "number" }, { type: "null" }] },
    value: {},
    messages: ["The value must be a string, a number or null"],
  },
  {
    what: "a choice of constants",
    schema: { anyOf: [{ const: "a" }, { const: "b" }] },
    value: "c",
    messages: ['The value must be "a" or "b"'],
  },
  {
    what: "a choice of which one form has the right type",
    schema: { anyOf: [{ type: "null" }, { type: "object", required: ["id"] }] },
    value: {},
    messages: ['The value must have the property "id"'],
  },
  {
    what: "a choice by kind, with the kind right",
    schema: SHAPES,
    value: { shape: { kind: "square", radius: 3 } },
    messages: ['/shape must have the property "side"'],
  },
  {
    what: "a choice by kind, with no such kind",
    schema: SHAPES,
    value: { shape: { kind: "line" } },
    messages: ['/shape/kind must be "circle" or "square"'],
  },
  {
    what: "a choice of properties",
    schema: { anyOf: [{ required: ["id"] }, { required: ["name"] }] },
    value: {},
    messages: [
      'The value must fit one of 2 forms: have the property "id"; or have the property "name"',
    ],
  },
  {
    what: "two forms at once",
    schema: { oneOf: [{ required: ["id"] }, { required: ["name"] }] },
    value: { id: 1, name: 2 },
    messages: ["The value must fit exactly one of 2 forms, and fits 2"],
  },
  {
    what: "a condition",
    schema: {
      if: { properties: { mode: { const: "write" } }, required: ["mode"] },
      then: { required: ["content"] },
    },
    value: { mode: "write" },
    messages: ['The value must have the property "content"'],
  },
  {
    what: "what is ruled out",
    schema: { properties: { a: { not: { type: "string" } }, b: false } },
    value: { a: "x", b: 1 },
    messages: ["/a must not be what its schema rules out", "/b must be absent"],
  },
];
