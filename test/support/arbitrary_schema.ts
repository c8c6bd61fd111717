/** Schemas and values for property tests, from small sets, so that a value often fits a schema. */

import fc from "fast-check";
import { checkSchema } from "../../src/schema/mod.ts";

/** A schema, as the tests see it. */
export type AnySchema = boolean | { readonly [keyword: string]: unknown };

const KEYS = ["a", "b", "c d", "$top", "filter[id]", "constructor", "__proto__"] as const;
const TEXTS = ["", "a", "ab", "1", "x".repeat(5)] as const;
const NUMBERS = [-1, 0, 1, 1.5, 2, 3, 10] as const;
const aKey = fc.constantFrom(...KEYS);
const aCount = fc.constantFrom(0, 1, 2, 3);
const aNumber = fc.constantFrom(...NUMBERS);

/** Any character. The unit "binary" of fast-check lists all of them first, which takes a second. */
export const aCharacter: fc.Arbitrary<string> = fc.integer({ min: 0, max: 0x10ffff })
  .map((code) => String.fromCodePoint(code)).filter((character) => character.isWellFormed());

/** Any small JSON value. */
export const aValue: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.oneof(fc.constant(null), fc.boolean(), aNumber, fc.constantFrom<string>(...TEXTS)),
    fc.array(tie("value"), { maxLength: 3 }),
    entries(tie("value")),
  ),
})).value;

function entries(value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.uniqueArray(fc.tuple(aKey, value), { maxLength: 4, selector: ([key]) => key })
    .map(fromEntries);
}

/** `Object.fromEntries` makes own properties of every key, `__proto__` too. */
function fromEntries(list: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  return Object.fromEntries(list);
}

/** The contents of a generated schema. */
export interface SchemaChoices {
  /** `$ref`s into `$defs`, recursive ones too. */
  readonly references?: boolean;
}

const scalar = fc.oneof(
  fc.constantFrom<unknown>(...TEXTS),
  aNumber,
  fc.boolean(),
  fc.constant(null),
);

