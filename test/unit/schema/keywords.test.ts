import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { detectDialect } from "../../../src/schema/mod.ts";
import type { JsonSchema } from "../../../src/tool/mod.ts";

describe("detectDialect()", () => {
  const DRAFT_07: readonly JsonSchema[] = [
    { $schema: "http://json-schema.org/draft-07/schema#" },
    { $schema: "http://json-schema.org/draft-07/schema", $defs: {}, prefixItems: [true] },
    { definitions: { a: { type: "string" } } },
    { dependencies: { a: ["b"] } },
    { properties: { list: { items: [{ type: "string" }] } } },
    { anyOf: [true, { not: { items: [] } }] },
    { $defs: { deep: { additionalProperties: { definitions: {} } } } },
  ];
  for (const schema of DRAFT_07) {
    it(`reads ${JSON.stringify(schema)} as draft-07`, () => {
      assertEquals(detectDialect(schema), "draft-07");
    });
  }

  const DRAFT_2020_12: readonly JsonSchema[] = [
    true,
    {},
    { $schema: "https://json-schema.org/draft/2020-12/schema", definitions: {} },
    { items: { type: "string" }, prefixItems: [true] },
    // Names of properties and patterns, not keywords.
    { properties: { definitions: { type: "object" }, dependencies: true, items: false } },
    { patternProperties: { definitions: true }, $defs: { dependencies: true } },
    // Data, not schemas.
    { enum: [{ definitions: {} }], const: { items: [] }, default: { dependencies: {} } },
    { examples: [{ definitions: {} }], "x-note": { items: [] } },
    // Not even an object, so the form is not used; `checkSchema` rejects it.
    { definitions: null },
  ];
  for (const schema of DRAFT_2020_12) {
    it(`reads ${JSON.stringify(schema)} as 2020-12`, () => {
      assertEquals(detectDialect(schema), "2020-12");
    });
  }

  const NAMED = {
    "http://json-schema.org/draft-04/schema#": "draft-04",
    "http://json-schema.org/draft-06/schema#": "draft-06",
    "https://json-schema.org/draft/2019-09/schema": "2019-09",
  } as const;
  for (const [$schema, dialect] of Object.entries(NAMED)) {
    it(`reads ${dialect} by its name only`, () => {
      assertEquals(detectDialect({ $schema, items: [{}], definitions: {} }), dialect);
    });
  }

  it("rejects an unsupported draft, and lists the supported ones", () => {
    for (const uri of ["http://json-schema.org/draft-03/schema#", "", 7, null]) {
      assertThrows(
        () => detectDialect({ $schema: uri }),
        TypeError,
        "must be absent or the URI of one of draft-04, draft-06, draft-07, 2019-09, 2020-12, such as",
      );
    }
  });

  it("ends on a schema that contains itself", () => {
    const schema: Record<string, unknown> = {};
    schema["properties"] = { a: schema, b: schema };
    assertEquals(detectDialect(schema), "2020-12");
  });
});
