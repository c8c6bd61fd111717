import {
  assert,
  assertEquals,
  assertNotStrictEquals,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import { describe, it } from "bun:test";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { Registry } from "../../../src/core.ts";
import { viewOf } from "../../../src/finding/mod.ts";
import { importTools } from "../../../src/formats/mod.ts";
import * as schemas from "../../../src/schema/mod.ts";
import { compileOnce, hardened } from "../../../src/schema/mod.ts";
import {
  type JsonSchema,
  makeTool,
  type Tool,
  type ToolDefinition,
} from "../../../src/tool/mod.ts";

const engine = typeboxEngine({ codeGeneration: false });

/** A schema that takes too many steps to check a list of 1,000 items. */
const COSTLY = {
  type: "object",
  properties: { list: { allOf: Array.from({ length: 200 }, () => ({ uniqueItems: true })) } },
};
const VALUE = { list: Array.from({ length: 1_000 }, (_, at) => at) };

function importCostly(): Tool {
  const { tools } = importTools("mcp", { tools: [{ name: "costly", inputSchema: COSTLY }] });
  const [tool] = tools;
  assert(tool !== undefined);
  return tool;
}

/** Returns true if a registry of the core, whose engine is not hardened, accepts the value. */
async function accepts(tool: Tool): Promise<boolean> {
  const registry = new Registry({ engine, tools: [tool] });
  return (await registry.acquire(tool)).parameters.check(VALUE);
}

describe("hardened()", () => {
  it("returns one engine per engine, and a hardened engine unchanged", () => {
    assertStrictEquals(hardened(engine), hardened(engine));
    assertStrictEquals(hardened(hardened(engine)), hardened(engine));
    assertNotStrictEquals(hardened(engine), engine);
    assertEquals(hardened(engine).name, "typebox");
  });

  it("bounds the steps of a check, which the engine alone does not", () => {
    assertEquals(compileOnce(engine, COSTLY).check(VALUE), true);
    assertEquals(compileOnce(hardened(engine), COSTLY).check(VALUE), false);
  });

  it("bounds the length of all regular expressions in a value, which take long to parse", () => {
    const { check } = compileOnce(hardened(engine), { items: { format: "regex" } });
    assertEquals(check(Array(40).fill("^\\p{L}{1,80}$")), true);
    assertEquals(check(Array(40).fill("\\p{L}".repeat(50))), false);
  });

  it("explains a value without hints after 4,000 comparisons of names", async () => {
    const names = Array.from({ length: 1_000 }, (_, at) => [`some_name${at}`, {}]);
    const registry = new Registry({
      engine: hardened(engine),
      tools: [makeTool({
        name: "list",
        description: "Takes a list.",
        parameters: {
          type: "object",
          properties: {
            list: { items: { properties: Object.fromEntries(names), additionalProperties: false } },
          },
        },
      })],
    });
    const [tool] = registry.tools;
    assert(tool !== undefined);
    const { parameters } = await registry.acquire(tool);
    const issues = await parameters.issues({ list: Array(6).fill({ someName7: 1 }) });
    const hints = issues.map(({ message }) => message.includes('did you mean "some_name7"?'));
    assertEquals(hints, [true, true, true, true, false, false]);
  });

  it("writes a long constant once, however many values are compared with it", async () => {
    const long = Array.from({ length: 5_000 }, (_, at) => at);
    const { issues } = compileOnce(hardened(engine), { contains: { const: long } });
    const { stringify } = JSON;
    let written = 0;
    JSON.stringify = (value: unknown, ...rest: never[]) => {
      const text = stringify(value, ...rest);
      if ((text ?? "").length > 10_000) written++;
      return text;
    };
    try {
      assertEquals((await issues(Array(200).fill(0)))?.length, 1);
    } finally {
      JSON.stringify = stringify;
    }
    assert(written <= 2, `${written} times`);
  });

  it("rejects a pattern without a linear-time test, which the engine alone accepts", () => {
    const schema = { properties: { a: { pattern: "^(a)\\1$" } } };
    assertEquals(engine.admit(schema).dialect, "2020-12");
    assertThrows(() => hardened(engine).admit(schema), SyntaxError, '"/properties/a/pattern" must');
    assertEquals(engine.compile(schema).check({ a: "aa" }), true);
    assertEquals(engine.compile(schema).check({ a: "ab" }), false);
  });
});

describe("an imported tool in a registry whose engine is not hardened", () => {
  it("is compiled by the hardened engine", async () => {
    assertEquals(await accepts(importCostly()), false);
  });

  it("stays hardened when other tools are derived from it", async () => {
    const tool = importCostly();
    assertEquals(await accepts(viewOf(tool, { name: "view" })), false);
    assertEquals(await accepts(viewOf(tool, { defaults: { list: [] } })), false);
    assertEquals(await accepts(makeTool({ ...tool, title: "Same" } as ToolDefinition)), false);
  });

  it("does not change how the program's own tools are compiled", async () => {
    assertEquals(
      await accepts(makeTool({ name: "own", description: "Own.", parameters: COSTLY })),
      true,
    );
  });
});

describe("inheritEngine()", () => {
  it("changes nothing for a schema that was derived from a trusted one", () => {
    const derived = { ...COSTLY };
    schemas.inheritEngine(COSTLY, derived);
    assertEquals(compileOnce(engine, derived).check(VALUE), true);
  });
});

/** The step limit around a validator that accepts everything. */
function bounded(schema: JsonSchema): schemas.SchemaValidator {
  schemas.checkSchema(schema, undefined, schemas.HARDENING);
  const form = schemas.normalizeSchema(schema, schemas.detectDialect(schema), {
    formats: schemas.ASSERTED_FORMATS,
  });
  const validator = { check: () => true, issues: () => [] };
  return schemas.HARDENING.boundSteps(form, schemas.HARDENING.repeatsParts(form), validator);
}

function many<T>(count: number, make: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => make(at));
}

