/**
 * The older drafts as 2020-12, schema by schema. Whatever reads several drafts reads this form.
 *
 * @module
 */

import { isObject, type JsonSchemaObject, setOwn } from "../tool/mod.ts";
import { type Dialect, isOldDraft, isSchema, KEYWORDS } from "./keywords.ts";

/** Whether 2020-12 would assert a keyword, or find places by it, that says nothing in `dialect`. */
export function isLater(keyword: string, dialect: Dialect): boolean {
  return ASSERTED.has(keyword) && !KEYWORDS[dialect].has(keyword);
}

const ASSERTED: ReadonlySet<string> = new Set([
  ...[...KEYWORDS["2020-12"]].flatMap(([keyword, { role }]) =>
    role === "annotates" ? [] : [keyword]
  ),
  ...["$id", "$anchor", "$dynamicAnchor"],
]);

/** Annotations and definitions, which are kept beside a `$ref`. */
export const BESIDE_REF: ReadonlySet<string> = new Set(
  "$ref $comment title description default examples definitions $defs".split(" "),
);

/**
 * Rewrites one schema of an older draft with the keywords of 2020-12. The schemas that it holds, and
 * the text of its `$ref`, stay as they are. What its draft ignores is left out: keywords that came
 * later, and until draft-07 what stands beside a `$ref`.
 *
 * @param node The schema.
 * @param dialect The draft that it is written in.
 * @param renamed Called with each keyword that had another name.
 * @param kept A keyword that stays, even beside a `$ref`.
 * @returns The rewritten schema, or the same object if there is nothing to change.
 */
export function asDraft2020(
  node: JsonSchemaObject,
  dialect: Dialect,
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
  const old = isOldDraft(dialect);
  const hasRef = typeof node["$ref"] === "string";
  const id = dialect === "draft-04" ? "id" : "$id";
  const tuple = Array.isArray(node["items"]) ? node["items"] : undefined;
  for (const keyword of Object.keys(node)) {
    const value = node[keyword];
    if (
      keyword === "$schema" || keyword === "$recursiveAnchor" || isLater(keyword, dialect) ||
      (old && hasRef && !BESIDE_REF.has(keyword) && keyword !== kept)
    ) {
      changed = true;
    } else if (old && keyword === id && typeof value === "string" && value.startsWith("#")) {
      rename("$anchor", keyword, value.slice(1));
    } else if (keyword === id && id !== "$id") {
      rename("$id", keyword, value);
    } else if (typeof node[EXCLUSIVE[keyword] ?? ""] === "boolean") {
      // In draft-04 a flag beside the limit says that the limit itself does not fit.
      if (node[EXCLUSIVE[keyword] as string] === true) {
        rename(EXCLUSIVE[keyword] as string, keyword, value);
      } else setOwn(result, keyword, value);
    } else if (keyword.startsWith("exclusive") && typeof value === "boolean") {
      changed = true;
    } else if (keyword === "$recursiveRef") {
      if (hasRef) rename("allOf", keyword, [...listOf(node["allOf"]), { $ref: value }]);
      else rename("$ref", keyword, value);
    } else if (old && keyword === "definitions" && !Object.hasOwn(node, "$defs")) {
      rename("$defs", keyword, value);
    } else if (keyword === "items" && tuple !== undefined) {
      if (tuple.length > 0) rename("prefixItems", keyword, tuple);
      else changed = true;
    } else if (keyword === "additionalItems") {
      if (tuple !== undefined) rename("items", keyword, value);
      else changed = true;
    } else if (old && keyword === "dependencies") {
      changed = true;
      splitDependencies(value, (to, part) => rename(to, keyword, part));
    } else if (!Object.hasOwn(result, keyword)) setOwn(result, keyword, value);
  }
  return changed ? result : node;
}

/** What says of a limit whether it is itself left out, in draft-04. */
const EXCLUSIVE: { readonly [limit: string]: string | undefined } = {
  minimum: "exclusiveMinimum",
  maximum: "exclusiveMaximum",
};

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
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
