import { assert, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { defineTool, type JsonSchemaObject, type Tool } from "../../../mod.ts";
import { argumentsOf } from "../../../src/finding/signature.ts";

const rows: readonly (readonly [text: string, lossy: boolean, parameters: JsonSchemaObject])[] = [
  ["{}", false, { type: "object" }],
  ["{ a: string; b?: number }", false, {
    type: "object",
    properties: { a: { type: "string" }, b: { type: "integer" } },
    required: ["a"],
    additionalProperties: false,
  }],
  ['{ "c d"?: "x" | 1 | null }', false, {
    type: "object",
    properties: { "c d": { enum: ["x", 1, null] } },
  }],
  ["{ a?: (string | null)[]; b?: { x?: boolean }[] }", false, {
    type: "object",
    properties: {
      a: { type: "array", items: { type: ["string", "null"] } },
      b: { type: "array", items: { type: "object", properties: { x: { type: "boolean" } } } },
    },
  }],
  ["{ a?: number | { [key: string]: string } }", false, {
    type: "object",
    properties: {
      a: { anyOf: [{ type: "number" }, { $ref: "#/$defs/map" }] },
    },
    $defs: { map: { type: "object", additionalProperties: { type: "string" } } },
  }],
  ["{ a?: string }", true, {
    type: "object",
    properties: { a: { type: "string", pattern: "^x" } },
  }],
  ["{ a?: string; b?: string }", true, {
    type: "object",
    properties: { a: { type: "string" }, b: { type: "string" } },
    anyOf: [{ required: ["a"] }, { required: ["b"] }],
  }],
  ["{ child?: { child?: { child?: { child?: unknown } } } }", true, {
    type: "object",
    properties: { child: { $ref: "#" } },
  }],
];

describe("argumentsOf()", () => {
  it("is bounded where references multiply", () => {
    const properties = Object.fromEntries(
      Array.from({ length: 30 }, (_, index) => [`p${index}`, { $ref: "#" }]),
    );
    const parameters = { type: "object", properties };
    const tool = defineTool({ name: "t", description: "Does it.", parameters }) as Tool;
    const { text, lossy } = argumentsOf(tool);
    assert(lossy && text.length < 20_000, `${text.length}`);
  });

  for (const [text, lossy, parameters] of rows) {
    it(`writes ${text}${lossy ? ", and mentions an omitted rule" : ""}`, () => {
      const tool = defineTool({ name: "t", description: "Does it.", parameters }) as Tool;
      assertEquals(argumentsOf(tool), { text, lossy });
    });
  }
});
