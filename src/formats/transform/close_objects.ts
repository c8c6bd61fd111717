/**
 * Objects that hold no other properties than the named ones.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject } from "../../tool/mod.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import { copyNode, isNode, mapSchema, type Spot } from "./schema_walk.ts";

/** Whether a schema describes objects, and perhaps other values. */
export function describesObjects(node: JsonSchemaObject): boolean {
  const { type } = node;
  return type === "object" || (Array.isArray(type) && type.includes("object")) ||
    (type === undefined && isNode(node["properties"]));
}

/**
 * Adds `additionalProperties: false` to every object. Other keys than the named ones cannot be
 * sent any more, which each place reports as narrowing.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { closeObjects } from "@plue/tools/formats";
 *
 * const { schema, losses } = closeObjects({ type: "object", properties: {} });
 * assert.deepEqual(schema, { type: "object", properties: {}, additionalProperties: false });
 * assert.equal(losses[0]?.narrows, true);
 * ```
 */
export function closeObjects(schema: JsonSchema): TransformResult {
  return transformed(schema, closeAll);
}

/** {@linkcode closeObjects} inside a chain of transforms. */
export function closeAll(root: JsonSchema, report: Report): JsonSchema {
  return mapSchema(root, { leave: (node, spot) => close(node, spot, report) });
}

function close(node: JsonSchemaObject, spot: Spot, report: Report): JsonSchemaObject {
  if (!describesObjects(node)) return node;
  if (node["additionalProperties"] === false) {
    return isNode(node["properties"]) ? node : withProperties(node);
  }
  const said = Object.hasOwn(node, "additionalProperties");
  report.add(node, spot, {
    keyword: "additionalProperties",
    action: "replaced",
    grade: said ? "lost" : "weakened",
    narrows: true,
    message: said
      ? "other properties than the named ones cannot be sent"
      : "other properties than the named ones are not forbidden, but cannot be sent",
  });
  const copy = copyNode(isNode(node["properties"]) ? node : withProperties(node));
  copy["additionalProperties"] = false;
  return copy;
}

/** Providers' own transforms write `properties` always, even without one. */
function withProperties(node: JsonSchemaObject): JsonSchemaObject {
  const copy = copyNode(node);
  copy["properties"] = {};
  return copy;
}
