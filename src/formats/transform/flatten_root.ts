/**
 * A root that is one plain object, for targets that refuse `anyOf`, `oneOf`, `allOf`, `not`,
 * `enum` and `$ref` there.
 *
 * @module
 */

import { type JsonSchema, type JsonSchemaObject, setOwn } from "../../tool/mod.ts";
import { distinct } from "./json_equal.ts";
import { allOfMerger, mergeEveryAllOf, mergeSchemas } from "./merge_all_of.ts";
import { cameFrom, type Place } from "./origin.ts";
import { resolveReference } from "./references.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import {
  copyMap,
  copyNode,
  isNode,
  isSchema,
  requiredBy,
  rootSpot,
  without,
} from "./schema_walk.ts";
import { addWords } from "./words.ts";

/** How often a union may turn up behind a union. */
const MAX_ROUNDS = 16;

/**
 * Makes the root one plain object: `$ref` and `allOf` are merged in; a union becomes one object
 * with the properties of all branches, of which those that every branch needs are required. What
 * is lost is said in the description.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { flattenRoot } from "@plue/tools/formats";
 *
 * const { schema } = flattenRoot({
 *   type: "object",
 *   properties: { id: { type: "string" }, name: { type: "string" } },
 *   anyOf: [{ required: ["id"] }, { required: ["name"] }],
 * });
 * assert.deepEqual(schema, {
 *   type: "object",
 *   properties: { id: { type: "string" }, name: { type: "string" } },
 *   description: 'At least one of these must be given: "id"; "name".',
 * });
 * ```
 */
export function flattenRoot(schema: JsonSchema): TransformResult {
  return transformed(schema, (root, report) => plainRoot(root, report, true));
}

/** {@linkcode flattenRoot} inside a chain of transforms. */
export function plainRoot(first: JsonSchema, report: Report, describe: boolean): JsonSchema {
  if (!isNode(first)) return first;
  let root: JsonSchema = first;
  // What is merged in may bring a reference or a union of its own.
  for (let round = 0; round < MAX_ROUNDS; round++) {
    root = mergeIntoRoot(root);
    if (!isNode(root)) throw new TypeError("Cannot flatten the schema: no value can satisfy it");
    const union = ["anyOf", "oneOf"].find((keyword) => Object.hasOwn(root as object, keyword));
    if (union === undefined) break;
    root = flattenUnion(root, union, report, describe);
  }
  if (!isNode(root)) return root;
  root = without(root, "$ref");
  for (const keyword of ["anyOf", "oneOf", "allOf", "not", "enum", "const"]) {
    if (Object.hasOwn(root, keyword)) root = leaveOut(root, keyword, report, describe);
  }
  return root;
}

/** The root with its `$ref` and its `allOf` merged in. */
function mergeIntoRoot(root: JsonSchemaObject): JsonSchema {
  const whole = dereference(root, root);
  if (!isNode(whole) || !Array.isArray(whole["allOf"])) return whole;
  const merged = mergeEveryAllOf(whole);
  return isNode(merged) ? withDefinitions(merged, whole) : merged;
}

/** The root with what its `$ref` leads to merged in. */
function dereference(node: JsonSchemaObject, root: JsonSchemaObject): JsonSchema {
  let at: JsonSchema = node;
  // Each step may lead to another reference; a chain is shorter than the definitions it uses.
  for (let steps = 0; steps < 32 && isNode(at) && Object.hasOwn(at, "$ref"); steps++) {
    const target = resolveReference(root, at["$ref"]);
    if (target === undefined) {
      throw new TypeError("Cannot flatten the schema: its root refers to something outside of it");
    }
    const bare: JsonSchema = without(at, "$ref");
    if (target === root) return bare;
    at = mergeSchemas(
      bare,
      isNode(target) ? without(target, "$defs", "$id", "$anchor", "$dynamicAnchor") : target,
    );
  }
  return isNode(at) ? without(at, "$ref") : at;
}

