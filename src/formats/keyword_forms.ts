/**
 * The forms that a schema can use, which are the rows of every target's keyword table: keywords,
 * grouped where they only mean something together, and told apart where targets do.
 *
 * @module
 */

import type { JsonSchemaObject } from "../tool/mod.ts";

/** The forms, each with what it is, in the order of the tables. */
export const KEYWORD_FORMS = {
  "root composition": "`anyOf`, `oneOf`, `allOf`, `not`, `enum`, `const` or `$ref` at the root",
  "type": "`type` with one type",
  "type list": "`type` with a list of types",
  "type null": '`type: "null"` alone',
  "enum": "`enum` of texts",
  "enum empty text": '`enum` with `""`',
  "enum scalar": "`enum` with numbers or booleans",
  "enum complex": "`enum` or `const` with lists or objects",
  "const": "`const`",
  "properties": "`properties`",
  "odd property key": "a property key other than `[A-Za-z_][A-Za-z0-9_]{0,63}`",
  "required": "`required`",
  "optional property": "a property that is not required",
  "optional nullable property": "a property that may be left out or `null`",
  "undeclared required": "`required` names a property that `properties` does not",
  "additionalProperties false": "`additionalProperties: false`",
  "open object": "an object that does not say `additionalProperties`",
  "map": "`additionalProperties: true` or a schema, or an object without properties",
  "patternProperties": "`patternProperties`",
  "propertyNames": "`propertyNames`",
  "unevaluated": "`unevaluatedProperties`, `unevaluatedItems`",
  "property count": "`minProperties`, `maxProperties`",
  "dependent": "`dependentRequired`, `dependentSchemas`",
  "conditional": "`if`, `then`, `else`",
  "not": "`not`",
  "items": "`items`",
  "items missing": "an array without `items`",
  "tuple": "`prefixItems`",
  "contains": "`contains`, `minContains`, `maxContains`",
  "minItems 0 or 1": "`minItems` of 0 or 1",
  "minItems": "`minItems` above 1",
  "maxItems": "`maxItems`",
  "uniqueItems": "`uniqueItems`",
  "length": "`minLength`, `maxLength`",
  "pattern": "`pattern`",
  "pattern complex": "`pattern` with look-around, back references or `\\b`",
  "format": "`format`",
  "range": "`minimum`, `maximum`",
  "exclusive range": "`exclusiveMinimum`, `exclusiveMaximum`",
  "multipleOf": "`multipleOf`",
  "anyOf": "`anyOf` below the root",
  "anyOf with siblings": "`anyOf` beside other constraints",
  "oneOf": "`oneOf` below the root",
  "allOf": "`allOf` below the root",
  "$ref": "`$ref` to a part of the schema, `$defs`",
  "$ref with siblings": "`$ref` beside other keywords",
  "$ref elsewhere": "`$ref` to a part that is not in the root's `$defs`",
  "$ref recursive": "`$ref` that leads back to itself",
  "$ref external": "`$ref` that leads outside of the schema",
  "dynamic reference": "`$dynamicRef`, `$dynamicAnchor`, `$anchor`",
  "$id": "`$id`",
  "$schema": "`$schema`",
  "$comment": "`$comment`",
  "title": "`title`",
  "description": "`description`",
  "default": "`default`",
  "examples": "`examples`",
  "example": "`example` (OpenAPI)",
  "usage notes": "`deprecated`, `readOnly`, `writeOnly`",
  "content": "`contentEncoding`, `contentMediaType`, `contentSchema`",
  "boolean schema": "`true` or `false` as a schema",
  "no type": "a schema that says nothing about the type",
  "propertyOrdering": "`propertyOrdering` (Gemini)",
  "nullable": "`nullable: true` (OpenAPI 3.0), which is no JSON Schema",
  "unknown": "`x-…` and whatever else",
} as const;

/** A form that a schema can use. */
export type KeywordForm = keyof typeof KEYWORD_FORMS;

