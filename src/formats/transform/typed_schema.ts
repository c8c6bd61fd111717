/**
 * JSON Schema as Gemini's typed schema, after the other transforms left only its keys.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject } from "../../tool/mod.ts";
import { copyNode, mapSchema } from "./schema_walk.ts";

/** The keys that hold 64-bit integers, which JSON has as texts. */
export const LENGTHS: ReadonlySet<string> = new Set([
  "minItems",
  "maxItems",
  "minLength",
  "maxLength",
  "minProperties",
  "maxProperties",
]);

/** Writes type names in capitals, lengths as texts, and the first of the examples as `example`. */
export function asTypedSchema(root: JsonSchema): JsonSchema {
  return mapSchema(root, { leave: typeNode });
}

function typeNode(node: JsonSchemaObject): JsonSchemaObject {
  const copy = copyNode(node);
  if (typeof copy["type"] === "string") copy["type"] = copy["type"].toUpperCase();
  for (const keyword of LENGTHS) {
    if (typeof copy[keyword] === "number") copy[keyword] = String(copy[keyword]);
  }
  const examples = copy["examples"];
  delete copy["examples"];
  if (Array.isArray(examples) && examples.length > 0 && !Object.hasOwn(copy, "example")) {
    copy["example"] = examples[0];
  }
  return copy;
}
