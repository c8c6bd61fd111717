/**
 * Draft-07 as 2020-12, schema by schema. Whatever reads both drafts reads this form.
 *
 * @module
 */

import { isObject, type JsonSchemaObject, setOwn } from "../tool/mod.ts";
import { isSchema } from "./keywords.ts";

/** Keywords of 2020-12 that draft-07 ignores: left in, they would be asserted. */
export const LATER_KEYWORDS: readonly string[] =
  ("prefixItems dependentRequired dependentSchemas unevaluatedItems unevaluatedProperties " +
    "minContains maxContains $anchor $dynamicRef $dynamicAnchor").split(" ");

/** Annotations and definitions, which are kept beside a `$ref`. */
export const BESIDE_REF: ReadonlySet<string> = new Set(
  "$ref $comment title description default examples definitions $defs".split(" "),
);

/**
 * Rewrites one schema of draft-07 with the keywords of 2020-12. The schemas that it holds, and the
 * text of its `$ref`, stay as they are. What draft-07 ignores beside a `$ref` is left out.
 *
 * @param node The schema.
 * @param renamed Called with each keyword that had another name.
 * @param kept A keyword that stays, even beside a `$ref`.
 * @returns The rewritten schema, or the same object if there is nothing to change.
 */
export function asDraft2020(
  node: JsonSchemaObject,
  renamed?: (to: string, from: string) => void,
  kept?: string,
): JsonSchemaObject {
  const result: Record<string, unknown> = {};
  let changed = false;
  const rename = (to: string, from: string, value: unknown): void => {
    result[to] = value;
    changed = true;
    renamed?.(to, from);
  };
  const hasRef = typeof node["$ref"] === "string";
  const tuple = Array.isArray(node["items"]) ? node["items"] : undefined;
  for (const keyword of Object.keys(node)) {
    const value = node[keyword];
    if (hasRef && !BESIDE_REF.has(keyword) && keyword !== kept) {
      changed = true;
    } else if (keyword === "$id" && typeof value === "string" && value.startsWith("#")) {
      rename("$anchor", keyword, value.slice(1));
    } else if (keyword === "definitions" && !Object.hasOwn(node, "$defs")) {
      rename("$defs", keyword, value);
    } else if (keyword === "items" && tuple !== undefined) {
      if (tuple.length > 0) rename("prefixItems", keyword, tuple);
      else changed = true;
    } else if (keyword === "additionalItems") {
      if (tuple !== undefined) rename("items", keyword, value);
      else changed = true;
    } else if (keyword === "dependencies") {
      changed = true;
      splitDependencies(value, (to, part) => rename(to, keyword, part));
    } else if (keyword === "$schema" || LATER_KEYWORDS.includes(keyword)) {
      changed = true;
    } else setOwn(result, keyword, value);
  }
  return changed ? result : node;
}

function splitDependencies(
  value: unknown,
  put: (keyword: string, part: Record<string, unknown>) => void,
): void {
  if (!isObject(value)) return;
  const required: Record<string, unknown> = {};
  const schemas: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    const dependency = value[name];
    if (Array.isArray(dependency)) setOwn(required, name, dependency);
    else if (isSchema(dependency)) setOwn(schemas, name, dependency);
  }
  if (Object.keys(required).length > 0) put("dependentRequired", required);
  if (Object.keys(schemas).length > 0) put("dependentSchemas", schemas);
}
