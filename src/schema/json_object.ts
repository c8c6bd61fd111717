/**
 * Tells JSON objects from everything else.
 *
 * @module
 */

import type { JsonSchemaObject } from "../tool/mod.ts";

/** Whether `value` is an object and no list. */
export function isJsonObject(value: unknown): value is JsonSchemaObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
