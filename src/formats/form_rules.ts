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

const ENFORCED: KeywordRule = Object.freeze({ action: "keep", enforcement: "enforced" });
export const ADVISORY: KeywordRule = Object.freeze({ action: "keep", enforcement: "advisory" });
const IGNORED: KeywordRule = Object.freeze({ action: "keep", enforcement: "ignored" });
/** Omitted: the target rejects or ignores it. */
const DROPPED: KeywordRule = Object.freeze({ action: "drop", enforcement: "ignored" });
/** The tool cannot be sent. In a strict mode it is sent without that mode. */
export const REJECTED: KeywordRule = Object.freeze({ action: "reject", enforcement: "ignored" });

/** The replacement of a form. Of `$ref` it depends on whether references are inlined. */
const INTO: { readonly [Form in KeywordForm]?: string } = {
  "root composition": "one object",
  "type list": "nullable",
  "type null": "nullable",
  "enum scalar": "enum of texts",
  "const": "enum",
  "odd property key": "another key",
  "optional property": "required, or null",
  "optional nullable property": "required, or null",
  "open object": "additionalProperties: false",
  "items missing": "items: {}",
  "tuple": "a list",
  "exclusive range": "minimum, maximum",
  "anyOf with siblings": "branches",
  "oneOf": "anyOf",
  "allOf": "one schema",
  "$ref": "its target",
  "$ref with siblings": "anyOf",
  "$ref elsewhere": "$defs",
  "$ref recursive": "its type",
  "examples": "example",
  "boolean schema": "{} or { not: {} }",
};

export function replaced(form: KeywordForm): KeywordRule {
  return Object.freeze({ action: "transform", enforcement: "enforced", into: INTO[form] ?? "" });
}

export function replacing(...forms: readonly KeywordForm[]): Partial<KeywordTable> {
  return Object.fromEntries(forms.map((form) => [form, replaced(form)]));
}

export function unsure(rule: KeywordRule): KeywordRule {
  return Object.freeze({ ...rule, uncertain: true });
}

/**
 * A table with one rule for every form. `nullable` is always dropped: in JSON Schema it does not
 * accept `null`, and a model that reads it believes that it does.
 */
function every(rule: KeywordRule): KeywordTable {
  const table: Partial<Record<KeywordForm, KeywordRule>> = {};
  for (const form of Object.keys(KEYWORD_FORMS)) table[form as KeywordForm] = rule;
  return { ...table as KeywordTable, nullable: DROPPED };
}

/** For a target that gives the schema to the model as text. */
export const READ_BY_THE_MODEL: KeywordTable = every(ADVISORY);

/** For a target that holds callers to all of 2020-12: notes and unknown keywords are for reading. */
export const COPIED: KeywordTable = Object.freeze({
  ...every(ENFORCED),
  "title": ADVISORY,
  "description": ADVISORY,
  "default": ADVISORY,
  "examples": ADVISORY,
  "example": ADVISORY,
  "usage notes": ADVISORY,
  "unknown": ADVISORY,
});

/**
 * The rules of the provider's own validators and decoders, by form. `yes`: enforced. `read`: the model
 * reads it. `ignored`: accepted and not read. `→`: replaced. `-`: omitted. `reject`: the tool is not
 * sent. `?`: the provider does not document it. The sources are in the records of the targets.
 */
