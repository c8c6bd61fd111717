/** Passes for unions: `oneOf`, the siblings of an `anyOf`, and a union at the root. */

import { isSchema } from "../../schema/mod.ts";
import { isObject, type JsonSchema, type JsonSchemaObject, setOwn } from "../../tool/mod.ts";
import { addWords, constrains, leaveOut } from "./keywords.ts";
import { allOfMerger, mergeAllOf, mergeSchemas } from "./merge_all_of.ts";
import { referenceTargets, type Resolve, resolverOf, withoutNames } from "./references.ts";
import {
  changed,
  mapOf,
  mapSchema,
  requiredBy,
  rootSpot,
  type Spot,
  type Trace,
  without,
} from "./rewrite.ts";
import type { Context } from "./report.ts";

const MAX_COMPARED = 64;

/** Rewrites `oneOf` as `anyOf`. An `anyOf` accepts more if a value can match two branches. */
export function oneOfToAnyOf(
  node: JsonSchemaObject,
  { trace, report, resolve }: Context,
  spot: Spot,
): JsonSchema {
  const branches = node["oneOf"];
  if (!Array.isArray(branches)) return node;
  if (!areDisjoint(trace, branches, resolve)) {
    const message = '"oneOf" is sent as "anyOf": more than one branch may hold';
    report.add(node, spot, "oneOf", message);
  }
  if (!Object.hasOwn(node, "anyOf")) {
    return changed(trace, node, { oneOf: undefined, anyOf: branches }, { anyOf: "oneOf" });
  }
  const second: JsonSchemaObject = { anyOf: branches };
  trace.cameFrom(second, node, new Map([["anyOf", { node, keyword: "oneOf" }]]));
  const others = Array.isArray(node["allOf"]) ? node["allOf"] : [];
  return changed(trace, node, { oneOf: undefined, allOf: [...others, second] });
}

/** Returns true if no value can match two branches, and false if that is unknown. */
function areDisjoint(trace: Trace, branches: readonly unknown[], resolve: Resolve): boolean {
  if (branches.length > MAX_COMPARED) return false;
  const known = branches.map((branch) =>
    outlineOf(
      trace,
      isObject(branch) && Object.hasOwn(branch, "$ref") ? resolve(branch["$ref"]) : branch,
    )
  );
  return known.every((one, index) =>
    known.slice(index + 1).every((two) => cannotBothHold(trace, one, two))
  );
}

/** The facts that distinguish a branch from other branches; `undefined` if unknown. */
interface Outline {
  /** True if no value matches the branch. */
  readonly never: boolean;
  readonly types: ReadonlySet<unknown> | undefined;
  readonly values: ReadonlySet<string> | undefined;
  /** The possible values of required properties that have a constant or an enum. */
  readonly tags: ReadonlyMap<string, ReadonlySet<string>>;
}

const NO_TAGS: Outline["tags"] = new Map();

function outlineOf(trace: Trace, branch: unknown): Outline {
  if (!isObject(branch)) {
    return { never: branch === false, types: undefined, values: undefined, tags: NO_TAGS };
  }
  const types = typesOf(branch);
  const onlyObjects = types?.size === 1 && types.has("object");
  return {
    never: false,
    types,
    values: valuesOf(trace, branch),
    tags: onlyObjects ? tagsOf(trace, branch) : NO_TAGS,
  };
}

/** The types of a schema, with `number` for `integer`. */
function typesOf({ type }: JsonSchemaObject): ReadonlySet<unknown> | undefined {
  if (type === undefined) return undefined;
  const list: readonly unknown[] = Array.isArray(type) ? type : [type];
  return new Set(list.map((one) => one === "integer" ? "number" : one));
}

function valuesOf(trace: Trace, node: JsonSchemaObject): ReadonlySet<string> | undefined {
  if (Object.hasOwn(node, "const")) return new Set([trace.keyOf(node["const"])]);
  return Array.isArray(node["enum"])
    ? new Set(node["enum"].map((value) => trace.keyOf(value)))
    : undefined;
}

function tagsOf(trace: Trace, { properties, required }: JsonSchemaObject): Outline["tags"] {
  if (!isObject(properties) || !Array.isArray(required)) return NO_TAGS;
  const tags = new Map<string, ReadonlySet<string>>();
  for (const name of required) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const values = isObject(property) ? valuesOf(trace, property) : undefined;
    if (values !== undefined) tags.set(name, values);
  }
  return tags;
}

