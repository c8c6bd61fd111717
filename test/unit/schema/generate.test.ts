import { assert, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import fc from "fast-check";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { checkSchema, checkWithoutEngine, hardened } from "../../../src/schema/mod.ts";
import type { JsonSchema } from "../../../src/tool/mod.ts";
import { aParametersSchema, aValueFor } from "../../support/arbitrary_schema.ts";
import { cases } from "../../support/laws.ts";
import data from "./explain.json" with { type: "json" };

const ENGINES = {
  compiled: typeboxEngine(),
  interpreted: typeboxEngine({ codeGeneration: false }),
  hardened: hardened(typeboxEngine()),
};

function isValid(schema: object): boolean {
  try {
    checkSchema(schema as never);
    return true;
  } catch {
    return false;
  }
}

describe("CheckGenerator", () => {
  it("accepts the same values as the interpreter, for any schema", () => {
    const pair = aParametersSchema().filter(isValid)
      .chain((schema) => fc.tuple(fc.constant(schema), fc.array(aValueFor(schema))));
    fc.assert(
      fc.property(pair, ([schema, values]) => {
        const [first, ...others] = Object.values(ENGINES).map((engine) => {
          const { check } = engine.compile(schema);
          return values.map((value) => check(value));
        });
        for (const other of others) assertEquals(other, first);
      }),
      cases(500),
    );
  });

  it("records the keys that subschemas have checked if it caches verdicts", () => {
    // Each level of a value would be checked twice, so verdicts are cached.
    const one = { $ref: "#/$defs/d" };
    const d = { type: "object", additionalProperties: { allOf: [one, one] } };
    const part = { contains: { type: "integer" }, unevaluatedItems: one };
    for (const engine of Object.values(ENGINES)) {
      const { check } = engine.compile({ additionalProperties: part, $defs: { d } });
      assertEquals([check({ a: [1, {}] }), check({ a: [1, true] })], [true, false]);
    }
  });
});

describe("checkWithoutEngine()", () => {
  const rows: readonly (readonly [JsonSchema, fits: unknown[], misfits: unknown[]])[] = data
    .rows as never;

  for (const [schema, fits, misfits] of rows) {
    it(`checks ${JSON.stringify(schema).slice(0, 70)} like the engine`, () => {
      const validator = typeof schema === "boolean"
        ? { check: () => schema }
        : ENGINES.compiled.compile(schema, "definitions" in schema ? "draft-07" : "2020-12");
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

  it("checks every keyword but formats", () => {
    assert(checkWithoutEngine({ format: "date" })("b"));
    for (const schema of [{ pattern: "^a" }, { not: {} }, { if: {}, then: false }]) {
      assert(!checkWithoutEngine(schema)("b"), JSON.stringify(schema));
    }
    const patterns = { patternProperties: { a: { type: "string" } }, additionalProperties: false };
    assert(checkWithoutEngine(patterns)({ a: "b" }));
    assert(!checkWithoutEngine(patterns)({ a: 1 }));
  });

  it("rejects the value if a schema makes the check long", () => {
    const doubling: Record<string, JsonSchema> = { d40: { type: "string" } };
    for (let level = 0; level < 40; level++) {
      const next = { $ref: `#/$defs/d${level + 1}` };
      doubling[`d${level}`] = { allOf: [next, next] };
    }
    assert(!checkWithoutEngine({ $ref: "#/$defs/d0", $defs: doubling })("x"));
    assert(!checkWithoutEngine({ $ref: "#" })("x"));
  });
});
