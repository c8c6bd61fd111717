import { assertEquals, assertStrictEquals } from "@std/assert";
import { describe, it } from "bun:test";
import * as formats from "../../../src/formats/mod.ts";
import { decodeArguments } from "../../../src/formats/mod.ts";
import { type JsonSchemaObject, makeTool } from "../../../src/tool/mod.ts";
import rewrites from "./cases/rewrites.json" with { type: "json" };

function rewriteFor(target: formats.TargetName, parameters: JsonSchemaObject) {
  const tool = makeTool({ name: "t", description: "A tool.", parameters });
  return formats.exportTools([tool], target).names.encodingOf("t")?.input;
}

function object(properties: JsonSchemaObject, required: readonly string[] = []): JsonSchemaObject {
  return { type: "object", properties, required, additionalProperties: false };
}

/** Arguments on the wire, and in the form of the tool. */
interface Row {
  readonly title: string;
  readonly target: formats.TargetName;
  readonly parameters: JsonSchemaObject;
  readonly wire: unknown;
  readonly own: unknown;
}

const node = object({ value: { type: "string" }, next: { $ref: "#/$defs/node" } }, ["value"]);

describe("decodeArguments() and encodeArguments()", () => {
  for (const { title, target, parameters, wire, own } of rewrites as readonly Row[]) {
    it(`${title} (${target})`, () => {
      const rewrite = rewriteFor(target, parameters);
      const before = JSON.stringify(wire);
      assertEquals(JSON.stringify(decodeArguments(wire, rewrite)), JSON.stringify(own));
      assertEquals(formats.encodeArguments(own, rewrite), wire);
      assertEquals(JSON.stringify(wire), before);
    });
  }

  it("do not change invalid parts, which validation reports", () => {
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

  it("do not recurse deeper than any schema, for any value", () => {
    const rewrite = rewriteFor("openai.strict", {
      ...object({ first: { $ref: "#/$defs/node" } }, ["first"]),
      $defs: { node },
    });
    let deep: unknown = { value: "x", next: null };
    for (let level = 0; level < 100_000; level++) deep = { value: "x", next: deep };
    // The call returns, and does not overflow the stack.
    assertEquals(typeof decodeArguments({ first: deep }, rewrite), "object");
  });

  it("have no changes if an export changed nothing", () => {
    assertEquals(rewriteFor("openai", object({ a: { type: "string" } })), undefined);
    assertEquals(rewriteFor("openai.strict", object({ a: { type: "string" } }, ["a"])), undefined);
  });
});
