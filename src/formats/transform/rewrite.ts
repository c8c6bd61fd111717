/**
 * Walks a whole schema and rebuilds the parts that change. The others are shared with the input,
 * which is never written to.
 *
 * @module
 */

import {
  eachSchemaIn,
  eachSchemaOf,
  holdsSchemas,
  type Keyword,
  KEYWORDS,
  mapSchemasOf,
} from "../../schema/mod.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../../tool/mod.ts";
import type { Slot, Trace } from "./trace.ts";

/**
 * The keywords that hold schemas: the keywords of 2020-12, and `additionalItems` of draft-07 for schemas
 * that are not yet rewritten. `dependencies` has no meaning in 2020-12.
 */
export const HOLDS: ReadonlyMap<string, Keyword> = new Map(
  [...KEYWORDS["draft-07"], ...KEYWORDS["2020-12"]].filter(([keyword, { shape }]) =>
    holdsSchemas(shape) && keyword !== "dependencies"
  ),
);

/** The maximum depth of a schema. Registered schemas are far less deep. */
export const MAX_DEPTH = 512;

/**
 * The effect of a looser subschema on the whole schema. Under `not`, the whole accepts fewer values;
 * under `oneOf` or `if`, it may accept more or fewer.
 */
export type Effect = "same" | "flipped" | "both";

/** A place in a schema. */
export interface Spot {
  /** It is the whole schema. */
  readonly root: boolean;
  /** The effect of a looser subschema on the whole, by the keywords above it. */
  readonly effect: Effect;
  /** The whole schema. */
  readonly schema: JsonSchema;
  /** The keyword that holds it; `""` for the root. */
  readonly within: string;
  /** The number of levels above it, including the levels of a schema that refers to it. */
  readonly depth: number;
}

/** Returns what a subschema becomes, or the same object if it stays. */
export type NodeRewrite = (node: JsonSchemaObject, spot: Spot) => JsonSchema;

export function requiredBy({ required }: JsonSchemaObject): ReadonlySet<unknown> {
  return new Set(Array.isArray(required) ? required : []);
}

/** The value of a keyword that holds a map; an empty one if it is absent, or no map. */
export function mapOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {};
}

/** Calls `see` with each schema that `node` holds directly, and the keyword that holds it. */
export function eachChild(
  node: JsonSchemaObject,
  see: (child: JsonSchema, keyword: string) => void,
): void {
  eachSchemaIn(node, HOLDS, see);
}

/** Calls `see` with each schema that one keyword of `node` holds, if it holds any. */
export function eachChildIn(
  node: JsonSchemaObject,
  keyword: string,
  see: (child: JsonSchema, keyword: string) => void,
): void {
  const shape = HOLDS.get(keyword)?.shape;
  if (shape !== undefined) eachSchemaOf(node[keyword], shape, (child) => see(child, keyword));
}

/** Calls `see` with every subschema that is an object, the schema itself first. */
export function eachNode(
  trace: Trace | undefined,
  schema: JsonSchema,
  see: (node: JsonSchemaObject, spot: Spot) => void,
): void {
  function visit(part: JsonSchema, spot: Spot): void {
    if (!isObject(part)) return;
    if (spot.depth > MAX_DEPTH) throw tooDeep();
    trace?.count(1);
    see(part, spot);
    eachChild(part, (child, keyword) => visit(child, spotWithin(spot, keyword, part)));
  }
  visit(schema, rootSpot(schema));
}

/**
 * Rebuilds a schema. `enter` runs on a node before its children, which are the children of its result;
 * `leave` runs after them.
 *
 * @param trace Counts the steps and records where new nodes came from.
 * @param depth The number of levels above the schema, where a reference led here.
 */
export function mapSchema(
  trace: Trace | undefined,
  schema: JsonSchema,
  visit: { readonly enter?: NodeRewrite; readonly leave?: NodeRewrite },
  depth = 0,
): JsonSchema {
  const { enter, leave } = visit;

  function step(part: JsonSchema, spot: Spot): JsonSchema {
    if (!isObject(part)) return part;
    if (spot.depth > MAX_DEPTH) throw tooDeep();
    trace?.count(1);
    const entered = enter === undefined ? part : enter(part, spot);
    if (!isObject(entered)) return entered;
    const rebuilt = mapChildren(
      trace,
      entered,
      (child, keyword) => isObject(child) ? step(child, spotWithin(spot, keyword, entered)) : child,
    );
    return leave === undefined ? rebuilt : leave(rebuilt, spot);
  }

  return step(schema, rootSpot(schema, depth));
}

