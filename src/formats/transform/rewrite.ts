/** Walks and rebuilds a schema, shares unchanged parts, and traces the origin of changed parts. */

import * as schemas from "../../schema/mod.ts";
import {
  canonicalJson,
  isObject,
  jsonEqual,
  type JsonSchema,
  type JsonSchemaObject,
  type JsonValue,
  pointerStep,
} from "../../tool/mod.ts";

/** The keywords that hold schemas, except `dependencies`, which is not a keyword of 2020-12. */
export const HOLDS: ReadonlyMap<string, schemas.Keyword> = new Map(
  [...schemas.KEYWORDS["draft-07"], ...schemas.KEYWORDS["2020-12"]].filter(([keyword, { shape }]) =>
    schemas.holdsSchemas(shape) && keyword !== "dependencies"
  ),
);

/** The maximum depth of a schema. Registered schemas are far less deep. */
export const MAX_DEPTH = 512;

/** The effect of a looser subschema on the whole: `flipped` under `not`, `both` under `oneOf`. */
export type Effect = "same" | "flipped" | "both";

/** The position of a subschema. */
export interface Spot {
  readonly root: boolean;
  readonly effect: Effect;
  /** The whole schema. */
  readonly schema: JsonSchema;
  /** The keyword that holds the subschema; `""` for the root. */
  readonly within: string;
  /** The number of levels above the subschema, including levels of a schema that refers to it. */
  readonly depth: number;
}

export type NodeRewrite = (node: JsonSchemaObject, spot: Spot) => JsonSchema;

export function requiredBy({ required }: JsonSchemaObject): ReadonlySet<unknown> {
  return new Set(Array.isArray(required) ? required : []);
}

/** Returns the map of a keyword, or an empty map for other values. */
export function mapOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {};
}

/** Calls `see` with each schema that `node` holds directly, and its keyword. */
export function eachChild(
  node: JsonSchemaObject,
  see: (child: JsonSchema, keyword: string) => void,
): void {
  schemas.eachSchemaIn(node, HOLDS, see);
}

/** Calls `see` with every schema that is an object, beginning with the whole schema. */
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

/** Rebuilds a schema. `enter` runs before the rebuild of a node's children, `leave` afterwards. */
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
    const made = schemas.mapSchemasOf(value, shape, (child) => change(child, keyword));
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

/** Returns a changed copy. `undefined` removes a keyword. `renamed` has the former names. */
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
  const moved = Object.entries(renamed).map(([to, keyword]) => [to, { node, keyword }] as const);
  trace?.cameFrom(copy, node, moved.length === 0 ? undefined : new Map(moved));
  return copy;
}

/** Returns a copy without some keywords, or the node itself if the node has no such keyword. */
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

/** Returns true if a negated `$ref`, or `unevaluated…`, makes the effect of a change unknown. */
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
  return both || (negated && reference);
}

export function tooDeep(): RangeError {
  return new RangeError(`Cannot walk the schema: it has more than ${MAX_DEPTH} levels`);
}

// The trace

/** The changes to undo in a value that a node describes. */
export interface Mark {
  readonly values?: ReadonlyMap<string, JsonValue>;
  readonly nulls?: ReadonlySet<string>;
  readonly keys?: ReadonlyMap<string, string>;
}

/** A keyword of a node, or a member of the keyword's value. */
export interface Slot {
  readonly node: object;
  readonly keyword: string;
  readonly step?: string | number;
}

interface Origin {
  readonly node: object;
  /** Keywords that had another name, or were taken from another node. */
  readonly moved?: ReadonlyMap<string, Slot>;
  /** The slot of the boolean schema that the node replaces. */
  readonly whole?: Slot;
}

/** The maximum number of steps. The largest registered schema needs a tenth of that. */
const MAX_STEPS = 2_000_000;

/**
 * The record of one chain of rewrites, to find the paths of losses in the first schema, and to
 * decode arguments. Weak maps would cost more time in the garbage collector than the rewrites.
 */
export class Trace {
  readonly #origins = new Map<object, Origin>();
  readonly #marks = new Map<object, Mark>();
  readonly #countOne = (): void => this.count(1);
  #steps = 0;
  /** True if the values of a node have changes to undo. */
  hasMarks = false;

  /** Counts parts that are visited, made or compared, which bounds the time for one schema. */
  count(steps: number): void {
    this.#steps += steps;
    if (this.#steps > MAX_STEPS) {
      throw new RangeError(`Cannot rewrite the schema: it takes more than ${MAX_STEPS} steps`);
    }
  }

  /** Records that `made` replaces `node`. */
  cameFrom(made: object, node: object, moved?: ReadonlyMap<string, Slot>): void {
    this.#origins.set(made, moved === undefined ? { node } : { node, moved });
  }

  /** Records that `made` replaces a boolean schema. */
  replacesBoolean(made: object, whole: Slot): void {
    this.#origins.set(made, { node: whole.node, whole });
  }

  /** Records the changes to undo in values of `node`. */
  mark(node: object, more: Mark): void {
    this.hasMarks = true;
    this.#marks.set(node, { ...this.markOf(node), ...more });
  }

  /** Returns the changes to undo in values of `node` or the nodes that it replaces. */
  markOf(node: object): Mark | undefined {
    for (let at: object | undefined = node; at !== undefined; at = this.#origins.get(at)?.node) {
      const found = this.#marks.get(at);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Returns the slot of the first schema that a keyword of `node` came from. */
  originOf(node: object, keyword: string): Slot {
    let at: Slot = { node, keyword };
    for (;;) {
      const origin = this.#origins.get(at.node);
      if (origin === undefined) return at;
      const { step } = at;
      at = origin.whole ?? origin.moved?.get(at.keyword) ??
        { node: origin.node, keyword: at.keyword };
      if (step !== undefined && at.step === undefined) at = { ...at, step };
    }
  }

  isEqual(a: unknown, b: unknown): boolean {
    return jsonEqual(a, b, this.#countOne);
  }

  keyOf(value: unknown): string {
    return canonicalJson(value, this.#countOne);
  }

  distinct<T>(values: readonly T[]): T[] {
    return distinct(values, (value) => this.keyOf(value));
  }
}

export function distinct<T>(
  values: readonly T[],
  keyOf: (value: T) => string = (value) => canonicalJson(value),
): T[] {
  const seen = new Set<string>();
  return values.filter((value) => seen.size < seen.add(keyOf(value)).size);
}

/** The position of an object in a document: its number in document order, its parent and its key. */
export interface Location {
  readonly at: number;
  readonly parent: object | undefined;
  readonly key: string | number;
}

export function locate(root: unknown): ReadonlyMap<object, Location> {
  const locations = new Map<object, Location>();
  function visit(part: unknown, parent: object | undefined, key: string | number): void {
    if (typeof part !== "object" || part === null || locations.has(part)) return;
    locations.set(part, { at: locations.size, parent, key });
    if (Array.isArray(part)) part.forEach((item, index) => visit(item, part, index));
    else for (const [name, item] of Object.entries(part)) visit(item, part, name);
  }
  visit(root, undefined, "");
  return locations;
}

export function pathOf(node: object, locations: ReadonlyMap<object, Location>): string {
  const location = locations.get(node);
  if (location?.parent === undefined) return "";
  return pathOf(location.parent, locations) + pointerStep(location.key);
}
