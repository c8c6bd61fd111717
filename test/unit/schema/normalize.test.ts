import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import * as schemas from "../../../src/schema/mod.ts";
import { ASSERTED_FORMATS, normalizeSchema } from "../../../src/schema/normalize.ts";
import type { JsonSchema, JsonSchemaObject } from "../../../src/tool/mod.ts";
import data from "./normalize.json" with { type: "json" };

const URI = "https://json-schema.org/draft/2020-12/schema";

function normalized(schema: JsonSchema, dialect: schemas.Dialect = "2020-12"): JsonSchema {
  return normalizeSchema(schema, dialect, { formats: ASSERTED_FORMATS }).schema;
}

describe("normalizeSchema()", () => {
  const ROWS: readonly (readonly [string, schemas.Dialect, JsonSchema, JsonSchema])[] = data
    .rewritten as never;
  for (const [what, dialect, schema, expected] of ROWS) {
    it(what, () => {
      assertEquals(normalized(schema, dialect), { $schema: URI, ...expected as object });
    });
  }

  it("rewrites a schema once for each meaning of its $dynamicRef", () => {
    const list = {
      $id: "list",
      items: { $dynamicRef: "#item" },
      $defs: { any: { $dynamicAnchor: "item" } },
    };
    const of = (type: string) => ({
      $id: type,
      $ref: "list",
      $defs: { i: { $dynamicAnchor: "item", type } },
    });
    const schema = {
      properties: { a: { $ref: "string" }, b: { $ref: "number" }, c: { $ref: "list" } },
      $defs: { list, string: of("string"), number: of("number") },
    };
    assertEquals(normalized(schema), {
      $schema: URI,
      properties: { a: { $ref: "#/$defs/0" }, b: { $ref: "#/$defs/1" }, c: { $ref: "#/$defs/2" } },
      $defs: data.resolved,
    });
  });

  it("returns whether the schema has references", () => {
    const has = (schema: JsonSchema): boolean =>
      normalizeSchema(schema, "2020-12", { formats: ASSERTED_FORMATS }).hasReferences;
    assertEquals(has({ properties: { a: { type: "string" } } }), false);
    assertEquals(has({ properties: { a: { $ref: "#" } } }), true);
  });

  it("keeps the keywords that the engine supports", () => {
    const { schema } = normalizeSchema({ items: { even: true, odd: true } }, "2020-12", {
      formats: new Set(),
      keywords: ["even"],
    });
    assertEquals(schema, { $schema: URI, items: { even: true } });
  });
});

const DRAFT_04 = "http://json-schema.org/draft-04/schema#";
const DRAFT_2019_09 = "https://json-schema.org/draft/2019-09/schema";

interface Case {
  readonly fact: string;
  readonly schema: JsonSchemaObject;
  readonly fits: readonly unknown[];
  readonly fails: readonly unknown[];
}

const CASES: readonly Case[] = data.olderDrafts as never;

describe("schemas of older drafts", () => {
  for (const { fact, schema, fits, fails } of CASES) {
    it(fact, () => {
      schemas.checkSchema(schema);
      const check = schemas.checkWithoutEngine(schema);
      assertEquals(fits.filter((value) => !check(value)), []);
      assertEquals(fails.filter((value) => check(value)), []);
    });
  }

  it("of 2019-09 may have one recursive anchor, because 2020-12 expresses several in another way", () => {
    assertThrows(
      () =>
        schemas.checkSchema({
          $schema: DRAFT_2019_09,
          $recursiveAnchor: true,
          $defs: { a: { $id: "a", $recursiveAnchor: true } },
        }),
      TypeError,
      '"/$defs/a/$recursiveAnchor" must not occur twice: write several as "$dynamicAnchor"',
    );
  });

  it("are replaced, and none of their keywords remain", () => {
    const schema = { $schema: DRAFT_2019_09, $recursiveAnchor: true, $recursiveRef: "#" };
    assertEquals<unknown>(schemas.asDraft2020(schema, "2019-09"), { $ref: "#" });
  });

  it("of draft-04 are rejected if a limit's flag is a number", () => {
    assertThrows(
      () => schemas.checkSchema({ $schema: DRAFT_04, exclusiveMinimum: 1 }),
      TypeError,
      '"/exclusiveMinimum" must be true or false, not 1',
    );
  });
});
