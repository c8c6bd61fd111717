import { assert, assertEquals, assertMatch, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { FunctionDefinition } from "../../../src/formats/function_definition.ts";
import { ToolAvailabilityContext } from "../../../src/select/mod.ts";
import { makeTool } from "../../../src/tool/mod.ts";

const parameters = {
  type: "object",
  properties: { path: { type: "string" } },
  required: ["path"],
};
const read = makeTool({
  name: "read",
  namespace: "file",
  description: "Reads a file.",
  parameters,
  risk: "low",
});

describe("FunctionDefinition.fromTool()", () => {
  it("says what the tool says, under its id", () => {
    const definition = FunctionDefinition.fromTool(read);
    assertEquals(definition.toJson(), {
      name: "file:read",
      description: "Reads a file.",
      parameters,
    });
    assertStrictEquals(definition.parameters, read.parameters);
  });

  it("gives the same frozen object for the same tool", () => {
    const definition = FunctionDefinition.fromTool(read);
    assertStrictEquals(FunctionDefinition.fromTool(read), definition);
    assert(Object.isFrozen(definition));
  });
});

describe("FunctionDefinition.fromToolWithContext()", () => {
  it("gives the definition where the context permits the tool", () => {
    assertStrictEquals(
      FunctionDefinition.fromToolWithContext(read, ToolAvailabilityContext.lowRiskOnly),
      FunctionDefinition.fromTool(read),
    );
  });

  it("gives nothing where it does not", () => {
    const safe = ToolAvailabilityContext.create().withMaxRiskLevel("safe");
    assertEquals(FunctionDefinition.fromToolWithContext(read, safe), undefined);
    assertEquals(
      FunctionDefinition.fromToolWithContext(read, { disabledTools: ["file:read"] }),
      undefined,
    );
  });

  it("gives nothing for a tool that is never available", () => {
    const off = makeTool({ name: "off", description: "x", isAvailable: false });
    assertEquals(
      FunctionDefinition.fromToolWithContext(off, ToolAvailabilityContext.default),
      undefined,
    );
  });

  it("refuses a context that is wrong", () => {
    assertThrows(
      () => FunctionDefinition.fromToolWithContext(read, { maxRisk: "low" } as never),
      TypeError,
      "maxRisk",
    );
  });
});

describe("FunctionDefinition's JSON", () => {
  it("is what JSON.stringify gives", () => {
    const definition = FunctionDefinition.fromTool(read);
    assertEquals(JSON.parse(JSON.stringify(definition)), definition.toJson());
  });

  it("is indented by two spaces when it shall be pretty", () => {
    const tool = makeTool({ name: "a", description: "b", parameters: { type: "object" } });
    assertEquals(
      FunctionDefinition.fromTool(tool).toPrettyJson(),
      `{
  "name": "a",
  "description": "b",
  "parameters": {
    "type": "object"
  }
}`,
    );
  });

  it("has a name that OpenAI allows, where OpenAI is meant", () => {
    assertEquals(FunctionDefinition.fromTool(read).toOpenAIToolJson(), {
      type: "function",
      function: { name: "file__read", description: "Reads a file.", parameters },
    });
  });

  it("cuts names for OpenAI, and keeps them apart", () => {
    const long = "x".repeat(100);
    const names = [`${long}a`, `${long}b`, "a.b", "a_b", "ns:tool", "ns__tool"].map((id) => {
      const [first = "", second] = id.split(":");
      return makeTool({
        name: second ?? first,
        namespace: second === undefined ? undefined : first,
        description: "x",
      });
    }).map(FunctionDefinition.fromTool);
    const json = FunctionDefinition.toOpenAIToolsJson(names);
    const wire = json.map((tool) => tool.function.name);
    for (const name of wire) assertMatch(name, /^[a-zA-Z0-9_-]{1,64}$/);
    assertEquals(new Set(wire).size, names.length);
    // What is legal as it is keeps its name.
    assertEquals([wire[3], wire[5]], ["a_b", "ns__tool"]);
  });
});

describe("FunctionDefinition.canCallWithoutParameters", () => {
  const rows: readonly (readonly [boolean, string, Record<string, unknown>])[] = [
    [true, "no properties", {}],
    [true, "only optional properties", { properties: { a: { type: "string" } } }],
    [true, "an empty required", { required: [] }],
    [false, "a required property", { required: ["a"] }],
    [false, "a required property that is not described", { properties: {}, required: ["a"] }],
    [false, "minProperties", { minProperties: 1 }],
    [true, "minProperties of 0", { minProperties: 0 }],
    [false, "a required property in allOf", { allOf: [{}, { required: ["a"] }] }],
    [true, "allOf without one", { allOf: [{ properties: { a: false } }, true] }],
    [true, "anyOf with one that asks nothing", { anyOf: [{ required: ["a"] }, {}] }],
    [false, "anyOf that always asks", { anyOf: [{ required: ["a"] }, { required: ["b"] }] }],
    [true, "oneOf with one that asks nothing", { oneOf: [{ required: ["a"] }, {}] }],
    [false, "oneOf with two that ask nothing", { oneOf: [{}, { type: "object" }] }],
    [false, "oneOf of other types", { oneOf: [{ type: "string" }] }],
    [true, "a list of types with object", { anyOf: [{ type: ["string", "object"] }] }],
    [true, "not, of what asks", { not: { required: ["a"] } }],
    [false, "not, of what accepts all", { not: {} }],
    [false, "then, where if holds", { if: { properties: { a: true } }, then: { required: ["a"] } }],
    [true, "then, where if does not", { if: { required: ["b"] }, then: { required: ["a"] } }],
    [false, "else, where if does not", { if: { required: ["b"] }, else: { required: ["a"] } }],
    [true, "if alone", { if: { required: ["b"] } }],
    [false, "false", { allOf: [false] }],
    [true, "an enum with {}", { enum: [{}, { a: 1 }] }],
    [false, "an enum without {}", { enum: [{ a: 1 }, []] }],
    [false, "a const", { const: { a: 1 } }],
    [false, "a reference", { $ref: "#/$defs/a", $defs: { a: {} } }],
    [false, "not, of a reference", { not: { $ref: "#/$defs/a" }, $defs: { a: {} } }],
    [false, "if, of a reference", { if: { $ref: "#/$defs/a" }, $defs: { a: {} } }],
    [true, "anyOf, with a reference and a yes", { anyOf: [{ $ref: "#" }, {}] }],
    [false, "anyOf, with a reference and a no", { anyOf: [{ $ref: "#" }, { required: ["a"] }] }],
    [false, "oneOf, with a reference and a yes", { oneOf: [{ $ref: "#" }, {}] }],
  ];
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