function object<T>(count: number, make: (at: number) => readonly [string, T]): Record<string, T> {
  return Object.fromEntries(many(count, make));
}

const NUMBERS = many(150_000, (at) => at);
const NAMED = object(90_000, (at) => [`k${at}`, 1]);
const TEXT = "a".repeat(1_000_000);
/** Ten closed forms of four properties: 51 schemas. */
const UNION = {
  items: {
    anyOf: many(10, (at) => ({
      type: "object",
      properties: {
        kind: { const: `k${at}` },
        a: { type: "string" },
        b: { type: "number" },
        c: { type: "boolean" },
      },
      required: ["kind"],
      additionalProperties: false,
    })),
  },
};
const TREE = {
  $defs: {
    node: {
      type: "object",
      properties: {
        v: { type: "number" },
        l: { $ref: "#/$defs/node" },
        r: { $ref: "#/$defs/node" },
      },
    },
  },
  $ref: "#/$defs/node",
};
/** Each alternative refers to all of them. */
const FORMS = {
  anyOf: [
    { type: "number" },
    { type: "array", items: { $ref: "#" } },
    { type: "array", items: { $ref: "#" }, minItems: 2 },
  ],
};

function tree(depth: number): unknown {
  return depth === 0 ? { v: 1 } : { v: 1, l: tree(depth - 1), r: tree(depth - 1) };
}

function pairs(depth: number): unknown {
  return depth === 0 ? 1 : [pairs(depth - 1), pairs(depth - 1)];
}