/** Schemas. Most are small, and some use many keywords. */
export function aSchema(choices: SchemaChoices = {}): fc.Arbitrary<AnySchema> {
  const { schema } = fc.letrec<{ schema: AnySchema }>((tie) => {
    const inner = tie("schema") as fc.Arbitrary<AnySchema>;
    const some = fc.array(inner, { minLength: 1, maxLength: 3 });
    const map = fc.uniqueArray(fc.tuple(aKey, inner), { maxLength: 3, selector: ([key]) => key })
      .map(fromEntries);
    const text = optional({
      type: fc.constant("string"),
      minLength: aCount,
      maxLength: aCount,
      pattern: fc.constantFrom("^a", "b$", "^(?!a)"),
      format: fc.constantFrom("date", "uri", "uuid"),
    }, ["type"]);
    const number = optional({
      type: fc.constantFrom("number", "integer"),
      minimum: aNumber,
      maximum: aNumber,
      exclusiveMinimum: aNumber,
      exclusiveMaximum: aNumber,
      multipleOf: fc.constantFrom(1, 2, 0.5),
    }, ["type"]);
    const list = optional({
      type: fc.constant("array"),
      items: inner,
      prefixItems: some,
      minItems: aCount,
      maxItems: aCount,
      uniqueItems: fc.boolean(),
      contains: inner,
      minContains: aCount,
      maxContains: aCount,
    }, ["type"]);
    const object = optional({
      type: fc.constant("object"),
      properties: map,
      required: fc.uniqueArray(aKey, { maxLength: 2 }),
      additionalProperties: fc.oneof(fc.constant(false), inner),
      patternProperties: fc.tuple(fc.constantFrom("^a", "t"), inner).map((one) =>
        fromEntries([one])
      ),
      propertyNames: fc.constantFrom({ maxLength: 3 }, { pattern: "^[a-z]" }),
      minProperties: aCount,
      maxProperties: aCount,
      dependentRequired: fc.tuple(aKey, fc.uniqueArray(aKey, { maxLength: 2 })).map((one) =>
        fromEntries([one])
      ),
      dependentSchemas: fc.tuple(aKey, inner).map((one) => fromEntries([one])),
      unevaluatedProperties: fc.oneof(fc.constant(false), inner),
    }, ["type"]);
    const closed = fc.tuple(map, fc.boolean()).map(([properties, all]) => ({
      type: "object",
      properties,
      required: Object.keys(properties).filter((_, index) => all || index === 0),
      additionalProperties: false,
    }));
    const logic = optional({
      type: fc.constantFrom<unknown>("string", "object", ["string", "null"], ["array", "number"]),
      anyOf: some,
      oneOf: some,
      allOf: some,
      not: inner,
      if: inner,
      then: inner,
      else: inner,
      discriminator: fc.constant({ propertyName: "a" }),
      "x-note": fc.constant(1),
    }, []);
    const words = optional({
      title: fc.constant("T"),
      description: fc.constantFrom("A thing", "A thing."),
      default: scalar,
      examples: fc.array(scalar, { maxLength: 2 }),
      $comment: fc.constant("c"),
      deprecated: fc.boolean(),
      "x-note": fc.constant(1),
    }, []);
    const leaf: fc.Arbitrary<AnySchema>[] = [
      text,
      number,
      fc.constantFrom<AnySchema>(
        { type: "boolean" },
        { type: "null" },
        { type: ["string", "null"] },
        { type: "object" },
        { type: "array" },
        {},
        true,
        false,
      ),
      fc.array(scalar, { minLength: 1, maxLength: 3 }).map((values) => ({ enum: unique(values) })),
      scalar.map((value) => ({ const: value })),
      aValue.map((value) => ({ const: value })),
    ];
    if (choices.references === true) {
      leaf.push(
        fc.constantFrom<AnySchema>(
          { $ref: "#/$defs/one" },
          { $ref: "#/$defs/two" },
          { $ref: "#/$defs/two", description: "Two." },
          { $ref: "#/$defs/one", "x-order": 1 },
          { $ref: "#/$defs/two", minProperties: 1, discriminator: { propertyName: "a" } },
          { anyOf: [{ $ref: "#/$defs/one" }, { type: "string" }], "x-order": 1 },
          {
            oneOf: [{ $ref: "#/$defs/one" }, { $ref: "#/$defs/two" }],
            discriminator: { propertyName: "a" },
          },
          // References to parts that are not definitions, and that transforms change.
          { $ref: "#/$defs/one/properties/a" },
          { $ref: "#/properties/a" },
          { $ref: "#" },
        ),
      );
    }
    return {
      schema: fc.oneof(
        { maxDepth: 3, depthIdentifier: "schema" },
        fc.oneof(...leaf),
        closed,
        closed,
        object,
        list,
        logic,
        fc.tuple(words, inner).map(([annotations, one]) =>
          typeof one === "boolean" ? one : { ...annotations, ...one }
        ),
      ),
    };
  });
  return schema;
}

/** Schemas whose root is an object, as tools have them. */
export function aParametersSchema(): fc.Arbitrary<{ readonly [keyword: string]: unknown }> {
  const plain = aSchema();
  const linked = aSchema({ references: true });
  const root = (one: AnySchema): { readonly [keyword: string]: unknown } =>
    typeof one === "boolean" ? { type: "object" } : { ...one, type: "object" };
  return fc.oneof(
    fc.uniqueArray(fc.tuple(aKey, plain), { maxLength: 4, selector: ([key]) => key }).map(
      (list) => ({
        type: "object",
        properties: fromEntries(list),
        required: list.filter((_, index) => index % 2 === 0).map(([key]) => key),
      }),
    ),
    plain.map(root),
    fc.tuple(linked, linked, linked, fc.boolean()).map(([one, two, three, nullable]) => ({
      ...root(one),
      // Below a property, so that a recursive schema always consumes a level of the value.
      $defs: { one: guarded(two), two: guarded(three, nullable) },
      // At the root, a reference to the root would consume no level.
      ...(root(one)["$ref"] === undefined ? {} : { $ref: "#/$defs/one" }),
    })),
  ).filter(consumes);
}

/** Schemas of parameters that a tool can be registered with. */
export function aToolSchema(): fc.Arbitrary<{ readonly [keyword: string]: unknown }> {
  return aParametersSchema().filter((schema) => {
    try {
      checkSchema(schema);
      return true;
    } catch {
      return false;
    }
  });
}

/** A definition that refers to others only below a property; `null` may take its place. */
function guarded(schema: AnySchema, nullable = false): AnySchema {
  const type = nullable ? ["object", "null"] : "object";
  return { type, properties: { a: schema }, additionalProperties: false };
}

