/** Strict schemas, which the transforms of the providers leave unchanged. */

import { transformJSONSchema } from "@anthropic-ai/sdk/lib/transform-json-schema";
import { assertEquals, assertGreater } from "@std/assert";
import { describe, it } from "bun:test";
import fc from "fast-check";
import { toStrictJsonSchema } from "openai/lib/transform";
import { exportTools } from "../../src/formats/mod.ts";
import { makeTool, type Tool } from "../../src/tool/mod.ts";
import { aToolSchema } from "../support/arbitrary_schema.ts";
import { ALL } from "./tools.ts";

// The same cases on every runtime and in every run. To search for new ones, leave the seed out.
fc.configureGlobal({ seed: 20261120 });

type Schema = Record<string, unknown>;

/** The strict schemas of an export, with the names of their tools. */
function strictOnes(
  tools: readonly Tool[],
  target: "openai.chat.strict" | "anthropic.strict",
): readonly (readonly [name: string, schema: Schema])[] {
  return target === "openai.chat.strict"
    ? exportTools(tools, target).tools.filter((tool) => tool.function.strict === true)
      .map((tool) => [tool.function.name, tool.function.parameters])
    : exportTools(tools, target).tools.filter((tool) => tool.strict === true)
      .map((tool) => [tool.name, tool.input_schema]);
}

/** `schema` with every schema in it changed by `change`, innermost first. */
function mapSchemas(schema: unknown, change: (schema: Schema) => Schema): unknown {
  if (typeof schema !== "object" || schema === null) return schema;
  const result: Schema = { ...schema };
  const map = (value: unknown) => mapSchemas(value, change);
  for (const keyword of ["properties", "$defs"]) {
    if (Object.hasOwn(result, keyword)) {
      result[keyword] = Object.fromEntries(
        Object.entries(result[keyword] as Schema).map(([key, value]) => [key, map(value)]),
      );
    }
  }
  if (Object.hasOwn(result, "items")) result["items"] = map(result["items"]);
  for (const keyword of ["anyOf", "allOf"]) {
    if (Array.isArray(result[keyword])) result[keyword] = result[keyword].map(map);
  }
  return change(result);
}

/** The differences of `toStrictJsonSchema`, none of which changes the accepted values. */
function asOpenAi(schema: Schema): unknown {
  return mapSchemas(schema, (one) => {
    const result = { ...one };
    // `toStrictJsonSchema` sorts `required` like the properties.
    if (Array.isArray(one["required"])) {
      const required: readonly string[] = one["required"];
      result["required"] = Object.keys(one["properties"] ?? {})
        .filter((key) => required.includes(key));
    }
    // `toStrictJsonSchema` omits defaults, which have no effect: a model must write every property.
    if (one["default"] === null) delete result["default"];
    return result;
  });
}

/** The keywords that `transformJSONSchema` reads only next to a single type. */
const READ_BESIDE: readonly (readonly [keyword: string, type: string])[] = [
  ["format", "string"],
  ["items", "array"],
  ["minItems", "array"],
  ["properties", "object"],
  ["required", "object"],
  ["additionalProperties", "object"],
];

/**
 * The differences of `transformJSONSchema`: it removes the type of literals, adds missing
 * `properties`, moves keywords that the API accepts (patterns, defaults), and keywords of
 * {@linkcode READ_BESIDE} without their type, to the description, and loses the siblings of a
 * `$ref` and of an `anyOf`.
 */
function asAnthropic(schema: Schema): unknown {
  return mapSchemas(schema, (one) => {
    const { pattern: _pattern, default: _default, ...rest } = one;
    if ("$ref" in rest) {
      return { $ref: rest["$ref"], ...("$defs" in rest ? { $defs: rest["$defs"] } : {}) };
    }
    if ("anyOf" in rest) {
      delete rest["allOf"];
      delete rest["type"];
    }
    if ("enum" in rest || "const" in rest) delete rest["type"];
    for (const [keyword, type] of READ_BESIDE) if (rest["type"] !== type) delete rest[keyword];
    return rest["type"] === "object" && rest["properties"] === undefined
      ? { ...rest, properties: {} }
      : rest;
  });
}

const anyParameters = aToolSchema();

describe("OpenAI's toStrictJsonSchema()", () => {
  const schemas = strictOnes(ALL, "openai.chat.strict");

  it("receives most of the tools", () => assertGreater(schemas.length, ALL.length / 2));

  for (const [name, schema] of schemas) {
    it(`changes nothing in ${name}`, () => {
      assertEquals(toStrictJsonSchema(schema), asOpenAi(schema));
    });
  }

  it("changes nothing in the export of any schema", () => {
    fc.assert(
      fc.property(anyParameters, (parameters) => {
        const tools = [makeTool({ name: "any", description: "Does it.", parameters })];
        for (const [, schema] of strictOnes(tools, "openai.chat.strict")) {
          assertEquals(toStrictJsonSchema(schema), asOpenAi(schema));
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe("Anthropic's transformJSONSchema()", () => {
  const schemas = strictOnes(ALL, "anthropic.strict");
  for (const [name, schema] of schemas) {
    it(`changes nothing in ${name}`, () => {
      const known = asAnthropic(schema);
      assertEquals(transformJSONSchema(known as Schema), known);
    });
  }
  it("changes nothing in the export of any schema", () => {
    fc.assert(
      fc.property(anyParameters, (parameters) => {
        const tools = [makeTool({ name: "any", description: "Does it.", parameters })];
        for (const [, schema] of strictOnes(tools, "anthropic.strict")) {
          const known = asAnthropic(schema);
          assertEquals(transformJSONSchema(known as Schema), known);
        }
      }),
      { numRuns: 500 },
    );
  });
});
