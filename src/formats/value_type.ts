/**
 * Whether a value is of a type that a schema names.
 *
 * @module
 */

import { isNode } from "./transform/schema_walk.ts";

/** Whether a value is of the type, or of one of the types, that `type` says; without it, of any. */
export function fitsType(type: unknown, value: unknown): boolean {
  return type === undefined ||
    (Array.isArray(type) ? type : [type]).some((one) => isOfType(value, one));
}

function isOfType(value: unknown, type: unknown): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isNode(value);
    case "integer":
      return Number.isInteger(value);
    case "string":
      return typeof value === "string";
    case "number":
      return typeof value === "number";
    default:
      return typeof value === "boolean";
  }
}
