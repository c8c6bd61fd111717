import { assert, assertEquals, assertMatch, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { FunctionDefinition } from "../../../src/select/mod.ts";
import { ToolAvailabilityContext } from "../../../src/select/mod.ts";
import { makeTool, type Tool } from "../../../src/tool/mod.ts";
import data from "./function_definition.json" with { type: "json" };

const parameters = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
const read = makeTool({
  name: "read",
  namespace: "file",
  description: "Reads a file.",
  parameters,
  risk: "low",
});

describe("new FunctionDefinition()", () => {
  // Specification: "public string Name { get; init; } = string.Empty", likewise the description;
  // "public JsonSchema Parameters { get; init; } = JsonSchema.Empty".
  it("has empty defaults", () => {
    const empty = { type: "object", properties: {}, additionalProperties: false };
    assertEquals(new FunctionDefinition().toJSON(), {
      name: "",
      description: "",
      parameters: empty,
    });
    assertEquals(new FunctionDefinition({ name: "a" }).toJSON(), {
      name: "a",
      description: "",
      parameters: empty,
    });
    assertEquals(new FunctionDefinition().canCallWithoutParameters, true);
  });

  it("has the passed fields", () => {
    const fields = { name: "file:read", description: "Reads a file.", parameters };
    const definition = new FunctionDefinition(fields);
    assertEquals(definition.toJSON(), fields);
    assertEquals(definition.canCallWithoutParameters, false);
    assert(Object.isFrozen(definition));
  });

  for (
    const [fields, words] of [
      [{ name: 1 }, "its name must be a string, not 1"],
      [{ description: null }, "its description must be a string, not null"],
      [{ parameters: [] }, "its parameters must be an object schema, not a list"],
      [{ parameters: "{}" }, 'its parameters must be an object schema, not "{}"'],
      [
        { input_schema: {} },
        '"/input_schema" is not one of its fields: did you mean "parameters"?',
      ],
      [{ inputSchema: {} }, '"/inputSchema" is not one of its fields: did you mean "parameters"?'],
      [{ run: 1 }, '"/run" is not one of its fields: name, description,'],
      [read, '"/id" is not one of its fields'],
      ["ping", "the options must be an object"],
    ] as const
  ) {
    it(`rejects invalid options: ${words}`, () => {
      assertThrows(
        () => new FunctionDefinition(fields as never),
        TypeError,
        `Cannot make a function definition: ${words}`,
      );
    });
  }
});

describe("FunctionDefinition.fromTool()", () => {
  it("requires a tool", () => {
    const { fromTool, fromToolWithContext } = FunctionDefinition;
    for (const make of [fromTool, (tool: Tool) => fromToolWithContext(tool, "x")]) {
      assertThrows(
        () => make(undefined as never),
        TypeError,
        "Cannot make a function definition: the argument must be a tool, not undefined",
      );
    }
  });

  it("contains the tool's texts, under its id", () => {
    const definition = FunctionDefinition.fromTool(read);
    assertEquals(definition.toJSON(), {
      name: "file:read",
      description: "Reads a file.",
      parameters,
    });
    assertStrictEquals(definition.parameters, read.parameters);
  });

  it("returns the same frozen object for the same tool", () => {
    const definition = FunctionDefinition.fromTool(read);
    assertStrictEquals(FunctionDefinition.fromTool(read), definition);
    assert(Object.isFrozen(definition));
  });
});

describe("FunctionDefinition.fromToolWithContext()", () => {
  // Specification: "Description = $"{tool.Description}\n\n{additionalContext}"".
  it("appends the text to the description, after an empty line", () => {
    const definition = FunctionDefinition.fromToolWithContext(read, "The folder is /work.");
    assertEquals(definition.toJSON(), {
      name: "file:read",
      description: "Reads a file.\n\nThe folder is /work.",
      parameters,
    });
  });

  it("does not change the tool's own definition", () => {
    FunctionDefinition.fromToolWithContext(read, "More.");
    assertEquals(FunctionDefinition.fromTool(read).description, "Reads a file.");
  });

  for (const context of [undefined, null, ToolAvailabilityContext.default]) {
    it(`rejects ${context} instead of a text`, () => {
      assertThrows(
        () => FunctionDefinition.fromToolWithContext(read, context as unknown as string),
        TypeError,
        "Cannot make a function definition: the additional context must be a string, not",
      );
    });
  }
});

describe("FunctionDefinition's JSON", () => {
  const tool = makeTool({ name: "a", description: "b", parameters: { type: "object" } });

  it("equals the result of JSON.stringify: name, description and parameters", () => {
    const definition = FunctionDefinition.fromTool(read);
    assertEquals(JSON.stringify(definition), definition.toJson());
    assertEquals(JSON.parse(JSON.stringify([definition])), [{
      name: "file:read",
      description: "Reads a file.",
      parameters,
    }]);
  });

  // Specification: "ToOpenAIToolJson() … JSON object with type and function fields".
  it("is compact text for OpenAI too, with a name that OpenAI allows", () => {
    assertEquals(
      FunctionDefinition.fromTool(read).toOpenAIToolJson(),
      JSON.stringify({
        type: "function",
        function: { name: "file__read", description: "Reads a file.", parameters },
      }),
    );
  });

  // Specification: "ToOpenAIToolsJson(definitions) … JSON array of tool objects".
  it("is one text for OpenAI of several definitions", () => {
    const definitions = [FunctionDefinition.fromTool(tool), FunctionDefinition.fromTool(read)];
    assertEquals(
      FunctionDefinition.toOpenAIToolsJson(new Set(definitions)),
      `[${definitions.map((definition) => definition.toOpenAIToolJson()).join(",")}]`,
    );
    assertEquals(FunctionDefinition.toOpenAIToolsJson([]), "[]");
  });

  it("truncates names for OpenAI, and keeps them unique", () => {
    const long = "x".repeat(100);
    const names = [`${long}a`, `${long}b`, "a.b", "a_b", "ns:tool", "ns__tool"].map((name) =>
      FunctionDefinition.fromTool(makeTool({ name, description: "x" }))
    );
    const json = JSON.parse(FunctionDefinition.toOpenAIToolsJson(names)) as readonly {
      readonly function: { readonly name: string };
    }[];
    const wire = json.map((tool) => tool.function.name);
    for (const name of wire) assertMatch(name, /^[a-zA-Z0-9_-]{1,64}$/);
    assertEquals(new Set(wire).size, names.length);
    // A legal name stays unchanged.
    assertEquals([wire[3], wire[5]], ["a_b", "ns__tool"]);
  });
});

describe("FunctionDefinition.canCallWithoutParameters", () => {
  const rows: readonly (readonly [boolean, string, object])[] = data.canCall as never;
  for (const [expected, what, schema] of rows) {
    it(`is ${expected} for ${what}`, () => {
      const tool = makeTool({
        name: "a",
        description: "x",
        parameters: { type: "object", ...schema },
      });
      assertEquals(FunctionDefinition.fromTool(tool).canCallWithoutParameters, expected);
    });
  }
});
