/**
 * Merges schemas: `allOf` and references become one schema of the same meaning. Two values of a
 * keyword are merged, or both stay in an `allOf`. The trace records the origin of each keyword.
 */

import { isSchema } from "../../schema/mod.ts";
import { isObject, type JsonSchema, type JsonSchemaObject, setOwn } from "../../tool/mod.ts";
import { referenceTargets, resolverOf, withoutNames } from "./references.ts";
import { changed, mapOf, mapSchema, type Slot, type Spot, type Trace, without } from "./rewrite.ts";
import type { Context } from "./report.ts";

/** Keywords that have a meaning only together. */
const OBJECT = ["properties", "patternProperties", "additionalProperties"] as const;
const ARRAY = ["prefixItems", "items"] as const;
const GROUPS = [["contains", "minContains", "maxContains"], ["if", "then", "else"]];

/** Keywords that are merged in groups, and not one by one. */
const TOGETHER: ReadonlySet<string> = new Set([...OBJECT, ...ARRAY, ...GROUPS.flat()]);

/** Keywords that must stay in their schema. */
const BOUND: readonly string[] = ("unevaluatedProperties unevaluatedItems " +
  "$dynamicRef $dynamicAnchor $anchor $id $defs definitions").split(" ");

/** Keywords whose larger value is stricter, and keywords whose smaller value is stricter. */
const LARGER = new Set("minimum exclusiveMinimum minLength minItems minProperties".split(" "));
const SMALLER = new Set("maximum exclusiveMaximum maxLength maxItems maxProperties".split(" "));

/** Keywords that only describe. The values of the outer schema take precedence. */
const WORDS: ReadonlySet<string> = new Set(
  ("title description default examples example deprecated readOnly writeOnly $comment $schema")
    .split(" "),
);

/** Merges the branches of each `allOf`. References are followed, unless they are recursive. */
export function mergeAllOf(root: JsonSchema, { trace }: Pick<Context, "trace">): JsonSchema {
  return allOfMerger(trace, root)(root);
}

/** Creates a function that merges each `allOf` in a part of `root`, and each target once. */
export function allOfMerger(trace: Trace, root: JsonSchema): (part: JsonSchema) => JsonSchema {
  const leave = (node: JsonSchemaObject, { depth }: Spot): JsonSchema => {
    const branches = node["allOf"];
    if (!Array.isArray(branches)) return node;
    let merged: JsonSchema = without(trace, node, "allOf");
    for (const branch of branches) {
      if (isSchema(branch)) merged = mergeSchemas(trace, merged, expand(branch, depth));
    }
    return merged;
  };
  const targetOf = referenceTargets(
    trace,
    root,
    (target, depth) => mapSchema(trace, target, { leave }, depth),
  );
  const expand = (branch: JsonSchema, depth: number): JsonSchema => {
    if (!isObject(branch) || typeof branch["$ref"] !== "string") return branch;
    const target = targetOf(branch["$ref"], depth);
    return target === undefined
      ? branch
      : mergeSchemas(trace, without(trace, branch, "$ref"), target);
  };
  return (part) => mapSchema(trace, part, { leave });
}

/** Returns a schema for values that both schemas accept. Parts that do not merge are in `allOf`. */
export function mergeSchemas(trace: Trace, a: JsonSchema, b: JsonSchema): JsonSchema {
  if (a === true) return b;
  if (b === true || a === false || a === b) return a;
  if (b === false) return false;
  if (BOUND.some((keyword) => Object.hasOwn(b, keyword))) {
    return withRest(trace, copyWithMoves(trace, a), b);
  }

  trace.count(1);
  const result = copyWithMoves(trace, a);
  const rest: Record<string, unknown> = {};
  if (!mergeObjects(trace, result, b)) take(OBJECT, b, rest);
  if (!mergeArrays(trace, result, b)) take(ARRAY, b, rest);
  for (const group of GROUPS) {
    const free = !group.some((keyword) => Object.hasOwn(result.node, keyword));
    if (free) group.forEach((keyword) => result.take(b, keyword));
    else take(group, b, rest);
  }
  for (const keyword of Object.keys(b)) {
    if (TOGETHER.has(keyword)) continue;
    if (!Object.hasOwn(result.node, keyword)) {
      result.take(b, keyword);
      continue;
    }
    const merged = mergeKeyword(trace, keyword, result.node[keyword], b[keyword]);
    if (merged === NEVER) return false;
    if (merged === APART) rest[keyword] = b[keyword];
    else result.set(keyword, merged, b);
  }
  const { type } = result.node;
  if (Array.isArray(type) && type.length === 0) return false;
  if (Object.keys(rest).length === 0) return result.node;
  trace.cameFrom(rest, b);
  return withRest(trace, result, rest);
}

/** The result for two values that one keyword cannot express: `allOf` has both. */
const APART: unique symbol = Symbol("apart");
/** The result for two values of a keyword that no instance can satisfy together. */
const NEVER: unique symbol = Symbol("never");

