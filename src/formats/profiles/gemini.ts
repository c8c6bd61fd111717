/**
 * Google Gemini and Vertex AI: function declarations with JSON Schema, or with the typed schema.
 *
 * @module
 */

import type { JsonSchema } from "../../tool/mod.ts";
import type { NameRule } from "../names.ts";
import type { KeywordTable, OutputRule, Profile, ToolView } from "../profile.ts";
import {
  ADVISORY,
  DROPPED,
  ENFORCED,
  every,
  features,
  IGNORED,
  into,
  REJECTED,
  table,
  unsure,
} from "./tables.ts";

/** A function, described with JSON Schema. */
export interface GeminiFunction {
  name: string;
  description: string;
  parametersJsonSchema: { [keyword: string]: unknown };
  responseJsonSchema?: unknown;
}

/** The kinds of value in a typed schema. */
export type GeminiType = "STRING" | "NUMBER" | "INTEGER" | "BOOLEAN" | "ARRAY" | "OBJECT";

/** Gemini's typed schema: these keys, and no others. Lengths are 64-bit, and therefore texts. */
export interface GeminiSchema {
  type?: GeminiType;
  format?: string;
  title?: string;
  description?: string;
  nullable?: boolean;
  enum?: string[];
  items?: GeminiSchema;
  minItems?: string;
  maxItems?: string;
  properties?: { [key: string]: GeminiSchema };
  required?: string[];
  minProperties?: string;
  maxProperties?: string;
  minimum?: number;
  maximum?: number;
  minLength?: string;
  maxLength?: string;
  pattern?: string;
  example?: unknown;
  anyOf?: GeminiSchema[];
  propertyOrdering?: string[];
  default?: unknown;
}

/** A function, described with the typed schema. */
export interface GeminiTypedFunction {
  name: string;
  description: string;
  parameters: GeminiSchema;
  response?: GeminiSchema;
}

/** The entry of `tools` that holds all functions. */
export interface GeminiTools<Declaration> {
  functionDeclarations: Declaration[];
}

/** 64, as the protos and the API's errors say, though the SDK's comments say 128. */
const NAMES: NameRule = { also: ".-", max: 64, separator: ".", letterFirst: true };

/** What the typed schema documents for property keys. */
const TYPED_KEYS: NameRule = { also: "", max: 64, separator: "_", letterFirst: true };

/**
 * `parametersJsonSchema`. Google publishes no contract for it; the table follows that of its
 * sibling `responseJsonSchema`, and says where that is a guess.
 */
const JSON_SCHEMA: KeywordTable = table(
  every(ENFORCED),
  [into("enum"), ["const"]],
  [into("anyOf"), ["oneOf", "$ref with siblings"]],
  [into("one schema"), ["allOf"]],
  [into("$defs"), ["$ref elsewhere"]],
  [IGNORED, ["property count", "contains", "uniqueItems", "length", "example"]],
  [unsure(IGNORED), [
    "patternProperties",
    "propertyNames",
    "unevaluated",
    "dependent",
    "conditional",
    "not",
    "pattern",
    "pattern complex",
    "exclusive range",
    "multipleOf",
    "dynamic reference",
    "$comment",
    "default",
    "examples",
    "usage notes",
    "content",
    "unknown",
  ]],
  [unsure(ENFORCED), [
    "root composition",
    "type null",
    "enum empty text",
    "enum complex",
    "$ref recursive",
    "boolean schema",
    "no type",
  ]],
  [REJECTED, ["$ref external"]],
);

