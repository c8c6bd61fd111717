/**
 * Property keys that a target does not allow, renamed.
 *
 * @module
 */

import { type JsonSchema, type JsonSchemaObject, setOwn } from "../../tool/mod.ts";
import { isLegalName, mapNames, type NameRule } from "../names.ts";
import { mark } from "./origin.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import { copyNode, eachNode, isNode, mapSchema, type Spot } from "./schema_walk.ts";

/**
 * Renames the property keys that `rule` does not allow, everywhere in the schema alike. No two
 * keys of a schema get the same name. An object that is open could hold the new key or the old one
 * as something of its own, which is reported.
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
  return transformed(schema, (root, report) => renameEveryKey(root, rule, report));
}

/** {@linkcode renameKeys} inside a chain of transforms. */
export function renameEveryKey(root: JsonSchema, rule: NameRule, report: Report): JsonSchema {
  const keys = new Set<string>();
  eachNode(root, (node) => {
    for (const key of keysIn(node)) keys.add(key);
  });
  const all = [...keys];
  if (all.every((key) => isLegalName(key, rule))) return root;
  const names = mapNames(all, rule);
  const nameOf = (key: string): string => names.get(key) ?? key;
  return mapSchema(root, { leave: (node, spot) => renameIn(node, nameOf, spot, report) });
}

function renameIn(
  node: JsonSchemaObject,
  nameOf: (key: string) => string,
  spot: Spot,
  report: Report,
): JsonSchemaObject {
  const properties = isNode(node["properties"]) ? node["properties"] : {};
  const renamed = keysIn(node).filter((key) => nameOf(key) !== key);
  if (renamed.length === 0) return node;
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
  mark(copy, { keys: new Map(renamed.map((key) => [nameOf(key), key])) });
  const open = node["additionalProperties"] !== false ||
    Object.hasOwn(node, "patternProperties") || Object.hasOwn(node, "propertyNames");
  if (!open) return copy;
  for (const key of new Set(renamed)) {
    report.add(node, spot, {
      keyword: Object.hasOwn(properties, key) ? "properties" : "required",
      step: key,
      action: "replaced",
      grade: "ambiguous",
      widens: true,
      narrows: true,
      message: `"${key}" is sent as "${nameOf(key)}"; the object is open, so both may come back`,
    });
  }
  return copy;
}

/** Every property key that a node speaks of. */
function keysIn(node: JsonSchemaObject): readonly string[] {
  const keys: string[] = [];
  for (const keyword of ["properties", "dependentRequired", "dependentSchemas"]) {
    const map = node[keyword];
    if (isNode(map)) keys.push(...Object.keys(map));
  }
  const lists: unknown[] = [node["required"]];
  if (isNode(node["dependentRequired"])) lists.push(...Object.values(node["dependentRequired"]));
  for (const list of lists) if (Array.isArray(list)) keys.push(...list.map(String));
  return keys;
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