function mergeKeyword(trace: Trace, keyword: string, a: unknown, b: unknown): unknown {
  if (WORDS.has(keyword)) return a;
  if (LARGER.has(keyword)) return Math.max(a as number, b as number);
  if (SMALLER.has(keyword)) return Math.min(a as number, b as number);
  if (trace.isEqual(a, b)) return a;
  switch (keyword) {
    case "type":
      return mergeTypes(listOf(a), listOf(b));
    case "enum": {
      const others = new Set(listOf(b).map((value) => trace.keyOf(value)));
      const both = listOf(a).filter((value) => others.has(trace.keyOf(value)));
      return both.length === 0 ? NEVER : both;
    }
    case "const":
      return NEVER;
    case "required":
      return [...new Set([...(a as string[]), ...(b as string[])])];
    case "uniqueItems":
      return a === true || b === true;
    case "allOf":
      return joined(trace, listOf(a), listOf(b));
    case "multipleOf":
      if ((a as number) % (b as number) === 0) return a;
      return (b as number) % (a as number) === 0 ? b : APART;
    case "propertyNames":
      return mergeSchemas(trace, a as JsonSchema, b as JsonSchema);
    case "dependentRequired":
      return mergeMaps(
        a,
        b,
        (one, two) => trace.distinct([...one as string[], ...two as string[]]),
      );
    case "dependentSchemas":
      return mergeMaps(a, b, (one, two) => mergeBoth(trace, one, two));
    default:
      return APART;
  }
}

