/**
 * Draft-07 as 2020-12.
 *
 * @module
 */

import { type JsonSchema, type JsonSchemaObject, setOwn } from "../../tool/mod.ts";
import { fragment, fragmentSteps } from "./references.ts";
import { cameFrom, type Place } from "./origin.ts";
import { transformed, type TransformResult } from "./report.ts";
import { eachNode, isNode, isSchema, mapSchema } from "./schema_walk.ts";

/** Keywords that draft-07 does not know and that would begin to mean something. */
const LATER = [
  "prefixItems",
  "dependentRequired",
  "dependentSchemas",
  "unevaluatedItems",
  "unevaluatedProperties",
  "minContains",
  "maxContains",
  "$anchor",
  "$dynamicRef",
  "$dynamicAnchor",
] as const;

/** What may stand beside a `$ref` though draft-07 ignores it: words, and what references lead to. */
const BESIDE_REF: ReadonlySet<string> = new Set([
  "$ref",
  "$comment",
  "title",
  "description",
  "default",
  "examples",
  "definitions",
  "$defs",
]);

/**
 * Rewrites draft-07 as 2020-12: `definitions`, lists in `items`, `additionalItems`,
 * `dependencies`, `$id: "#name"`, and what stands beside a `$ref` and does not count there.
 * Both accept the same values. `$schema` is left out.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { normalizeDraft07 } from "@plue/tools/formats";
 *
 * const { schema } = normalizeDraft07({ type: "array", items: [{ type: "string" }] });
 * assert.deepEqual(schema, { type: "array", prefixItems: [{ type: "string" }] });
 * ```
 */
export function normalizeDraft07(schema: JsonSchema): TransformResult {
  return transformed(schema, asDraft2020);
}

/** {@linkcode normalizeDraft07} inside a chain of transforms. */
export function asDraft2020(root: JsonSchema): JsonSchema {
  return mapSchema(root, { enter: (node, spot) => asDraft2020Node(node, root, spot.root) });
}

function asDraft2020Node(
  node: JsonSchemaObject,
  root: JsonSchema,
  isRoot: boolean,
): JsonSchemaObject {
  const result: Record<string, unknown> = {};
  const moved = new Map<string, Place>();
  const rename = (to: string, from: string, value: unknown): void => {
    result[to] = value;
    if (to !== from) moved.set(to, { node, keyword: from });
  };
  const hasRef = typeof node["$ref"] === "string";
  const tuple = Array.isArray(node["items"]) ? node["items"] : undefined;
  for (const keyword of Object.keys(node)) {
    const value = node[keyword];
    // A tool's parameters say `type: "object"` at the root, whatever stands beside it.
    if (hasRef && !BESIDE_REF.has(keyword) && !(isRoot && keyword === "type")) continue;
    switch (keyword) {
      case "$schema":
        continue;
      case "$ref":
        result["$ref"] = newReference(value, root);
        continue;
      case "$id":
        if (typeof value === "string" && value.startsWith("#")) {
          rename("$anchor", "$id", value.slice(1));
        } else result["$id"] = value;
        continue;
      case "definitions":
        rename(Object.hasOwn(node, "$defs") ? "definitions" : "$defs", "definitions", value);
        continue;
      case "items":
        if (tuple === undefined) result["items"] = value;
        else if (tuple.length > 0) rename("prefixItems", "items", tuple);
        continue;
      case "additionalItems":
        if (tuple !== undefined) rename("items", "additionalItems", value);
        continue;
      case "dependencies":
        splitDependencies(value, (keyword, part) => rename(keyword, "dependencies", part));
        continue;
      default:
        if (!(LATER as readonly string[]).includes(keyword)) setOwn(result, keyword, value);
    }
  }
  if (sameEntries(node, result)) return node;
  cameFrom(result, node, moved);
  return result;
}

/**
 * Whether a schema of draft-07 means the same when it is read as 2020-12: what it has of the older
 * draft is `definitions`, which references find by their path in both.
 */
export function readsAlike(schema: JsonSchema): boolean {
  let alike = true;
  eachNode(schema, (node, spot) => {
    const { $id } = node;
    if (
      Array.isArray(node["items"]) || Object.hasOwn(node, "dependencies") ||
      (typeof $id === "string" && $id.startsWith("#")) ||
      LATER.some((keyword) => Object.hasOwn(node, keyword)) ||
      (Object.hasOwn(node, "$ref") &&
        !Object.keys(node).every((key) => BESIDE_REF.has(key) || (spot.root && key === "type")))
    ) alike = false;
  });
  return alike;
}

function splitDependencies(
  value: unknown,
  put: (keyword: string, part: Record<string, unknown>) => void,
): void {
  if (!isNode(value)) return;
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

/** A reference along the path that its target moved to. */
function newReference(ref: unknown, root: JsonSchema): unknown {
  if (typeof ref !== "string") return ref;
  const steps = fragmentSteps(ref);
  if (steps === undefined) return ref;
  let at: unknown = root;
  const moved: string[] = [];
  for (let index = 0; index < steps.length; index++) {
    const step = steps[index] as string;
    const node: Record<string, unknown> | undefined = isNode(at) ? at as never : undefined;
    const holdsMap = index > 0 && isMapKeyword(steps, index - 1);
    if (node === undefined || holdsMap) moved.push(step);
    else if (step === "definitions" && !Object.hasOwn(node, "$defs")) moved.push("$defs");
    else if (step === "items" && Array.isArray(node["items"])) moved.push("prefixItems");
    else if (step === "additionalItems" && Array.isArray(node["items"])) moved.push("items");
    else if (step === "dependencies") moved.push("dependentSchemas");
    else moved.push(step);
    at = typeof at === "object" && at !== null && Object.hasOwn(at, step)
      ? (at as Record<string, unknown>)[step]
      : undefined;
  }
  return fragment(moved);
}

const MAPS: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "definitions",
  "$defs",
  "dependencies",
]);

/** Whether the step at `index` is a keyword that holds a map, not a name inside of one. */
function isMapKeyword(steps: readonly string[], index: number): boolean {
  return MAPS.has(steps[index] as string) && (index === 0 || !isMapKeyword(steps, index - 1));
}

function sameEntries(node: JsonSchemaObject, result: Record<string, unknown>): boolean {
  const keys = Object.keys(node);
  return keys.length === Object.keys(result).length &&
    keys.every((key) => Object.hasOwn(result, key) && result[key] === node[key]);
}
