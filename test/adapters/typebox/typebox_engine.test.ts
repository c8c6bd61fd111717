import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { describeSchemaEngine } from "../../contract/schema_engine_contract.ts";

// In workerd the first compiles, the second has to interpret, and must not trip over the first.
describeSchemaEngine("typeboxEngine()", (formats) => typeboxEngine({ formats }));
describeSchemaEngine("typeboxEngine()", (formats) => typeboxEngine({ formats }), "inside a test");
describeSchemaEngine(
  "typeboxEngine({ codeGeneration: false })",
  (formats) => typeboxEngine({ formats, codeGeneration: false }),
);

describe("typeboxEngine()", () => {
  const wide = typeboxEngine().compile({
    properties: Object.fromEntries(
      Array.from({ length: 4_900 }, (_, at) => [`p${at}`, { type: "string" }]),
    ),
  }, "2020-12");

  it("interprets a schema whose code would be too deep for the stack", () => {
    assertEquals(wide.check({ p0: "a", p4899: "b" }), true);
    assertEquals(wide.issues({ p4899: 1 })[0]?.message, "/p4899 must be a string, not a number");
  });
});