function mergeTypes(a: readonly unknown[], b: readonly unknown[]): unknown {
  const types = a.flatMap((type) => {
    if (b.includes(type)) return [type];
    if (type === "number" && b.includes("integer")) return ["integer"];
    return type === "integer" && b.includes("number") ? ["integer"] : [];
  });
  if (types.length === 0) return NEVER;
  return types.length === 1 ? types[0] : [...new Set(types)];
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

/** Joins lists. Counts their lengths as steps, because lists may double at each level. */
function joined(trace: Trace, a: readonly unknown[], b: readonly unknown[]): readonly unknown[] {
  trace.count(a.length + b.length);
  return [...a, ...b];
}

function mergeMaps(
  a: unknown,
  b: unknown,
  merge: (one: unknown, two: unknown) => unknown,
): Record<string, unknown> {
  const result = { ...a as Record<string, unknown> };
  for (const [key, value] of Object.entries(b as Record<string, unknown>)) {
    setOwn(result, key, Object.hasOwn(result, key) ? merge(result[key], value) : value);
  }
  return result;
}

function mergeBoth(trace: Trace, one: unknown, two: unknown): JsonSchema {
  return mergeSchemas(trace, one as JsonSchema, two as JsonSchema);
}

function mergeObjects(trace: Trace, a: Merged, b: JsonSchemaObject): boolean {
  if (!OBJECT.some((keyword) => Object.hasOwn(b, keyword))) return true;
  const node = a.node;
  const restA = open(node);
  const restB = open(b);
  const patterns = isObject(node["patternProperties"]) || isObject(b["patternProperties"]);
  if (patterns && (restA !== true || restB !== true)) {
    // A pattern of one schema may cover properties of the other one.
    if (OBJECT.some((keyword) => Object.hasOwn(node, keyword))) return false;
    for (const keyword of OBJECT) a.take(b, keyword);
    return true;
  }
  const ownA = mapOf(node["properties"]);
  const ownB = mapOf(b["properties"]);
  const properties: Record<string, unknown> = {};
  const names = new Set([...Object.keys(ownA), ...Object.keys(ownB)]);
  trace.count(names.size);
  for (const name of names) {
    const one = Object.hasOwn(ownA, name) ? ownA[name] as JsonSchema : restA;
    const two = Object.hasOwn(ownB, name) ? ownB[name] as JsonSchema : restB;
    setOwn(properties, name, mergeSchemas(trace, one, two));
  }
  if (Object.keys(properties).length > 0 || Object.hasOwn(node, "properties")) {
    a.set("properties", properties, b);
  }
  if (patterns) {
    const { patternProperties: one = {} } = node;
    const { patternProperties: two = {} } = b;
    const merged = mergeMaps(one, two, (mine, other) => mergeBoth(trace, mine, other));
    a.set("patternProperties", merged, b);
  }
  const rest = mergeSchemas(trace, restA, restB);
  if (rest !== true || Object.hasOwn(node, "additionalProperties")) {
    a.set("additionalProperties", rest, b);
  }
  return true;
}

function open(node: JsonSchemaObject): JsonSchema {
  const rest = node["additionalProperties"];
  return isSchema(rest) ? rest : true;
}

function mergeArrays(trace: Trace, a: Merged, b: JsonSchemaObject): boolean {
  if (!ARRAY.some((keyword) => Object.hasOwn(b, keyword))) return true;
  if (!ARRAY.some((keyword) => Object.hasOwn(a.node, keyword))) {
    for (const keyword of ARRAY) a.take(b, keyword);
    return true;
  }
  if (Object.hasOwn(a.node, "prefixItems") || Object.hasOwn(b, "prefixItems")) return false;
  a.set("items", mergeBoth(trace, a.node["items"], b["items"]), b);
  return true;
}

function take(
  keywords: readonly string[],
  from: JsonSchemaObject,
  to: Record<string, unknown>,
): void {
  for (const keyword of keywords) {
    if (Object.hasOwn(from, keyword)) to[keyword] = from[keyword];
  }
}

/** A schema that is being merged. The origins of its keywords are recorded. */
interface Merged {
  readonly node: Record<string, unknown>;
  take(from: JsonSchemaObject, keyword: string): void;
  set(keyword: string, value: unknown, from: JsonSchemaObject): void;
}

function copyWithMoves(trace: Trace, a: JsonSchemaObject): Merged {
  const node = { ...a };
  const moved = new Map<string, Slot>();
  trace.cameFrom(node, a, moved);
  return {
    node,
    take(from, keyword) {
      if (!Object.hasOwn(from, keyword)) return;
      setOwn(node, keyword, from[keyword]);
      moved.set(keyword, { node: from, keyword });
    },
    set(keyword, value, from) {
      const there = Object.hasOwn(node, keyword);
      node[keyword] = value;
      if (!there) moved.set(keyword, { node: from, keyword });
    },
  };
}

function withRest(trace: Trace, merged: Merged, rest: JsonSchema): JsonSchemaObject {
  const there = merged.node["allOf"];
  merged.node["allOf"] = joined(trace, Array.isArray(there) ? there : [], [rest]);
  return merged.node;
}

/** The maximum number of nodes of the result, which references can double at each step. */
const MAX_NODES = 20_000;

/** The keywords that a schema retains where its recursion is cut. */
const STAYS = ["type", "title", "description"] as const;

/** Replaces each local `$ref` by its target. A recursive `$ref` is followed once, then cut. */
export function inlineRefs(root: JsonSchema, { trace, report }: Context): JsonSchema {
  const resolve = resolverOf(root);
  let left = MAX_NODES;
  const open = new Set<JsonSchema>([root]);

  const inline = (part: JsonSchema, depth: number): JsonSchema =>
    mapSchema(trace, part, {
      enter: (node) => {
        if (--left < 0) {
          throw new RangeError(
            `Cannot inline the references: the schema would have more than ${MAX_NODES} subschemas`,
          );
        }
        return node;
      },
      leave: (node, spot) =>
        typeof node["$ref"] === "string" ? follow(node, node["$ref"], spot) : node,
    }, depth);

  const follow = (node: JsonSchemaObject, ref: string, spot: Spot): JsonSchema => {
    const target = resolve(ref);
    if (target === undefined) {
      throw new TypeError(
        `Cannot inline the reference "${ref.slice(0, 100)}": its target is outside of the schema`,
      );
    }
    if (open.has(target)) {
      report.add(node, spot, "$ref", "a recursive schema is cut here: only its type is sent");
      return cut(trace, node, target);
    }
    open.add(target);
    const inner = inline(withoutNames(trace, target), spot.depth + 1);
    open.delete(target);
    return mergeSchemas(trace, without(trace, node, "$ref"), inner);
  };

  return inline(isObject(root) ? without(trace, root, "$defs", "definitions") : root, 0);
}

function cut(trace: Trace, node: JsonSchemaObject, target: JsonSchema): JsonSchemaObject {
  const rest: Record<string, unknown> = { ...without(trace, node, "$ref") };
  for (const keyword of STAYS) {
    if (isObject(target) && Object.hasOwn(target, keyword) && !Object.hasOwn(rest, keyword)) {
      rest[keyword] = target[keyword];
    }
  }
  trace.cameFrom(rest, node);
  return rest;
}

/** Moves a `$ref` with siblings into an `anyOf`. If a sibling is `anyOf`, merges the target. */
export function wrapReferences(root: JsonSchema, { trace }: Pick<Context, "trace">): JsonSchema {
  const leave = (node: JsonSchemaObject, { root, depth }: Spot): JsonSchema => {
    if (!Object.hasOwn(node, "$ref") || root || Object.keys(node).length === 1) return node;
    const branch: JsonSchemaObject = { $ref: node["$ref"] };
    trace.cameFrom(branch, node);
    if (!Object.hasOwn(node, "anyOf")) {
      return changed(trace, node, { $ref: undefined, anyOf: [branch] });
    }
    const target = targetOf(node["$ref"], depth) ?? { allOf: [branch] };
    return mergeSchemas(trace, without(trace, node, "$ref"), target);
  };
  const targetOf = referenceTargets(
    trace,
    root,
    (target, depth) => mapSchema(trace, withoutNames(trace, target), { leave }, depth),
  );
  return mapSchema(trace, root, { leave });
}
