/**
 * The property keys of objects: objects are closed for other keys, and keys that a target does not
 * allow are renamed.
 *
 * @module
 */

import { isObject, type JsonSchema, type JsonSchemaObject, setOwn } from "../../tool/mod.ts";
import { isLegalName, mapNames, type NameRule } from "../../select/mod.ts";
import { mark } from "./origin.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import { changed, eachNode, mapOf, mapSchema } from "./rewrite.ts";

/** Whether a schema describes objects, and perhaps other values. */
export function describesObjects(node: JsonSchemaObject): boolean {
  const { type } = node;
  return type === "object" || (Array.isArray(type) && type.includes("object")) ||
    (type === undefined && isObject(node["properties"]));
}

/**
 * Adds `additionalProperties: false` to every object. Other keys than the named ones cannot be
 * sent, which is reported as narrowing for each place.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { closeObjects } from "@plue/tools/formats";
 *
 * const { schema, losses } = closeObjects({ type: "object", properties: {} });
 * assert.deepEqual(schema, { type: "object", properties: {}, additionalProperties: false });
 * assert.equal(losses[0]?.narrows, true);
 * ```
 */
export function closeObjects(schema: JsonSchema): TransformResult {
  return transformed(schema, closeObjectsIn);
}

/** {@linkcode closeObjects} inside a chain of transforms. */
export function closeObjectsIn(root: JsonSchema, report: Report): JsonSchema {
  return mapSchema(root, {
    leave: (node, spot) => {
      if (!describesObjects(node)) return node;
      // Providers' own transforms write `properties` always, even without one.
      const named = isObject(node["properties"]) ? node : changed(node, { properties: {} });
      if (node["additionalProperties"] === false) return named;
      const said = Object.hasOwn(node, "additionalProperties");
      report.add(node, spot, {
        keyword: "additionalProperties",
        action: "replaced",
        grade: said ? "lost" : "weakened",
        narrows: true,
        message: said
          ? "other properties than the named ones cannot be sent"
          : "other properties than the named ones are not forbidden, but cannot be sent",
      });
      return changed(named, { additionalProperties: false });
    },
  });
}

/**
 * Renames the property keys that `rule` does not allow, everywhere in the schema alike. No two
 * keys of a schema get the same name. An object that is open could hold the new key or the old one
 * as a separate loss, which is reported.
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
  return transformed(schema, (root, report) => renameKeysIn(root, rule, report));
}

/** {@linkcode renameKeys} inside a chain of transforms. */
export function renameKeysIn(root: JsonSchema, rule: NameRule, report: Report): JsonSchema {
  const keys = new Set<string>();
  eachNode(root, (node) => {
    for (const key of keysIn(node)) keys.add(key);
  });
  const all = [...keys];
  if (all.every((key) => isLegalName(key, rule))) return root;
  const names = mapNames(all, rule);
  const nameOf = (key: string): string => names.get(key) ?? key;
  return mapSchema(root, {
    leave: (node, spot) => {
      const properties = mapOf(node["properties"]);
      const renamed = keysIn(node).filter((key) => nameOf(key) !== key);
      if (renamed.length === 0) return node;
      const rename = (key: unknown): string => nameOf(String(key));
      const changes: Record<string, unknown> = {};
      for (const keyword of MAPS) {
        const map = node[keyword];
        if (!isObject(map)) continue;
        changes[keyword] = renameMap(
          map,
          nameOf,
          (value) =>
            keyword === "dependentRequired" && Array.isArray(value) ? value.map(rename) : value,
        );
      }
      for (const keyword of ["required", "propertyOrdering"]) {
        const list = node[keyword];
        if (Array.isArray(list)) changes[keyword] = list.map(rename);
      }
      const copy = changed(node, changes);
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
          message: `"${key}" is sent as "${
            nameOf(key)
          }"; the object is open, so both may come back`,
        });
      }
      return copy;
    },
  });
}

/** The keywords that hold a map from property keys. */
const MAPS = ["properties", "dependentRequired", "dependentSchemas"] as const;

/** Every property key that a node speaks of. */
function keysIn(node: JsonSchemaObject): readonly string[] {
  const keys: string[] = [];
  for (const keyword of MAPS) {
    const map = node[keyword];
    if (isObject(map)) keys.push(...Object.keys(map));
  }
  const lists: unknown[] = [node["required"]];
  if (isObject(node["dependentRequired"])) lists.push(...Object.values(node["dependentRequired"]));
  for (const list of lists) if (Array.isArray(list)) keys.push(...list.map(String));
  return keys;
}

function renameMap(
  map: { readonly [key: string]: unknown },
  nameOf: (key: string) => string,
  change: (value: unknown) => unknown,
): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const key of Object.keys(map)) setOwn(result, nameOf(key), change(map[key]));
  return result;
}
