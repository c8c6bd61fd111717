/** Values that are created once per key. */

/** The value that a map has for a key. Where it has none, `make` gives it, and the map keeps it. */
export function once<Key, Value>(
  map: { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown },
  key: Key,
  make: () => Value,
): Value {
  let value = map.get(key);
  if (value === undefined) map.set(key, value = make());
  return value;
}

const numbers = new WeakMap<object, number>();
let count = 0;

/** A number for an object in a key of text: another object has another one. */
export function numberOf(object: object): number {
  return once(numbers, object, () => ++count);
}
