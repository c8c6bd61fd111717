/**
 * Leaves keywords out of a schema, and says them in its description where a model can use that.
 *
 * @module
 */

import { KEYWORDS } from "../../schema/mod.ts";
import type { JsonSchema, JsonSchemaObject } from "../../tool/mod.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import { copyNode, mapSchema, type Spot } from "./rewrite.ts";

/** Whether a keyword says which values are accepted. */
export function constrains(keyword: string): boolean {
  const known = KEYWORDS["2020-12"].get(keyword) ?? KEYWORDS["draft-07"].get(keyword);
  return known !== undefined && known.role !== "annotates";
}

/** What becomes of a keyword: it stays, it stays though the target ignores it, or it goes. */
export type KeywordFate = "keep" | "ignored" | "drop";

/** Says what becomes of a keyword of `node`. */
export type FateOf = (keyword: string, node: JsonSchemaObject, isRoot: boolean) => KeywordFate;

/**
 * Moves constraints into descriptions.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { describeConstraints } from "@plue/tools/formats";
 *
 * const { schema } = describeConstraints(
 *   { type: "string", description: "A city", minLength: 1 },
 *   ["minLength"],
 * );
 * assert.deepEqual(schema, { type: "string", description: "A city. At least 1 character." });
 * ```
 *
 * @param schema The schema.
 * @param keywords The keywords to move.
 * @returns The schema without them, and a loss for each place that had one.
 */
export function describeConstraints(
  schema: JsonSchema,
  keywords: Iterable<string>,
): TransformResult {
  const set = new Set(keywords);
  return transformed(
    schema,
    (root, report) =>
      dropKeywords(root, report, true, (keyword) => set.has(keyword) ? "drop" : "keep"),
  );
}

/** Leaves out the keywords whose fate is `drop`, and reports those too that are ignored. */
export function dropKeywords(
  root: JsonSchema,
  report: Report,
  describe: boolean,
  fateOf: FateOf,
): JsonSchema {
  return mapSchema(root, {
    enter: (node, spot) => {
      let copy: Record<string, unknown> | undefined;
      for (const keyword of Object.keys(node)) {
        const fate = fateOf(keyword, node, spot.root);
        if (fate === "keep") continue;
        if (fate === "ignored") {
          if (!constrains(keyword)) continue;
          report.add(node, spot, {
            keyword,
            action: "sent",
            grade: "weakened",
            widens: true,
            message: `"${keyword}" is sent, but not enforced`,
          });
          continue;
        }
        copy ??= copyNode(node);
        delete copy[keyword];
        const described = describe && addWords(copy, keyword, node[keyword]);
        report.add(node, spot, {
          keyword,
          action: described ? "described" : "dropped",
          grade: described ? "moved" : "lost",
          widens: constrains(keyword),
          narrows: constrains(keyword) && opensAnother(keyword, node),
          message: described
            ? `"${keyword}" is said in the description`
            : keyword === "nullable"
            ? '"nullable" is no JSON Schema, and is left out: null fits only where "type" has "null"'
            : `"${keyword}" cannot be sent`,
        });
      }
      return copy ?? node;
    },
  });
}

/** Leaves out a keyword that a target does not take here; says it in the description if it may. */
export function leaveOut(
  node: JsonSchemaObject,
  keyword: string,
  spot: Spot,
  report: Report,
  describe: boolean,
  message: string,
): JsonSchemaObject {
  report.add(node, spot, {
    keyword,
    action: describe ? "described" : "dropped",
    grade: describe ? "moved" : "lost",
    widens: true,
    message,
  });
  const copy = copyNode(node);
  delete copy[keyword];
  if (describe) addWords(copy, keyword, node[keyword]);
  return copy;
}

/** Whether another keyword takes over what this one covered, and may refuse it. */
function opensAnother(keyword: string, node: JsonSchemaObject): boolean {
  if (keyword === "patternProperties") {
    return Object.hasOwn(node, "additionalProperties") && node["additionalProperties"] !== true;
  }
  return keyword === "prefixItems" && Object.hasOwn(node, "items") && node["items"] !== true;
}

const MAX_WORDS = 400;

function json(value: unknown): string {
  const text = JSON.stringify(value) ?? "";
  return text.length > MAX_WORDS ? `${text.slice(0, MAX_WORDS - 1)}…` : text;
}

function count(value: unknown, one: string, many: string): string {
  return `${json(value)} ${value === 1 ? one : many}`;
}

type Wording = (value: unknown) => string | undefined;