function flattenUnion(
  root: JsonSchemaObject,
  keyword: string,
  report: Report,
  describe: boolean,
): JsonSchemaObject {
  const list = root[keyword];
  if (!Array.isArray(list)) return root;
  const mergeAllOf = allOfMerger(root);
  const branches = list.filter(isSchema).map((branch) => {
    const whole = isNode(branch) ? dereference(branch, root) : branch;
    return isNode(whole) && Array.isArray(whole["allOf"]) ? mergeAllOf(whole) : whole;
  }).map((branch) => isNode(branch) ? without(branch, "$defs", "definitions") : branch)
    // A branch for values that are no objects never holds for arguments.
    .filter((branch) => branch !== false && !(isNode(branch) && excludesObjects(branch)));
  const only = branches[0];
  if (branches.length === 1 && isNode(only)) {
    const merged = mergeSchemas(without(root, keyword), only);
    if (isNode(merged)) return merged;
  }
  const base = without(root, keyword);
  const nodes = branches.filter(isNode);
  const all = nodes.length === branches.length;
  const properties = isNode(base["properties"]) ? copyMap(base["properties"]) : {};
  let narrows = false;
  const closed = (branch: JsonSchemaObject): boolean =>
    branch["additionalProperties"] === false && !Object.hasOwn(branch, "patternProperties");
  const listed = new Map<string, JsonSchema[]>();
  for (const branch of nodes) {
    const own = isNode(branch["properties"]) ? branch["properties"] : {};
    for (const name of Object.keys(own)) {
      const schemas = listed.get(name) ?? [];
      schemas.push(own[name] as JsonSchema);
      listed.set(name, schemas);
    }
  }
  for (const [name, schemas] of listed) {
    const silent = branches.filter((branch) =>
      !isNode(branch) || !isNode(branch["properties"]) || !Object.hasOwn(branch["properties"], name)
    );
    if (silent.some((branch) => !isNode(branch) || !closed(branch))) narrows = true;
    const united = unite(schemas, base);
    const there = properties[name];
    const both = Object.hasOwn(properties, name)
      ? mergeSchemas(there as JsonSchema, united)
      : united;
    setOwn(properties, name, both);
  }
  report.add(root, rootSpot(root), {
    keyword,
    action: describe ? "described" : "replaced",
    grade: describe ? "moved" : "weakened",
    widens: true,
    narrows,
    message: `"${keyword}" at the root is sent as one object with the properties of all branches`,
  });
  const copy = copyNode(base);
  if (!Object.hasOwn(base, "properties")) {
    cameFrom(copy, base, new Map<string, Place>([["properties", { node: root, keyword }]]));
  }
  if (Object.keys(properties).length > 0) copy["properties"] = properties;
  const required = new Set<unknown>(Array.isArray(base["required"]) ? base["required"] : []);
  const first: readonly unknown[] = all && Array.isArray(nodes[0]?.["required"])
    ? nodes[0]["required"]
    : [];
  const requirers = nodes.map(requiredBy);
  for (const name of first) if (requirers.every((names) => names.has(name))) required.add(name);
  if (required.size > 0) copy["required"] = [...required];
  if (
    !Object.hasOwn(base, "additionalProperties") && all && nodes.length > 0 && nodes.every(closed)
  ) {
    // Closed only where a branch is: a property of the base that no branch names was refused.
    copy["additionalProperties"] = false;
  }
  if (describe) addWords(copy, keyword, list);
  return copy;
}

/** The node with the definitions of the root, which references in it lead to. */
function withDefinitions(node: JsonSchemaObject, root: JsonSchemaObject): JsonSchemaObject {
  if (!Object.hasOwn(root, "$defs") || node["$defs"] === root["$defs"]) return node;
  const copy = copyNode(node);
  copy["$defs"] = root["$defs"];
  return copy;
}

function excludesObjects(branch: JsonSchemaObject): boolean {
  const { type } = branch;
  return type !== undefined && type !== "object" &&
    !(Array.isArray(type) && type.includes("object"));
}

/** One schema for a property that several branches describe. */
function unite(schemas: readonly JsonSchema[], from: JsonSchemaObject): JsonSchema {
  const different = distinct(schemas);
  const only = different[0];
  if (different.length === 1 && only !== undefined) return only;
  const constants = different.map((schema) =>
    isNode(schema) && Object.hasOwn(schema, "const") ? [schema["const"]] : undefined
  );
  if (constants.every((values) => values !== undefined)) {
    const first = different.find(isNode);
    const same = different.every((schema) => isNode(schema) && schema["type"] === first?.["type"]);
    const union: Record<string, unknown> = first !== undefined && same && "type" in first
      ? { type: first["type"], enum: constants.flat() }
      : { enum: constants.flat() };
    cameFrom(union, first ?? from);
    return union;
  }
  const union: Record<string, unknown> = { anyOf: different };
  cameFrom(union, different.find(isNode) ?? from);
  return union;
}

function leaveOut(
  root: JsonSchemaObject,
  keyword: string,
  report: Report,
  describe: boolean,
): JsonSchemaObject {
  report.add(root, rootSpot(root), {
    keyword,
    action: describe ? "described" : "dropped",
    grade: describe ? "moved" : "lost",
    widens: true,
    message: `"${keyword}" cannot stand at the root`,
  });
  const copy = copyNode(root);
  delete copy[keyword];
  if (describe) addWords(copy, keyword, root[keyword]);
  return copy;
}
