/**
 * The rules of a target, one for each form. A form is a keyword, a group of keywords, or one way to
 * use a keyword, such as `enum` with numbers.
 */

/** The forms in the order of the tables in `docs/formats.md`, with description and replacement. */
const FORMS = {
  "root composition": {
    text: "`anyOf`, `oneOf`, `allOf`, `not`, `enum`, `const` or `$ref` at the root",
    into: "one object",
  },
  "type": { text: "`type` with one type" },
  "type list": { text: "`type` with a list of types", into: "nullable" },
  "type null": { text: '`type: "null"` alone', into: "nullable" },
  "enum": { text: "`enum` of texts" },
  "enum empty text": { text: '`enum` with `""`' },
  "enum scalar": { text: "`enum` with numbers or booleans", into: "enum of texts" },
  "enum complex": { text: "`enum` or `const` with lists or objects" },
  "const": { text: "`const`", into: "enum" },
  "properties": { keywords: "properties" },
  "odd property key": {
    text: "a property key other than `[A-Za-z_][A-Za-z0-9_]{0,63}`",
    into: "another key",
  },
  "required": { keywords: "required" },
  "optional property": { text: "a property that is not required", into: "required, or null" },
  "optional nullable property": {
    text: "a property that may be absent or `null`",
    into: "required, or null",
  },
  "undeclared required": { text: "`required` names a property that `properties` does not" },
  "additionalProperties false": { text: "`additionalProperties: false`" },
  "open object": {
    text: "an object without `additionalProperties`",
    into: "additionalProperties: false",
  },
  "map": { text: "`additionalProperties: true` or a schema, or an object without properties" },
  "patternProperties": { keywords: "patternProperties" },
  "propertyNames": { keywords: "propertyNames" },
  "unevaluated": { keywords: "unevaluatedProperties unevaluatedItems" },
  "property count": { keywords: "minProperties maxProperties" },
  "dependent": {
    text: "`dependentRequired`, `dependentSchemas`",
    keywords: "dependentRequired dependentSchemas dependencies",
  },
  "conditional": { keywords: "if then else" },
  "not": { text: "`not`" },
  "items": { keywords: "items" },
  "items missing": { text: "an array without `items`", into: "items: {}" },
  "tuple": { keywords: "prefixItems", into: "a list" },
  "contains": { keywords: "contains minContains maxContains" },
  "minItems 0 or 1": { text: "`minItems` of 0 or 1" },
  "minItems": { text: "`minItems` above 1" },
  "maxItems": { keywords: "maxItems" },
  "uniqueItems": { keywords: "uniqueItems" },
  "length": { keywords: "minLength maxLength" },
  "pattern": { text: "`pattern`" },
  "pattern complex": { text: "`pattern` with look-around, back references or `\\b`" },
  "format": { keywords: "format" },
  "range": { keywords: "minimum maximum" },
  "exclusive range": { keywords: "exclusiveMinimum exclusiveMaximum", into: "minimum, maximum" },
  "multipleOf": { keywords: "multipleOf" },
  "anyOf": { text: "`anyOf` below the root" },
  "anyOf with siblings": { text: "`anyOf` with sibling constraints", into: "branches" },
  "oneOf": { text: "`oneOf` below the root", into: "anyOf" },
  "allOf": { text: "`allOf` below the root", into: "one schema" },
  "$ref": {
    text: "`$ref` to a part of the schema, `$defs`",
    keywords: "$defs definitions",
    into: "its target",
  },
  "$ref with siblings": { text: "`$ref` with sibling keywords", into: "anyOf" },
  "$ref elsewhere": { text: "`$ref` to a part that is not in the root's `$defs`", into: "$defs" },
  "$ref recursive": { text: "recursive `$ref`", into: "its type" },
  "$ref external": { text: "`$ref` out of the schema" },
  "dynamic reference": { keywords: "$dynamicRef $dynamicAnchor $anchor" },
  "$id": { keywords: "$id" },
  "$schema": { keywords: "$schema" },
  "$comment": { keywords: "$comment" },
  "title": { keywords: "title" },
  "description": { keywords: "description" },
  "default": { keywords: "default" },
  "examples": { keywords: "examples", into: "example" },
  "example": { text: "`example` (OpenAPI)", keywords: "example" },
  "usage notes": { keywords: "deprecated readOnly writeOnly" },
  "content": { keywords: "contentEncoding contentMediaType contentSchema" },
  "boolean schema": { text: "`true` or `false` as a schema", into: "{} or { not: {} }" },
  "no type": { text: "a schema without a type" },
  "propertyOrdering": { text: "`propertyOrdering` (Gemini)", keywords: "propertyOrdering" },
  "nullable": { text: "`nullable: true` (OpenAPI 3.0)" },
  "unknown": { text: "`x-…` and whatever else" },
} as const;

