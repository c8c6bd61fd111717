/**
 * Walks a schema (2020-12, or what draft-07 adds) and rebuilds what changes. What does not change
 * is shared with the input, which is never written to.
 *
 * @module
 */

import { type JsonSchema, type JsonSchemaObject, setOwn } from "../../tool/mod.ts";
import { cameFrom, spend } from "./origin.ts";

/** How a keyword holds schemas: one, a list, or a map of names to schemas. */
type Holding = "one" | "list" | "map";

/** The keywords that hold schemas. */
export const HOLDS: ReadonlyMap<string, Holding> = new Map<string, Holding>([
  ...([
    "additionalProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "items",
    "contentSchema",
    "unevaluatedItems",
    "unevaluatedProperties",
    "additionalItems",
  ] as const).map((keyword): [string, Holding] => [keyword, "one"]),
  ...(["allOf", "anyOf", "oneOf", "prefixItems"] as const).map(
    (keyword): [string, Holding] => [keyword, "list"],
  ),
  ...(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"] as const).map(
    (keyword): [string, Holding] => [keyword, "map"],
  ),
]);

/** How deep a schema may be nested. Registered schemas are bounded far below. */
export const MAX_DEPTH = 512;

/**
 * What looser means at a place: under `not`, what accepts more makes the whole accept less; under
 * `oneOf` or `if` it may do either.
 */
export type Effect = "same" | "flipped" | "both";

/** A place in a schema. */
export interface Spot {
  /** It is the whole schema. */
  readonly root: boolean;
  /** What looser means here, as far as the way from the root tells. */
  readonly effect: Effect;
  /** The whole schema. */
  readonly schema: JsonSchema;
  /** The keyword that holds it; `""` for the root. */
  readonly within: string;
  /** How many levels are above it, those of a schema that refers to it included. */
  readonly depth: number;
}

/** Says what a subschema becomes. The same object: it stays. */
export type Visit = (node: JsonSchemaObject, spot: Spot) => JsonSchema;

/** Whether `value` is a schema that is an object. */
export function isNode(value: unknown): value is JsonSchemaObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether `value` is a schema. */
export function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "boolean" || isNode(value);
}

/** Says whether a value is in a list. */
export interface Members {
  has(value: unknown): boolean;
}

/** From how many values on a list is worth a set of its own. */
const MANY = 16;

class FewMembers implements Members {
  readonly #list: readonly unknown[];

  constructor(list: readonly unknown[]) {
    this.#list = list;
  }

  has(value: unknown): boolean {
    return this.#list.includes(value);
  }
}

/** The names that a node requires, to ask about each of its properties. */
export function requiredBy(node: JsonSchemaObject): Members {
  const { required } = node;
  const list: readonly unknown[] = Array.isArray(required) ? required : [];
  return list.length > MANY ? new Set(list) : new FewMembers(list);
}

/** Calls `see` with each schema that `node` holds directly, and the keyword that holds it. */
export function eachChild(
  node: JsonSchemaObject,
  see: (child: JsonSchema, keyword: string) => void,
): void {
  for (const keyword in node) eachChildIn(node, keyword, see);
}

/** Calls `see` with each schema that one keyword of `node` holds, if it holds any. */
export function eachChildIn(
  node: JsonSchemaObject,
  keyword: string,
  see: (child: JsonSchema, keyword: string) => void,
): void {
  const holding = HOLDS.get(keyword);
  if (holding === undefined) return;
  const value = node[keyword];
  if (Array.isArray(value)) {
    for (const item of value) if (isSchema(item)) see(item, keyword);
  } else if (holding === "map") {
    if (!isNode(value)) return;
    for (const name of Object.keys(value)) {
      const item = value[name];
      if (isSchema(item)) see(item, keyword);
    }
  } else if (isSchema(value)) see(value, keyword);
}

/**
 * Calls `see` with every subschema that is an object, the schema itself first, and `seeBoolean`
 * with the others and the keyword that holds them.
 */
export function eachNode(
  schema: JsonSchema,
  see: (node: JsonSchemaObject, spot: Spot) => void,
  seeBoolean?: (value: boolean, keyword: string) => void,
): void {
  function step(part: JsonSchema, spot: Spot): void {
    if (!isNode(part)) return;
    if (spot.depth > MAX_DEPTH) throw tooDeep();
    spend(1);
    see(part, spot);
    eachChild(part, (child, keyword) => {
      if (typeof child === "boolean") seeBoolean?.(child, keyword);
      else step(child, spotWithin(spot, keyword, part));
    });
  }
  step(schema, rootSpot(schema));
}

