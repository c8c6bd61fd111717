/**
 * Looks at a value as JSON, once: is it JSON, how deep, how large. Results and arguments both come
 * this way, so that what is handed on can always be written down and read back unchanged.
 *
 * @module
 */

import { JsonReader, MAX_DEPTH, STOPPED } from "../tool/mod.ts";

/** The longest number: -0.0000012345678901234567. */
const MAX_NUMBER = 25;

/** A value that is JSON, as plain data, with bounds on its size in bytes of JSON. */
export interface JsonAccepted {
  readonly kind: "json";
  /** The value itself, or plain data in its place if it had members that JSON writes otherwise. */
  readonly value: unknown;
  /** It has at most so many bytes: the exact number, or an upper bound within the limit. */
  readonly bytes: number;
}

/** A value that is JSON, and larger than the limit. It has not been looked at to its end. */
export interface JsonTooLarge {
  readonly kind: "large";
  /** It has at least so many bytes. */
  readonly bytes: number;
}

/** A value that is not JSON. */
export interface JsonRefused {
  readonly kind: "refused";
  /** Where, as a JSON Pointer. */
  readonly pointer: string;
  /** What is there, in words. */
  readonly what: string;
}

/** Says where and what: `"/a/1" is NaN, which is not JSON`. */
export function describeRefusal({ pointer, what }: JsonRefused): string {
  return pointer === "" ? `it is ${what}` : `"${pointer}" is ${what}`;
}

/** What {@linkcode readJson} says of a value. */
export type JsonVerdict = JsonAccepted | JsonTooLarge | JsonRefused;

/**
 * Reads a value as JSON.
 *
 * `toJSON` is honoured, members that are `undefined` are left out, and instances of classes become
 * plain objects, all as `JSON.stringify` does it. What `JSON.stringify` would change or lose
 * silently is refused: `NaN`, functions, symbols, `undefined` in a list, a `Map`, an `Error`.
 *
 * @param value What to look at. It is not changed.
 * @param limit How many bytes of JSON it may have.
 */
export function readJson(value: unknown, limit: number): JsonVerdict {
  try {
    const most = quickLook(value, limit, 0);
    if (most <= limit) return { kind: "json", value, bytes: most };
    const reader = new JsonReader({ maxBytes: limit, standIns: true });
    const copy = reader.read(value);
    const { what, pointer, converts } = reader;
    if (what !== undefined) return { kind: "refused", pointer, what };
    if (copy === STOPPED) return { kind: "large", bytes: reader.bytes };
    const bytes = utf8Length(JSON.stringify(copy));
    if (bytes > limit) return { kind: "large", bytes };
    return { kind: "json", value: converts ? copy : value, bytes };
  } catch {
    // A getter, a toJSON or a proxy threw.
    return { kind: "refused", pointer: "", what: "a value that cannot be read" };
  }
}

/**
 * How many bytes of JSON the value has at most; `NaN` if that takes a closer look, because it is
 * large or has something in it that is not plain data. Most values are small and plain, and are
 * looked at in this way only, which allocates nothing.
 */
function quickLook(value: unknown, limit: number, depth: number): number {
  if (typeof value === "string") return 6 * value.length + 2;
  if (typeof value === "number") return Number.isFinite(value) ? MAX_NUMBER : NaN;
  if (typeof value === "boolean") return 5;
  if (typeof value !== "object" || depth === MAX_DEPTH) return NaN;
  if (value === null) return 4;
  let most = 2;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      most += 1 + quickLook(value[index], limit, depth + 1);
      // False for NaN, too.
      if (!(most <= limit)) return NaN;
    }
    return most;
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return NaN;
  // Twice as fast as Object.keys. What somebody added to Object.prototype is counted in, which
  // leaves the sum an upper bound.
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key];
    most += 6 * key.length + 4 + quickLook(member, limit, depth + 1);
    if (!(most <= limit)) return NaN;
  }
  return most;
}

const ENCODER = new TextEncoder();

/** How many bytes `text` has in UTF-8. */
export function utf8Length(text: string): number {
  return ENCODER.encode(text).length;
}

/** How many bytes of JSON a string takes. */
export function jsonBytes(text: string): number {
  return utf8Length(JSON.stringify(text));
}
