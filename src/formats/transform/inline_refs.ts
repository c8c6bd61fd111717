/**
 * References replaced by what they lead to, for targets that know none.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject } from "../../tool/mod.ts";
import { mergeSchemas } from "./merge_all_of.ts";
import { cameFrom } from "./origin.ts";
import { findReferences, resolveReference } from "./references.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import { copyNode, eachNode, isNode, mapSchema, type Spot, without } from "./schema_walk.ts";

/** How many nodes the result may have. References can double it at each step. */
const MAX_NODES = 20_000;

/** What stays of a recursive schema where it is cut: words, and the kind of value. */
const STAYS = ["type", "title", "description"] as const;

/**
 * Replaces each local `$ref` by what it leads to, and drops `$defs`. A recursive reference is
 * followed once and then cut: what stands there says only the type, which is reported.
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
  return transformed(schema, (root, report) => inlineReferences(root, report));
}

/** {@linkcode inlineRefs} inside a chain of transforms; `only` those references that it accepts. */
export function inlineReferences(
  root: JsonSchema,
  report: Report,
  only: (node: JsonSchemaObject) => boolean = () => true,
): JsonSchema {
  const { external } = findReferences(root);
  let left = MAX_NODES;
  const open: JsonSchema[] = [root];

  const inline = (part: JsonSchema): JsonSchema =>
    mapSchema(part, {
      leave: (node, spot) => {
        if (typeof node["$ref"] !== "string" || !only(node)) return node;
        return follow(node, node["$ref"], spot);
      },
    });

  const follow = (node: JsonSchemaObject, ref: string, spot: Spot): JsonSchema => {
    const target = external.has(ref) ? undefined : resolveReference(root, ref);
    if (target === undefined) {
      throw new TypeError(
        `Cannot inline the reference "${ref.slice(0, 100)}": it leads outside of the schema`,
      );
    }
    if (open.includes(target)) {
      report.add(node, spot, {
        keyword: "$ref",
        action: "replaced",
        grade: "weakened",
        widens: true,
        message: "a recursive schema is cut here: only its type is said",
      });
      return cut(node, target);
    }
    open.push(target);
    const inner = inline(isNode(target) ? without(target, "$defs", "definitions") : target);
    open.pop();
    eachNode(inner, () => {
      if (--left < 0) {
        throw new RangeError(
          `Cannot inline the references: the schema would have more than ${MAX_NODES} subschemas`,
        );
      }
    });
    const bare = isNode(inner) ? without(inner, "$id", "$anchor", "$dynamicAnchor") : inner;
    return mergeSchemas(without(node, "$ref"), bare);
  };

  return inline(isNode(root) ? withoutDefinitions(root, only) : root);
}

function cut(node: JsonSchemaObject, target: JsonSchema): JsonSchemaObject {
  const rest: Record<string, unknown> = { ...without(node, "$ref") };
  for (const keyword of STAYS) {
    if (isNode(target) && Object.hasOwn(target, keyword) && !Object.hasOwn(rest, keyword)) {
      rest[keyword] = target[keyword];
    }
  }
  cameFrom(rest, node);
  return rest;
}

/** Without its definitions, if nothing will refer to them any more. */
function withoutDefinitions(
  root: JsonSchemaObject,
  only: (node: JsonSchemaObject) => boolean,
): JsonSchemaObject {
  let kept = false;
  eachNode(root, (node) => {
    if (Object.hasOwn(node, "$ref") && !only(node)) kept = true;
  });
  return kept ? root : without(root, "$defs", "definitions");
}

/**
 * Puts a `$ref` that stands beside other keywords alone into an `anyOf` of one, for targets that
 * want it alone. Both mean the same.
 */
export function wrapReferences(root: JsonSchema): JsonSchema {
  return mapSchema(root, {
    leave: (node, spot) => {
      if (!Object.hasOwn(node, "$ref") || spot.root || Object.keys(node).length === 1) return node;
      const branch: JsonSchemaObject = { $ref: node["$ref"] };
      const copy = copyNode(without(node, "$ref"));
      const there = copy["anyOf"];
      if (there === undefined) copy["anyOf"] = [branch];
      else copy["allOf"] = [...(Array.isArray(copy["allOf"]) ? copy["allOf"] : []), branch];
      cameFrom(branch, node);
      return copy;
    },
  });
}
