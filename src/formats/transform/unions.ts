/**
 * Unions: `oneOf` as `anyOf`, and what stands beside a union moved into its branches.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject } from "../../tool/mod.ts";
import { jsonEqual } from "./json_equal.ts";
import { mergeSchemas } from "./merge_all_of.ts";
import { cameFrom } from "./origin.ts";
import { resolveReference } from "./references.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import { copyNode, isNode, isSchema, mapSchema, type Spot } from "./schema_walk.ts";

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
  return transformed(schema, loosenOneOf);
}

/** {@linkcode oneOfToAnyOf} inside a chain of transforms. */
export function loosenOneOf(root: JsonSchema, report: Report): JsonSchema {
  return mapSchema(root, {
    enter: (node, spot) => {
      const branches = node["oneOf"];
      if (!Array.isArray(branches)) return node;
      if (!areDisjoint(branches, root)) {
        report.add(node, spot, {
          keyword: "oneOf",
          action: "replaced",
          grade: "weakened",
          widens: true,
          message: '"oneOf" is sent as "anyOf": more than one branch may hold',
        });
      }
      const copy = copyNode(node);
      delete copy["oneOf"];
      if (!Object.hasOwn(copy, "anyOf")) {
        copy["anyOf"] = branches;
        cameFrom(copy, node, new Map([["anyOf", { node, keyword: "oneOf" }]]));
      } else {
        const second: Record<string, unknown> = { anyOf: branches };
        cameFrom(second, node, new Map([["anyOf", { node, keyword: "oneOf" }]]));
        copy["allOf"] = [...(Array.isArray(copy["allOf"]) ? copy["allOf"] : []), second];
      }
      return copy;
    },
  });
}

/** Whether no value can satisfy two of the branches. `false` if it cannot tell. */
export function areDisjoint(branches: readonly unknown[], root: JsonSchema): boolean {
  if (branches.length > MAX_COMPARED) return false;
  const resolved = branches.map((branch) => {
    if (!isNode(branch) || !Object.hasOwn(branch, "$ref")) return branch;
    return resolveReference(root, branch["$ref"]);
  });
  return resolved.every((one, index) =>
    resolved.slice(index + 1).every((two) => cannotBothHold(one, two))
  );
}

function cannotBothHold(a: unknown, b: unknown): boolean {
  if (a === false || b === false) return true;
  if (!isNode(a) || !isNode(b)) return false;
  const typesA = typesOf(a);
  const typesB = typesOf(b);
  if (
    typesA !== undefined && typesB !== undefined && !typesA.some((type) => typesB.includes(type))
  ) {
    return true;
  }
  const valuesA = valuesOf(a);
  const valuesB = valuesOf(b);
  if (valuesA !== undefined && valuesB !== undefined) {
    return !valuesA.some((one) => valuesB.some((two) => jsonEqual(one, two)));
  }
  // A property that both need, with different constants, tells objects apart.
  if (!onlyObjects(typesA) || !onlyObjects(typesB)) return false;
  const { properties: propertiesA, required: requiredA } = a;
  const { properties: propertiesB, required: requiredB } = b;
  if (!isNode(propertiesA) || !isNode(propertiesB)) return false;
  if (!Array.isArray(requiredA) || !Array.isArray(requiredB)) return false;
  return requiredA.some((name) => {
    if (!requiredB.includes(name)) return false;
    if (!Object.hasOwn(propertiesA, name) || !Object.hasOwn(propertiesB, name)) return false;
    const one = propertiesA[name];
    const two = propertiesB[name];
    const values = isNode(one) ? valuesOf(one) : undefined;
    const others = isNode(two) ? valuesOf(two) : undefined;
    return values !== undefined && others !== undefined &&
      !values.some((value) => others.some((other) => jsonEqual(value, other)));
  });
}

function onlyObjects(types: readonly unknown[] | undefined): boolean {
  return types?.length === 1 && types[0] === "object";
}

/** The types a schema names, with `integer` as the `number` it is. */
function typesOf(node: JsonSchemaObject): readonly unknown[] | undefined {
  const { type } = node;
  if (type === undefined) return undefined;
  return (Array.isArray(type) ? type : [type]).map((one) => one === "integer" ? "number" : one);
}

function valuesOf(node: JsonSchemaObject): readonly unknown[] | undefined {
  if (Object.hasOwn(node, "const")) return [node["const"]];
  return Array.isArray(node["enum"]) ? node["enum"] : undefined;
}

/** What may stand beside a union: words, and what references lead to. */
export const BESIDE_UNION: ReadonlySet<string> = new Set([
  "anyOf",
  "title",
  "description",
  "default",
  "examples",
  "example",
  "deprecated",
  "readOnly",
  "writeOnly",
  "nullable",
  "$defs",
  "definitions",
  "$schema",
  "$id",
  "$anchor",
  "$comment",
]);

/** Moves what stands beside an `anyOf` into its branches, for targets that want it alone. */
export function distributeUnions(root: JsonSchema, report: Report): JsonSchema {
  return mapSchema(root, { leave: (node, spot) => distribute(node, root, spot, report) });
}

function distribute(
  node: JsonSchemaObject,
  root: JsonSchema,
  spot: Spot,
  report: Report,
): JsonSchema {
  const branches = node["anyOf"];
  if (!Array.isArray(branches)) return node;
  const outer: Record<string, unknown> = {};
  const inner: Record<string, unknown> = {};
  for (const keyword of Object.keys(node)) {
    (BESIDE_UNION.has(keyword) ? outer : inner)[keyword] = node[keyword];
  }
  if (Object.keys(inner).length === 0) return node;
  cameFrom(inner, node);
  const merged: JsonSchema[] = [];
  for (const branch of branches) {
    if (!isSchema(branch)) continue;
    const one = distributeInto(inner, branch, root);
    if (one === undefined) {
      report.add(node, spot, {
        keyword: "anyOf",
        action: "dropped",
        grade: "lost",
        widens: true,
        message: 'what stands beside "anyOf" cannot be merged into its branches',
      });
      const copy = copyNode(node);
      delete copy["anyOf"];
      return copy;
    }
    if (one !== false) merged.push(one);
  }
  if (merged.length === 0) return false;
  outer["anyOf"] = merged;
  cameFrom(outer, node);
  return outer;
}

/** `inner` and `branch` in one schema without `allOf`, or `undefined` if there is none. */
function distributeInto(
  inner: JsonSchemaObject,
  branch: JsonSchema,
  root: JsonSchema,
): JsonSchema | undefined {
  if (isNode(branch) && Object.hasOwn(branch, "$ref")) {
    const target = resolveReference(root, branch["$ref"]);
    const sameType = Object.keys(inner).length === 1 && isNode(target) &&
      inner["type"] !== undefined && jsonEqual(inner["type"], target["type"]);
    return sameType ? branch : undefined;
  }
  const one = mergeSchemas(inner, branch);
  const whole = one === false || (isNode(one) &&
    (!Object.hasOwn(one, "allOf") || Object.hasOwn(inner, "allOf")) && !Object.hasOwn(one, "$ref"));
  return whole ? one : undefined;
}
