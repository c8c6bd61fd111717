import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { detectDialect } from "../../../src/schema/mod.ts";
import type { JsonSchema } from "../../../src/tool/mod.ts";
import data from "./keywords.json" with { type: "json" };

describe("detectDialect()", () => {
  const DRAFT_07: readonly JsonSchema[] = data.draft07 as never;
  for (const schema of DRAFT_07) {
    it(`reads ${JSON.stringify(schema)} as draft-07`, () => {
      assertEquals(detectDialect(schema), "draft-07");
    });
  }

  const DRAFT_2020_12: readonly JsonSchema[] = data.draft202012 as never;
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
