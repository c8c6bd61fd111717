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
 * @param copies Whether the verdict has a copy, which shares nothing with the value.
 */
export function readJson(value: unknown, limit: number, copies = false): JsonVerdict {
  try {
    const budget: Budget = { bytes: limit };
    const plain = readPlain(value, budget, copies, 0);
    if (plain !== STOPPED) return { kind: "json", value: plain, bytes: limit - budget.bytes };
    const reader = new JsonReader({ maxBytes: limit, standIns: true });
    const copy = reader.read(value);
    const { what, pointer, converts } = reader;
    if (what !== undefined) return { kind: "refused", pointer, what };
    if (copy === STOPPED) return { kind: "large", bytes: reader.bytes };
    const bytes = utf8Length(JSON.stringify(copy));
    if (bytes > limit) return { kind: "large", bytes };
    return { kind: "json", value: converts || copies ? copy : value, bytes };
  } catch {
    // A getter, a toJSON or a proxy threw.
    return { kind: "refused", pointer: "", what: "a value that cannot be read" };
  }
}

/** How many bytes may still come. */
interface Budget {
  bytes: number;
}

/**
 * The value or its copy, with an upper bound of its bytes taken from the budget; `STOPPED` if it
 * takes a closer look, because it is large or has something in it that is not plain data. Most
 * values are small and plain, and are read in this way only.
 */
function readPlain(value: unknown, budget: Budget, copies: boolean, depth: number): unknown {
  if (typeof value === "string") budget.bytes -= 6 * value.length + 2;
  else if (typeof value === "number" && Number.isFinite(value)) budget.bytes -= MAX_NUMBER;
  else if (typeof value === "boolean" || value === null) budget.bytes -= 5;
  else if (typeof value !== "object" || depth === MAX_DEPTH) return STOPPED;
  else if ((budget.bytes -= 2) >= 0) return readPlainMembers(value, budget, copies, depth + 1);
  return budget.bytes < 0 ? STOPPED : value;
}

function readPlainMembers(
  value: object,
  budget: Budget,
  copies: boolean,
  depth: number,
): unknown {
  if (Array.isArray(value)) {
    const copy: unknown[] = [];
    for (let index = 0; index < value.length; index++) {
      budget.bytes--;
      const item = readPlain(value[index], budget, copies, depth);
      if (item === STOPPED) return STOPPED;
      if (copies) copy.push(item);
    }
    return copies ? copy : value;
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return STOPPED;
  const copy: Record<string, unknown> = {};
  // Twice as fast as Object.keys. It also finds what was added to Object.prototype, which is not
  // copied and leaves the sum an upper bound.
  for (const key in value) {
    budget.bytes -= 6 * key.length + 4;
    const member = readPlain((value as typeof copy)[key], budget, copies, depth);
    // An assignment to `__proto__` would set the prototype of the copy.
    if (member === STOPPED || key === "__proto__") return STOPPED;
    if (copies && Object.hasOwn(value, key)) copy[key] = member;
  }
  return copies ? copy : value;
}

/** To freeze a longer list takes Bun too long: 13 ms for 10,000 items, 2 s for 500,000. */
const MAX_FROZEN = 1_000;

/**
 * A frozen copy of JSON; `undefined` if the value is not JSON. Lists of more than 1,000 items are
 * copied and not frozen.
 */
export function frozenCopy<T>(value: T): T | undefined {
  try {
    const copy = new JsonReader({ freezeTo: MAX_FROZEN }).read(value);
    // What was read is of the same type.
    return copy === STOPPED ? undefined : copy as T;
  } catch {
    return undefined;
  }
}

const ENCODER = new TextEncoder();

export function utf8Length(text: string): number {
  return ENCODER.encode(text).length;
}

export function jsonBytes(text: string): number {
  return utf8Length(JSON.stringify(text));
}