describe("boundSteps()", () => {
  const within: readonly (readonly [what: string, schema: JsonSchema, value: unknown])[] = [
    [
      "20,000 items of a union of ten forms",
      UNION,
      many(20_000, (b) => ({ kind: "k1", a: "x", b })),
    ],
    ["one of fifty constants for 40,000 items", {
      items: { anyOf: many(50, (at) => ({ const: at })) },
    }, NUMBERS.slice(0, 40_000)],
    ["150,000 items", { items: { type: "number", minimum: 0 }, uniqueItems: true }, NUMBERS],
    ["90,000 names by a pattern", { patternProperties: { "^k": { type: "number" } } }, NAMED],
    ["90,000 properties that no other keyword looks at", {
      properties: { k1: true },
      unevaluatedProperties: { type: "number" },
    }, NAMED],
    ["a long text", { minLength: 3, maxLength: 2_000_000, pattern: "^a" }, TEXT],
    ["a tree of 65,535 nodes", TREE, tree(15)],
    ["forms that lead back to themselves in two ways", FORMS, pairs(15)],
    ["parts that no schema looks at", {
      properties: { a: { allOf: many(1_000, () => ({ minLength: 1 })) } },
    }, { b: NUMBERS, c: TEXT }],
  ];
  for (const [what, schema, value] of within) {
    it(`starts a check: ${what}`, () => {
      assertEquals(bounded(schema).check(value), true);
      assertEquals(bounded(schema).issues(value), []);
    });
  }

  const all = (count: number, schema: JsonSchema): JsonSchema => ({
    allOf: many(count, () => schema),
  });
  const beyond: readonly (readonly [what: string, schema: JsonSchema, value: unknown])[] = [
    ["200 comparisons of all items", all(200, { uniqueItems: true }), NUMBERS],
    ["comparisons at each level", all(20, { items: { items: { uniqueItems: true } } }), [[
      NUMBERS,
    ]]],
    ["a large constant for each item", {
      items: { anyOf: many(50, (at) => ({ const: { at } })) },
    }, many(50_000, () => ({}))],
    ["2,000 patterns for a text", all(2_000, { pattern: "b" }), TEXT],
    ["2,000 counts of characters", all(2_000, { minLength: 600_000 }), TEXT],
    ["patterns for long names", { propertyNames: all(100, { pattern: "b" }) }, { [TEXT]: 1 }],
    ["20 patterns of names", { patternProperties: object(20, (at) => [`^k${at}`, true]) }, NAMED],
    ["20 looks at all properties", all(20, { additionalProperties: { type: "number" } }), NAMED],
    ["5,000 choices for each item", { items: { enum: NUMBERS.slice(0, 5_000) } }, NUMBERS],
    ["2,000 properties for each item", {
      items: { properties: object(2_000, (at) => [`p${at}`, true]) },
    }, many(50_000, () => ({}))],
    ["references that lead to one schema again and again", {
      $defs: { a: all(60, { minimum: 0 }), b: all(60, { $ref: "#/$defs/a" }) },
      items: { $ref: "#/$defs/b" },
    }, NUMBERS],
    ["a list of schemas in draft-07", {
      definitions: {},
      items: many(10, () => all(400, { minItems: 0 })),
      additionalItems: all(400, { minimum: 0 }),
    }, NUMBERS],
    ["a reference whose meaning depends on the way to it", {
      $id: "http://a.example/",
      $ref: "list",
      $defs: {
        one: { $dynamicAnchor: "item", ...all(100, { minimum: 0 }) as object },
        list: {
          $id: "list",
          items: { $dynamicRef: "#item" },
          $defs: { any: { $dynamicAnchor: "item" } },
        },
      },
    }, NUMBERS],
  ];
  for (const [what, schema, value] of beyond) {
    it(`rejects a value without a check: ${what}`, () => {
      const validator = bounded(schema);
      assertEquals(validator.check(value), false);
      assertEquals(validator.issues(value).map(({ keyword }) => keyword), ["schema"]);
      // Each value has its own budget of steps.
      assertEquals(validator.check([]), true);
    });
  }

  it("does not estimate the steps of short values", () => {
    let looks = 0;
    const value = new Proxy({}, { ownKeys: () => (looks++, []) });
    const validator = bounded(UNION);
    assertEquals(validator.check(value, 1_000), true);
    assertEquals(looks, 0);
    assertEquals(validator.check(value), true);
    assert(looks > 0);
  });
});
