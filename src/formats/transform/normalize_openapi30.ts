/**
 * The Schema Object of OpenAPI 3.0 as 2020-12.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject } from "../../tool/mod.ts";
import { acceptNull } from "./nullable.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import { copyNode, mapSchema, type Spot, without } from "./schema_walk.ts";

/** What says nothing about values, and has no counterpart. */
const FOREIGN = ["discriminator", "xml", "externalDocs"] as const;

/** What may stand beside a `$ref`: words. OpenAPI 3.0 ignores everything there. */
const BESIDE_REF: ReadonlySet<string> = new Set(["$ref", "title", "description", "summary"]);

/**
 * Rewrites a Schema Object of OpenAPI 3.0 as 2020-12: `nullable`, `exclusiveMinimum: true`,
 * `example`, the formats `byte` and `binary`, and what stands beside a `$ref`. References stay as
 * they are.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { normalizeOpenApi30 } from "@plue/tools/formats";
 *
 * const { schema } = normalizeOpenApi30({ type: "number", nullable: true, minimum: 0, exclusiveMinimum: true });
 * assert.deepEqual(schema, { type: ["number", "null"], exclusiveMinimum: 0 });
 * ```
 */
export function normalizeOpenApi30(schema: JsonSchema): TransformResult {
  return transformed(
    schema,
    (root, report) => mapSchema(root, { enter: (node, spot) => normalizeNode(node, spot, report) }),
  );
}

function normalizeNode(node: JsonSchemaObject, spot: Spot, report: Report): JsonSchemaObject {
  if (typeof node["$ref"] === "string") {
    return without(node, ...Object.keys(node).filter((keyword) => !BESIDE_REF.has(keyword)));
  }
  let result = node;
  for (const keyword of FOREIGN) {
    if (!Object.hasOwn(node, keyword)) continue;
    report.add(node, spot, {
      keyword,
      action: "dropped",
      grade: "lost",
      message: `"${keyword}" has no counterpart in JSON Schema`,
    });
  }
  result = without(result, ...FOREIGN);
  result = numericBound(result, "exclusiveMinimum", "minimum");
  result = numericBound(result, "exclusiveMaximum", "maximum");
  if (Object.hasOwn(result, "example")) {
    const copy = copyNode(result);
    delete copy["example"];
    if (!Object.hasOwn(result, "examples")) copy["examples"] = [result["example"]];
    result = copy;
  }
  if (result["format"] === "byte" || result["format"] === "binary") {
    const copy = copyNode(result);
    if (copy["format"] === "byte") copy["contentEncoding"] = "base64";
    else copy["contentMediaType"] = "application/octet-stream";
    delete copy["format"];
    result = copy;
  }
  if (!Object.hasOwn(result, "nullable")) return result;
  const nullable = result["nullable"] === true;
  const plain = without(result, "nullable");
  if (!nullable) return plain;
  if (!Object.hasOwn(node, "type")) {
    report.add(node, spot, {
      keyword: "nullable",
      action: "replaced",
      grade: "ambiguous",
      widens: true,
      message: '"nullable" without "type" is read as accepting null, which not every reader does',
    });
  }
  return acceptNull(plain);
}

/** `exclusiveMinimum: true` beside `minimum: 1` is `exclusiveMinimum: 1`. */
function numericBound(
  node: JsonSchemaObject,
  exclusive: "exclusiveMinimum" | "exclusiveMaximum",
  inclusive: "minimum" | "maximum",
): JsonSchemaObject {
  if (typeof node[exclusive] !== "boolean") return node;
  const copy = copyNode(node);
  delete copy[exclusive];
  if (node[exclusive] === true && typeof node[inclusive] === "number") {
    copy[exclusive] = node[inclusive];
    delete copy[inclusive];
  }
  return copy;
}
