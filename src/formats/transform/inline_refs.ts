/**
 * Replaces references by what they lead to, for targets that know none.
 *
 * @module
 */

import { isObject, type JsonSchema, type JsonSchemaObject } from "../../tool/mod.ts";
import { mergeSchemas } from "./merge_all_of.ts";
import { cameFrom } from "./origin.ts";
import { referenceTargets, resolverOf, withoutNames } from "./definitions.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import { changed, mapSchema, type Spot, without } from "./rewrite.ts";

/** How many nodes the result may have. References can double it at each step. */
const MAX_NODES = 20_000;

/** What stays of a recursive schema where it is cut: words, and the kind of value. */
const STAYS = ["type", "title", "description"] as const;

/**
 * Replaces each local `$ref` by what it leads to, and drops `$defs`. A recursive reference is
 * followed once and then cut: the place only says the type, which is reported.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { inlineRefs } from "@plue/tools/formats";
 *
 * const { schema } = inlineRefs({
 *   properties: { to: { $ref: "#/$defs/place" } },
 *   $defs: { place: { type: "string" } },
 * });
 * assert.deepEqual(schema, { properties: { to: { type: "string" } } });
 * ```
 *
 * @throws {RangeError} If the result would have more than 20,000 subschemas.
 * @throws {TypeError} If a reference leads outside of the schema.
 */
export function inlineRefs(schema: JsonSchema): TransformResult {
  return transformed(schema, (root, report) => inlineRefsIn(root, report));
}

/** {@linkcode inlineRefs} inside a chain of transforms. */
export function inlineRefsIn(root: JsonSchema, report: Report): JsonSchema {
  const resolve = resolverOf(root);
  let left = MAX_NODES;
  const open = new Set<JsonSchema>([root]);

  const inline = (part: JsonSchema, depth: number): JsonSchema =>
    mapSchema(part, {
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
        `Cannot inline the reference "${ref.slice(0, 100)}": it leads outside of the schema`,
      );
    }
    if (open.has(target)) {
      report.add(node, spot, {
        keyword: "$ref",
        action: "replaced",
        grade: "weakened",
        widens: true,
        message: "a recursive schema is cut here: only its type is said",
      });
      return cut(node, target);
    }
    open.add(target);
    const inner = inline(withoutNames(target), spot.depth + 1);
    open.delete(target);
    return mergeSchemas(without(node, "$ref"), inner);
  };

  return inline(isObject(root) ? without(root, "$defs", "definitions") : root, 0);
}

function cut(node: JsonSchemaObject, target: JsonSchema): JsonSchemaObject {
  const rest: Record<string, unknown> = { ...without(node, "$ref") };
  for (const keyword of STAYS) {
    if (isObject(target) && Object.hasOwn(target, keyword) && !Object.hasOwn(rest, keyword)) {
      rest[keyword] = target[keyword];
    }
  }
  cameFrom(rest, node);
  return rest;
}

/**
 * Puts a `$ref` that stands beside other keywords alone into an `anyOf` of one, for targets that
 * want it alone. Beside an `anyOf`, what it leads to is merged in. All mean the same.
 */
export function wrapReferences(root: JsonSchema): JsonSchema {
  const leave = (node: JsonSchemaObject, { root, depth }: Spot): JsonSchema => {
    if (!Object.hasOwn(node, "$ref") || root || Object.keys(node).length === 1) return node;
    const branch: JsonSchemaObject = { $ref: node["$ref"] };
    cameFrom(branch, node);
    if (!Object.hasOwn(node, "anyOf")) return changed(node, { $ref: undefined, anyOf: [branch] });
    const target = targetOf(node["$ref"], depth) ?? { allOf: [branch] };
    return mergeSchemas(without(node, "$ref"), target);
  };
  const targetOf = referenceTargets(
    root,
    (target, depth) => mapSchema(withoutNames(target), { leave }, depth),
  );
  return mapSchema(root, { leave });
}
