/**
 * What JSON Schema's keywords hold, as data: one table per draft. Everything that walks a schema
 * reads it, so that a property named `definitions` or an `enum` of objects fools none of them.
 *
 * @module
 */

import type { Dialect } from "./dialect.ts";

/** What a keyword's value must be. Those named `schema…` and `map` hold schemas. */
export type KeywordShape =
  | "schema"
  | "schemas"
  | "schema or schemas"
  | "map"
  | "dependencies"
  | "dependentRequired"
  | "types"
  | "strings"
  | "list"
  | "text"
  | "pattern"
  | "flag"
  | "number"
  | "positive"
  | "count"
  | "id"
  | "anchor"
  | "vocabulary";

const BOTH: readonly (readonly [KeywordShape, string])[] = [
  ["schema", "additionalProperties contains propertyNames not if then else"],
  ["schemas", "allOf anyOf oneOf"],
  ["map", "properties patternProperties definitions"],
  ["dependencies", "dependencies"],
  ["types", "type"],
  ["strings", "required"],
  ["list", "enum examples"],
  ["text", "$schema $ref $comment title description format contentEncoding contentMediaType"],
  ["pattern", "pattern"],
  ["flag", "uniqueItems readOnly writeOnly"],
  ["number", "maximum minimum exclusiveMaximum exclusiveMinimum"],
  ["positive", "multipleOf"],
  ["count", "maxLength minLength maxItems minItems maxProperties minProperties"],
];

const DRAFT_07: typeof BOTH = [
  ["schema or schemas", "items"],
  ["schema", "additionalItems"],
  ["text", "$id"],
];

const DRAFT_2020_12: typeof BOTH = [
  ["schema", "items contentSchema unevaluatedItems unevaluatedProperties"],
  ["schemas", "prefixItems"],
  ["map", "$defs dependentSchemas"],
  ["dependentRequired", "dependentRequired"],
  ["text", "$dynamicRef $recursiveRef"],
  ["flag", "deprecated"],
  ["count", "maxContains minContains"],
  ["id", "$id"],
  ["anchor", "$anchor $dynamicAnchor $recursiveAnchor"],
  ["vocabulary", "$vocabulary"],
];

function table(...parts: (typeof BOTH)[]): ReadonlyMap<string, KeywordShape> {
  const shapes = new Map<string, KeywordShape>();
  for (const [shape, names] of parts.flat()) {
    for (const name of names.split(" ")) shapes.set(name, shape);
  }
  return shapes;
}

/** The keywords of each draft. A keyword that is not here holds anything. */
export const KEYWORDS: { readonly [D in Dialect]: ReadonlyMap<string, KeywordShape> } = {
  "draft-07": table(BOTH, DRAFT_07),
  "2020-12": table(BOTH, DRAFT_2020_12),
};

/** The keywords whose schemas check the very value that the schema around them checks. */
export const IN_PLACE: readonly string[] =
  "allOf anyOf oneOf not if then else dependentSchemas dependencies".split(" ");