/** A keyword, a group of keywords, or a certain use of a keyword in a schema. */
export type KeywordForm = keyof typeof FORMS;

interface FormRow {
  readonly text?: string;
  readonly keywords?: string;
  readonly into?: string;
}

export const ALL_FORMS: readonly KeywordForm[] = Object.keys(FORMS) as KeywordForm[];

const descriptions: Partial<Record<KeywordForm, string>> = {};
const formOf = new Map<string, KeywordForm>();
for (const form of ALL_FORMS) {
  const { text, keywords }: FormRow = FORMS[form];
  const names = keywords?.split(" ") ?? [];
  for (const name of names) formOf.set(name, form);
  descriptions[form] = text ?? `\`${names.join("`, `")}\``;
}

/** A description of each form of a keyword. */
export const KEYWORD_FORMS: Readonly<Record<KeywordForm, string>> = descriptions as Record<
  KeywordForm,
  string
>;

/** The form of each keyword whose form does not depend on its value. */
export const FORM_OF: ReadonlyMap<string, KeywordForm> = formOf;

/** The treatment of a form in an export. */
export type KeywordAction = "keep" | "drop" | "transform" | "reject";

/** The enforcement of a form by the target. */
export type KeywordEnforcement =
  /** The target enforces the form, or documents that the form is read. */
  | "enforced"
  /** Only the model reads the form. */
  | "advisory"
  /** The target accepts the form, but neither reads nor enforces it. */
  | "ignored";

/** The rule of a target for one form. */
export interface KeywordRule {
  readonly action: KeywordAction;
  readonly enforcement: KeywordEnforcement;
  /** The replacement, for `transform`. */
  readonly into?: string;
  /** True if the provider does not document the rule. The export then has a warning. */
  readonly uncertain?: true;
}

/** A target's rule for every form. */
export type KeywordTable = { readonly [Form in KeywordForm]: KeywordRule };

const ENFORCED: KeywordRule = Object.freeze({ action: "keep", enforcement: "enforced" });
export const ADVISORY: KeywordRule = Object.freeze({ action: "keep", enforcement: "advisory" });
const IGNORED: KeywordRule = Object.freeze({ action: "keep", enforcement: "ignored" });
const DROPPED: KeywordRule = Object.freeze({ action: "drop", enforcement: "ignored" });
/** A tool with the form is not sent; in a strict mode, it is sent without that mode. */
export const REJECTED: KeywordRule = Object.freeze({ action: "reject", enforcement: "ignored" });

export function replaced(form: KeywordForm): KeywordRule {
  const { into = "" }: FormRow = FORMS[form];
  return Object.freeze({ action: "transform", enforcement: "enforced", into });
}

export function replacing(...forms: readonly KeywordForm[]): Partial<KeywordTable> {
  return Object.fromEntries(forms.map((form) => [form, replaced(form)]));
}

export function unsure(rule: KeywordRule): KeywordRule {
  return Object.freeze({ ...rule, uncertain: true });
}

/** A table of one rule. `nullable` is dropped: models would understand it as accepting `null`. */
function every(rule: KeywordRule): KeywordTable {
  const table: Partial<Record<KeywordForm, KeywordRule>> = {};
  for (const form of Object.keys(KEYWORD_FORMS)) table[form as KeywordForm] = rule;
  return { ...table as KeywordTable, nullable: DROPPED };
}

/** The rules of a target whose model reads the schema as text. */
export const READ_BY_THE_MODEL: KeywordTable = every(ADVISORY);

/** The rules of a target that enforces all of JSON Schema 2020-12. */
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
 * The rules of providers by form. `yes`: enforced. `read`: the model reads it. `ignored`: accepted
 * and not read. `→`: replaced. `-`: omitted. `reject`: the tool is not sent. `?`: not documented.
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

/** OpenAI without strict mode: the schema is text for the model, but some forms are rejected. */
export const OPENAI_RULES: KeywordTable = column(0);
/** OpenAI's Structured Outputs. */
export const OPENAI_STRICT_RULES: KeywordTable = column(1);
/** Anthropic's structured outputs, and Bedrock's strict mode. */
export const ANTHROPIC_STRICT_RULES: KeywordTable = column(2);
/** Gemini's `parametersJsonSchema`, by Google's documentation of `responseJsonSchema`. */
export const GEMINI_RULES: KeywordTable = column(3);
/** Gemini's `parameters`, in which unknown keywords are errors. */
export const GEMINI_TYPED_RULES: KeywordTable = column(4);
/** Cohere's documented subset. Other forms are simplified. */
export const COHERE_RULES: KeywordTable = column(5);
/** Ollama, whose server parses the schema into a structure and drops unknown fields. */
export const OLLAMA_RULES: KeywordTable = column(6);
