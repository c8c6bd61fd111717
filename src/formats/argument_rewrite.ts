/**
 * Converts arguments between the form of an exported schema and the form of the tool's own schema.
 *
 * @module
 */

import { isOfType } from "../schema/mod.ts";
import {
  isObject,
  jsonEqual,
  type JsonSchema,
  type JsonSchemaObject,
  type JsonValue,
  setOwn,
} from "../tool/mod.ts";
import { type Resolve, resolverOf } from "./transform/references.ts";
import { eachChild, eachNode, type Trace } from "./transform/rewrite.ts";

/**
 * The changes to undo in a value that follows the exported schema: a tree of the same form as that
 * schema. A part that is absent needs no change. A recursive schema makes a cyclic tree, which is
 * followed along the value, and therefore ends. `decodeArguments` reads it.
 */
export interface ArgumentRewrite {
  /** Values that were written as text, by that text. */
  readonly values?: ReadonlyMap<string, JsonValue>;
  /** The properties (as sent) in which a `null` means that the property is absent. */
  readonly nulls?: ReadonlySet<string>;
  /** The property keys as sent that differ from the tool's own, with the tool's own. */
  readonly keys?: ReadonlyMap<string, string>;
  /** The changes in each property, by its key as sent. */
  readonly properties?: ReadonlyMap<string, ArgumentRewrite>;
  /** The changes in properties that the schema does not declare. */
  readonly additionalProperties?: ArgumentRewrite;
  /** The properties (as sent) that the schema declares, where `additionalProperties` is here. */
  readonly declared?: ReadonlySet<string>;
  /** The changes in the first items of an array. */
  readonly prefixItems?: readonly (ArgumentRewrite | undefined)[];
  /** The changes in the (other) items of an array. */
  readonly items?: ArgumentRewrite;
  /** The branches of a union. The first that accepts the value applies. */
  readonly choices?: readonly ArgumentChoice[];
  /** Further changes in the same value, from `allOf` and resolved references. */
  readonly also?: readonly ArgumentRewrite[];
}

/** One branch of a union. */
export interface ArgumentChoice {
  /**
   * Whether a value (as sent) looks like this branch, judged by its type, keys and constants, down
   * to `depth` levels; four, unless told.
   */
  accepts(value: unknown, depth?: number): boolean;
  readonly rewrite: ArgumentRewrite;
}

/** The number of levels of a value that are compared with the branches of a union. */
const MAX_LOOK = 4;

/** The maximum number of parts of a value that are compared with one branch. The others match. */
const MAX_LOOKS = 10_000;

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

