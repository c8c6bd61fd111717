import { assertEquals, assertNotStrictEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import * as keywords from "../../../../src/formats/transform/keywords.ts";
import {
  inlineRefs as inline,
  mergeAllOf,
} from "../../../../src/formats/transform/merge_all_of.ts";
import {
  normalizeDraft,
  normalizeOpenApi30,
} from "../../../../src/formats/transform/older_dialects.ts";
import {
  closeObjects,
  nullToFlag,
  optionalToNullable,
  renameKeys,
} from "../../../../src/formats/transform/properties.ts";
import { flattenRoot, oneOfToAnyOf } from "../../../../src/formats/transform/unions.ts";
import type { JsonSchema } from "../../../../src/tool/mod.ts";
import { type Rewritten, runPass } from "../run_pass.ts";
import cases from "./passes.json" with { type: "json" };

const inlineRefs = runPass(inline);

/** A short form of a loss: pointer, kind, and direction. */
type Short = readonly [path: string, grade: string, effect: "" | "wider" | "narrower" | "either"];

interface Row {
  readonly title: string;
  readonly from: JsonSchema;
  readonly to: JsonSchema;
  readonly losses?: readonly Short[];
}

function short({ losses }: Rewritten): Short[] {
  return losses.map(({ path, grade, widens, narrows }) => [
    path,
    grade,
    widens && narrows ? "either" : widens ? "wider" : narrows ? "narrower" : "",
  ]);
}

const PASSES: Readonly<Record<keyof typeof cases, (schema: JsonSchema) => Rewritten>> = {
  "normalizeDraft()": runPass((root, { trace }) => normalizeDraft(trace, root, "draft-07")),
  "normalizeOpenApi30()": normalizeOpenApi30,
  "inlineRefs()": inlineRefs,
  "mergeAllOf()": runPass(mergeAllOf),
  "oneOfToAnyOf()": runPass({ enter: oneOfToAnyOf }),
  "optionalToNullable()": runPass({ leave: optionalToNullable }),
  "nullToFlag()": runPass({ enter: nullToFlag }),
  "closeObjects()": runPass({ leave: closeObjects }),
  "tuplesToLists()": runPass({ leave: keywords.tuplesToLists }),
  "exclusiveToInclusive()": runPass({ leave: keywords.exclusiveToInclusive }),
  "constToEnum()": runPass({ leave: keywords.constToEnum }),
  "enumToText()": runPass({ leave: keywords.enumToText }),
  "booleansToObjects()": runPass(keywords.booleansToObjects),
  "flattenRoot()": runPass(flattenRoot),
  "dropKeywords()": runPass({ enter: keywords.dropKeywords }, {
    fateOf: (keyword) => ["minLength", "not", "default"].includes(keyword) ? "drop" : "keep",
  }),
  "renameKeys()": runPass(renameKeys, { keys: { also: "", max: 16, separator: "_" } }),
};

for (const [name, transform] of Object.entries(PASSES)) {
  const rows = (cases as unknown as Record<string, readonly Row[]>)[name] ?? [];
  describe(name, () => {
    for (const { title, from, to, losses = [] } of rows) {
      it(title, () => {
        const before = JSON.stringify(from);
        const result = transform(from);
        assertEquals(result.schema, to);
        assertEquals(short(result), losses);
        assertEquals(JSON.stringify(from), before);
      });
    }

    it("returns the same schema if there is nothing to do", () => {
      const schema = { type: "object", properties: {}, required: [], additionalProperties: false };
      assertStrictEquals(transform(schema).schema, schema);
    });
  });
}

describe("inlineRefs()", () => {
  it("resolves no reference outside of the schema", () => {
    assertThrows(
      () => inlineRefs({ $ref: "https://example.com/x" }),
      TypeError,
      'Cannot inline the reference "https://example.com/x": its target is outside of the schema',
    );
  });

  it("rejects references that double at each step", () => {
    const $defs: Record<string, JsonSchema> = { d0: { type: "string" } };
    for (let step = 1; step < 40; step++) {
      const $ref = `#/$defs/d${step - 1}`;
      $defs[`d${step}`] = { properties: { a: { $ref }, b: { $ref } } };
    }
    assertThrows(() => inlineRefs({ $ref: "#/$defs/d39", $defs }), RangeError, "20000 subschemas");
  });
});

describe("transforms", () => {
  it("share unchanged parts", () => {
    const kept = { type: "string" };
    const from = { properties: { a: kept, b: { type: "integer", exclusiveMinimum: 0 } } };
    const { schema } = runPass({ leave: keywords.exclusiveToInclusive })(from);
    assertNotStrictEquals(schema, from);
    assertStrictEquals((schema as typeof from).properties.a, kept);
  });

  it("retain a property that is named __proto__", () => {
    const from = JSON.parse('{"properties":{"__proto__":{"type":"string"}}}');
    const { schema } = runPass({ leave: optionalToNullable })(from);
    assertEquals(
      JSON.stringify(schema),
      '{"properties":{"__proto__":{"type":["string","null"]}},"required":["__proto__"]}',
    );
  });
});
