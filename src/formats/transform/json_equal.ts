/**
 * Equality of JSON values, as JSON Schema's `const` and `enum` have it.
 *
 * @module
 */

/** Whether two JSON values are the same: order counts in lists, not in objects. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
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

/** `values` without what is in it twice. */
export function distinct<T>(values: readonly T[]): T[] {
  const kept: T[] = [];
  for (const value of values) {
    if (!kept.some((other) => jsonEqual(other, value))) kept.push(value);
  }
  return kept;
}
