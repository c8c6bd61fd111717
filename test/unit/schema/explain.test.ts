import { assert } from "@std/assert";
import { describe, it } from "bun:test";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { checkWithoutEngine } from "../../../src/schema/mod.ts";
import type { JsonSchema } from "../../../src/tool/mod.ts";
import data from "./explain.json" with { type: "json" };

const engine = typeboxEngine({ codeGeneration: false });

describe("checkWithoutEngine()", () => {
  const rows: readonly [
    schema: JsonSchema,
    fits: readonly unknown[],
    misfits: readonly unknown[],
  ][] = data.rows as never;

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
