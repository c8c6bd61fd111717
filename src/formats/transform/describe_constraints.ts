/**
 * Keywords left out of a schema, and said in its description where a model can use that.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject } from "../../tool/mod.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import { copyNode, mapSchema, type Spot } from "./schema_walk.ts";
import { addWords } from "./words.ts";

/** Keywords of JSON Schema that say which values are accepted. */
const CONSTRAINING: ReadonlySet<string> = new Set(
  ("type enum const properties required additionalProperties patternProperties propertyNames " +
    "minProperties maxProperties dependentRequired dependentSchemas dependencies if then else not " +
    "unevaluatedProperties unevaluatedItems items prefixItems additionalItems contains minContains " +
    "maxContains minItems maxItems uniqueItems minLength maxLength pattern format minimum maximum " +
    "exclusiveMinimum exclusiveMaximum multipleOf anyOf oneOf allOf $ref $dynamicRef").split(" "),
);

/** Whether a keyword says which values are accepted. */
export function constrains(keyword: string): boolean {
  return CONSTRAINING.has(keyword);
}

/** What becomes of a keyword: it stays, it stays though the target ignores it, or it goes. */
export type KeywordFate = "keep" | "ignored" | "drop";

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
  fateOf: (keyword: string, node: JsonSchemaObject, isRoot: boolean) => KeywordFate,
): JsonSchema {
  return mapSchema(root, {
    enter: (node, spot) => dropIn(node, spot, report, describe, fateOf),
  });
}

function dropIn(
  node: JsonSchemaObject,
  spot: Spot,
  report: Report,
  describe: boolean,
  fateOf: (keyword: string, node: JsonSchemaObject, isRoot: boolean) => KeywordFate,
): JsonSchemaObject {
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
}

/** Whether another keyword takes over what this one covered, and may refuse it. */
function opensAnother(keyword: string, node: JsonSchemaObject): boolean {
  if (keyword === "patternProperties") {
    return Object.hasOwn(node, "additionalProperties") && node["additionalProperties"] !== true;
  }
  return keyword === "prefixItems" && Object.hasOwn(node, "items") && node["items"] !== true;
}