/** `parameters`: the listed keys exist, every other is an unknown name and an error. */
const TYPED: KeywordTable = table(
  every(DROPPED),
  [ENFORCED, [
    "type",
    "enum",
    "properties",
    "required",
    "optional property",
    "optional nullable property",
    "open object",
    "items",
    "minItems 0 or 1",
    "minItems",
    "maxItems",
    "length",
    "pattern",
    "range",
    "property count",
    "anyOf",
    "title",
    "description",
    "default",
    "example",
    "propertyOrdering",
  ]],
  [unsure(ENFORCED), ["format", "pattern complex", "undeclared required", "no type"]],
  [into("one object"), ["root composition"]],
  [into("another key"), ["odd property key"]],
  [into("nullable"), ["type list", "type null"]],
  [into("enum of texts"), ["enum scalar"]],
  [into("enum"), ["const"]],
  [into("a list"), ["tuple"]],
  [into("items: {}"), ["items missing"]],
  [into("minimum, maximum"), ["exclusive range"]],
  [into("anyOf"), ["oneOf"]],
  [into("branches"), ["anyOf with siblings"]],
  [into("one schema"), ["allOf"]],
  [into("what it leads to"), ["$ref", "$ref with siblings", "$ref elsewhere"]],
  [into("its type"), ["$ref recursive"]],
  [into("example"), ["examples"]],
  [into("{} or { not: {} }"), ["boolean schema"]],
  [REJECTED, ["$ref external"]],
);

const OUTPUT: OutputRule = {
  keywords: table(JSON_SCHEMA, [ADVISORY, ["root composition", "map", "open object"]]),
  root: "any",
};

function wire(view: ToolView): GeminiFunction {
  return {
    ...view.extra,
    name: view.name,
    description: view.description,
    parametersJsonSchema: view.parameters as { [keyword: string]: unknown },
    ...(view.returns === undefined ? {} : { responseJsonSchema: view.returns }),
  };
}

function typedWire(view: ToolView): GeminiTypedFunction {
  return {
    ...view.extra,
    name: view.name,
    description: view.description,
    // The transforms leave these keys and no others.
    parameters: view.parameters as GeminiSchema,
    ...(view.returns === undefined ? {} : { response: asTyped(view.returns) }),
  };
}

function asTyped(schema: JsonSchema): GeminiSchema {
  return typeof schema === "boolean" ? {} : schema as GeminiSchema;
}

function assemble<Declaration>(
  tools: readonly { readonly view: ToolView; readonly wire: Declaration }[],
): GeminiTools<Declaration>[] {
  // An entry without a function is refused.
  return tools.length === 0 ? [] : [{ functionDeclarations: tools.map((tool) => tool.wire) }];
}

/** The `tools` of a `generateContent` request to the Gemini API. */
export const GEMINI: Profile<GeminiFunction, GeminiTools<GeminiFunction>[]> = {
  id: "gemini",
  title: "Gemini API, parametersJsonSchema",
  source: "@google/genai 3.1.0, generativelanguage protos 4.1.0, API errors; 2026-11-20",
  names: NAMES,
  features: features(["returns"]),
  extra: { source: "gemini" },
  input: JSON_SCHEMA,
  output: OUTPUT,
  limits: [{ name: "maxTools", value: 512 }],
  wire,
  assemble,
};

/** The same with `parameters`, which older models and gateways want. */
export const GEMINI_TYPED: Profile<GeminiTypedFunction, GeminiTools<GeminiTypedFunction>[]> = {
  id: "gemini.typed",
  title: "Gemini API, typed parameters",
  source: "generativelanguage protos 4.1.0, API errors; 2026-11-20",
  names: NAMES,
  keys: TYPED_KEYS,
  features: features(["returns"]),
  extra: { source: "gemini" },
  input: TYPED,
  output: { keywords: TYPED, root: "any" },
  typed: true,
  limits: [{ name: "maxTools", value: 512 }],
  wire: typedWire,
  assemble,
  // @google/genai puts schemas of its own into the declarations; those in them it only reads.
  lend: (tools) =>
    tools.map(({ functionDeclarations }) => ({
      functionDeclarations: functionDeclarations.map((declaration) => ({ ...declaration })),
    })),
};

/** The `tools` of a `generateContent` request to Vertex AI. */
export const VERTEX: Profile<GeminiFunction, GeminiTools<GeminiFunction>[]> = {
  id: "vertex",
  title: "Vertex AI, parametersJsonSchema",
  source: "@google/genai 3.1.0, aiplatform protos 7.4.0; 2026-11-20",
  names: NAMES,
  features: features(["returns"]),
  extra: { source: "gemini" },
  input: JSON_SCHEMA,
  output: OUTPUT,
  limits: [
    { name: "maxTools", value: 512 },
    { name: "maxDepth", value: 32, uncertain: true },
  ],
  wire,
  assemble,
};