function cannotBothHold(trace: Trace, a: Outline, b: Outline): boolean {
  if (a.never || b.never) return true;
  if (a.types !== undefined && b.types !== undefined && !shareAny(trace, a.types, b.types)) {
    return true;
  }
  if (a.values !== undefined && b.values !== undefined) return !shareAny(trace, a.values, b.values);
  for (const [name, values] of a.tags) {
    const others = b.tags.get(name);
    if (others !== undefined && !shareAny(trace, values, others)) return true;
  }
  return false;
}

function shareAny<T>(trace: Trace, a: ReadonlySet<T>, b: ReadonlySet<T>): boolean {
  const [few, many] = a.size < b.size ? [a, b] : [b, a];
  trace.count(few.size);
  for (const value of few) if (many.has(value)) return true;
  return false;
}

/** Keywords that move together with `properties`. */
const BELONGS_TO_PROPERTIES = new Set(["additionalProperties", "patternProperties"]);

/** Moves the siblings of an `anyOf` into its branches. With `refuses`, throws if that fails. */
export function distributeUnions(root: JsonSchema, context: Context): JsonSchema {
  const { trace, refuses, fateOf } = context;
  const resolve = resolverOf(root);
  const targetOf = referenceTargets(
    trace,
    root,
    (target, depth) => mapSchema(trace, withoutNames(trace, target), { leave: distribute }, depth),
  );
  return mapSchema(trace, root, { leave: distribute });

  function distribute(node: JsonSchemaObject, spot: Spot): JsonSchema {
    const branches = node["anyOf"];
    if (!Array.isArray(branches)) return node;
    const outer: Record<string, unknown> = {};
    const inner: Record<string, unknown> = {};
    for (const keyword of Object.keys(node)) {
      const moves = keyword !== "anyOf" && constrains(keyword) &&
        (BELONGS_TO_PROPERTIES.has(keyword) || fateOf(keyword, node, false) !== "drop");
      (moves ? inner : outer)[keyword] = node[keyword];
    }
    if (Object.keys(inner).length === 0) return node;
    trace.cameFrom(inner, node);
    const merged: JsonSchema[] = [];
    for (const branch of branches) {
      if (!isSchema(branch)) continue;
      const one = mergeInto(inner, branch, spot.depth);
      if (one === undefined) {
        const message = 'the siblings of "anyOf" cannot be merged into its branches';
        if (refuses) throw new TypeError(`Cannot split the union: ${message}`);
        return leaveOut(context, node, "anyOf", spot, message);
      }
      if (one !== false) merged.push(one);
    }
    if (merged.length === 0) return false;
    outer["anyOf"] = merged;
    trace.cameFrom(outer, node);
    return outer;
  }

  /** Returns a branch with the siblings, or `undefined` if one schema cannot express both. */
  function mergeInto(inner: JsonSchemaObject, branch: JsonSchema, depth: number) {
    let own = branch;
    if (isObject(branch) && Object.hasOwn(branch, "$ref")) {
      const known = resolve(branch["$ref"]);
      // The reference can stay if its target has the keywords.
      const isInTarget = isObject(known) &&
        Object.keys(inner).every((keyword) => trace.isEqual(inner[keyword], known[keyword]));
      if (isInTarget) return branch;
      const target = targetOf(branch["$ref"], depth);
      if (target === undefined) return undefined;
      own = mergeSchemas(trace, without(trace, branch, "$ref"), target);
    }
    const one = mergeSchemas(trace, inner, own);
    if (!isObject(one)) return one;
    const mayStay = !refuses && Object.hasOwn(inner, "allOf");
    const apart = Object.hasOwn(one, "$ref") || (Object.hasOwn(one, "allOf") && !mayStay);
    return apart ? undefined : one;
  }
}

const MAX_ROUNDS = 16;

/** Makes the root one plain object, with the properties of all branches of a union. */
export function flattenRoot(first: JsonSchema, context: Context): JsonSchema {
  const { trace } = context;
  if (!isObject(first)) return first;
  let root: JsonSchema = first;
  // A merged schema may have a reference or a union at its root again.
  for (let round = 0; round < MAX_ROUNDS; round++) {
    root = mergeIntoRoot(trace, root);
    if (!isObject(root)) throw new TypeError("Cannot flatten the schema: no value can satisfy it");
    const union = ["anyOf", "oneOf"].find((keyword) => Object.hasOwn(root as object, keyword));
    if (union === undefined) break;
    root = flattenUnion(root, union, context);
  }
  if (!isObject(root)) return root;
  root = without(trace, root, "$ref");
  for (const keyword of ["anyOf", "oneOf", "allOf", "not", "enum", "const"]) {
    if (!Object.hasOwn(root, keyword)) continue;
    const message = `"${keyword}" cannot stand at the root`;
    root = leaveOut(context, root, keyword, rootSpot(root), message);
  }
  return root;
}