const RULES = `
form                        openai  openai  anthropic  gemini    gemini    cohere    ollama
                                    strict  strict               typed
root composition            →       →       →          yes?      →         →         →
type                        read    yes     yes        yes       yes       yes       read
type list                   read    yes     yes        yes       →         read?     read
type null                   read    yes     yes        yes?      →         read?     read
enum                        read    yes     yes        yes       yes       yes       read
enum empty text             read    yes     yes        yes?      -         read?     read
enum scalar                 read    yes     yes        yes       →         read?     read
enum complex                read    yes?    -          yes?      -         read?     read
const                       read    yes     yes        →         →         →         →
properties                  read    yes     yes        yes       yes       yes       read
odd property key            read    yes     →          yes       →         read      read
required                    read    yes     yes        yes       yes       yes       read
optional property           read    →       yes        yes       yes       yes       read
optional nullable property  read    →       yes        yes       yes       yes       read
undeclared required         read    reject  reject     yes       yes?      read?     read
additionalProperties false  read    yes     yes        yes       -         read?     -
open object                 read    →       →          yes       yes       yes       read
map                         read    reject  reject     yes       -         read?     -
patternProperties           read    reject  reject     ignored?  -         read?     -
propertyNames               read?   -       -          ignored?  -         read?     -
unevaluated                 read    -       -          ignored?  -         read?     -
property count              read    -       -          ignored   yes       read?     -
dependent                   read    -       -          ignored?  -         read?     -
conditional                 read    -       -          ignored?  -         read?     -
not                         read    -       -          ignored?  -         read?     -
items                       read    yes     yes        yes       yes       yes       read
items missing               →       reject  yes?       yes       →         yes       read
tuple                       read    →       →          yes       →         read?     →
contains                    read    -       -          ignored   -         read?     -
minItems 0 or 1             read    yes     yes        yes       yes       ignored   -
minItems                    read    yes     -          yes       yes       ignored   -
maxItems                    read    yes     -          yes       yes       ignored   -
uniqueItems                 read    -       -          ignored   -         read?     -
length                      read    yes?    -          ignored   yes       ignored   -
pattern                     read    yes     yes        ignored?  yes       read      -
pattern complex             read?   -       -          ignored?  yes?      read?     -
format                      read    yes     yes        yes       yes?      read      -
range                       read    yes     -          yes       yes       ignored   -
exclusive range             read    yes     -          ignored?  →         ignored   -
multipleOf                  read    yes     -          ignored?  -         read?     -
anyOf                       read    yes     yes        yes       yes       read?     read
anyOf with siblings         read    →       →          yes       →         read?     read
oneOf                       read    →       →          →         →         →         →
allOf                       read?   →       →          →         →         →         →
$ref                        read    yes     yes        yes       →         →         →
$ref with siblings          read    →       yes?       →         →         →         →
$ref elsewhere              read    →       →          →         →         →         →
$ref recursive              read    yes     reject     yes?      →         →         →
$ref external               reject  reject  reject     reject    reject    reject    reject
dynamic reference           read    -       -          ignored?  -         read?     -
$id                         read    -       -          yes       -         read?     -
$schema                     read    read    -          yes       -         read?     -
$comment                    read    read    -          ignored?  -         read?     -
title                       read    read    read       yes       yes       yes       -
description                 read    read    read       yes       yes       yes       read
default                     read    read?   read       ignored?  yes       read?     -
examples                    read    read?   -          ignored?  →         read?     -
example                     read    read?   -          ignored   yes       read?     -
usage notes                 read    read?   -          ignored?  -         read?     -
content                     read    -       -          ignored?  -         read?     -
boolean schema              →       reject  →          yes?      →         →         →
no type                     read    yes?    reject     yes?      yes?      read?     read
propertyOrdering            read    read    -          yes       yes       read?     -
nullable                    -       -       -          -         -         -         -
unknown                     read    read?   -          ignored?  -         read?     -
`;

const CELLS: { readonly [cell: string]: KeywordRule } = {
  yes: ENFORCED,
  read: ADVISORY,
  ignored: IGNORED,
  "-": DROPPED,
  reject: REJECTED,
};

function column(index: number): KeywordTable {
  const result: Partial<Record<KeywordForm, KeywordRule>> = {};
  for (const line of RULES.trim().split("\n").slice(2)) {
    const [form, ...cells] = line.split(/ {2,}/) as [KeywordForm, ...string[]];
    const cell = cells[index] ?? "";
    const inlines = (form === "$ref with siblings" || form === "$ref elsewhere") &&
      result.$ref?.action === "transform";
    const rule = CELLS[cell.replace("?", "")] ?? replaced(inlines ? "$ref" : form);
    result[form] = cell.endsWith("?") ? unsure(rule) : rule;
  }
  return Object.freeze(result as KeywordTable);
}

/** Without strict mode the schema is text for the model, but some forms are rejected. */
export const OPENAI_RULES: KeywordTable = column(0);
/** Structured Outputs. */
export const OPENAI_STRICT_RULES: KeywordTable = column(1);
/** Structured outputs. Bedrock's strict mode is the same. */
export const ANTHROPIC_STRICT_RULES: KeywordTable = column(2);
/**
 * `parametersJsonSchema`. Google does not document it. The rules follow the documentation of
 * `responseJsonSchema`.
 */
export const GEMINI_RULES: KeywordTable = column(3);
/** `parameters`: any other key than the listed ones is an error. */
export const GEMINI_TYPED_RULES: KeywordTable = column(4);
/** The documented subset; other forms are simplified. */
export const COHERE_RULES: KeywordTable = column(5);
/** The server parses the schema into a structure with these fields, and drops the rest. */
export const OLLAMA_RULES: KeywordTable = column(6);
