/**
 * Checks of selections and of the arguments of filters. Each returns a frozen copy of the value.
 *
 * @module
 */

import {
  type Check,
  checkCategory,
  describe,
  type FieldHint,
  isFunction,
  isObject,
  isPlain,
  isToolId,
  isToolName,
  isWord,
  must,
  type ReadFields,
  readFields,
  refuse,
  TOOL_NAME_RULE,
} from "../tool/mod.ts";

/** Names in any order. They are kept sorted, each once. */
export type NameList = readonly string[] | ReadonlySet<string>;

/** How many items a list may have. Far below what a call takes as arguments, on any runtime. */
const MAX_ITEMS = 10_000;

/** What the arguments of a function are called in messages. */
const ARGUMENTS = "the list of arguments";

/** Where an item of a list stands: a JSON Pointer, or the number of an argument. */
function itemPlace(list: string, at: number): string {
  return list === ARGUMENTS ? `argument ${at + 1}` : `${list.slice(0, -1)}/${at}"`;
}

/** The check of a list; `wanted` says in words what each item must be. */
export function listOf<Item>(
  wanted: string,
  accepts: (item: unknown) => item is Item,
): Check<readonly Item[]> {
  return (action, value, place) => {
    if (!Array.isArray(value)) {
      return refuse(action, `${place} must be a list, not ${describe(value)}`);
    }
    if (value.length > MAX_ITEMS) {
      refuse(action, `${place} must have at most ${MAX_ITEMS} items, not ${value.length}`);
    }
    // Array.from visits holes too, which are wrong too.
    return Object.freeze(
      Array.from(
        value,
        (item: unknown, at) =>
          accepts(item)
            ? item
            : refuse(action, `${itemPlace(place, at)} must be ${wanted}, not ${describe(item)}`),
      ),
    );
  };
}

/** The check of a list or a set of names: sorted, each once. */
function setOf(
  wanted: string,
  accepts: (item: unknown) => item is string,
): Check<readonly string[]> {
  const check = listOf(wanted, accepts);
  return (action, value, place) => {
    const names = check(action, value instanceof Set ? [...value] : value, place);
    return Object.freeze([...new Set(names)].sort());
  };
}

export const checkFunctions: Check<readonly unknown[]> = listOf("a function", isFunction);
export const checkWords: Check<readonly string[]> = setOf("a string that is not empty", isWord);
export const checkIds: Check<readonly string[]> = setOf(
  `a tool's id, "name" or "namespace:name", each ${TOOL_NAME_RULE}`,
  isToolId,
);
const checkNamespaceSet = setOf(`a namespace, ${TOOL_NAME_RULE}`, isToolName);
/** Checks namespaces; a string is one of them. */
export const checkNamespaces: Check<readonly string[]> = (action, value, place) =>
  checkNamespaceSet(action, typeof value === "string" ? [value] : value, place);
export const checkCategories: Check<readonly string[]> = (action, value, place) => {
  const names = checkWords(action, value, place);
  for (const name of names) checkCategory(action, name, `an item of ${place}`);
  return names;
};

/** Checks the arguments that a function was called with. */
export function checkArguments<Kept>(
  action: string,
  given: readonly unknown[],
  check: Check<Kept>,
): Kept {
  return check(action, given, ARGUMENTS);
}

export function readPlain<Checks extends { readonly [field: string]: Check }>(
  action: string,
  value: unknown,
  checks: Checks,
  hint?: FieldHint,
): ReadFields<Checks> {
  // Any other object, such as a builder, shows no fields, so it would remove nothing.
  return readFields(action, checkPlain(action, value, "it"), checks, undefined, hint);
}

export const checkPlain: Check<Record<string, unknown>> = must(
  "a plain object",
  (value): value is Record<string, unknown> => isObject(value) && isPlain(value),
);
