import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { hardened } from "../../../src/schema/mod.ts";
import type { JsonSchema } from "../../../src/tool/mod.ts";

/** A sequence of numbers below `count` that a seed determines. */
function randomFrom(seed: number): (count: number) => number {
  return (count) => {
    seed = Math.imul(seed, 1_664_525) + 1_013_904_223 >>> 0;
    return Math.floor(seed / 2 ** 32 * count);
  };
}

const NAMES = ["a", "b", "toString", "__proto__", "x\u2028y"];
const SCALARS = [1, 2, 1.5, -3, "a", "ab", "", "😀😀", true, false, null, 0];
const TYPES = ["string", "number", "integer", "object", "array", ["object", "array"], "null"];

class Samples {
  readonly #random: (count: number) => number;

  constructor(seed: number) {
    this.#random = randomFrom(seed);
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#random(list.length)] as T;
  }

  #map(make: () => unknown): object {
    const length = this.#random(3);
    // As JSON.parse has it, `__proto__` is an own property.
    const entries = Array.from(
      { length },
      () => `${JSON.stringify(this.#pick(NAMES))}:${JSON.stringify(make())}`,
    );
    return JSON.parse(`{${entries}}`);
  }

  value(depth: number): unknown {
    const kind = this.#random(depth > 0 ? 6 : 2);
    if (kind < 2) return this.#pick(SCALARS);
    const make = () => this.value(depth - 1);
    return kind < 4 ? Array.from({ length: this.#random(4) }, make) : this.#map(make);
  }

  schema(depth: number): JsonSchema {
    if (depth === 0) {
      return this.#pick<JsonSchema>([
        true,
        false,
        { type: this.#pick(TYPES) },
        {
          $ref: "#/$defs/d",
        },
        { const: this.value(1) },
        { enum: [this.value(1), 0] },
      ]);
    }
    const part = () => this.schema(depth - 1);
    const count = () => this.#random(3);
    const keywords: readonly (() => object)[] = [
      () => ({ type: this.#pick(TYPES) }),
      () => ({ properties: this.#map(part) }),
      () => ({ required: [this.#pick(NAMES)] }),
      () => ({ additionalProperties: part() }),
      () => ({ patternProperties: { [this.#pick(["^a", "(a|a)*b$"])]: part() } }),
      () => ({ propertyNames: part() }),
      () => ({ items: part() }),
      () => ({ prefixItems: [part(), part()] }),
      () => ({ contains: part(), minContains: count(), maxContains: 1 + count() }),
      () => ({ uniqueItems: true, minItems: count() }),
      () => ({ allOf: [part(), part()] }),
      () => ({ anyOf: [part(), part()] }),
      () => ({ oneOf: [part(), part()] }),
      () => ({ not: part() }),
      () => ({ if: part(), then: part(), else: part() }),
      () => ({ unevaluatedProperties: part() }),
      () => ({ unevaluatedItems: part() }),
      () => ({ $ref: this.#pick(["#/$defs/d", "#/$defs/e"]) }),
      () => ({ dependentSchemas: this.#map(part) }),
      () => ({ dependentRequired: this.#map(() => [this.#pick(NAMES)]) }),
      () => ({ minLength: count(), maxLength: count(), pattern: this.#pick(["^a", "(a+)+$"]) }),
      () => ({ minimum: count() - 1, exclusiveMaximum: 2, multipleOf: 0.5 }),
      () => ({ minProperties: count(), maxProperties: count() }),
    ];
    const chosen = Array.from({ length: 1 + count() }, () => this.#pick(keywords)());
    return Object.assign({}, ...chosen);
  }
}

describe("CheckGenerator", () => {
  const engines = {
    compiled: typeboxEngine(),
    interpreted: typeboxEngine({ codeGeneration: false }),
    split: hardened(typeboxEngine()),
  };

  for (let seed = 0; seed < 100; seed++) {
    it(`gives the verdicts of the interpreter, by the random schemas of seed ${seed}`, () => {
      const samples = new Samples(seed);
      const $defs = { d: samples.schema(2), e: samples.schema(1) };
      const schema = { ...samples.schema(3) as object, $defs };
      try {
        engines.compiled.admit(schema);
      } catch {
        // References in a circle.
        return;
      }
      const checks = Object.values(engines).map((engine) => engine.compile(schema).check);
      for (let count = 0; count < 20; count++) {
        const value = samples.value(3);
        const verdicts = checks.map((check) => check(value));
        assertEquals(verdicts, verdicts.map(() => verdicts[0]), JSON.stringify([schema, value]));
      }
    });
  }

  it("keeps the keys that parts of a split schema have looked at", () => {
    // Each level of a value would be checked twice, so the schema is split.
    const d = {
      type: "object",
      additionalProperties: { allOf: [{ $ref: "#/$defs/d" }, { $ref: "#/$defs/d" }] },
    };
    const part = { contains: { type: "integer" }, unevaluatedItems: { $ref: "#/$defs/d" } };
    const schema = { additionalProperties: part, $defs: { d } };
    for (const engine of Object.values(engines)) {
      const { check } = engine.compile(schema);
      assertEquals([check({ a: [1, {}] }), check({ a: [1, true] })], [true, false]);
    }
  });
});
