/**
 * Values on the wire and values for the tool: what an export changed in a schema is done to a
 * value that is sent (an example), and undone in a value that comes back (the arguments of a call).
 *
 * @module
 */

import { type JsonSchema, type JsonSchemaObject, type JsonValue, setOwn } from "../tool/mod.ts";
import { jsonEqual } from "./transform/json_equal.ts";
import { markOf } from "./transform/origin.ts";
import { resolveReference } from "./transform/references.ts";
import { eachChild, eachNode, isNode } from "./transform/schema_walk.ts";
import type { ArgumentChoice, ArgumentRewrite } from "./types.ts";

/** How deep a value is looked at to tell which branch of a union it is. */
const MAX_LOOK = 4;

/** How deep a value is followed. What is deeper is left as it came: validation will refuse it. */
const MAX_DEPTH = 256;

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

/**
 * What to undo in values of an exported schema.
 *
 * @param schema The exported schema, as the transforms left it: they noted on it what they did.
 * @returns The tree, or `undefined` if nothing needs undoing.
 */
export function rewriteOf(schema: JsonSchema): ArgumentRewrite | undefined {
  const concerned = concernedNodes(schema);
  if (concerned.size === 0) return undefined;
  const made = new Map<JsonSchemaObject, Writable<ArgumentRewrite>>();

  const build = (part: unknown): ArgumentRewrite | undefined => {
    if (!isNode(part) || !concerned.has(part)) return undefined;
    const there = made.get(part);
    if (there !== undefined) return there;
    const rewrite: Writable<ArgumentRewrite> = { ...markOf(part) };
    made.set(part, rewrite);
    if (Object.hasOwn(part, "$ref")) {
      const target = build(resolveReference(schema, part["$ref"]));
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
        accepts: (value) => looksLike(branch, value, schema, MAX_LOOK),
        rewrite: build(branch) ?? {},
      }));
      if (branches.some((branch) => concerned.has(branch))) rewrite.choices = choices;
    }
    if (Array.isArray(part["allOf"])) {
      const all = part["allOf"].map(build).filter((inner) => inner !== undefined);
      if (all.length > 0) rewrite.also = [...(rewrite.also ?? []), ...all];
    }
    return rewrite;
  };

  return build(schema);
}

/** The nodes that a transform marked, and all that lead to one of them, through references too. */
function concernedNodes(schema: JsonSchema): ReadonlySet<unknown> {
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
    if (Object.hasOwn(node, "$ref")) lead(resolveReference(schema, node["$ref"]), node);
  });
  // What is added while the set is walked is walked too.
  for (const node of concerned) for (const from of leadHere.get(node) ?? []) concerned.add(from);
  return concerned;
}

/** Whether a value looks like one branch of a union, by its type, keys and constants. */
function looksLike(schema: unknown, value: unknown, root: JsonSchema, depth: number): boolean {
  if (!isNode(schema)) return schema !== false;
  if (depth < 0) return true;
  if (Object.hasOwn(schema, "$ref")) {
    return looksLike(resolveReference(root, schema["$ref"]) ?? true, value, root, depth - 1);
  }
  const { type, enum: values, properties, required, anyOf, items } = schema;
  if (
    type !== undefined && !(Array.isArray(type) ? type : [type]).some((one) => isType(value, one))
  ) {
    return schema["nullable"] === true && value === null;
  }
  if (Object.hasOwn(schema, "const") && !jsonEqual(schema["const"], value)) return false;
  if (Array.isArray(values) && !values.some((one) => jsonEqual(one, value))) return false;
  if (Array.isArray(anyOf) && !anyOf.some((one) => looksLike(one, value, root, depth - 1))) {
    return false;
  }
  if (Array.isArray(value) && isNode(items)) {
    return value.slice(0, 16).every((item) => looksLike(items, item, root, depth - 1));
  }
  if (!isNode(value)) return true;
  if (Array.isArray(required) && !required.every((key) => Object.hasOwn(value, String(key)))) {
    return false;
  }
  if (!isNode(properties)) return true;
  return Object.keys(value).every((key) =>
    Object.hasOwn(properties, key)
      ? looksLike(properties[key], value[key], root, depth - 1)
      : schema["additionalProperties"] !== false
  );
}

function isType(value: unknown, type: unknown): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isNode(value);
    case "integer":
      return Number.isInteger(value);
    case "number":
      return typeof value === "number";
    case "string":
      return typeof value === "string";
    default:
      return typeof value === "boolean";
  }
}

