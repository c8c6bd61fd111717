/** The contract of every schema engine, for the adapters' tests. */

import { assert, assertEquals, assertLess, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import * as schemas from "../../src/schema/mod.ts";
import type { JsonSchema } from "../../src/tool/mod.ts";
import issueCases from "./issue_cases.json" with { type: "json" };
import { VERDICT_CASES } from "./verdict_cases.ts";

/** Schemas that several cases of messages share, by name. */
const SHARED_SCHEMAS: Readonly<Record<string, JsonSchema>> = issueCases.schemas as never;

const lists = (items: JsonSchema): JsonSchema[] => [
  { type: "array", items, minItems: 7 },
  { type: "array", items, maxItems: 6 },
];

/** Schemas that check each item more than once at every level, which takes exponential time. */
const BRANCHING_SCHEMAS: readonly { readonly what: string; readonly schema: JsonSchema }[] = [
  {
    what: "two branches that lead back to the root",
    schema: { anyOf: [{ type: "integer" }, ...lists({ $ref: "#" })] },
  },
  {
    what: "exactly one of two branches",
    schema: {
      $ref: "#/$defs/n",
      $defs: { n: { oneOf: [{ type: "integer" }, ...lists({ $ref: "#/$defs/n" })] } },
    },
  },
  {
    what: "branches inside the items, beside what is left over",
    schema: {
      type: ["array", "integer"],
      allOf: [{ items: { anyOf: [false, { $ref: "#" }] } }, { contains: { $ref: "#" } }],
      prefixItems: [{ $ref: "#" }],
      unevaluatedItems: false,
    },
  },
  {
    what: "definitions that lead to the next two and two, without a circle",
    schema: {
      $ref: "#/$defs/d0",
      $defs: Object.fromEntries([
        ...Array.from({ length: 25 }, (_, at) =>
          [`d${at}`, {
            anyOf: [{ type: "integer" }, ...lists({ $ref: `#/$defs/d${at + 1}` })],
          }] as const),
        ["d25", { type: "integer" }],
      ]),
    },
  },
];

/** Schemas that must not be registered. */
const REFUSED_SCHEMAS: readonly {
  readonly schema: unknown;
  readonly error: new (message: string) => Error;
  readonly problem: string;
}[] = [
  { schema: 3, error: TypeError, problem: "it must be an object or a boolean, not 3" },
  {
    schema: { properties: { "a/b": { minimum: "1" } } },
    error: TypeError,
    problem: '"/properties/a~1b/minimum" must be a number, not "1"',
  },
  {
    schema: { items: { $ref: "#/$defs/a" } },
    error: TypeError,
    problem: '"/items/$ref" must point into the schema',
  },
  {
    schema: { allOf: [{ $ref: "#" }] },
    error: TypeError,
    problem: '"/allOf/0/$ref" refers to itself',
  },
  {
    schema: { properties: { a: { pattern: "(" } } },
    error: SyntaxError,
    problem: '"/properties/a/pattern" must be a regular expression',
  },
];

/** The time of compilation: in a worker, code may be generated only while its module loads. */
export type CompileTime = "while the module loads" | "inside a test";

/** Declares the tests of the contract of `SchemaEngine` for an engine. */
export function describeSchemaEngine(
  name: string,
  makeEngine: (formats: "assert" | "annotate") => schemas.SchemaEngine,
  compileTime: CompileTime = "while the module loads",
): void {
  const engine = schemas.hardened(makeEngine("assert"));
  const plain = makeEngine("assert");

  /** Returns the validator, or the error of compiling, at the tested compile time. */
  function compiling(
    schema: JsonSchema,
    dialect: schemas.Dialect = "2020-12",
    by: schemas.SchemaEngine = engine,
  ): () => schemas.SchemaValidator {
    if (compileTime === "inside a test") return () => by.compile(schema, dialect);
    try {
      const validator = by.compile(schema, dialect);
      return () => validator;
    } catch (error) {
      return () => {
        throw error;
      };
    }
  }

  describe(`${name}, compiled ${compileTime}`, () => {
    for (const { what, dialect, schema, fits, not, isHostile } of VERDICT_CASES) {
      for (const by of isHostile ? [engine] : [engine, plain]) {
        const compile = compiling(schema, dialect, by);
        const how = by === plain ? ", not hardened" : "";
        it(`accepts and rejects ${what} correctly${how}`, () => {
          by.admit(schema);
          const validator = compile();
          for (const value of fits) assertEquals([value, validator.check(value)], [value, true]);
          for (const value of not) {
            assertEquals([value, validator.check(value)], [value, false]);
            const issues = validator.issues(value);
            assert(issues.length >= 1 && issues.length <= schemas.MAX_ISSUES);
            assert(issues.every((issue) => issue.keyword !== "schema"), "the issue says nothing");
          }
        });
      }
    }

    for (const by of [engine, plain]) {
      const how = by === plain ? ", not hardened" : "";
      it(`admit() returns the draft of a schema that it accepts${how}`, () => {
        assertEquals(by.admit(true).dialect, "2020-12");
        assertEquals(by.admit({ properties: { a: { $ref: "#" } } }).dialect, "2020-12");
        assertEquals(by.admit({ items: [true] }).dialect, "draft-07");
      });

      for (const { schema, error, problem } of REFUSED_SCHEMAS) {
        it(`admit() rejects ${JSON.stringify(schema)} with its JSON Pointer${how}`, () => {
          const refused = () => by.admit(schema as JsonSchema, "its parameters");
          assertThrows(refused, error, `Cannot use its parameters: ${problem}`);
        });
      }

      it(`admit() rejects a schema that is too large or too deep${how}`, () => {
        let deep: JsonSchema = {};
        for (let level = 0; level < 65; level++) deep = { items: deep };
        const many = Array.from({ length: 100_001 }, (_, at) => at);
        const large = [
          ...[deep, { allOf: many.slice(0, 5_000).map(() => ({})) }],
          ...[{ enum: many }, { title: "a".repeat(1_000_001) }],
        ];
        for (const schema of large) {
          assertThrows(() => by.admit(schema), RangeError, "exceeds a limit");
        }
      });
    }

    const detecting = { ...plain, compile: (schema: JsonSchema) => plain.compile(schema) };
    const detected = compiling({ items: [{ type: "string" }] }, "2020-12", detecting);
    it("detects the draft if none is passed", () => {
      assertEquals([detected().check(["a"]), detected().check([1])], [true, false]);
    });

    for (const { what, schema: source, value, messages } of issueCases.cases) {
      const schema = (typeof source === "string" ? SHARED_SCHEMAS[source] : source) as JsonSchema;
      const compile = compiling(schema);
      it(`explains ${what}`, () => {
        engine.admit(schema);
        const validator = compile();
        assertEquals(validator.check(value), false);
        assertEquals(validator.issues(value).map((issue) => issue.message), messages);
      });
    }

    const required = compiling({
      properties: { at: { type: "array", items: { required: ["id"] } } },
    });
    it("returns issues as data: path, keyword, expectation", () => {
      assertEquals(required().issues({ at: [{}] }), [{
        path: "/at/0",
        keyword: "required",
        expected: 'have the property "id"',
        message: '/at/0 must have the property "id"',
      }]);
    });

    const numbers = compiling({ items: { type: "number" } });
    it("reports 8 issues at most, the first ones", () => {
      const issues = numbers().issues(Array.from({ length: 100_000 }, String));
      assertEquals(issues.map(({ path }) => path), "01234567".split("").map((at) => `/${at}`));
    });

    const strict = compiling({
      properties: { a: { enum: ["x"] }, b: { const: "y".repeat(1_000) }, c: { pattern: "z{3}" } },
      additionalProperties: false,
    });
    it("does not repeat a long value, name or schema in a message", () => {
      const long = "long ".repeat(100_000);
      const issues = strict().issues({ a: long, b: long, c: long, [long]: 1 });
      assertEquals(issues.length, 4);
      for (const issue of issues) assertLess(JSON.stringify(issue).length, 600);
    });

    const unevaluated = compiling({
      anyOf: [{ properties: { a: true } }, { properties: { b: true } }],
      unevaluatedProperties: false,
    });
    it("keeps no state between values", () => {
      const { check } = unevaluated();
      const secret = JSON.parse('{"b": 1, "secret": 1}');
      assertEquals(check(secret), false);
      assertEquals(check({ a: 1, b: 1 }), true);
      assertEquals(check(secret), false);
      assertEquals(check({ secret: 1 }), false);
    });

    const touched = compiling({
      type: "object",
      properties: { n: { type: "number", default: 3 }, s: { type: "string" } },
      additionalProperties: false,
    });
    it("changes no value: it adds no defaults, converts nothing, removes nothing", () => {
      const { check, issues } = touched();
      const value = Object.freeze({ n: "3", more: 1 });
      assertEquals([check(value), issues(value).length], [false, 2]);
      assertEquals(value, { n: "3", more: 1 });
      const empty = {};
      assertEquals([check(empty), empty], [true, {}]);
    });

    const source: JsonSchema = Object.freeze({
      definitions: Object.freeze({ a: Object.freeze({ type: "string" }) }),
      items: Object.freeze({ $ref: "#/definitions/a" }),
    });
    const frozen = compiling(source, "draft-07");
    it("changes no schema: it compiles a frozen one", () => {
      assertEquals([frozen().check(["a"]), frozen().check([1])], [true, false]);
    });

    const tree = compiling({ properties: { next: { $ref: "#" } }, additionalProperties: false });
    const unique = compiling({ uniqueItems: true });
    const chosen = compiling({ enum: [{ next: [] }, [[]]] });
    it("never throws: a value that is too deep for the stack is invalid", () => {
      const chain = (depth: number): unknown => {
        let value: unknown = { wrong: 1 };
        for (let i = 0; i < depth; i++) value = { next: value };
        return value;
      };
      assertEquals(tree().check(chain(10)), false);
      assertEquals(tree().issues(chain(10))[0]?.path, "/next".repeat(10));
      assertEquals(tree().check(chain(100_000)), false);
      assertEquals(tree().issues(chain(100_000)).length, 1);
      let list: unknown = 1;
      for (let i = 0; i < 100_000; i++) list = [list];
      assertEquals(chosen().check(list), false);
      assertEquals(chosen().issues(list).length, 1);
      assertEquals(unique().check([list, list]), false);
      assertEquals(unique().issues([list, list]).length, 1);
    });

    const typed = compiling({ type: "object", properties: { a: { type: "integer" } } });
    it("never throws, even for values that are not JSON", () => {
      const { check, issues } = typed();
      for (const value of [undefined, Symbol("a"), () => 1, 3n, new Map(), Object.create(null)]) {
        assertEquals(typeof check(value), "boolean");
        if (!check(value)) assert(issues(value).length > 0);
      }
      assertEquals(check({ a: 3n }), false);
      // A member that is `undefined` is absent, as in JSON.stringify.
      assertEquals(check({ a: undefined }), true);
    });

    const annotated = compiling(
      { properties: { day: { format: "date" } }, const: { day: "never", format: "date" } },
      "2020-12",
      makeEngine("annotate"),
    );
    it("does not validate formats if the option is off, and ignores data named format", () => {
      assertEquals(annotated().check({ day: "never", format: "date" }), true);
      assertEquals(annotated().check({ day: "never" }), false);
    });

    const first = compiling({ $id: "https://example.com/same", type: "string" });
    const second = compiling({ $id: "https://example.com/same", type: "number" });
    it("does not mix up two schemas with the same $id", () => {
      assertEquals([first().check("a"), first().check(1)], [true, false]);
      assertEquals([second().check("a"), second().check(1)], [false, true]);
    });

    it("rejects a schema that it cannot compile with a SyntaxError and a reason", () => {
      assertThrows(
        () => engine.compile({ $ref: "#/nowhere" }, "2020-12"),
        SyntaxError,
        "Cannot compile the schema: the reference",
      );
    });

    for (const { what, schema } of BRANCHING_SCHEMAS) {
      const branching = compiling(schema);
      it(`checks each part of a value once per schema: ${what}`, () => {
        engine.admit(schema);
        const { check, issues } = branching();
        /** Nested lists, and the number of checks of the innermost value. */
        const nested = (leaf: unknown) => {
          const seen = { value: undefined as unknown, looks: 0 };
          const get = (target: unknown[], key: string | symbol) => {
            seen.looks++;
            return Reflect.get(target, key);
          };
          seen.value = new Proxy([leaf], { get });
          for (let level = 0; level < 12; level++) seen.value = [seen.value];
          return seen;
        };
        const right = nested(1);
        assertEquals(check(right.value), true);
        const wrong = nested("no");
        assertEquals(check(wrong.value), false);
        assertLess(right.looks, 200);
        assertLess(wrong.looks, 200);
        assert(issues(wrong.value).length > 0);
        // No verdict is cached: the same list has another verdict after a change.
        const list: unknown[] = [[1]];
        assertEquals(check(list), true);
        list[0] = ["no"];
        assertEquals(check(list), false);
      });
    }

    const wide = compiling({
      properties: Object.fromEntries(
        Array.from({ length: 1_000 }, (_, at) => [`p${at}`, { type: "string" }]),
      ),
      additionalProperties: false,
    });
    it("handles a schema of 1,000 properties", () => {
      assertEquals(wide().check({ p0: "a", p999: "b" }), true);
      assertEquals(wide().check({ p0: "a", p999: 1 }), false);
      assertEquals(wide().check({ p1000: "a" }), false);
    });

    const huge = compiling({ items: { type: "object", required: ["id"] }, uniqueItems: true });
    it("handles a value of 50,000 items", () => {
      const items = Array.from({ length: 50_000 }, (_, id) => ({ id }));
      assertEquals(huge().check(items), true);
      assertEquals(huge().check([...items, { id: 5 }]), false);
    });

    const costly = compiling({ allOf: Array.from({ length: 200 }, () => ({ uniqueItems: true })) });
    it("rejects a value that takes too many steps, with this reason", () => {
      const items = Array.from({ length: 20_000 }, (_, id) => id);
      assertEquals(costly().check(items.slice(0, 500)), true);
      assertEquals(costly().check(items), false);
      const [issue] = costly().issues(items);
      assert(issue !== undefined);
      assertEquals(
        issue.message,
        "The value must have fewer or shorter parts: " + "its check takes more than 2500000 steps",
      );
    });

    const slowNames = compiling({ patternProperties: { "^(a|a)*$": { type: "number" } } });
    it("checks names by complex patterns, or rejects the value", () => {
      const { check, issues } = slowNames();
      const names: Record<string, unknown> = {};
      const add = (count: number) => {
        // The pattern reads each name to its end.
        for (let at = 0; at < count; at++) names[`${"a".repeat(100)}${at}`] = at;
      };
      add(4_000);
      names["aaa"] = 1;
      assertEquals(check(names), true);
      names["aaa"] = "1";
      assertEquals(check(names), false);
      assertEquals(issues(names)[0]?.path, "/aaa");
      names["aaa"] = 1;
      add(40_000);
      assertEquals(check(names), false);
      assertEquals(issues(names)[0]?.keyword, "schema");
    });
  });
}
