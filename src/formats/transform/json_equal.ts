/**
 * Equality of JSON values in schemas, with its work counted.
 *
 * @module
 */

import { canonicalJson, jsonEqual } from "../../tool/mod.ts";
import { countSteps } from "./origin.ts";

const countOne = (): void => countSteps(1);

export function sameValue(a: unknown, b: unknown): boolean {
  return jsonEqual(a, b, countOne);
}

/** A text for a JSON value: two values have the same text if they are equal, and only then. */
export function valueKey(value: unknown): string {
  return canonicalJson(value, countOne);
}

/** The texts of JSON values, to ask quickly whether one of them is there. */
export function valueKeys(values: readonly unknown[]): ReadonlySet<string> {
  return new Set(values.map(valueKey));
}

export function includesValue(values: readonly unknown[], value: unknown): boolean {
  return values.some((one) => sameValue(one, value));
}

export function distinct<T>(values: readonly T[]): T[] {
  const seen = new Set<string>();
  return values.filter((value) => seen.size < seen.add(valueKey(value)).size);
}
