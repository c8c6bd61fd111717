/**
 * Equality of JSON values, as `const`, `enum` and `uniqueItems` mean it: by value, in any order of
 * keys.
 *
 * @module
 */

/**
 * Makes a test for being one of `choices`. A value is put into words once, however many they are.
 */
export function isOneOf(choices: readonly unknown[]): (value: unknown) => boolean {
  const simple = new Set(choices);
  const texts = new Set(choices.filter(isStructured).map(canonical));
  return (value) =>
    isStructured(value) ? texts.size > 0 && texts.has(canonical(value)) : simple.has(value);
}

/** Whether `value` is an object or a list. */
export function isStructured(value: unknown): value is object {
  return typeof value === "object" && value !== null;
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
  if (!isStructured(value)) return JSON.stringify(value) ?? typeof value;
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`).join()}}`;
}