/** The words for each keyword. A keyword that is not here says nothing that a model needs. */
const WORDS: ReadonlyMap<string, Wording> = new Map<string, Wording>([
  ["minLength", (value) => `At least ${count(value, "character", "characters")}.`],
  ["maxLength", (value) => `At most ${count(value, "character", "characters")}.`],
  ["pattern", (value) => `Matches the regular expression ${String(value).slice(0, MAX_WORDS)}`],
  ["format", (value) => `Format: ${String(value).slice(0, MAX_WORDS)}.`],
  ["minimum", (value) => `At least ${json(value)}.`],
  ["maximum", (value) => `At most ${json(value)}.`],
  ["exclusiveMinimum", (value) => `More than ${json(value)}.`],
  ["exclusiveMaximum", (value) => `Less than ${json(value)}.`],
  ["multipleOf", (value) => `A multiple of ${json(value)}.`],
  ["minItems", (value) => `At least ${count(value, "item", "items")}.`],
  ["maxItems", (value) => `At most ${count(value, "item", "items")}.`],
  ["uniqueItems", (value) => value === true ? "No two items are the same." : undefined],
  ["contains", (value) => `At least one item fits ${json(value)}`],
  ["minProperties", (value) => `At least ${count(value, "property", "properties")}.`],
  ["maxProperties", (value) => `At most ${count(value, "property", "properties")}.`],
  ["enum", (value) => `One of: ${json(value)}`],
  ["const", (value) => `Always ${json(value)}.`],
  ["default", (value) => `Default: ${json(value)}`],
  ["examples", (value) => `Examples: ${json(value)}`],
  ["example", (value) => `Example: ${json(value)}`],
  ["deprecated", (value) => value === true ? "Deprecated." : undefined],
  ["contentEncoding", (value) => `Encoded as ${String(value).slice(0, MAX_WORDS)}.`],
  ["contentMediaType", (value) => `Media type: ${String(value).slice(0, MAX_WORDS)}.`],
  ["additionalProperties", restWords],
  ["unevaluatedProperties", restWords],
  ["patternProperties", (value) => `Properties by pattern of their names: ${json(value)}`],
  ["propertyNames", (value) => `The property names fit ${json(value)}`],
  ["dependentRequired", dependentWords],
  ["dependentSchemas", (value) => `If a property is given, the whole fits: ${json(value)}`],
  ["not", (value) => `Must not fit ${json(value)}`],
  ["if", (value) => `If it fits ${json(value)}, more rules apply.`],
  ["then", (value) => `If so: ${json(value)}`],
  ["else", (value) => `If not: ${json(value)}`],
  ["anyOf", (value) => unionWords("At least one", value)],
  ["oneOf", (value) => unionWords("Exactly one", value)],
  ["allOf", (value) => `Also fits ${json(value)}`],
  ["prefixItems", (value) => `The first items fit, in this order: ${json(value)}`],
]);

function restWords(value: unknown): string | undefined {
  if (value === true) return undefined;
  return value === false ? "No other properties." : `Other properties fit ${json(value)}`;
}

function dependentWords(value: unknown): string {
  const lines = Object.entries(value as Record<string, unknown>).map(([name, needs]) =>
    `"${name}" needs ${Array.isArray(needs) ? needs.map((need) => `"${need}"`).join(", ") : ""}`
  );
  return `${lines.join("; ").slice(0, MAX_WORDS)}.`;
}

/** A union of `required` lists reads better as the names than as the schemas. */
function unionWords(how: string, value: unknown): string {
  const branches = Array.isArray(value) ? value : [];
  const names = branches.map((branch: { readonly required?: unknown } | null) => {
    const required = branch?.required;
    const only = typeof branch === "object" && branch !== null &&
      Object.keys(branch).every((keyword) => keyword === "required");
    return only && Array.isArray(required)
      ? required.map((name) => `"${name}"`).join(" and ")
      : undefined;
  });
  return names.every((name) => name !== undefined)
    ? `${how} of these must be given: ${names.join("; ").slice(0, MAX_WORDS)}.`
    : `${how} of these fits: ${json(value)}`;
}

/** Adds what a keyword said to the description. */
export function addWords(node: Record<string, unknown>, keyword: string, value: unknown): boolean {
  const words = WORDS.get(keyword)?.(value);
  if (words === undefined) return false;
  const before = typeof node["description"] === "string" ? node["description"].trimEnd() : "";
  const gap = before === "" ? "" : /[.!?:…]$/.test(before) ? " " : ". ";
  node["description"] = before + gap + words;
  return true;
}
