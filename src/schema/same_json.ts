/**
 * Equality of JSON values, as `const`, `enum` and `uniqueItems` mean it: by value, in any order of
 * keys.
 *
 * @module
 */

/** Whether two values are equal. */
export function sameJson(a: unknown, b: unknown): boolean {
  return a === b ||
    (typeof a === "object" && typeof b === "object" && canonical(a) === canonical(b));
}

/** The places of the first two equal items, if there are any. Linear in the size of the list. */
export function sameItems(items: readonly unknown[]): readonly [number, number] | undefined {
  const places = new Map<string, number>();
  for (const [at, item] of items.entries()) {
    const text = canonical(item);
    const before = places.get(text);
    if (before !== undefined) return [before, at];
    places.set(text, at);
  }
  return undefined;
}

/** JSON with sorted keys: equal values have equal texts. */
function canonical(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? typeof value;
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`).join()}}`;
}
