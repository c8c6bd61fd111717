import { assert, assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { checkSchema, HARDENING } from "../../../src/schema/mod.ts";
import type { JsonSchema } from "../../../src/tool/mod.ts";
import data from "./check_schema.json" with { type: "json" };

/** The rest of an error message after "Cannot use the schema: ". */
function problemOf(schema: unknown): string {
  try {
    checkSchema(schema as JsonSchema, undefined, HARDENING);
  } catch (error) {
    assert(error instanceof Error);
    assert(error.message.startsWith("Cannot use the schema: "), error.message);
    return `${error.name}: ${error.message.slice("Cannot use the schema: ".length)}`;
  }
  return "accepted";
}

/** Like `problemOf`, for an engine that is not hardened. */
function withoutHardening(schema: unknown): string {
  try {
    checkSchema(schema as JsonSchema);
  } catch (error) {
    return String(error).replace("Cannot use the schema: ", "");
  }
  return "accepted";
}

describe("checkSchema()", () => {
  it("returns the draft", () => {
    assertEquals(checkSchema({ items: [true] }), { dialect: "draft-07" });
    assertEquals(checkSchema(true), { dialect: "2020-12" });
  });

  const REFUSED: readonly (readonly [schema: unknown, problem: string])[] = data.refused as never;
  for (const [schema, problem] of REFUSED) {
    it(`rejects ${JSON.stringify(schema).slice(0, 70)}`, () => {
      assertEquals(problemOf(schema), problem);
      assertEquals(withoutHardening(schema), problem);
    });
  }

  const CIRCLES: readonly JsonSchema[] = data.circles as never;
  for (const schema of CIRCLES) {
    it(`rejects the circle in ${JSON.stringify(schema)}`, () => {
      assert(problemOf(schema).includes("refers to itself"), problemOf(schema));
      assertEquals(withoutHardening(schema), problemOf(schema));
    });
  }

  it("accepts a $dynamicRef to several targets that reach its items in two ways", () => {
    const node = (more: object) => ({ $dynamicAnchor: "node", type: ["array", "null"], ...more });
    const schema = {
      ...node({ $ref: "tree" }),
      $defs: {
        tree: {
          $id: "tree",
          ...node({
            anyOf: [{ items: { $dynamicRef: "#node" } }, { items: { $dynamicRef: "#node" } }],
          }),
        },
      },
    };
    assertEquals(problemOf(schema), "accepted");
  });

  it("bounds the meanings of dynamic references", () => {
    const anchors = (id: number) =>
      Array.from({ length: 20 }, (_, at) => ({ $dynamicAnchor: `a${at}`, $id: `d${id}/${at}` }));
    const problem = problemOf({ allOf: anchors(0), anyOf: anchors(1) });
    assert(problem.startsWith("RangeError: "), problem);
    assert(problem.includes("5000 schemas for all scopes of its dynamic references"), problem);
  });

  const LEGAL: readonly JsonSchema[] = [
    ...data.legal as JsonSchema[],
    { properties: JSON.parse('{"__proto__": {"type": "string"}, "constructor": true}') },
  ];
  for (const schema of LEGAL) {
    it(`accepts ${JSON.stringify(schema).slice(0, 80)}`, () => {
      assertEquals(problemOf(schema), "accepted");
      assertEquals(withoutHardening(schema), "accepted");
    });
  }

  it("uses the caller's name for the schema in messages", () => {
    assertThrows(
      () => checkSchema({ type: 3 }, 'the parameters of tool "a$&"'),
      TypeError,
      'Cannot use the parameters of tool "a$&": "/type" must be',
    );
    assertThrows(
      () => checkSchema({ $schema: "x" }, 'the parameters of tool "a$&"'),
      TypeError,
      'Cannot use the parameters of tool "a$&": its "$schema" is "x"',
    );
  });

  it("does not repeat a long value in a message", () => {
    assert(problemOf({ type: "long ".repeat(10_000) }).length < 300);
    assert(problemOf({ properties: { ["long ".repeat(10_000)]: 3 } }).length < 400);
  });

  describe("bounds", () => {
    /** A schema with `depth` schemas inside each other. */
    function nested(depth: number): JsonSchema {
      let schema: JsonSchema = {};
      for (let i = 0; i < depth; i++) schema = { items: schema };
      return schema;
    }

    it("accepts at most 5,000 schemas", () => {
      assertEquals(problemOf({ allOf: Array.from({ length: 4_999 }, () => ({})) }), "accepted");
      assertEquals(
        problemOf({ allOf: Array.from({ length: 5_000 }, () => ({})) }),
        'RangeError: "/allOf/4999" exceeds a limit: the schema must have at most 5000 schemas',
      );
    });

    it("rejects 100,000 schemas", () => {
      assert(problemOf({ anyOf: Array.from({ length: 100_000 }, () => ({})) }).startsWith("Range"));
    });

    it("accepts at most 64 levels", () => {
      assertEquals(problemOf(nested(64)), "accepted");
      assert(problemOf(nested(65)).endsWith("the schema must have at most 64 levels"));
      assert(problemOf(nested(100_000)).startsWith("RangeError"));
    });

    it("counts the levels of data, too", () => {
      let value: unknown = 1;
      for (let i = 0; i < 1_000; i++) value = [value];
      assert(problemOf({ default: value }).endsWith("at most 64 levels"));
      assert(problemOf({ "x-unknown": value }).endsWith("at most 64 levels"));
    });

    it("accepts at most 100,000 values", () => {
      assertEquals(problemOf({ enum: Array.from({ length: 99_000 }, (_, i) => i) }), "accepted");
      assert(
        problemOf({ enum: Array.from({ length: 101_000 }, (_, i) => i) })
          .endsWith("at most 100000 values"),
      );
    });

    it("accepts at most a million characters", () => {
      assertEquals(problemOf({ description: "a".repeat(999_000) }), "accepted");
      assert(problemOf({ description: "a".repeat(1_000_001) }).endsWith("1000000 characters"));
      assert(problemOf({ properties: { ["a".repeat(1_000_001)]: true } }).endsWith("characters"));
      assert(problemOf({ pattern: "a".repeat(1_000_001) }).endsWith("1000000 characters"));
    });

    it("ends on a schema that contains itself", () => {
      const schema: Record<string, unknown> = { type: "object" };
      schema["properties"] = { a: schema };
      assert(problemOf(schema).startsWith("RangeError"));
    });

    /** `length` definitions for `$defs`. `link` makes each from the reference to the next one. */
    function chain(length: number, link: (ref: JsonSchema) => JsonSchema): JsonSchema {
      const $defs = Object.fromEntries(
        Array.from({ length }, (_, i) => [`d${i}`, link({ $ref: `#/$defs/d${i + 1}` })]),
      );
      return { $ref: "#/$defs/d0", $defs: { ...$defs, [`d${length}`]: {} } };
    }

    it("accepts chains of 256 references, and rejects longer ones before the stack overflows", () => {
      assertEquals(problemOf(chain(250, (ref) => ref)), "accepted");
      for (const length of [300, 4_000]) {
        assertEquals(
          problemOf(chain(length, (ref) => ref)),
          'RangeError: "/$ref" exceeds a limit: its references must unfold to at most 5000 schemas, ' +
            "in chains of at most 256",
        );
      }
    });

    it("rejects references that double repeatedly", () => {
      assertEquals(problemOf(chain(8, (ref) => ({ anyOf: [ref, ref] }))), "accepted");
      assert(problemOf(chain(60, (ref) => ({ anyOf: [ref, ref] }))).startsWith("RangeError"));
    });
  });
});
