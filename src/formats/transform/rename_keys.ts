/**
 * Property keys that a target does not allow, renamed.
 *
 * @module
 */

import { type JsonSchema, type JsonSchemaObject, setOwn } from "../../tool/mod.ts";
import { isLegalName, mapNames, type NameRule } from "../names.ts";
import { mark } from "./origin.ts";
import type { TransformResult } from "./report.ts";
import { transformed } from "./report.ts";
import { copyNode, eachNode, isNode, mapSchema } from "./schema_walk.ts";

/**
 * Renames the property keys that `rule` does not allow, everywhere in the schema alike. No two
 * keys of a schema get the same name.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { renameKeys } from "@plue/tools/formats";
 *
 * const { schema } = renameKeys(
 *   { properties: { "filter[id]": { type: "string" } }, required: ["filter[id]"] },
 *   { also: ".-", max: 64, separator: "_" },
 * );
 * assert.deepEqual(schema, { properties: { filter_id_: { type: "string" } }, required: ["filter_id_"] });
 * ```
 */
export function renameKeys(schema: JsonSchema, rule: NameRule): TransformResult {
  return transformed(schema, (root) => renameEveryKey(root, rule));
}

/** {@linkcode renameKeys} inside a chain of transforms. */
export function renameEveryKey(root: JsonSchema, rule: NameRule): JsonSchema {
  const keys = new Set<string>();
  eachNode(root, (node) => {
    if (isNode(node["properties"])) {
      for (const key of Object.keys(node["properties"])) keys.add(key);
    }
    if (Array.isArray(node["required"])) for (const key of node["required"]) keys.add(String(key));
  });
  const all = [...keys];
  if (all.every((key) => isLegalName(key, rule))) return root;
  const names = mapNames(all, rule);
  const nameOf = (key: string): string => names.get(key) ?? key;
  return mapSchema(root, { leave: (node) => renameIn(node, nameOf) });
}

function renameIn(node: JsonSchemaObject, nameOf: (key: string) => string): JsonSchemaObject {
  const properties = isNode(node["properties"]) ? node["properties"] : {};
  const required = Array.isArray(node["required"]) ? node["required"] : [];
  const renamed = [...Object.keys(properties), ...required.map(String)]
    .filter((key) => nameOf(key) !== key);
  const depends = isNode(node["dependentRequired"]) || isNode(node["dependentSchemas"]);
  if (renamed.length === 0 && !depends) return node;
  const copy = copyNode(node);
  if (isNode(node["properties"])) copy["properties"] = renameMap(properties, nameOf);
  for (const keyword of ["required", "propertyOrdering"]) {
    const list = node[keyword];
    if (Array.isArray(list)) copy[keyword] = list.map((key) => nameOf(String(key)));
  }
  if (isNode(node["dependentRequired"])) {
    copy["dependentRequired"] = renameMap(
      node["dependentRequired"],
      nameOf,
      (list) => Array.isArray(list) ? list.map((key) => nameOf(String(key))) : list,
    );
  }
  if (isNode(node["dependentSchemas"])) {
    copy["dependentSchemas"] = renameMap(node["dependentSchemas"], nameOf);
  }
  if (renamed.length > 0) {
    mark(copy, { keys: new Map(renamed.map((key) => [nameOf(key), key])) });
  }
  return copy;
}

function renameMap(
  map: { readonly [key: string]: unknown },
  nameOf: (key: string) => string,
  change: (value: unknown) => unknown = (value) => value,
): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const key of Object.keys(map)) setOwn(result, nameOf(key), change(map[key]));
  return result;
}
