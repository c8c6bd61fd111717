/**
 * Unions: `oneOf` as `anyOf`, and an `anyOf` that stands alone, with what stood beside it moved into
 * its branches.
 *
 * @module
 */

import { isSchema } from "../../schema/mod.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../../tool/mod.ts";
import { constrains, leaveOut } from "./describe_constraints.ts";
import { sameValue, valueKey, valueKeys } from "./json_equal.ts";
import { mergeSchemas } from "./merge_all_of.ts";
import { cameFrom, countSteps } from "./origin.ts";
import { referenceTargets, type Resolve, resolverOf, withoutNames } from "./definitions.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import { changed, mapSchema, type Spot, without } from "./rewrite.ts";

/** How many branches are compared with each other. */
const MAX_COMPARED = 64;

/**
 * Rewrites `oneOf` as `anyOf`. Where two branches could hold at once, that accepts more, which is
 * reported; branches of different types, or told apart by a constant, never hold at once.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { oneOfToAnyOf } from "@plue/tools/formats";
 *
 * const { schema, losses } = oneOfToAnyOf({ oneOf: [{ type: "string" }, { type: "number" }] });
 * assert.deepEqual(schema, { anyOf: [{ type: "string" }, { type: "number" }] });
 * assert.deepEqual(losses, []);
 * ```
 */
export function oneOfToAnyOf(schema: JsonSchema): TransformResult {
  return transformed(schema, oneOfToAnyOfIn);
}

/** {@linkcode oneOfToAnyOf} inside a chain of transforms. */
export function oneOfToAnyOfIn(root: JsonSchema, report: Report): JsonSchema {
  const resolve = resolverOf(root);
  return mapSchema(root, {
    enter: (node, spot) => {
      const branches = node["oneOf"];
      if (!Array.isArray(branches)) return node;
      if (!areDisjoint(branches, resolve)) {
        report.add(node, spot, {
          keyword: "oneOf",
          action: "replaced",
          grade: "weakened",
          widens: true,
          message: '"oneOf" is sent as "anyOf": more than one branch may hold',
        });
      }
      if (!Object.hasOwn(node, "anyOf")) {
        return changed(node, { oneOf: undefined, anyOf: branches }, { anyOf: "oneOf" });
      }
      const second: JsonSchemaObject = { anyOf: branches };
      cameFrom(second, node, new Map([["anyOf", { node, keyword: "oneOf" }]]));
      const others = Array.isArray(node["allOf"]) ? node["allOf"] : [];
      return changed(node, { oneOf: undefined, allOf: [...others, second] });
    },
  });
}

/** Whether no value can satisfy two of the branches. `false` if it cannot tell. */
function areDisjoint(branches: readonly unknown[], resolve: Resolve): boolean {
  if (branches.length > MAX_COMPARED) return false;
  const known = branches.map((branch) =>
    outlineOf(isObject(branch) && Object.hasOwn(branch, "$ref") ? resolve(branch["$ref"]) : branch)
  );
  return known.every((one, index) =>
    known.slice(index + 1).every((two) => cannotBothHold(one, two))
  );
}

/** The facts that tell a branch from others. An absent fact is unknown. */
interface Outline {
  /** Nothing fits it. */
  readonly never: boolean;
  readonly types: ReadonlySet<unknown> | undefined;
  readonly values: ReadonlySet<string> | undefined;
  /** The required properties of an object that have constants, with those. */
  readonly tags: ReadonlyMap<string, ReadonlySet<string>>;
}

const NO_TAGS: Outline["tags"] = new Map();

function outlineOf(branch: unknown): Outline {
  if (!isObject(branch)) {
    return { never: branch === false, types: undefined, values: undefined, tags: NO_TAGS };
  }
  const types = typesOf(branch);
  const onlyObjects = types?.size === 1 && types.has("object");
  return {
    never: false,
    types,
    values: valuesOf(branch),
    tags: onlyObjects ? tagsOf(branch) : NO_TAGS,
  };
}

/** The types a schema names, with `integer` as the `number` it is. */
function typesOf({ type }: JsonSchemaObject): ReadonlySet<unknown> | undefined {
  if (type === undefined) return undefined;
  const list: readonly unknown[] = Array.isArray(type) ? type : [type];
  return new Set(list.map((one) => one === "integer" ? "number" : one));
}

function valuesOf(node: JsonSchemaObject): ReadonlySet<string> | undefined {
  if (Object.hasOwn(node, "const")) return new Set([valueKey(node["const"])]);
  return Array.isArray(node["enum"]) ? valueKeys(node["enum"]) : undefined;
}