/** Everything that applies to one value: the node, what it includes, and the branches it fits. */
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
 * Turns the arguments of a call, as the provider's model wrote them, into the tool's own: nulls
 * that stand for "left out" go, renamed keys and texts become what they were. Where nothing was
 * changed, the value is answered as it is; it is never written to.
 *
 * The value need not fit the schema: what does not fit is left alone, for the validation to name.
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
 * @param rewrite What the export changed: `names.encodingOf(id)?.input`.
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
  if (Array.isArray(value)) return decodeItems(value, parts, depth, decode);
  if (!isNode(value)) return value;
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

type Step = (value: unknown, rewrites: readonly ArgumentRewrite[], depth: number) => unknown;

function decodeItems(
  value: readonly unknown[],
  parts: readonly ArgumentRewrite[],
  depth: number,
  step: Step,
): readonly unknown[] {
  let changed = false;
  const list = value.map((item, index) => {
    const rewrites = parts.flatMap((part) => {
      const own = index < (part.prefixItems?.length ?? 0) ? part.prefixItems?.[index] : part.items;
      return own === undefined ? [] : [own];
    });
    const inner = step(item, rewrites, depth + 1);
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
 * @param rewrite What the export changed: `names.encodingOf(id)?.input`.
 * @returns The arguments as they stand on the wire.
 */
export function encodeArguments(value: unknown, rewrite: ArgumentRewrite | undefined): unknown {
  return rewrite === undefined ? value : encode(value, [rewrite], 0);
}

function encode(value: unknown, rewrites: readonly ArgumentRewrite[], depth: number): unknown {
  if (rewrites.length === 0 || depth > MAX_DEPTH) return value;
  // Which branch a value is can be told on the wire, so every branch is tried until one fits.
  for (const parts of alternatives(rewrites, depth)) {
    const { written, fits } = encodeWith(value, parts, depth);
    if (fits(written)) return written;
  }
  return value;
}

interface Alternative {
  readonly parts: readonly ArgumentRewrite[];
  fits(value: unknown): boolean;
}

/** The combinations of branches that may apply; the plain one, without branches, comes last. */
function alternatives(rewrites: readonly ArgumentRewrite[], depth: number): readonly Alternative[] {
  let found: Alternative[] = [{ parts: [], fits: () => true }];
  for (const rewrite of rewrites) {
    const inner = rewrite.also === undefined || depth > MAX_DEPTH
      ? [{ parts: [], fits: () => true }]
      : alternatives(rewrite.also, depth + 1);
    const branches = (rewrite.choices ?? []).flatMap(({ accepts, rewrite: branch }) =>
      alternatives([branch], depth + 1).map((one) => ({
        parts: one.parts,
        fits: (value: unknown) => accepts(value) && one.fits(value),
      }))
    );
    const own = [...branches, ...(branches.length === 0 ? [{ parts: [], fits: () => true }] : [])];
    found = found.flatMap((one) =>
      inner.flatMap((two) =>
        own.map((three): Alternative => ({
          parts: [...one.parts, rewrite, ...two.parts, ...three.parts],
          fits: (value) => one.fits(value) && two.fits(value) && three.fits(value),
        }))
      )
    ).slice(0, MAX_ALTERNATIVES);
  }
  return found;
}

/** How many combinations of branches are tried. */
const MAX_ALTERNATIVES = 64;

function encodeWith(
  value: unknown,
  { parts, fits }: Alternative,
  depth: number,
): { readonly written: unknown; readonly fits: (value: unknown) => boolean } {
  if (Array.isArray(value)) return { written: decodeItems(value, parts, depth, encode), fits };
  if (!isNode(value)) {
    for (const { values } of parts) {
      for (const [text, stands] of values ?? []) {
        if (jsonEqual(stands, value as JsonValue)) return { written: text, fits };
      }
    }
    return { written: value, fits };
  }
  const result: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    const name = wireKey(parts, key);
    setOwn(result, name, encode(value[key], propertyRewrites(parts, name), depth + 1));
  }
  for (const { nulls } of parts) {
    for (const name of nulls ?? []) if (!Object.hasOwn(result, name)) setOwn(result, name, null);
  }
  return { written: result, fits };
}

function wireKey(parts: readonly ArgumentRewrite[], key: string): string {
  for (const { keys } of parts) {
    for (const [wire, own] of keys ?? []) if (own === key) return wire;
  }
  return key;
}