/** Makes the tree of what must be undone in values of an exported schema. */
export function rewriteOf(schema: JsonSchema, trace: Trace): ArgumentRewrite | undefined {
  const resolve = resolverOf(schema);
  const concerned = concernedNodes(schema, resolve, trace);
  if (concerned.size === 0) return undefined;
  const made = new Map<JsonSchemaObject, Writable<ArgumentRewrite>>();

  const build = (part: unknown): ArgumentRewrite | undefined => {
    if (!isObject(part) || !concerned.has(part)) return undefined;
    let rewrite = made.get(part);
    if (rewrite === undefined) made.set(part, rewrite = { ...trace.markOf(part) });
    return rewrite;
  };
  const fill = (part: JsonSchemaObject, rewrite: Writable<ArgumentRewrite>): void => {
    if (Object.hasOwn(part, "$ref")) {
      const target = build(resolve(part["$ref"]));
      if (target !== undefined) rewrite.also = [target];
    }
    const properties = new Map<string, ArgumentRewrite>();
    if (isObject(part["properties"])) {
      for (const [key, property] of Object.entries(part["properties"])) {
        const inner = build(property);
        if (inner !== undefined) properties.set(key, inner);
      }
    }
    if (properties.size > 0) rewrite.properties = properties;
    const rest = build(part["additionalProperties"]);
    if (rest !== undefined) {
      rewrite.additionalProperties = rest;
      rewrite.declared = new Set(
        isObject(part["properties"]) ? Object.keys(part["properties"]) : [],
      );
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
  // Filling one adds others, which the map's iterator also visits, without recursion.
  for (const [part, rewrite] of made) fill(part, rewrite);
  return root;
}

/** The marked nodes, and all nodes that contain or refer to one. */
function concernedNodes(
  schema: JsonSchema,
  resolve: Resolve,
  trace: Trace,
): ReadonlySet<unknown> {
  const concerned = new Set<JsonSchemaObject>();
  const leadHere = new Map<JsonSchemaObject, JsonSchemaObject[]>();
  const lead = (to: JsonSchema | undefined, from: JsonSchemaObject): void => {
    if (!isObject(to)) return;
    const list = leadHere.get(to);
    if (list === undefined) leadHere.set(to, [from]);
    else list.push(from);
  };
  eachNode(trace, schema, (node) => {
    if (trace.markOf(node) !== undefined) concerned.add(node);
    eachChild(node, (child) => lead(child, node));
    if (Object.hasOwn(node, "$ref")) lead(resolve(node["$ref"]), node);
  });
  // A set's iterator also visits items that are added meanwhile.
  for (const node of concerned) for (const from of leadHere.get(node) ?? []) concerned.add(from);
  return concerned;
}

interface Look {
  readonly resolve: Resolve;
  left: number;
}

/** Whether a value looks like one branch of a union, by its type, keys and constants. */
function looksLike(schema: unknown, value: unknown, depth: number, look: Look): boolean {
  if (!isObject(schema)) return schema !== false;
  if (depth < 0 || --look.left < 0) return true;
  const inner = (part: unknown, item: unknown): boolean => looksLike(part, item, depth - 1, look);
  if (Object.hasOwn(schema, "$ref")) return inner(look.resolve(schema["$ref"]) ?? true, value);
  const { type, enum: values, properties, required, anyOf, items } = schema;
  const types = type === undefined || Array.isArray(type) ? type : [type];
  if (types !== undefined && !types.some((one) => isOfType(one, value))) {
    return schema["nullable"] === true && value === null;
  }
  if (Object.hasOwn(schema, "const") && !jsonEqual(schema["const"], value)) return false;
  if (Array.isArray(values) && !values.some((one) => jsonEqual(one, value))) return false;
  if (Array.isArray(anyOf) && !anyOf.some((one) => inner(one, value))) return false;
  if (Array.isArray(value) && isObject(items)) {
    return value.slice(0, 16).every((item) => inner(items, item));
  }
  if (!isObject(value)) return true;
  if (Array.isArray(required) && !required.every((key) => Object.hasOwn(value, String(key)))) {
    return false;
  }
  if (!isObject(properties)) return true;
  return Object.keys(value).every((key) =>
    Object.hasOwn(properties, key)
      ? inner(properties[key], value[key])
      : schema["additionalProperties"] !== false
  );
}

/** The maximum depth. Deeper parts stay unchanged, and validation rejects them. */
const MAX_DEPTH = 256;

/** The rewrites that apply to one value: this one, those it includes, and the branches that fit. */
function applying(rewrite: ArgumentRewrite, value: unknown): readonly ArgumentRewrite[] {
  if (rewrite.also === undefined && rewrite.choices === undefined) return [rewrite];
  const found = new Set<ArgumentRewrite>();
  const open = [rewrite];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (found.has(at)) continue;
    found.add(at);
    open.push(...(at.also ?? []));
    const choice = at.choices?.find(({ accepts }) => accepts(value));
    if (choice !== undefined) open.push(choice.rewrite);
  }
  return [...found];
}

/**
 * Converts the arguments of a call, as the model wrote them, into the form of the tool's own schema.
 * Nulls of absent properties are removed; renamed keys and values that were sent as text are
 * restored. The value is never modified: if nothing changes, the same value is returned.
 *
 * The value need not fit the schema: parts that do not fit are left for validation to report.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool } from "@plue/tools";
 * import { decodeArguments, exportTools } from "@plue/tools/formats";
 *
 * const tool = defineTool({
 *   name: "weather",
 *   description: "Tells the weather.",
 *   parameters: { type: "object", properties: { unit: { type: "string" } } },
 * });
 * const { names } = exportTools([tool], "openai.strict");
 * assert.deepEqual(decodeArguments({ unit: null }, names.encodingOf("weather")?.input), {});
 * ```
 *
 * @param value The arguments as they came.
 * @param rewrite The changes of the export: `names.encodingOf(id)?.input`.
 * @returns The arguments for the tool.
 */
export function decodeArguments(value: unknown, rewrite: ArgumentRewrite | undefined): unknown {
  return rewrite === undefined ? value : decode(value, [rewrite], 0);
}

function decode(value: unknown, rewrites: readonly ArgumentRewrite[], depth: number): unknown {
  if (rewrites.length === 0 || depth > MAX_DEPTH) return value;
  const parts = rewrites.flatMap((rewrite) => applying(rewrite, value));
  if (typeof value === "string") {
    for (const { values } of parts) {
      const stands = values?.get(value);
      if (stands !== undefined) return stands;
    }
    return value;
  }
  if (Array.isArray(value)) {
    return eachItem(value, parts, (item, own) => decode(item, own, depth + 1));
  }
  if (!isObject(value)) return value;
  const result: Record<string, unknown> = {};
  let changed = false;
  for (const key of Object.keys(value)) {
    const item = value[key];
    if (item === null && parts.some(({ nulls }) => nulls?.has(key) === true)) {
      changed = true;
      continue;
    }
    const inner = decode(item, propertyRewrites(parts, key), depth + 1);
    const name = parts.find(({ keys }) => keys?.has(key))?.keys?.get(key) ?? key;
    if (inner !== item || name !== key) changed = true;
    setOwn(result, name, inner);
  }
  return changed ? result : value;
}

function eachItem(
  value: readonly unknown[],
  parts: readonly ArgumentRewrite[],
  step: (item: unknown, rewrites: readonly ArgumentRewrite[]) => unknown,
): readonly unknown[] {
  let changed = false;
  const list = value.map((item, index) => {
    const rewrites = parts.flatMap((part) => {
      const own = index < (part.prefixItems?.length ?? 0) ? part.prefixItems?.[index] : part.items;
      return own === undefined ? [] : [own];
    });
    const inner = step(item, rewrites);
    if (inner !== item) changed = true;
    return inner;
  });
  return changed ? list : value;
}

function propertyRewrites(
  parts: readonly ArgumentRewrite[],
  key: string,
): readonly ArgumentRewrite[] {
  return parts.flatMap((part) => {
    const own = part.properties?.get(key) ??
      (part.declared?.has(key) === true ? undefined : part.additionalProperties);
    return own === undefined ? [] : [own];
  });
}

/**
 * The way back of {@linkcode decodeArguments}: the tool's own arguments as the exported schema has
 * them. Used for examples, and wherever a call is written rather than read.
 *
 * @param value Arguments that fit the tool's own schema.
 * @param rewrite The changes of the export: `names.encodingOf(id)?.input`.
 * @returns The arguments in the form of the exported schema.
 */
export function encodeArguments(value: unknown, rewrite: ArgumentRewrite | undefined): unknown {
  if (rewrite === undefined) return value;
  return encode(value, [rewrite], { depth: 0, levels: Infinity, work: { left: MAX_WRITES } });
}

/** The maximum number of parts of a value that are written, tries included. Others stay unchanged. */
const MAX_WRITES = 100_000;

interface Reach {
  /** The depth of the part in the value. */
  readonly depth: number;
  /** The number of levels to write: the levels that a branch compares, or all. */
  readonly levels: number;
  /** The number of parts that may still be written. */
  readonly work: { left: number };
}

function encode(value: unknown, rewrites: readonly ArgumentRewrite[], reach: Reach): unknown {
  const { depth, levels, work } = reach;
  if (rewrites.length === 0 || levels < 0 || depth > MAX_DEPTH || --work.left < 0) return value;
  const parts = new Set(rewrites);
  // A set's iterator also visits items that are added meanwhile.
  for (const { also = [], choices } of parts) {
    for (const included of also) parts.add(included);
    if (choices === undefined) continue;
    // Only the exported form shows which branch a value belongs to. So the first levels are written
    // for each branch.
    const look = { ...reach, depth: depth + 1, levels: Math.min(levels, MAX_LOOK) };
    const choice = choices.find(({ accepts, rewrite }) =>
      accepts(encode(value, [rewrite], look), look.levels)
    );
    if (choice === undefined) return value;
    parts.add(choice.rewrite);
  }
  return encodeWith(value, [...parts], reach);
}

function encodeWith(value: unknown, parts: readonly ArgumentRewrite[], reach: Reach): unknown {
  const below = { ...reach, depth: reach.depth + 1, levels: reach.levels - 1 };
  if (Array.isArray(value)) {
    return eachItem(value, parts, (item, own) => encode(item, own, below));
  }
  if (!isObject(value)) {
    for (const { values } of parts) {
      for (const [text, stands] of values ?? []) {
        if (jsonEqual(stands, value)) return text;
      }
    }
    return value;
  }
  const result: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    const name = wireKey(parts, key);
    setOwn(result, name, encode(value[key], propertyRewrites(parts, name), below));
  }
  for (const { nulls } of parts) {
    for (const name of nulls ?? []) if (!Object.hasOwn(result, name)) setOwn(result, name, null);
  }
  return result;
}

function wireKey(parts: readonly ArgumentRewrite[], key: string): string {
  for (const { keys } of parts) {
    for (const [wire, own] of keys ?? []) if (own === key) return wire;
  }
  return key;
}