function tagsOf({ properties, required }: JsonSchemaObject): Outline["tags"] {
  if (!isObject(properties) || !Array.isArray(required)) return NO_TAGS;
  const tags = new Map<string, ReadonlySet<string>>();
  for (const name of required) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const values = isObject(property) ? valuesOf(property) : undefined;
    if (values !== undefined) tags.set(name, values);
  }
  return tags;
}

function cannotBothHold(a: Outline, b: Outline): boolean {
  if (a.never || b.never) return true;
  if (a.types !== undefined && b.types !== undefined && !shareAny(a.types, b.types)) return true;
  if (a.values !== undefined && b.values !== undefined) return !shareAny(a.values, b.values);
  // A property that both need, with different constants, tells objects apart.
  for (const [name, values] of a.tags) {
    const others = b.tags.get(name);
    if (others !== undefined && !shareAny(values, others)) return true;
  }
  return false;
}

function shareAny<T>(a: ReadonlySet<T>, b: ReadonlySet<T>): boolean {
  const [few, many] = a.size < b.size ? [a, b] : [b, a];
  countSteps(few.size);
  for (const value of few) if (many.has(value)) return true;
  return false;
}

/** How {@linkcode distributeUnions} deals with what it cannot move. */
export interface Distribution {
  /** Whether a keyword will be dropped later: it need not be moved. */
  readonly willDrop: (keyword: string, node: JsonSchemaObject) => boolean;
  /** What becomes of a union whose branches what stands beside it cannot be merged into. */
  readonly otherwise: "refuse" | "describe" | "drop";
}

/** Keywords that a `properties` which is moved takes along: without them it would mean less. */
const BELONGS_TO_PROPERTIES: ReadonlySet<string> = new Set([
  "additionalProperties",
  "patternProperties",
]);

/**
 * Moves the constraints beside an `anyOf` into its branches, for targets that want it alone. A
 * branch that is a reference becomes what that leads to, with the constraints.
 *
 * @throws {TypeError} If that is impossible somewhere, and `otherwise` is `refuse`.
 */
export function distributeUnions(root: JsonSchema, report: Report, how: Distribution): JsonSchema {
  const { willDrop, otherwise } = how;
  const resolve = resolverOf(root);
  const targetOf = referenceTargets(
    root,
    (target, depth) => mapSchema(withoutNames(target), { leave: distribute }, depth),
  );
  return mapSchema(root, { leave: distribute });

  function distribute(node: JsonSchemaObject, spot: Spot): JsonSchema {
    const branches = node["anyOf"];
    if (!Array.isArray(branches)) return node;
    const outer: Record<string, unknown> = {};
    const inner: Record<string, unknown> = {};
    for (const keyword of Object.keys(node)) {
      const moves = keyword !== "anyOf" && constrains(keyword) &&
        (BELONGS_TO_PROPERTIES.has(keyword) || !willDrop(keyword, node));
      (moves ? inner : outer)[keyword] = node[keyword];
    }
    if (Object.keys(inner).length === 0) return node;
    cameFrom(inner, node);
    const merged: JsonSchema[] = [];
    for (const branch of branches) {
      if (!isSchema(branch)) continue;
      const one = mergeInto(inner, branch, spot.depth);
      if (one === undefined) {
        const message = 'what stands beside "anyOf" cannot be merged into its branches';
        if (otherwise === "refuse") throw new TypeError(`Cannot split the union: ${message}`);
        return leaveOut(node, "anyOf", spot, report, otherwise === "describe", message);
      }
      if (one !== false) merged.push(one);
    }
    if (merged.length === 0) return false;
    outer["anyOf"] = merged;
    cameFrom(outer, node);
    return outer;
  }

  /** Merges what stands beside a union into a branch; `undefined` if that is no schema alone. */
  function mergeInto(
    inner: JsonSchemaObject,
    branch: JsonSchema,
    depth: number,
  ): JsonSchema | undefined {
    let own = branch;
    if (isObject(branch) && Object.hasOwn(branch, "$ref")) {
      if (saysAlready(resolve(branch["$ref"]), inner)) return branch;
      const target = targetOf(branch["$ref"], depth);
      if (target === undefined) return undefined;
      own = mergeSchemas(without(branch, "$ref"), target);
    }
    const one = mergeSchemas(inner, own);
    if (!isObject(one)) return one;
    const mayStay = otherwise !== "refuse" && Object.hasOwn(inner, "allOf");
    const apart = Object.hasOwn(one, "$ref") || (Object.hasOwn(one, "allOf") && !mayStay);
    return apart ? undefined : one;
  }
}

/** Whether a schema has the same keywords already, so that a reference to it may stay one. */
function saysAlready(target: JsonSchema | undefined, inner: JsonSchemaObject): boolean {
  return isObject(target) &&
    Object.keys(inner).every((keyword) => sameValue(inner[keyword], target[keyword]));
}
