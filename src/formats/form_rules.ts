/**
 * The rules of a target for schemas: for each form of a schema, the export action and the enforcement
 * by the target. A form is a keyword, a group of keywords with one meaning, or a use of a keyword that
 * targets treat differently.
 *
 * @module
 */

/** The forms, each with a description, in the order of the tables. */
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
  "optional nullable property": "a property that may be absent or `null`",
  "undeclared required": "`required` names a property that `properties` does not",
  "additionalProperties false": "`additionalProperties: false`",
  "open object": "an object without `additionalProperties`",
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
  "anyOf with siblings": "`anyOf` with sibling constraints",
  "oneOf": "`oneOf` below the root",
  "allOf": "`allOf` below the root",
  "$ref": "`$ref` to a part of the schema, `$defs`",
  "$ref with siblings": "`$ref` with sibling keywords",
  "$ref elsewhere": "`$ref` to a part that is not in the root's `$defs`",
  "$ref recursive": "recursive `$ref`",
  "$ref external": "`$ref` out of the schema",
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
  "no type": "a schema without a type",
  "propertyOrdering": "`propertyOrdering` (Gemini)",
  "nullable": "`nullable: true` (OpenAPI 3.0)",
  "unknown": "`x-…` and whatever else",
} as const;

/** A form that a schema can use. */
export type KeywordForm = keyof typeof KEYWORD_FORMS;

/** All forms, in the order of the tables. */
export const ALL_FORMS: readonly KeywordForm[] = Object.keys(KEYWORD_FORMS) as KeywordForm[];

/** How a form of schema is exported. */
export type KeywordAction = "keep" | "drop" | "transform" | "reject";

/** The enforcement of a form by the target. */
export type KeywordEnforcement =
  /** It holds the model to it, or documents that it reads it. */
  | "enforced"
  /** The model reads it; nothing holds the model to it. */
  | "advisory"
  /** It is accepted, and neither read nor enforced. */
  | "ignored";

/** One cell of a keyword table. */
export interface KeywordRule {
  readonly action: KeywordAction;
  readonly enforcement: KeywordEnforcement;
  /** The replacement, for `transform`. */
  readonly into?: string;
  /** The provider does not document it. It is reported as a warning, never as an error. */
  readonly uncertain?: true;
}

/** A target's rule for every form. */
export type KeywordTable = { readonly [Form in KeywordForm]: KeywordRule };

/** Sent; the target holds the model to it. */
export const ENFORCED: KeywordRule = Object.freeze({ action: "keep", enforcement: "enforced" });
/** Sent; the model reads it. */
export const ADVISORY: KeywordRule = Object.freeze({ action: "keep", enforcement: "advisory" });
/** Sent; the target accepts it and does nothing with it. */
export const IGNORED: KeywordRule = Object.freeze({ action: "keep", enforcement: "ignored" });
/** Omitted: the target rejects or ignores it. */
export const DROPPED: KeywordRule = Object.freeze({ action: "drop", enforcement: "ignored" });
/** The tool cannot be sent. In a strict mode it is sent without that mode. */
export const REJECTED: KeywordRule = Object.freeze({ action: "reject", enforcement: "ignored" });

/** Sent as something else. */
export function into(into: string): KeywordRule {
  return Object.freeze({ action: "transform", enforcement: "enforced", into });
}

/** A rule that the provider does not document. */
export function unsure(rule: KeywordRule): KeywordRule {
  return Object.freeze({ ...rule, uncertain: true });
}

/**
 * A table with one rule for every form. `nullable` is always dropped: in JSON Schema it does not
 * accept `null`, and a model that reads it believes that it does.
 */
export function every(rule: KeywordRule): KeywordTable {
  const table: Partial<Record<KeywordForm, KeywordRule>> = {};
  for (const form of Object.keys(KEYWORD_FORMS)) table[form as KeywordForm] = rule;
  return { ...table as KeywordTable, nullable: DROPPED };
}

/** A table with other rules for some forms. */
export function table(
  base: KeywordTable,
  ...changes: readonly (readonly [rule: KeywordRule, forms: readonly KeywordForm[]])[]
): KeywordTable {
  const result: Record<KeywordForm, KeywordRule> = { ...base };
  for (const [rule, forms] of changes) for (const form of forms) result[form] = rule;
  return Object.freeze(result);
}

/** For a target that gives the schema to the model as text. */
export const READ_BY_THE_MODEL: KeywordTable = every(ADVISORY);
