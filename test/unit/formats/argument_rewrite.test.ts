import { assertEquals, assertStrictEquals } from "@std/assert";
import { describe, it } from "bun:test";
import {
  decodeArguments,
  encodeArguments,
  exportTools,
  type TargetName,
} from "../../../src/formats/mod.ts";
import { type JsonSchemaObject, makeTool } from "../../../src/tool/mod.ts";

function rewriteFor(target: TargetName, parameters: JsonSchemaObject) {
  const tool = makeTool({ name: "t", description: "A tool.", parameters });
  return exportTools([tool], target).names.encodingOf("t")?.input;
}

function object(properties: JsonSchemaObject, required: readonly string[] = []): JsonSchemaObject {
  return { type: "object", properties, required, additionalProperties: false };
}

interface Row {
  readonly title: string;
  readonly target: TargetName;
  readonly parameters: JsonSchemaObject;
  readonly wire: unknown;
  readonly own: unknown;
}

const node = object({ value: { type: "string" }, next: { $ref: "#/$defs/node" } }, ["value"]);

const ROWS: readonly Row[] = [
  {
    title: "nulls go only where they were added",
    target: "openai.strict",
    parameters: object({ a: { type: "string" }, b: { type: ["string", "null"] } }, ["b"]),
    wire: { a: null, b: null },
    own: { b: null },
  },
  {
    title: "nulls go at every depth, in lists too",
    target: "openai.strict",
    parameters: object({
      list: { type: "array", items: object({ x: { type: "number" } }) },
      inner: object({ y: object({ z: { type: "boolean" } }) }, ["y"]),
    }, ["list", "inner"]),
    wire: { list: [{ x: null }, { x: 1 }], inner: { y: { z: null } } },
    own: { list: [{}, { x: 1 }], inner: { y: {} } },
  },
  {
    title: "recursive schemas are followed along the value",
    target: "openai.strict",
    parameters: { ...object({ first: { $ref: "#/$defs/node" } }, ["first"]), $defs: { node } },
    wire: { first: { value: "a", next: { value: "b", next: null } } },
    own: { first: { value: "a", next: { value: "b" } } },
  },
  {
    title: "a branch of a union is told by its constant",
    target: "openai.strict",
    parameters: object({
      shape: {
        anyOf: [
          object({ kind: { const: "a" }, size: { type: "number" } }, ["kind"]),
          object({ kind: { const: "b" }, size: { type: ["number", "null"] } }, ["kind", "size"]),
        ],
      },
    }, ["shape"]),
    wire: { shape: { kind: "b", size: null } },
    own: { shape: { kind: "b", size: null } },
  },
  {
    title: "and the other branch by its own",
    target: "openai.strict",
    parameters: object({
      shape: {
        anyOf: [
          object({ kind: { const: "a" }, size: { type: "number" } }, ["kind"]),
          object({ kind: { const: "b" }, size: { type: ["number", "null"] } }, ["kind", "size"]),
        ],
      },
    }, ["shape"]),
    wire: { shape: { kind: "a", size: null } },
    own: { shape: { kind: "a" } },
  },
  {
    title: "keys get their names back",
    target: "anthropic",
    parameters: object({
      $top: { type: "integer" },
      "filter[id]": object({ "a/b": { type: "null" } }),
    }),
    wire: { _top: 5, filter_id_: { a_b: null } },
    own: { $top: 5, "filter[id]": { "a/b": null } },
  },
  {
    title: "texts become the numbers that they stand for",
    target: "gemini.typed",
    parameters: object({ level: { type: "integer", enum: [1, 2] }, name: { enum: ["1"] } }),
    wire: { level: "2", name: "1" },
    own: { level: 2, name: "1" },
  },
  {
    title: "keys named __proto__ are keys",
    target: "openai.strict",
    parameters: object(JSON.parse('{"__proto__":{"type":"string"},"a":{"type":"string"}}')),
    wire: JSON.parse('{"__proto__":"x","a":null}'),
    own: JSON.parse('{"__proto__":"x"}'),
  },
];

describe("decodeArguments() and encodeArguments()", () => {
  for (const { title, target, parameters, wire, own } of ROWS) {
    it(`${title} (${target})`, () => {
      const rewrite = rewriteFor(target, parameters);
      const before = JSON.stringify(wire);
      assertEquals(JSON.stringify(decodeArguments(wire, rewrite)), JSON.stringify(own));
      assertEquals(encodeArguments(own, rewrite), wire);
      assertEquals(JSON.stringify(wire), before);
    });
  }

  it("leave what does not fit to the validation", () => {
    const rewrite = rewriteFor("openai.strict", object({ a: object({ b: { type: "string" } }) }));
    for (const value of [null, 1, "x", [], [null], { a: 1 }, { a: [null] }, { c: null }]) {
      assertEquals(decodeArguments(value, rewrite), value);
    }
  });

  it("return the same value if nothing changes", () => {
    const rewrite = rewriteFor("openai.strict", object({ a: { type: "string" } }));
    const value = { a: "x" };
    assertStrictEquals(decodeArguments(value, rewrite), value);
    assertStrictEquals(decodeArguments(value, undefined), value);
  });

  it("do not go deeper than any schema, whatever the value", () => {
    const rewrite = rewriteFor("openai.strict", {
      ...object({ first: { $ref: "#/$defs/node" } }, ["first"]),
      $defs: { node },
    });
    let deep: unknown = { value: "x", next: null };
    for (let level = 0; level < 100_000; level++) deep = { value: "x", next: deep };
    // Ends, and does not overflow the stack.
    assertEquals(typeof decodeArguments({ first: deep }, rewrite), "object");
  });

  it("have nothing to do where an export changed nothing", () => {
    assertEquals(rewriteFor("openai", object({ a: { type: "string" } })), undefined);
    assertEquals(rewriteFor("openai.strict", object({ a: { type: "string" } }, ["a"])), undefined);
  });
});