export function rootSpot(schema: JsonSchema, depth = 0): Spot {
  return { root: true, effect: "same", schema, within: "", depth };
}

function spotWithin(spot: Spot, keyword: string, node: JsonSchemaObject): Spot {
  const effect = effectWithin(spot.effect, keyword, node);
  return { root: false, effect, schema: spot.schema, within: keyword, depth: spot.depth + 1 };
}

export function mapChildren(
  trace: Trace | undefined,
  node: JsonSchemaObject,
  change: (child: JsonSchema, keyword: string) => JsonSchema,
): JsonSchemaObject {
  let result: Record<string, unknown> | undefined;
  for (const keyword in node) {
    const shape = HOLDS.get(keyword)?.shape;
    if (shape === undefined) continue;
    const value = node[keyword];
    const made = mapSchemasOf(value, shape, (child) => change(child, keyword));
    if (made === value) continue;
    result ??= copyNode(trace, node);
    result[keyword] = made;
  }
  return result ?? node;
}

export function copyNode(
  trace: Trace | undefined,
  node: JsonSchemaObject,
): Record<string, unknown> {
  const copy = { ...node };
  trace?.cameFrom(copy, node);
  return copy;
}

/**
 * A copy of a node with other values for some keywords, and without the keywords with `undefined`.
 *
 * @param renamed The former names of renamed keywords.
 */
export function changed(
  trace: Trace | undefined,
  node: JsonSchemaObject,
  changes: JsonSchemaObject,
  renamed: { readonly [to: string]: string } = {},
): Record<string, unknown> {
  const copy: Record<string, unknown> = { ...node };
  for (const keyword of Object.keys(changes)) {
    if (changes[keyword] === undefined) delete copy[keyword];
    else copy[keyword] = changes[keyword];
  }
  const moved = Object.entries(renamed).map(([to, keyword]): [string, Slot] => [
    to,
    { node, keyword },
  ]);
  trace?.cameFrom(copy, node, moved.length === 0 ? undefined : new Map(moved));
  return copy;
}

/** A copy of a node without some keywords, or the node itself if it has none of them. */
export function without(
  trace: Trace | undefined,
  node: JsonSchemaObject,
  ...keywords: readonly string[]
): JsonSchemaObject {
  if (!keywords.some((keyword) => Object.hasOwn(node, keyword))) return node;
  const copy = copyNode(trace, node);
  for (const keyword of keywords) delete copy[keyword];
  return copy;
}

function effectWithin(effect: Effect, keyword: string, node: JsonSchemaObject): Effect {
  switch (keyword) {
    case "not":
      return effect === "both" ? "both" : effect === "same" ? "flipped" : "same";
    case "oneOf":
    case "if":
      return "both";
    case "contains":
      return Object.hasOwn(node, "maxContains") ? "both" : effect;
    default:
      return effect;
  }
}

/**
 * Returns true if the keywords above a node do not determine the effect of a looser schema there: a
 * `$ref` under a negation is elsewhere, and `unevaluated…` depends on other keywords.
 */
export function hidesEffects(trace: Trace, schema: JsonSchema): boolean {
  let negated = false;
  let reference = false;
  let both = false;
  eachNode(trace, schema, (node, spot) => {
    if (Object.hasOwn(node, "$ref") || Object.hasOwn(node, "$dynamicRef")) {
      reference = true;
      if (spot.effect !== "same") both = true;
    }
    if (spot.effect !== "same") negated = true;
    if (
      Object.hasOwn(node, "unevaluatedProperties") || Object.hasOwn(node, "unevaluatedItems")
    ) both = true;
  });
  // The target of a reference may be under a negation.
  return both || (negated && reference);
}

export function tooDeep(): RangeError {
  return new RangeError(`Cannot walk the schema: it has more than ${MAX_DEPTH} levels`);
}