function mergeIntoRoot(trace: Trace, root: JsonSchemaObject): JsonSchema {
  const whole = dereference(trace, root, root);
  if (!isObject(whole) || !Array.isArray(whole["allOf"])) return whole;
  const merged = mergeAllOf(whole, { trace });
  const { $defs } = whole;
  return !isObject(merged) || $defs === undefined || merged["$defs"] === $defs
    ? merged
    : changed(trace, merged, { $defs });
}

function dereference(trace: Trace, node: JsonSchemaObject, root: JsonSchemaObject): JsonSchema {
  let at: JsonSchema = node;
  // The target may be another reference.
  for (let steps = 0; steps < 32 && isObject(at) && Object.hasOwn(at, "$ref"); steps++) {
    const target = resolverOf(root)(at["$ref"]);
    if (target === undefined) {
      throw new TypeError("Cannot flatten the schema: its root refers to something outside of it");
    }
    const bare: JsonSchema = without(trace, at, "$ref");
    if (target === root) return bare;
    at = mergeSchemas(
      trace,
      bare,
      isObject(target)
        ? without(trace, target, "$defs", "$id", "$anchor", "$dynamicAnchor")
        : target,
    );
  }
  return isObject(at) ? without(trace, at, "$ref") : at;
}

function flattenUnion(
  root: JsonSchemaObject,
  keyword: string,
  { trace, report, describe }: Context,
): JsonSchemaObject {
  const list = root[keyword];
  if (!Array.isArray(list)) return root;
  const mergeInRoot = allOfMerger(trace, root);
  const branches = list.filter(isSchema).map((branch) => {
    const whole = isObject(branch) ? dereference(trace, branch, root) : branch;
    return isObject(whole) && Array.isArray(whole["allOf"]) ? mergeInRoot(whole) : whole;
  }).map((branch) => isObject(branch) ? without(trace, branch, "$defs", "definitions") : branch)
    // Omits branches for other values than objects, because arguments are an object.
    .filter((branch) => branch !== false && !(isObject(branch) && excludesObjects(branch)));
  const base = without(trace, root, keyword);
  const nodes = branches.filter(isObject);
  const [only] = nodes;
  if (branches.length === 1 && only !== undefined) {
    const merged = mergeSchemas(trace, base, only);
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
    const united = unite(trace, schemas, base);
    const there = Object.hasOwn(properties, name) ? properties[name] as JsonSchema : true;
    setOwn(properties, name, mergeSchemas(trace, there, united));
  }
  const message =
    `"${keyword}" at the root is sent as one object with the properties of all branches`;
  const moved = describe ? { action: "described", grade: "moved" } as const : {};
  report.add(root, rootSpot(root), keyword, message, { ...moved, widens: true, narrows });
  const requirers = nodes.map(requiredBy);
  const shared = [...requirers[0] ?? []].filter((name) =>
    all && requirers.every((names) => names.has(name))
  );
  const required = new Set([...requiredBy(base), ...shared]);
  // If all branches are closed, the object is closed: each branch rejects unnamed properties.
  const closes = all && nodes.length > 0 && nodes.every(closed) &&
    !Object.hasOwn(base, "additionalProperties");
  const copy = changed(trace, base, {
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.size > 0 && { required: [...required] }),
    ...(closes && { additionalProperties: false }),
  });
  if (!Object.hasOwn(base, "properties")) {
    trace.cameFrom(copy, base, new Map([["properties", { node: root, keyword }]]));
  }
  if (describe) addWords(copy, keyword, list);
  return copy;
}

function excludesObjects(branch: JsonSchemaObject): boolean {
  const { type } = branch;
  return type !== undefined && type !== "object" &&
    !(Array.isArray(type) && type.includes("object"));
}

/** Returns one schema for a property of several branches. */
function unite(trace: Trace, schemas: readonly JsonSchema[], from: JsonSchemaObject): JsonSchema {
  const different = trace.distinct(schemas);
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
  trace.cameFrom(union, first ?? from);
  return union;
}
