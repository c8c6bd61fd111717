/**
 * Exclusive bounds as inclusive ones.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject } from "../../tool/mod.ts";
import { cameFrom, type Place } from "./origin.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import { copyNode, mapSchema, type Spot } from "./schema_walk.ts";

/**
 * Rewrites `exclusiveMinimum` and `exclusiveMaximum` as `minimum` and `maximum`. For integers
 * both say the same; for other numbers the bound itself is let in, which is reported.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { exclusiveToInclusive } from "@plue/tools/formats";
 *
 * const { schema } = exclusiveToInclusive({ type: "integer", exclusiveMinimum: 0 });
 * assert.deepEqual(schema, { type: "integer", minimum: 1 });
 * ```
 */
export function exclusiveToInclusive(schema: JsonSchema): TransformResult {
  return transformed(schema, includeBounds);
}

/** {@linkcode exclusiveToInclusive} inside a chain of transforms. */
export function includeBounds(root: JsonSchema, report: Report): JsonSchema {
  return mapSchema(root, {
    leave: (node, spot) => {
      const low = include(node, spot, report, "exclusiveMinimum", "minimum", 1);
      return include(low, spot, report, "exclusiveMaximum", "maximum", -1);
    },
  });
}

function include(
  node: JsonSchemaObject,
  spot: Spot,
  report: Report,
  exclusive: "exclusiveMinimum" | "exclusiveMaximum",
  inclusive: "minimum" | "maximum",
  step: 1 | -1,
): JsonSchemaObject {
  const bound = node[exclusive];
  if (typeof bound !== "number") return node;
  const whole = isWhole(node["type"]);
  // The next integer beyond the bound; above 2^53 there may be none that a number can hold.
  const next = step === 1 ? Math.floor(bound) + 1 : Math.ceil(bound) - 1;
  const exact = whole && Number.isSafeInteger(next);
  const value = exact ? next : bound;
  const other = node[inclusive];
  const otherWins = typeof other === "number" && (step === 1 ? other > bound : other < bound);
  if (!exact && !otherWins) {
    report.add(node, spot, {
      keyword: exclusive,
      action: "replaced",
      grade: "weakened",
      widens: true,
      message: `"${exclusive}" is sent as "${inclusive}": the bound itself is let in`,
    });
  }
  const copy = copyNode(node);
  delete copy[exclusive];
  if (typeof other === "number") {
    copy[inclusive] = step === 1 ? Math.max(other, value) : Math.min(other, value);
  } else {
    copy[inclusive] = value;
    const moved = new Map<string, Place>([[inclusive, { node, keyword: exclusive }]]);
    cameFrom(copy, node, moved);
  }
  return copy;
}

function isWhole(type: unknown): boolean {
  if (type === "integer") return true;
  return Array.isArray(type) && type.includes("integer") && !type.includes("number");
}
