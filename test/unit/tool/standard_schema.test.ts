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

  it("rejects other values", () => {
    const others = [
      ...[{ type: "object" }, { "~standard": { version: 1, vendor: "test" } }, () => 0, true],
      ...[{ "~standard": null }, { "~standard": "yes" }, "schema", null, undefined],
    ];
    assertEquals(others.filter(isStandardSchema), []);
  });
});
