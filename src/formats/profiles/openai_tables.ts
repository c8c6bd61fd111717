/**
 * What OpenAI's surfaces share: name rule, keyword tables, formats, limits.
 *
 * @module
 */

import type { KeywordTable, Limit } from "../profile.ts";
import {
  ADVISORY,
  DROPPED,
  ENFORCED,
  every,
  into,
  READ_BY_THE_MODEL,
  REJECTED,
  table,
  unsure,
} from "./tables.ts";

/** Without strict mode the schema is text for the model, but some of it is refused outright. */
export const OPENAI_KEYWORDS: KeywordTable = table(
  READ_BY_THE_MODEL,
  [into("one object"), ["root composition"]],
  [into("items: {}"), ["items missing"]],
  [into("{} or { not: {} }"), ["boolean schema"]],
  [unsure(ADVISORY), ["propertyNames", "allOf", "pattern complex"]],
  [REJECTED, ["$ref external"]],
);

/** Structured Outputs. */
export const OPENAI_STRICT_KEYWORDS: KeywordTable = table(
  every(ENFORCED),
  [into("one object"), ["root composition"]],
  [into("required, or null"), ["optional property", "optional nullable property"]],
  [into("additionalProperties: false"), ["open object"]],
  [into("anyOf"), ["oneOf", "$ref with siblings"]],
  [into("one schema"), ["allOf"]],
  [into("branches"), ["anyOf with siblings"]],
  [into("a list"), ["tuple"]],
  [into("$defs"), ["$ref elsewhere"]],
  [DROPPED, [
    "propertyNames",
    "unevaluated",
    "property count",
    "dependent",
    "conditional",
    "not",
    "contains",
    "uniqueItems",
    "pattern complex",
    "dynamic reference",
    "$id",
    "content",
  ]],
  [REJECTED, [
    "map",
    "undeclared required",
    "patternProperties",
    "items missing",
    "boolean schema",
    "$ref external",
  ]],
  [ADVISORY, ["$schema", "$comment", "title", "description", "propertyOrdering"]],
  [unsure(ADVISORY), ["default", "examples", "example", "usage notes", "unknown"]],
  [unsure(ENFORCED), ["length", "no type", "enum complex"]],
);

/** The values of `format` that strict mode takes. Any other is refused. */
export const OPENAI_FORMATS: readonly string[] = [
  "date-time",
  "time",
  "date",
  "duration",
  "email",
  "hostname",
  "ipv4",
  "ipv6",
  "uuid",
];

/** The limits of a strict schema. */
export const OPENAI_STRICT_LIMITS: readonly Limit[] = [
  { name: "maxProperties", value: 5_000 },
  { name: "maxDepth", value: 10 },
  { name: "maxCharacters", value: 120_000 },
  { name: "maxEnumValues", value: 1_000 },
  { name: "maxEnumCharacters", value: 15_000 },
];