/**
 * Rebuilds a schema: `enter` runs on a node before its children, and what it answers is walked;
 * `leave` runs after them.
 *
 * @param depth How many levels are above it already, where a reference led here.
 */
export function mapSchema(
  schema: JsonSchema,
  visit: { readonly enter?: Visit; readonly leave?: Visit },
  depth = 0,
): JsonSchema {
  const { enter, leave } = visit;

  function step(part: JsonSchema, spot: Spot): JsonSchema {
    if (!isNode(part)) return part;
    if (spot.depth > MAX_DEPTH) throw tooDeep();
    spend(1);
    const entered = enter === undefined ? part : enter(part, spot);
    if (!isNode(entered)) return entered;
    const rebuilt = mapChildren(
      entered,
      (child, keyword) => isNode(child) ? step(child, spotWithin(spot, keyword, entered)) : child,
    );
    return leave === undefined ? rebuilt : leave(rebuilt, spot);
  }

  return step(schema, rootSpot(schema, depth));
}

/** The place of the whole schema. */
export function rootSpot(schema: JsonSchema, depth = 0): Spot {
  return { root: true, effect: "same", schema, within: "", depth };
}

function spotWithin(spot: Spot, keyword: string, node: JsonSchemaObject): Spot {
  const effect = effectWithin(spot.effect, keyword, node);
  return { root: false, effect, schema: spot.schema, within: keyword, depth: spot.depth + 1 };
}

/** Rebuilds the schemas that `node` holds directly. */
export function mapChildren(
  node: JsonSchemaObject,
  change: (child: JsonSchema, keyword: string) => JsonSchema,
): JsonSchemaObject {
  let result: Record<string, unknown> | undefined;
  for (const keyword in node) {
    const holding = HOLDS.get(keyword);
    if (holding === undefined) continue;
    const value = node[keyword];
    const changed = mapHeld(value, holding, (child) => change(child, keyword));
    if (changed === value) continue;
    result ??= copyNode(node);
    result[keyword] = changed;
  }
  return result ?? node;
}

function mapHeld(
  value: unknown,
  holding: Holding,
  change: (child: JsonSchema) => JsonSchema,
): unknown {
  if (Array.isArray(value)) {
    let list: unknown[] | undefined;
    for (let index = 0; index < value.length; index++) {
      const item: unknown = value[index];
      const changed = isSchema(item) ? change(item) : item;
      if (changed === item) continue;
      list ??= [...value];
      list[index] = changed;
    }
    return list ?? value;
  }
  if (holding !== "map") return isSchema(value) ? change(value) : value;
  if (!isNode(value)) return value;
  let map: Record<string, unknown> | undefined;
  for (const name of Object.keys(value)) {
    const item = value[name];
    const changed = isSchema(item) ? change(item) : item;
    if (changed === item) continue;
    map ??= copyMap(value);
    setOwn(map, name, changed);
  }
  return map ?? value;
}

/** A copy of a node to change. It remembers which node it came from. */
export function copyNode(node: JsonSchemaObject): Record<string, unknown> {
  const copy = copyMap(node);
  cameFrom(copy, node);
  return copy;
}

/** A copy of a node without some keywords, or the node itself if it has none of them. */
export function without(node: JsonSchemaObject, ...keywords: readonly string[]): JsonSchemaObject {
  if (!keywords.some((keyword) => Object.hasOwn(node, keyword))) return node;
  const copy = copyNode(node);
  for (const keyword of keywords) delete copy[keyword];
  return copy;
}

/** A copy of a map whose keys may be anything, `__proto__` too. */
export function copyMap(map: { readonly [key: string]: unknown }): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(map)) setOwn(copy, key, map[key]);
  return copy;
}

/** The effect inside a keyword of a node. */
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
 * Whether the way from the root does not tell what looser means at a place: where a `$ref` stands
 * under a negation, or an `unevaluated…` keyword looks at what other keywords did.
 */
export function hidesEffects(schema: JsonSchema): boolean {
  let negated = false;
  let reference = false;
  let both = false;
  eachNode(schema, (node, spot) => {
    if (Object.hasOwn(node, "$ref") || Object.hasOwn(node, "$dynamicRef")) {
      reference = true;
      if (spot.effect !== "same") both = true;
    }
    if (spot.effect !== "same") negated = true;
    if (
      Object.hasOwn(node, "unevaluatedProperties") || Object.hasOwn(node, "unevaluatedItems")
    ) both = true;
  });
  // A reference may lead to a place that negates, and back.
  return both || (negated && reference);
}

/** The error of a walk that went deeper. */
export function tooDeep(): RangeError {
  return new RangeError(`Cannot walk the schema: it has more than ${MAX_DEPTH} levels`);
}
