/**
 * What `format`, `type`, `const`, `enum`, `uniqueItems` and `multipleOf` mean, for all
 * engines alike.
 *
 * @module
 */

import { canonicalJson } from "../tool/mod.ts";
import { isStructure } from "./keywords.ts";

/**
 * The values of `format` that engines assert: those that draft-07 or 2020-12 names, in both drafts,
 * because a model that is told `"format": "date"` should send a date. Any other format (`int32`,
 * `password`, `city`) is an annotation, which models read and every value fits.
 */
export const ASSERTED_FORMATS: ReadonlySet<string> = new Set(
  ("date date-time duration email hostname idn-email idn-hostname ipv4 ipv6 iri iri-reference " +
    "json-pointer regex relative-json-pointer time uri uri-reference uri-template uuid").split(" "),
);

/** Whether a value is of the type that a schema names. */
export function isOfType(type: unknown, value: unknown): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "number") return typeof value === "number" && Number.isFinite(value);
  return typeOf(value) === type;
}

/** The JSON type of a value, for "…, not a number". */
export function typeOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

/**
 * Makes a test for being one of `choices`. The value is written as text once, however many there are.
 */
export function isOneOf(choices: readonly unknown[]): (value: unknown) => boolean {
  const simple = new Set(choices);
  const texts = new Set(choices.filter(isStructure).map((choice) => canonicalJson(choice)));
  return (value) =>
    isStructure(value) ? texts.size > 0 && texts.has(canonicalJson(value)) : simple.has(value);
}

/** The places of the first two equal items, if there are any. Linear in the size of the list. */
export function sameItems(items: readonly unknown[]): readonly [number, number] | undefined {
  const simple = new Map<unknown, number>();
  const texts = new Map<unknown, number>();
  for (const [at, item] of items.entries()) {
    const [places, key] = isStructure(item) ? [texts, canonicalJson(item)] : [simple, item];
    const before = places.get(key);
    if (before !== undefined) return [before, at];
    places.set(key, at);
  }
  return undefined;
}

/** How far from a multiple a number may be, because binary fractions cannot say 0.3. */
const TOLERANCE = 1e-10;

/** Whether `value` is a multiple of `step`. */
export function isMultipleOf(value: number, step: number): boolean {
  // A whole number is a multiple of 1/2, 1/4…, also where the remainder would be inexact.
  if (Number.isInteger(value) && Number.isInteger(1 / step)) return true;
  const rest = value % step;
  return Math.min(Math.abs(rest), Math.abs(rest - step), Math.abs(rest + step)) < TOLERANCE;
}
