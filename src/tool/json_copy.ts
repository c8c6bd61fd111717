/**
 * Frozen copies of JSON that somebody else owns. A tool keeps copies of its schemas and examples,
 * so that nobody can change them after they were checked.
 *
 * @module
 */

import { JsonReader, STOPPED } from "./json_reader.ts";

/** Against values made to exhaust memory. */
const OPTIONS = { maxValues: 1_000_000, freeze: true };

/**
 * Copies JSON and freezes the copy, all the way down. Members that are `undefined` are left out,
 * as `JSON.stringify` does.
 *
 * @throws {TypeError} If something in it is not JSON, with the JSON Pointer of it.
 */
export function copyJson<T>(value: T, what: string): T {
  const reader = new JsonReader(OPTIONS);
  const copy = reader.read(value);
  if (copy === STOPPED) {
    throw new TypeError(`Cannot copy ${what}: at "${reader.pointer}" it is ${reader.what}`);
  }
  return copy as T;
}
