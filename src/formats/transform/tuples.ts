/**
 * Tuples as lists, for targets without `prefixItems`; and lists that say what they hold.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject } from "../../tool/mod.ts";
import { distinct } from "./json_equal.ts";
import { cameFrom } from "./origin.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import { copyNode, isSchema, mapSchema, type Spot } from "./schema_walk.ts";

/**
 * Rewrites `prefixItems` as `items` that accept what any of them accepts. Where `items: false`
 * bounded the tuple, `maxItems` does.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { tuplesToLists } from "@plue/tools/formats";
 *
 * const { schema } = tuplesToLists({
 *   type: "array", prefixItems: [{ type: "string" }, { type: "number" }], items: false,
 * });
 * assert.deepEqual(schema, {
 *   type: "array", items: { anyOf: [{ type: "string" }, { type: "number" }] }, maxItems: 2,
 * });
 * ```
 */
export function tuplesToLists(schema: JsonSchema): TransformResult {
  return transformed(schema, listTuples);
}

/** {@linkcode tuplesToLists} inside a chain of transforms. */
export function listTuples(root: JsonSchema, report: Report): JsonSchema {
  return mapSchema(root, { leave: (node, spot) => listTuple(node, spot, report) });
}

function listTuple(node: JsonSchemaObject, spot: Spot, report: Report): JsonSchemaObject {
  const tuple = node["prefixItems"];
  if (!Array.isArray(tuple)) return node;
  const rest = isSchema(node["items"]) ? node["items"] : true;
  const closed = rest === false;
  // A rest that nobody described is not sent as "anything", which would hide the tuple.
  const told = rest !== true && !closed;
  const branches = distinct<unknown>(told ? [...tuple, rest] : tuple);
  report.add(node, spot, {
    keyword: "prefixItems",
    action: "replaced",
    grade: "weakened",
    widens: branches.length > 1 || !closed,
    narrows: rest === true,
    message: "a tuple is sent as a list: which item stands where is not said",
  });
  const copy = copyNode(node);
  delete copy["prefixItems"];
  if (branches.length === 1) copy["items"] = branches[0];
  else {
    const items: Record<string, unknown> = { anyOf: branches };
    cameFrom(items, node);
    copy["items"] = items;
  }
  if (closed) {
    const max = node["maxItems"];
    copy["maxItems"] = Math.min(typeof max === "number" ? max : Infinity, tuple.length);
  }
  return copy;
}

/** Adds `items: {}` to arrays that do not say what they hold; both mean the same. */
export function addItems(root: JsonSchema): JsonSchema {
  return mapSchema(root, {
    leave: (node) => {
      if (!lacksItems(node)) return node;
      const copy = copyNode(node);
      copy["items"] = {};
      return copy;
    },
  });
}

/** Whether a schema describes arrays and does not say what they hold. */
export function lacksItems(node: JsonSchemaObject): boolean {
  const { type } = node;
  return (type === "array" || (Array.isArray(type) && type.includes("array"))) &&
    !Object.hasOwn(node, "items");
}
