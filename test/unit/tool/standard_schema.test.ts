import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { isStandardSchema } from "../../../src/tool/mod.ts";

const standard = { version: 1, vendor: "test", validate: (value: unknown) => ({ value }) };

describe("isStandardSchema()", () => {
  it("accepts an object with the mark", () => {
    assertEquals(isStandardSchema({ "~standard": standard }), true);
  });

  it("accepts a function with the mark, such as ArkType's types", () => {
    assertEquals(isStandardSchema(Object.assign(() => 0, { "~standard": standard })), true);
  });

  const others: readonly (readonly [string, unknown])[] = [
    ["a JSON Schema", { type: "object" }],
    ["a mark that cannot validate", { "~standard": { version: 1, vendor: "test" } }],
    ["a mark that is null", { "~standard": null }],
    ["a mark that is a string", { "~standard": "yes" }],
    ["a function without the mark", () => 0],
    ["true", true],
    ["a string", "schema"],
    ["null", null],
    ["undefined", undefined],
  ];
  for (const [name, value] of others) {
    it(`rejects ${name}`, () => {
      assertEquals(isStandardSchema(value), false);
    });
  }
});
