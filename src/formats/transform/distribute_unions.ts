/**
 * Unions that stand alone: what stands beside an `anyOf`, moved into its branches.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject } from "../../tool/mod.ts";
import { constrains } from "./describe_constraints.ts";
import { jsonEqual } from "./json_equal.ts";
import { mergeSchemas } from "./merge_all_of.ts";
import { cameFrom } from "./origin.ts";
import { referenceTargets, resolverOf, withoutNames } from "./references.ts";
import type { Report } from "./report.ts";
import {
  copyNode,
  isNode,
  isSchema,
  mapSchema,
  type Spot,
  type Visit,
  without,
} from "./schema_walk.ts";
import { addWords } from "./words.ts";

/** How {@linkcode distributeUnions} deals with what it cannot move. */
export interface Distribution {
  /** Whether a keyword will be dropped later: it need not be moved. */
  willDrop(keyword: string, node: JsonSchemaObject): boolean;
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
  const resolve = resolverOf(root);
  const leave: Visit = (node, spot) => distribute(node, spot, report, how, into);
  const into: Into = (inner, branch, depth) => {
    let own = branch;
    if (isNode(branch) && Object.hasOwn(branch, "$ref")) {
      if (saysAlready(resolve(branch["$ref"]), inner)) return branch;
      const target = targetOf(branch["$ref"], depth);
      if (target === undefined) return undefined;
      own = mergeSchemas(without(branch, "$ref"), target);
    }
    const one = mergeSchemas(inner, own);
    if (!isNode(one)) return one;
    const mayStay = how.otherwise !== "refuse" && Object.hasOwn(inner, "allOf");
    const apart = Object.hasOwn(one, "$ref") || (Object.hasOwn(one, "allOf") && !mayStay);
    return apart ? undefined : one;
  };
  const targetOf = referenceTargets(
    root,
    (target, depth) => mapSchema(withoutNames(target), { leave }, depth),
  );
  return mapSchema(root, { leave });
}

/** Merges what stands beside a union into a branch; `undefined` if that is no schema alone. */
type Into = (
  inner: JsonSchemaObject,
  branch: JsonSchema,
  depth: number,
) => JsonSchema | undefined;

/** Whether a schema has the same keywords already, so that a reference to it may stay one. */
function saysAlready(target: JsonSchema | undefined, inner: JsonSchemaObject): boolean {
  return isNode(target) &&
    Object.keys(inner).every((keyword) => jsonEqual(inner[keyword], target[keyword]));
}

function distribute(
  node: JsonSchemaObject,
  spot: Spot,
  report: Report,
  how: Distribution,
  into: Into,
): JsonSchema {
  const branches = node["anyOf"];
  if (!Array.isArray(branches)) return node;
  const outer: Record<string, unknown> = {};
  const inner: Record<string, unknown> = {};
  for (const keyword of Object.keys(node)) {
    const moves = keyword !== "anyOf" && constrains(keyword) &&
      (BELONGS_TO_PROPERTIES.has(keyword) || !how.willDrop(keyword, node));
    (moves ? inner : outer)[keyword] = node[keyword];
  }
  if (Object.keys(inner).length === 0) return node;
  cameFrom(inner, node);
  const merged: JsonSchema[] = [];
  for (const branch of branches) {
    if (!isSchema(branch)) continue;
    const one = into(inner, branch, spot.depth);
    if (one === undefined) return leaveOut(node, branches, spot, report, how);
    if (one !== false) merged.push(one);
  }
  if (merged.length === 0) return false;
  outer["anyOf"] = merged;
  cameFrom(outer, node);
  return outer;
}

function leaveOut(
  node: JsonSchemaObject,
  branches: readonly unknown[],
  spot: Spot,
  report: Report,
  { otherwise }: Distribution,
): JsonSchemaObject {
  const message = 'what stands beside "anyOf" cannot be merged into its branches';
  if (otherwise === "refuse") throw new TypeError(`Cannot split the union: ${message}`);
  const described = otherwise === "describe";
  report.add(node, spot, {
    keyword: "anyOf",
    action: described ? "described" : "dropped",
    grade: described ? "moved" : "lost",
    widens: true,
    message,
  });
  const copy = copyNode(node);
  delete copy["anyOf"];
  if (described) addWords(copy, "anyOf", branches);
  return copy;
}
