/**
 * Checks of selections and of filters' arguments: a value is checked once, and what is kept of it is
 * a copy, frozen.
 *
 * @module
 */

import {
  type Check,
  checkFunction,
  checkWord,
  describe,
  isToolId,
  must,
  type ReadFields,
  readFields,
  refuse,
  TOOL_NAME_RULE,
} from "../tool/mod.ts";

/** How many items a list may have. Far below what a call takes as arguments, on any runtime. */
const MAX_ITEMS = 10_000;

/** What the arguments of a function are called in messages. */
const ARGUMENTS = "the list of arguments";

/** Where an item of a list stands: a JSON Pointer, or the number of an argument. */
function itemPlace(list: string, at: number): string {
  return list === ARGUMENTS ? `argument ${at + 1}` : `${list.slice(0, -1)}/${at}"`;
}

/** The check of a list, each item by a check of its own. */
export function listOf<Item>(check: Check<Item>): Check<readonly Item[]> {
  return (action, value, place) => {
    if (!Array.isArray(value)) {
      return refuse(action, `${place} must be a list, not ${describe(value)}`);
    }
    if (value.length > MAX_ITEMS) {
      refuse(action, `${place} must have at most ${MAX_ITEMS} items, not ${value.length}`);
    }
    // Array.from visits holes too, which are not what is wanted either.
    return Object.freeze(
      Array.from(value, (item: unknown, at) => check(action, item, itemPlace(place, at))),
    );
  };
}

/** The check of a list of names: sorted, each once. */
function setOf(check: Check<string>): Check<readonly string[]> {
  const checkList = listOf(check);
  return (action, value, place) =>
    Object.freeze([...new Set(checkList(action, value, place))].sort());
}

export const checkFunctions: Check<readonly unknown[]> = listOf(checkFunction);
export const checkWords: Check<readonly string[]> = setOf(checkWord);
export const checkIds: Check<readonly string[]> = setOf(must(
  `a tool's id, "name" or "namespace:name", each ${TOOL_NAME_RULE}`,
  isToolId,
));

/** Checks the arguments that a function was called with. */
export function checkArguments<Kept>(
  action: string,
  given: readonly unknown[],
  check: Check<Kept>,
): Kept {
  return check(action, given, ARGUMENTS);
}

/** Reads the fields of a plain object. */
export function readPlain<Checks extends { readonly [field: string]: Check }>(
  action: string,
  value: unknown,
  checks: Checks,
): ReadFields<Checks> {
  // Any other object, such as a builder, has no fields to see: it would say nothing, and so
  // remove nothing.
  return readFields(action, checkPlain(action, value, "it"), checks);
}

const checkPlain = must("a plain object", (value): value is Record<string, unknown> => {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Not compared with Object.prototype: another realm has its own.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
});
