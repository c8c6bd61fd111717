/**
 * Equality of JSON values, as JSON Schema's `const` and `enum` have it.
 *
 * @module
 */

import { spend } from "./origin.ts";

/** Whether two JSON values are the same: order counts in lists, not in objects. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  spend(1);
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length &&
      a.every((item, index) => jsonEqual(item, b[index]));
  }
  if (Array.isArray(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) =>
    Object.hasOwn(b, key) &&
    jsonEqual((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key])
  );
}

/** A text for a JSON value: two values have the same text if they are equal, and only then. */
export function valueKey(value: unknown): string {
  // A text in a list or an object is escaped, so only here it may stand as it is.
  return typeof value === "string" ? `"${value}` : canonicalJson(value);
}

function canonicalJson(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "undefined";
  spend(1);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`;
  const members = Object.keys(value).sort().map((key) =>
    `${JSON.stringify(key)}:${canonicalJson((value as Record<string, unknown>)[key])}`
  );
  return `{${members.join()}}`;
}

/** The texts of JSON values, to ask quickly whether one of them is there. */
export function valueKeys(values: readonly unknown[]): ReadonlySet<string> {
  return new Set(values.map(valueKey));
}

/** Whether a JSON value is in a list. */
export function includesValue(values: readonly unknown[], value: unknown): boolean {
  return typeof value === "object" && value !== null
    ? values.some((one) => jsonEqual(one, value))
    : values.includes(value);
}

/** `values` without what is in it twice. */
export function distinct<T>(values: readonly T[]): T[] {
  const seen = new Set<string>();
  return values.filter((value) => seen.size < seen.add(valueKey(value)).size);
}
