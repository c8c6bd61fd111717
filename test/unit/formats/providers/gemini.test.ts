import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import { exportTools, importTools } from "../../../../src/formats/mod.ts";

const INPUT = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

describe('importTools("gemini")', () => {
  const JSON_TOOL = {
    name: "a",
    description: "A.",
    parametersJsonSchema: INPUT,
    responseJsonSchema: { type: "integer" },
  };
  const TYPED = {
    name: "a",
    description: "A.",
    parameters: {
      type: "OBJECT",
      properties: {
        city: { type: "STRING", minLength: "1", example: "Rome" },
        days: { type: "ARRAY", items: { type: "INTEGER", nullable: true }, maxItems: "7" },
        unit: { anyOf: [{ type: "STRING", enum: ["c", "f"] }, { type: "NUMBER" }], nullable: true },
      },
      required: ["city"],
      propertyOrdering: ["city", "days", "unit"],
    },
  };

  it("returns the same definition after import and export, with JSON Schema", () => {
    const { tools, rejected } = importTools("gemini", {
      tools: [{ functionDeclarations: [JSON_TOOL] }],
    });
    assertEquals(rejected, []);
    assertEquals(exportTools(tools, "gemini").tools as unknown, [{
      functionDeclarations: [JSON_TOOL],
    }]);
  });

  it("returns the same definition after import and export, with the typed schema", () => {
    const { tools, rejected } = importTools("gemini", [{ functionDeclarations: [TYPED] }]);
    assertEquals(rejected, []);
    assertEquals(exportTools(tools, "gemini.typed").tools as unknown, [{
      functionDeclarations: [TYPED],
    }]);
  });

  it("reads the typed schema as JSON Schema", () => {
    assertEquals(importTools("gemini", [TYPED]).tools[0]?.parameters, {
      type: "object",
      properties: {
        city: { type: "string", minLength: 1, examples: ["Rome"] },
        days: { type: "array", items: { type: ["integer", "null"] }, maxItems: 7 },
        unit: {
          anyOf: [{ type: "string", enum: ["c", "f"] }, { type: "number" }, { type: "null" }],
        },
      },
      required: ["city"],
      propertyOrdering: ["city", "days", "unit"],
    });
  });

  it("reads Vertex's references, and infers a missing type", () => {
    const [tool] = importTools("gemini", [{
      name: "a",
      parameters: {
        type: "OBJECT",
        properties: { n: { ref: "#/defs/N" }, any: { type: "TYPE_UNSPECIFIED" } },
        defs: { N: { type: "OBJECT", properties: { next: { ref: "#/defs/N" } } } },
        additionalProperties: { type: "STRING" },
      },
    }]).tools;
    assertEquals(tool?.parameters, {
      type: "object",
      properties: { n: { $ref: "#/$defs/N" }, any: {} },
      $defs: { N: { type: "object", properties: { next: { $ref: "#/$defs/N" } } } },
      additionalProperties: { type: "string" },
    });
  });

  it("reads declarations wherever they stand, in either spelling", () => {
    const declaration = { name: "a", parameters_json_schema: INPUT };
    for (
      const document of [
        declaration,
        [declaration],
        { functionDeclarations: [declaration] },
        [{ function_declarations: [declaration] }],
        { config: { tools: [{ functionDeclarations: [declaration] }] } },
      ]
    ) {
      assertEquals(importTools("gemini", document).tools.map(({ parameters }) => parameters), [
        INPUT,
      ]);
    }
  });

  it("reads behavior, and accepts missing parameters", () => {
    const { tools } = importTools("gemini", [{ name: "a", behavior: "NON_BLOCKING" }, {
      name: "b",
      behavior: "BLOCKING",
    }]);
    assertEquals(tools.map(({ meta }) => (meta?.["provider"] as { async?: boolean }).async), [
      true,
      false,
    ]);
    assertEquals(tools[0]?.parameters["additionalProperties"], false);
  });

  it("warns of an invalid length, and rejects other kinds of tools", () => {
    const { tools, warnings, rejected } = importTools("gemini", [
      { googleSearch: {} },
      {
        name: "a",
        parameters: {
          type: "OBJECT",
          properties: { "x/y": { type: "STRING", maxLength: "many" } },
        },
      },
    ]);
    assertEquals(tools.map(({ name }) => name), ["a"]);
    assertEquals(warnings.map(({ path }) => path), ["/1/parameters/properties/x~1y/maxLength"]);
    assertEquals(rejected.map(({ path, rule }) => [path, rule]), [["/0", "name"]]);
  });
});
