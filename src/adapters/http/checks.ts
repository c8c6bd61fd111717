/**
 * Checks options. A misspelt option is an error: if it were ignored, the server could admit more
 * than was intended.
 *
 * @module
 */

import {
  type Check,
  isFunction,
  isListOf,
  isObject,
  must,
  type ReadFields,
  readFields,
  wholeFrom,
} from "../../tool/mod.ts";

export const checkObject: Check<Record<string, unknown>> = must("an object", isObject);

export const checkTexts: Check<readonly string[]> = must(
  "a list of strings",
  (value): value is readonly string[] =>
    isListOf(value, (item): item is string => typeof item === "string"),
);

/** The check of a whole number from 1. Throws a `RangeError`. */
export const checkCount: Check<number> = wholeFrom(1);

/** The check of an object that has a method. */
export function having(method: string, name: string): Check<Record<string, unknown>> {
  return must(
    name,
    (value): value is Record<string, unknown> => isObject(value) && isFunction(value[method]),
  );
}

/**
 * Checks options by a table. Inherited members are not checked.
 *
 * @param action The action that fails, for the message: `check tokens`.
 * @throws {TypeError} If an option is unknown or wrong.
 * @throws {RangeError} If a number is out of range.
 */
export function checkOptions<Checks extends { readonly [option: string]: Check }>(
  action: string,
  options: object,
  checks: Checks,
): ReadFields<Checks> {
  return readFields(action, options, checks, (name) => `its option ${name}`);
}