/** Returns true if no reference refers to itself, which registration rejects. */
function consumes(schema: { readonly [keyword: string]: unknown }): boolean {
  // Only the root can refer to itself without consuming a level, through these keywords.
  const inPlace = ["anyOf", "oneOf", "allOf", "not", "if", "then", "else", "dependentSchemas"];
  const holds = (part: unknown): boolean => {
    if (typeof part !== "object" || part === null) return false;
    const node = part as Record<string, unknown>;
    if (node["$ref"] === "#") return true;
    return inPlace.some((keyword) => {
      const value = node[keyword];
      if (value === undefined) return false;
      if (Array.isArray(value)) return value.some(holds);
      return keyword === "dependentSchemas"
        ? Object.values(value as object).some(holds)
        : holds(value);
    });
  };
  return !holds(schema);
}

function unique(values: readonly unknown[]): unknown[] {
  return [...new Set(values)];
}

function optional(
  fields: Record<string, fc.Arbitrary<unknown>>,
  requiredKeys: readonly string[],
): fc.Arbitrary<{ readonly [keyword: string]: unknown }> {
  const names = Object.keys(fields);
  // Only a few required keys at a time, so that valid values exist.
  return fc.subarray(names.filter((name) => !requiredKeys.includes(name)), { maxLength: 3 }).chain(
    (chosen) => {
      const record: Record<string, fc.Arbitrary<unknown>> = {};
      for (const name of [...requiredKeys, ...chosen]) {
        record[name] = fields[name] as fc.Arbitrary<unknown>;
      }
      return fc.record(record);
    },
  );
}

/** Values that often fit a schema, because the simple keywords of the schema are followed. */
export function aValueFor(
  schema: AnySchema,
  root: AnySchema = schema,
  depth = 0,
): fc.Arbitrary<unknown> {
  if (typeof schema === "boolean" || depth > 5) return aValue;
  const { type, enum: values, properties, required, items, prefixItems } = schema;
  const follow = (part: unknown): fc.Arbitrary<unknown> =>
    aValueFor(part as AnySchema, root, depth + 1);
  if (schema["$ref"] === "#") return follow(root);
  if (typeof schema["$ref"] === "string") {
    const name = schema["$ref"].replace("#/$defs/", "");
    const definitions = (root as Record<string, unknown>)["$defs"] as Record<string, unknown>;
    return definitions !== undefined && Object.hasOwn(definitions, name)
      ? follow(definitions[name])
      : aValue;
  }
  if (Array.isArray(values)) return fc.constantFrom(...values);
  if (Object.hasOwn(schema, "const")) return fc.constant(schema["const"]);
  for (const keyword of ["anyOf", "oneOf", "allOf"]) {
    const branches = schema[keyword];
    if (Array.isArray(branches) && branches.length > 0 && type !== "object") {
      return fc.oneof(...branches.map(follow));
    }
  }
  const types = Array.isArray(type) ? type : [type];
  const one = (name: unknown): fc.Arbitrary<unknown> => {
    switch (name) {
      case "null":
        return fc.constant(null);
      case "boolean":
        return fc.boolean();
      case "integer":
        return fc.constantFrom(-1, 0, 1, 2, 3, 10);
      case "number":
        return aNumber;
      case "string":
        return fc.constantFrom<string>(...TEXTS, "2020-02-02");
      case "array": {
        const first = Array.isArray(prefixItems) ? prefixItems.map(follow) : [];
        const rest = items === undefined ? aValue : follow(items);
        return fc.tuple(fc.tuple(...first), fc.array(rest, { maxLength: 3 }))
          .map(([head, tail]) => [...head, ...tail]);
      }
      case "object": {
        const own = typeof properties === "object" && properties !== null
          ? Object.entries(properties)
          : [];
        const needed = new Set(Array.isArray(required) ? required : []);
        const parts = own.map(([key, property]) => {
          const value = follow(property).map((inner) => [key, inner] as const);
          return needed.has(key) ? value : fc.option(value, { nil: undefined, freq: 2 });
        });
        const more = schema["additionalProperties"] === false
          ? fc.constant<(readonly [string, unknown])[]>([])
          : fc.uniqueArray(fc.tuple(aKey, aValue), { maxLength: 1, selector: ([key]) => key });
        return fc.tuple(fc.tuple(...parts), more).map(([named, extra]) =>
          fromEntries([...extra, ...named.filter((entry) => entry !== undefined)])
        );
      }
      default:
        return aValue;
    }
  };
  return fc.oneof(...types.map(one));
}
