import { assert } from "@std/assert";
import { describe, it } from "bun:test";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { checkWithoutEngine } from "../../../src/schema/mod.ts";
import type { JsonSchema } from "../../../src/tool/mod.ts";

const engine = typeboxEngine({ codeGeneration: false });

describe("checkWithoutEngine()", () => {
  const $defs = { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } };
  const rows: readonly [
    schema: JsonSchema,
    fits: readonly unknown[],
    misfits: readonly unknown[],
  ][] = [
    [true, [1, null], []],
    [false, [], [1, null]],
    [{ type: ["string", "null"] }, ["", null], [1, [], {}]],
    [{ type: "integer" }, [1, -2.0], [1.5, "1"]],
    [{ type: "boolean" }, [true], [null]],
    [{ const: { a: [1] } }, [{ a: [1] }], [{ a: [2] }, null]],
    [{ enum: ["a", 1] }, ["a", 1], ["1"]],
    [{ minLength: 2, maxLength: 2 }, ["ab", "😀😀", 1], ["a", "abc"]],
    [{ exclusiveMinimum: 0, maximum: 2 }, [1, 2, "0"], [0, 3]],
    [{ minimum: 0, exclusiveMaximum: 2 }, [0, 1], [-1, 2]],
    [{ items: { type: "string" } }, [[], ["a"]], [[1]]],
    [{ prefixItems: [{ type: "string" }], items: false }, [["a"], []], [[1], ["a", "b"]]],
    [{ minItems: 1, maxItems: 1 }, [[0], {}], [[], [0, 1]]],
    [{ minProperties: 1, maxProperties: 1 }, [{ a: 1 }, []], [{}, { a: 1, b: 2 }]],
    [{ required: ["a"] }, [{ a: null }, 1], [{}]],
    [{ properties: { a: { type: "null" } }, additionalProperties: { type: "string" } }, [
      { a: null, b: "" },
    ], [{ a: 1 }, { b: 1 }]],
    [{ anyOf: [{ type: "string" }, { type: "null" }] }, ["", null], [1]],
    [{ oneOf: [{ type: "string" }, { type: "number" }] }, ["", 1], [null]],
    [{ allOf: [{ required: ["a"] }, { required: ["b"] }] }, [{ a: 1, b: 1 }], [{ a: 1 }]],
    [{ $ref: "#/$defs/node", $defs }, [{}, { next: { next: {} } }], [1, { next: { next: 1 } }]],
    // In draft-07 keywords next to a reference have no effect.
    [
      {
        definitions: { s: { type: "string" } },
        properties: { a: { $ref: "#/definitions/s", minLength: 5 } },
      },
      [{ a: "x" }],
      [{ a: 1 }],
    ],
  ];

  for (const [schema, fits, misfits] of rows) {
    it(`judges ${JSON.stringify(schema).slice(0, 70)} as the engine does`, () => {
      const validator = typeof schema === "boolean"
        ? { check: () => schema }
        : engine.compile(schema, "definitions" in schema ? "draft-07" : "2020-12");
      for (const value of fits) {
        assert(checkWithoutEngine(schema)(value), JSON.stringify(value));
        assert(validator.check(value), JSON.stringify(value));
      }
      for (const value of misfits) {
        assert(!checkWithoutEngine(schema)(value), JSON.stringify(value));
        assert(!validator.check(value), JSON.stringify(value));
      }
    });
  }

  it("judges every keyword but formats", () => {
    assert(checkWithoutEngine({ format: "date" })("b"));
    for (const schema of [{ pattern: "^a" }, { not: {} }, { if: {}, then: false }]) {
      assert(!checkWithoutEngine(schema)("b"), JSON.stringify(schema));
    }
    const patterns = { patternProperties: { a: { type: "string" } }, additionalProperties: false };
    assert(checkWithoutEngine(patterns)({ a: "b" }));
    assert(!checkWithoutEngine(patterns)({ a: 1 }));
  });

  it("ends with a no where a schema makes the check long", () => {
    const doubling: Record<string, JsonSchema> = { d40: { type: "string" } };
    for (let level = 0; level < 40; level++) {
      const next = { $ref: `#/$defs/d${level + 1}` };
      doubling[`d${level}`] = { allOf: [next, next] };
    }
    assert(!checkWithoutEngine({ $ref: "#/$defs/d0", $defs: doubling })("x"));
    assert(!checkWithoutEngine({ $ref: "#" })("x"));
  });
});
