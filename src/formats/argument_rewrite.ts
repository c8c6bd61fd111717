/**
 * What must be undone in values of an exported schema, as a tree beside it, and how a value tells
 * which branch of a union it is.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject } from "../tool/mod.ts";
import { includesValue, jsonEqual } from "./transform/json_equal.ts";
import { markOf } from "./transform/origin.ts";
import { type Resolve, resolverOf } from "./transform/references.ts";
import { eachChild, eachNode, isNode } from "./transform/schema_walk.ts";
import type { ArgumentChoice, ArgumentRewrite } from "./types.ts";
import { fitsType } from "./value_type.ts";

/** How deep a value is looked at to tell which branch of a union it is. */
export const MAX_LOOK = 4;

/** How many parts of a value are looked at to tell one branch. What is beyond is taken to fit. */
const MAX_LOOKS = 10_000;

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

/**
 * What to undo in values of an exported schema.
 *
 * @param schema The exported schema, as the transforms left it: they noted on it what they did.
 * @returns The tree, or `undefined` if nothing needs undoing.
 */
export function rewriteOf(schema: JsonSchema): ArgumentRewrite | undefined {
  const resolve = resolverOf(schema);
  const concerned = concernedNodes(schema, resolve);
  if (concerned.size === 0) return undefined;
  const made = new Map<JsonSchemaObject, Writable<ArgumentRewrite>>();

  const build = (part: unknown): ArgumentRewrite | undefined => {
    if (!isNode(part) || !concerned.has(part)) return undefined;
    let rewrite = made.get(part);
    if (rewrite === undefined) made.set(part, rewrite = { ...markOf(part) });
    return rewrite;
  };
  const fill = (part: JsonSchemaObject, rewrite: Writable<ArgumentRewrite>): void => {
    if (Object.hasOwn(part, "$ref")) {
      const target = build(resolve(part["$ref"]));
      if (target !== undefined) rewrite.also = [target];
    }
    const properties = new Map<string, ArgumentRewrite>();
    if (isNode(part["properties"])) {
      for (const [key, property] of Object.entries(part["properties"])) {
        const inner = build(property);
        if (inner !== undefined) properties.set(key, inner);
      }
    }
    if (properties.size > 0) rewrite.properties = properties;
    const rest = build(part["additionalProperties"]);
    if (rest !== undefined) {
      rewrite.additionalProperties = rest;
      rewrite.declared = new Set(isNode(part["properties"]) ? Object.keys(part["properties"]) : []);
    }
    const items = build(part["items"]);
    if (items !== undefined) rewrite.items = items;
    if (Array.isArray(part["prefixItems"])) {
      const list = part["prefixItems"].map(build);
      if (list.some((inner) => inner !== undefined)) rewrite.prefixItems = list;
    }
    for (const keyword of ["anyOf", "oneOf"]) {
      const branches = part[keyword];
      if (!Array.isArray(branches)) continue;
      const choices = branches.map((branch): ArgumentChoice => ({
        accepts: (value, depth = MAX_LOOK) =>
          looksLike(branch, value, depth, { resolve, left: MAX_LOOKS }),
        rewrite: build(branch) ?? {},
      }));
      if (branches.some((branch) => concerned.has(branch))) rewrite.choices = choices;
    }
    if (Array.isArray(part["allOf"])) {
      const all = part["allOf"].map(build).filter((inner) => inner !== undefined);
      if (all.length > 0) rewrite.also = [...(rewrite.also ?? []), ...all];
    }
  };

  const root = build(schema);
  // Filling one makes others, to which the map's iterator goes on: a chain takes no stack.
  for (const [part, rewrite] of made) fill(part, rewrite);
  return root;
}

/** The nodes that a transform marked, and all that lead to one of them, through references too. */
function concernedNodes(schema: JsonSchema, resolve: Resolve): ReadonlySet<unknown> {
  const concerned = new Set<JsonSchemaObject>();
  const leadHere = new Map<JsonSchemaObject, JsonSchemaObject[]>();
  const lead = (to: JsonSchema | undefined, from: JsonSchemaObject): void => {
    if (!isNode(to)) return;
    const list = leadHere.get(to);
    if (list === undefined) leadHere.set(to, [from]);
    else list.push(from);
  };
  eachNode(schema, (node) => {
    if (markOf(node) !== undefined) concerned.add(node);
    eachChild(node, (child) => lead(child, node));
    if (Object.hasOwn(node, "$ref")) lead(resolve(node["$ref"]), node);
  });
  // What is added while the set is walked is walked too.
  for (const node of concerned) for (const from of leadHere.get(node) ?? []) concerned.add(from);
  return concerned;
}

/** A look at a value: what references mean, and how many more parts of it may be looked at. */
interface Look {
  readonly resolve: Resolve;
  left: number;
}

/** Whether a value looks like one branch of a union, by its type, keys and constants. */
function looksLike(schema: unknown, value: unknown, depth: number, look: Look): boolean {
  if (!isNode(schema)) return schema !== false;
  if (depth < 0 || --look.left < 0) return true;
  const inner = (part: unknown, item: unknown): boolean => looksLike(part, item, depth - 1, look);
  if (Object.hasOwn(schema, "$ref")) return inner(look.resolve(schema["$ref"]) ?? true, value);
  const { type, enum: values, properties, required, anyOf, items } = schema;
  if (!fitsType(type, value)) {
    return schema["nullable"] === true && value === null;
  }
  if (Object.hasOwn(schema, "const") && !jsonEqual(schema["const"], value)) return false;
  if (Array.isArray(values) && !includesValue(values, value)) return false;
  if (Array.isArray(anyOf) && !anyOf.some((one) => inner(one, value))) return false;
  if (Array.isArray(value) && isNode(items)) {
    return value.slice(0, 16).every((item) => inner(items, item));
  }
  if (!isNode(value)) return true;
  if (Array.isArray(required) && !required.every((key) => Object.hasOwn(value, String(key)))) {
    return false;
  }
  if (!isNode(properties)) return true;
  return Object.keys(value).every((key) =>
    Object.hasOwn(properties, key)
      ? inner(properties[key], value[key])
      : schema["additionalProperties"] !== false
  );
}
