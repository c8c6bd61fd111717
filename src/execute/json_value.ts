/**
 * Checks that a value is JSON, in one pass and with limits of depth and size. Arguments and results
 * are checked, so that serializing and parsing them never changes their values.
 */

import { JsonReader, MAX_DEPTH, STOPPED } from "../tool/mod.ts";

/** The length of the longest number in JSON, such as -0.0000012345678901234567. */
const MAX_NUMBER = 25;

/** The verdict on a value: JSON within the limit, JSON that is larger, or another value. */
export type JsonVerdict =
  /** `value`: the value, or a plain copy. `bytes`: the size, or an upper bound within the limit. */
  | { readonly kind: "json"; readonly value: unknown; readonly bytes: number }
  /** `bytes`: a lower bound of the size, because the value was not read to its end. */
  | { readonly kind: "large"; readonly bytes: number }
  /** `pointer`: the JSON Pointer of the invalid value. `what`: a description of that value. */
  | { readonly kind: "refused"; readonly pointer: string; readonly what: string };

/** Returns the pointer and the problem, such as `"/a/1" is NaN, which is not JSON`. */
export function describeRefusal(
  { pointer, what }: { readonly pointer: string; readonly what: string },
): string {
  return pointer === "" ? `it is ${what}` : `"${pointer}" is ${what}`;
}

/**
 * Reads a value as JSON.
 *
 * `toJSON` is called, members that are `undefined` are omitted, and instances of classes become
 * plain objects, as in `JSON.stringify`. Values that `JSON.stringify` would change or lose silently
 * are rejected: `NaN`, functions, symbols, `undefined` in a list, a `Map`, an `Error`.
 *
 * @param copies If true, the verdict contains a deep copy of the value.
 */
export function readJson(value: unknown, limit: number, copies = false): JsonVerdict {
  try {
    const budget = { bytes: limit };
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

interface Budget {
  bytes: number;
}

/**
 * Returns the value or its copy, and subtracts an upper bound of its bytes from the budget. Returns
 * `STOPPED` for large values and values other than plain data, which the exact reader handles. Most
 * values are small and plain.
 */
function readPlain(value: unknown, budget: Budget, copies: boolean, depth: number): unknown {
  if (typeof value === "string") budget.bytes -= 6 * value.length + 2;
  else if (typeof value === "number" && Number.isFinite(value)) budget.bytes -= MAX_NUMBER;
  else if (typeof value === "boolean" || value === null) budget.bytes -= 5;
  else if (typeof value !== "object" || depth === MAX_DEPTH) return STOPPED;
  else if ((budget.bytes -= 2) >= 0) return readPlainMembers(value, budget, copies, depth + 1);
  return budget.bytes < 0 ? STOPPED : value;
}

function readPlainMembers(value: object, budget: Budget, copies: boolean, depth: number): unknown {
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
  // This loop is twice as fast as Object.keys. It also visits additions to Object.prototype, which
  // are not copied. The sum stays an upper bound.
  for (const key in value) {
    budget.bytes -= 6 * key.length + 4;
    const member = readPlain((value as typeof copy)[key], budget, copies, depth);
    // An assignment to `__proto__` would set the prototype of the copy.
    if (member === STOPPED || key === "__proto__") return STOPPED;
    if (copies && Object.hasOwn(value, key)) copy[key] = member;
  }
  return copies ? copy : value;
}

/** Freezing a longer list is too slow on Bun: 13 ms for 10,000 items, 2 s for 500,000. */
const MAX_FROZEN = 1_000;

/**
 * Returns a frozen copy of JSON, or `undefined` if the value is not JSON. Lists of more than 1,000
 * items are copied but not frozen.
 */
export function frozenCopy<T>(value: T): T | undefined {
  try {
    const copy = new JsonReader({ freezeTo: MAX_FROZEN }).read(value);
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
