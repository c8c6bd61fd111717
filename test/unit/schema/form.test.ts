import { assert, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { FormSchema, type Shape, type Variant } from "../../../src/schema/form.ts";
import type { JsonSchema } from "../../../src/tool/mod.ts";
import data from "./form.json" with { type: "json" };

const shapeOf = (schema: JsonSchema): Shape => {
  const form = new FormSchema(schema);
  return form.shapeOf(form.root);
};

/** The shapes of an object's properties. */
function propertiesOf(schema: JsonSchema): Record<string, Shape> {
  const form = new FormSchema(schema);
  const shape = form.shapeOf(form.root);
  assert(shape.kind === "object", `It is ${shape.kind}`);
  return Object.fromEntries(
    [...shape.properties].map(([name, place]) => [name, form.shapeOf(place)]),
  );
}

function variantsOf(schema: JsonSchema): readonly Variant[] {
  const shape = shapeOf(schema);
  assert(shape.kind === "variants", `It is ${shape.kind}`);
  return shape.variants;
}

describe("FormSchema.shapeOf()", () => {
  for (const [schema, wanted] of data.shapes as [JsonSchema, Shape][]) {
    it(`makes ${JSON.stringify(wanted)} of ${JSON.stringify(schema)}`, () => {
      assertEquals(shapeOf(schema), wanted);
    });
  }

  it("follows references, through allOf, in both drafts", () => {
    const wanted = { a: { kind: "text" }, b: { kind: "number", integer: true } } as const;
    assertEquals(
      propertiesOf({
        allOf: [{ $ref: "#/$defs/base" }],
        properties: { b: { type: "integer" } },
        $defs: { base: { type: "object", properties: { a: { type: "string" } } } },
      }),
      wanted,
    );
    assertEquals(
      propertiesOf({
        $schema: "http://json-schema.org/draft-07/schema#",
        type: "object",
        properties: { a: { $ref: "#/definitions/text" }, b: { type: "integer" } },
        definitions: { text: { type: "string" } },
      }),
      wanted,
    );
  });

  it("ends at a recursive reference", () => {
    const shapes = propertiesOf({
      type: "object",
      properties: { next: { $ref: "#" }, self: { $ref: "#/$defs/self" } },
      $defs: { self: { $ref: "#/$defs/self" } },
    });
    assertEquals([shapes["next"]?.kind, shapes["self"]?.kind], ["object", "json"]);
    const lists = {
      oneOf: [{ $ref: "#/$defs/l" }],
      $defs: { l: { items: { $ref: "#/$defs/l" } } },
    };
    assertEquals(variantsOf(lists)[0]?.label, "list of list of list");
  });

  it("makes a form for each type of several, and for each branch of a union", () => {
    assertEquals(
      variantsOf({ type: ["string", "null"] }).map(({ label }) => label),
      ["string", "null"],
    );
    const circle = { properties: { kind: { const: "circle" } }, required: ["kind"] };
    const titled = { title: "Square", type: "object", properties: { side: { type: "number" } } };
    assertEquals(
      variantsOf({ type: "object", oneOf: [circle, titled, { type: "object" }] }).map(
        ({ label }) => label,
      ),
      ["kind: circle", "Square", "object"],
    );
  });

  it("applies the keywords next to a union to each alternative", () => {
    const schema = {
      type: "object",
      properties: { id: { type: "string" } },
      anyOf: [{ properties: { n: { type: "number" } } }, { properties: { s: { type: "null" } } }],
    } as const;
    const form = new FormSchema(schema);
    const kept = variantsOf(schema).map(({ place }) => {
      const shape = form.shapeOf(place);
      return shape.kind === "object" ? [...shape.properties.keys()] : shape.kind;
    });
    assertEquals(kept, [["id", "n"], ["id", "s"]]);
  });

  it("makes no forms of branches that only require properties", () => {
    const shape = shapeOf({
      type: "object",
      properties: { a: {}, b: {} },
      anyOf: [{ required: ["a"] }, { required: ["b"] }],
    });
    assertEquals(shape.kind, "object");
  });

  it("offers other properties if an object is a map, but not if it is closed", () => {
    const restOf = (schema: JsonSchema): string | undefined => {
      const form = new FormSchema(schema);
      const shape = form.shapeOf(form.root);
      return shape.kind === "object" && shape.rest ? form.shapeOf(shape.rest).kind : undefined;
    };
    assertEquals(restOf({ type: "object" }), "json");
    assertEquals(restOf({ additionalProperties: { type: "string" } }), "text");
    assertEquals(
      restOf({ type: "object", patternProperties: { "^x-": { type: "null" } } }),
      "null",
    );
    assertEquals(restOf({ type: "object", additionalProperties: false }), undefined);
    assertEquals(restOf({ type: "object", properties: { a: {} } }), undefined);
  });

  it("distinguishes the first items of a list from the others", () => {
    const tuple = shapeOf({ type: "array", prefixItems: [{ type: "string" }], items: false });
    assert(tuple.kind === "list");
    assertEquals([tuple.first.length, tuple.rest], [1, undefined]);
    const old = shapeOf({
      $schema: "http://json-schema.org/draft-07/schema#",
      items: [{ type: "string" }],
      additionalItems: { type: "number" },
      maxItems: 4,
    });
    assert(old.kind === "list" && old.rest !== undefined);
    assertEquals([old.first.length, old.maxItems], [1, 4]);
  });

  it("accepts names that every object inherits", () => {
    const schema = JSON.parse(
      '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"null"}}}',
    );
    const shape = shapeOf(schema);
    assert(shape.kind === "object");
    assertEquals([...shape.properties.keys()], ["__proto__", "constructor"]);
  });
});

describe("FormSchema.initial()", () => {
  const initial = (schema: JsonSchema): unknown => {
    const form = new FormSchema(schema);
    return form.initial(form.root);
  };

  for (const [schema, wanted] of data.initials as [JsonSchema, unknown][]) {
    it(`makes ${JSON.stringify(wanted)} of ${JSON.stringify(schema)}`, () => {
      assertEquals(initial(schema), wanted);
    });
  }

  it("ends for a schema that requires itself", () => {
    let value = initial({
      type: "object",
      properties: { next: { $ref: "#" } },
      required: ["next"],
    });
    let depth = 0;
    for (; typeof value === "object" && value !== null && "next" in value; depth++) {
      value = value.next;
    }
    assertEquals(depth, 6);
  });
});

describe("FormSchema.variantOf()", () => {
  it("finds the form of a value by its type, its constants and its required properties", () => {
    const schema = data.alternatives;
    const form = new FormSchema(schema);
    const variants = variantsOf(schema);
    assertEquals(
      [{ kind: "a" }, { kind: "b" }, [1], ["x"], null, {}, "else"].map((value) =>
        form.variantOf(variants, value)
      ),
      [0, 1, 2, 3, 4, 0, 0],
    );
  });
});

describe("FormSchema.notesOf()", () => {
  it("prefers annotations next to a reference to annotations of its target", () => {
    const form = new FormSchema({
      $ref: "#/$defs/a",
      description: "Here",
      $defs: {
        a: { title: "A", description: "There", default: 1, examples: [2], deprecated: true },
      },
    });
    assertEquals(form.notesOf(form.root), {
      title: "A",
      description: "Here",
      deprecated: true,
      examples: [2],
      default: 1,
    });
  });
});