/** Keywords of one form, whatever they hold. */
export const FORM_OF: ReadonlyMap<string, KeywordForm> = new Map<string, KeywordForm>([
  ["properties", "properties"],
  ["required", "required"],
  ["patternProperties", "patternProperties"],
  ["propertyNames", "propertyNames"],
  ["unevaluatedProperties", "unevaluated"],
  ["unevaluatedItems", "unevaluated"],
  ["minProperties", "property count"],
  ["maxProperties", "property count"],
  ["dependentRequired", "dependent"],
  ["dependentSchemas", "dependent"],
  ["dependencies", "dependent"],
  ["if", "conditional"],
  ["then", "conditional"],
  ["else", "conditional"],
  ["items", "items"],
  ["prefixItems", "tuple"],
  ["contains", "contains"],
  ["minContains", "contains"],
  ["maxContains", "contains"],
  ["maxItems", "maxItems"],
  ["uniqueItems", "uniqueItems"],
  ["minLength", "length"],
  ["maxLength", "length"],
  ["format", "format"],
  ["minimum", "range"],
  ["maximum", "range"],
  ["exclusiveMinimum", "exclusive range"],
  ["exclusiveMaximum", "exclusive range"],
  ["multipleOf", "multipleOf"],
  ["$defs", "$ref"],
  ["definitions", "$ref"],
  ["$anchor", "dynamic reference"],
  ["$dynamicRef", "dynamic reference"],
  ["$dynamicAnchor", "dynamic reference"],
  ["$id", "$id"],
  ["$schema", "$schema"],
  ["$comment", "$comment"],
  ["title", "title"],
  ["description", "description"],
  ["default", "default"],
  ["examples", "examples"],
  ["example", "example"],
  ["deprecated", "usage notes"],
  ["readOnly", "usage notes"],
  ["writeOnly", "usage notes"],
  ["contentEncoding", "content"],
  ["contentMediaType", "content"],
  ["contentSchema", "content"],
  ["propertyOrdering", "propertyOrdering"],
]);

/** Keywords whose form depends on whether they stand at the root. */
const COMPOSITION: ReadonlySet<string> = new Set(["anyOf", "oneOf", "allOf", "not"]);

/** What makes a regular expression more than the simple ones that decoders compile. */
const COMPLEX_PATTERN = /\(\?[=!<]|\\[1-9bBk]/;

/** The form of one keyword of a node. */
export function formOfKeyword(keyword: string, node: JsonSchemaObject, root: boolean): KeywordForm {
  const value = node[keyword];
  // Every schema has one, so it is asked for first.
  if (keyword === "type") {
    return Array.isArray(value) ? "type list" : value === "null" ? "type null" : "type";
  }
  const fixed = FORM_OF.get(keyword);
  if (fixed !== undefined) return fixed;
  if (root && COMPOSITION.has(keyword)) return "root composition";
  switch (keyword) {
    case "enum":
      return root ? "root composition" : formOfValues(Array.isArray(value) ? value : []);
    case "nullable":
      return value === true ? "nullable" : "unknown";
    case "const": {
      if (root) return "root composition";
      return typeof value === "object" && value !== null ? "enum complex" : "const";
    }
    case "additionalProperties":
      return value === false ? "additionalProperties false" : "map";
    case "minItems":
      return value === 0 || value === 1 ? "minItems 0 or 1" : "minItems";
    case "pattern":
      return typeof value === "string" && COMPLEX_PATTERN.test(value)
        ? "pattern complex"
        : "pattern";
    case "$ref":
      return root ? "root composition" : "$ref";
    case "anyOf":
    case "oneOf":
    case "allOf":
    case "not":
      return keyword;
    default:
      return "unknown";
  }
}

function formOfValues(values: readonly unknown[]): KeywordForm {
  let form: KeywordForm = "enum";
  for (const value of values) {
    if (typeof value === "object" && value !== null) return "enum complex";
    if (value === "") form = form === "enum" ? "enum empty text" : form;
    else if (typeof value !== "string" && value !== null) form = "enum scalar";
  }
  return form;
}
