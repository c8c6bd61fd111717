import { assert, assertEquals, assertNotStrictEquals, assertStrictEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { exportTools, importTools } from "../../../src/formats/mod.ts";
import { fitsStructure } from "../../../src/formats/structural_check.ts";
import type { SchemaEngine } from "../../../src/schema/mod.ts";
import { type JsonSchema, makeTool, type ToolExample } from "../../../src/tool/mod.ts";

const engine = typeboxEngine({ codeGeneration: false });

function weather(examples: readonly ToolExample[]) {
  return makeTool({
    name: "weather",
    description: "Tells the weather.",
    parameters: {
      type: "object",
      properties: {
        city: { type: "string", pattern: "^[A-Z]" },
        days: { type: "integer", minimum: 1 },
      },
      required: ["city"],
      additionalProperties: false,
    },
    examples,
  });
}

const GOOD = { input: { city: "Rome", days: 2 } };

describe("examples in an export", () => {
  it("are left out where they would have the request refused, and are losses", () => {
    const tool = weather([
      GOOD,
      { input: {} },
      { input: { city: 1 } },
      { input: { city: "Rome", days: 0 } },
      { input: { city: "Rome", more: 1 } },
      { input: "Rome" as never },
    ]);
    const { tools, losses } = exportTools([tool], "anthropic");
    assertEquals(tools[0]?.input_examples, [GOOD.input]);
    assertEquals(
      losses.map(({ side, path, keyword, grade }) => [side, path, keyword, grade]),
      [1, 2, 3, 4, 5].map((index) => ["tool", `/examples/${index}`, "examples", "lost"]),
    );
    assertEquals(exportTools([tool], "ai-sdk").tools["weather"]?.inputExamples, [GOOD]);
    const extras = exportTools([tool], "langchain").tools[0]?.extras;
    assertEquals(extras?.["input_examples"], [GOOD.input]);
  });

  it("are no field if none fits", () => {
    const { tools } = exportTools([weather([{ input: {} }])], "anthropic");
    assertEquals(tools[0] !== undefined && Object.hasOwn(tools[0], "input_examples"), false);
  });

  it("keep their own words where another one is left out", () => {
    const tool = weather([{ input: {}, description: "Bad." }, { ...GOOD, description: "Good." }]);
    const operation = Object.values(exportTools([tool], "openapi").tools.paths)[0]?.post;
    assertEquals(operation?.requestBody.content["application/json"].examples, {
      example1: { summary: "Good.", value: GOOD.input },
    });
  });

  it("of an import that cannot be right spoil no other tool", () => {
    const { tools } = importTools("anthropic", [{
      name: "a",
      input_schema: { type: "object", properties: { n: { type: "integer" } } },
      input_examples: [null, 5, { n: "x" }, { n: 1 }],
    }]);
    assertEquals(exportTools(tools, "anthropic").tools[0]?.input_examples, [{ n: 1 }]);
  });

  it("are checked whole with an engine, and the export is remembered by it", () => {
    const list = Object.freeze([weather([GOOD, { input: { city: "rome" } }])]);
    assertEquals(exportTools(list, "anthropic").tools[0]?.input_examples?.length, 2);
    const checked = exportTools(list, "anthropic", { engine });
    assertEquals(checked.tools[0]?.input_examples, [GOOD.input]);
    assertStrictEquals(exportTools(list, "anthropic", { engine }), checked);
    const other = typeboxEngine({ codeGeneration: false });
    assertNotStrictEquals(exportTools(list, "anthropic", { engine: other }), checked);
  });

  it("are checked by their structure where an engine cannot compile the schema", () => {
    const broken: SchemaEngine = {
      name: "broken",
      compile: () => {
        throw new SyntaxError("no");
      },
    };
    const { tools } = exportTools([weather([GOOD, { input: {} }])], "anthropic", {
      engine: broken,
    });
    assertEquals(tools[0]?.input_examples, [GOOD.input]);
  });
});

describe("fitsStructure()", () => {
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
    // In draft-07 nothing counts beside a reference.
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
        assert(fitsStructure(schema, value), JSON.stringify(value));
        assert(validator.check(value), JSON.stringify(value));
      }
      for (const value of misfits) {
        assert(!fitsStructure(schema, value), JSON.stringify(value));
        assert(!validator.check(value), JSON.stringify(value));
      }
    });
  }

  it("takes for granted what only engines judge", () => {
    assert(fitsStructure({ pattern: "^a", format: "date", not: {}, if: {}, then: false }, "b"));
    assert(
      fitsStructure({ patternProperties: { a: false }, additionalProperties: false }, { a: 1 }),
    );
    assert(fitsStructure({ $ref: "https://example.com/other" }, 1));
  });

  it("ends with a no where a schema makes the check long", () => {
    const doubling: Record<string, JsonSchema> = { d40: { type: "string" } };
    for (let level = 0; level < 40; level++) {
      const next = { $ref: `#/$defs/d${level + 1}` };
      doubling[`d${level}`] = { allOf: [next, next] };
    }
    assert(!fitsStructure({ $ref: "#/$defs/d0", $defs: doubling }, "x"));
    assert(!fitsStructure({ $ref: "#" }, "x"));
  });
});
