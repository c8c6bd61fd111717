/**
 * Checks of selections and of the arguments of filters. Each returns a frozen copy of the value.
 *
 * @module
 */

import {
  type Check,
  checkCategory,
  checkFunction,
  checkWord,
  describe,
  isObject,
  isPlain,
  isToolId,
  isToolName,
  must,
  refuse,
  TOOL_NAME_RULE,
} from "../tool/mod.ts";

/** Names in any order. They are kept sorted, each once. */
export type NameList = readonly string[] | ReadonlySet<string>;

/** The maximum length of a list: freezing a longer one takes Bun long. */
const MAX_ITEMS = 10_000;

/** The check of a list, whose items pass `check`. Messages give the position of an item. */
export function listOf<Item>(check: Check<Item>): Check<readonly Item[]> {
  return (action, value, place) => {
    if (!Array.isArray(value)) {
      return refuse(action, `${place} must be a list, not ${describe(value)}`);
    }
    if (value.length > MAX_ITEMS) {
      refuse(action, `${place} must have at most ${MAX_ITEMS} items, not ${value.length}`);
    }
    const start = place.slice(0, -1);
    // Array.from visits holes too, which are wrong too.
    return Object.freeze(
      Array.from(value, (item: unknown, at) => check(action, item, `${start}/${at}"`)),
    );
  };
}

/** The check of a list or a set of names: sorted, each once. */
function namesOf(check: Check<string>): Check<readonly string[]> {
  const checkList = listOf(check);
  return (action, value, place) => {
    const names = checkList(action, value instanceof Set ? [...value] : value, place);
    return Object.freeze([...new Set(names)].sort());
  };
}

export const checkFunctions: Check<readonly unknown[]> = listOf(checkFunction);
export const checkWords: Check<readonly string[]> = namesOf(checkWord);
export const checkCategories: Check<readonly string[]> = namesOf(checkCategory);
export const checkIds: Check<readonly string[]> = namesOf(
  must(`a tool's id, "name" or "namespace:name", each ${TOOL_NAME_RULE}`, isToolId),
);
const checkNamespaceList = namesOf(must(`a namespace, ${TOOL_NAME_RULE}`, isToolName));
/** Checks namespaces; a string is one of them. */
export const checkNamespaces: Check<readonly string[]> = (action, value, place) =>
  checkNamespaceList(action, typeof value === "string" ? [value] : value, place);

export const checkPlain: Check<Record<string, unknown>> = must(
  "a plain object",
  (value): value is Record<string, unknown> => isObject(value) && isPlain(value),
);
