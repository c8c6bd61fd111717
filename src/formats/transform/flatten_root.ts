/**
 * Makes the root one plain object, for targets that refuse `anyOf`, `oneOf`, `allOf`, `not`,
 * `enum` and `$ref` there.
 *
 * @module
 */

import { isSchema } from "../../schema/mod.ts";
import { isObject, type JsonSchema, type JsonSchemaObject, setOwn } from "../../tool/mod.ts";
import { distinct } from "./json_equal.ts";
import { allOfMerger, mergeAllOfIn, mergeSchemas } from "./merge_all_of.ts";
import { cameFrom } from "./origin.ts";
import { resolverOf } from "./definitions.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import { changed, mapOf, requiredBy, rootSpot, without } from "./rewrite.ts";
import { addWords, leaveOut } from "./describe_constraints.ts";

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
  return transformed(schema, (root, report) => flattenRootIn(root, report, true));
}

/** {@linkcode flattenRoot} inside a chain of transforms. */
export function flattenRootIn(first: JsonSchema, report: Report, describe: boolean): JsonSchema {
  if (!isObject(first)) return first;
  let root: JsonSchema = first;
  // A merged schema may bring its own reference or union.
  for (let round = 0; round < MAX_ROUNDS; round++) {
    root = mergeIntoRoot(root);
    if (!isObject(root)) throw new TypeError("Cannot flatten the schema: no value can satisfy it");
    const union = ["anyOf", "oneOf"].find((keyword) => Object.hasOwn(root as object, keyword));
    if (union === undefined) break;
    root = flattenUnion(root, union, report, describe);
  }
  if (!isObject(root)) return root;
  root = without(root, "$ref");
  for (const keyword of ["anyOf", "oneOf", "allOf", "not", "enum", "const"]) {
    if (!Object.hasOwn(root, keyword)) continue;
    const message = `"${keyword}" cannot stand at the root`;
    root = leaveOut(root, keyword, rootSpot(root), report, describe, message);
  }
  return root;
}

/** The root with its `$ref` and its `allOf` merged in. */
function mergeIntoRoot(root: JsonSchemaObject): JsonSchema {
  const whole = dereference(root, root);
  if (!isObject(whole) || !Array.isArray(whole["allOf"])) return whole;
  const merged = mergeAllOfIn(whole);
  return isObject(merged) ? withDefinitions(merged, whole) : merged;
}

/** The root with what its `$ref` leads to merged in. */
function dereference(node: JsonSchemaObject, root: JsonSchemaObject): JsonSchema {
  let at: JsonSchema = node;
  // A reference may lead to another one.
  for (let steps = 0; steps < 32 && isObject(at) && Object.hasOwn(at, "$ref"); steps++) {
    const target = resolverOf(root)(at["$ref"]);
    if (target === undefined) {
      throw new TypeError("Cannot flatten the schema: its root refers to something outside of it");
    }
    const bare: JsonSchema = without(at, "$ref");
    if (target === root) return bare;
    at = mergeSchemas(
      bare,
      isObject(target) ? without(target, "$defs", "$id", "$anchor", "$dynamicAnchor") : target,
    );
  }
  return isObject(at) ? without(at, "$ref") : at;
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
    const whole = isObject(branch) ? dereference(branch, root) : branch;
    return isObject(whole) && Array.isArray(whole["allOf"]) ? mergeAllOf(whole) : whole;
  }).map((branch) => isObject(branch) ? without(branch, "$defs", "definitions") : branch)
    // A branch for values that are no objects never holds for arguments.
    .filter((branch) => branch !== false && !(isObject(branch) && excludesObjects(branch)));
  const base = without(root, keyword);
  const nodes = branches.filter(isObject);
  const [only] = nodes;
  if (branches.length === 1 && only !== undefined) {
    const merged = mergeSchemas(base, only);
    if (isObject(merged)) return merged;
  }
  const all = nodes.length === branches.length;
  const closed = (branch: JsonSchemaObject): boolean =>
    branch["additionalProperties"] === false && !Object.hasOwn(branch, "patternProperties");
  const listed = new Map<string, JsonSchema[]>();
  for (const branch of nodes) {
    for (const [name, schema] of Object.entries(mapOf(branch["properties"]))) {
      const schemas = listed.get(name) ?? [];
      schemas.push(schema as JsonSchema);
      listed.set(name, schemas);
    }
  }
  const properties = { ...mapOf(base["properties"]) };
  let narrows = false;
  for (const [name, schemas] of listed) {
    narrows ||= branches.some((branch) =>
      !isObject(branch) ||
      (!closed(branch) && !Object.hasOwn(mapOf(branch["properties"]), name))
    );
    const united = unite(schemas, base);
    const there = Object.hasOwn(properties, name) ? properties[name] as JsonSchema : true;
    setOwn(properties, name, mergeSchemas(there, united));
  }
  report.add(root, rootSpot(root), {
    keyword,
    action: describe ? "described" : "replaced",
    grade: describe ? "moved" : "weakened",
    widens: true,
    narrows,
    message: `"${keyword}" at the root is sent as one object with the properties of all branches`,
  });
  const requirers = nodes.map(requiredBy);
  const shared = [...requirers[0] ?? []].filter((name) =>
    all && requirers.every((names) => names.has(name))
  );
  const required = new Set([...requiredBy(base), ...shared]);
  // Only if all branches are closed: they refused the properties that no branch names.
  const closes = all && nodes.length > 0 && nodes.every(closed) &&
    !Object.hasOwn(base, "additionalProperties");
  const copy = changed(base, {
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.size > 0 && { required: [...required] }),
    ...(closes && { additionalProperties: false }),
  });
  if (!Object.hasOwn(base, "properties")) {
    cameFrom(copy, base, new Map([["properties", { node: root, keyword }]]));
  }
  if (describe) addWords(copy, keyword, list);
  return copy;
}

/** The node with the definitions of the root, which references in it lead to. */
function withDefinitions(node: JsonSchemaObject, root: JsonSchemaObject): JsonSchemaObject {
  return !Object.hasOwn(root, "$defs") || node["$defs"] === root["$defs"]
    ? node
    : changed(node, { $defs: root["$defs"] });
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
  const nodes = different.filter(isObject);
  const first = nodes[0];
  let union: JsonSchemaObject = { anyOf: different };
  if (
    nodes.length === different.length && nodes.every((node) => Object.hasOwn(node, "const"))
  ) {
    const type = first?.["type"];
    const alike = type !== undefined && nodes.every((node) => node["type"] === type);
    union = { ...(alike && { type }), enum: nodes.map((node) => node["const"]) };
  }
  cameFrom(union, first ?? from);
  return union;
}
