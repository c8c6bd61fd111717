/**
 * Checks of what a selection is made from. What is wrong throws a `TypeError` that says where:
 * a JSON Pointer into data (`"/maxRisk"`), or the number of an argument.
 *
 * @module
 */

import { isRiskLevel, isToolId, RISK_LEVELS, type RiskLevel, TOOL_NAME_RULE } from "../tool/mod.ts";

/** How many items a list may have. Far below what a call takes as arguments, on any runtime. */
const MAX_ITEMS = 10_000;

/** Where a value stands: a JSON Pointer, or `""` for the arguments of a function. */
function place(at: string, index?: number): string {
  if (at === "") return `argument ${(index ?? 0) + 1}`;
  return index === undefined ? `"${at}"` : `"${at}/${index}"`;
}

/** A value in a few words, for messages. Never a whole input. */
export function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 100));
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" && value !== null ? "an object" : String(value).slice(0, 100);
}

/** Throws the one kind of error this folder throws. */
export function refuse(action: string, problem: string): never {
  throw new TypeError(`Cannot ${action}: ${problem}`);
}

/** What an exception says, clipped. Anything can be thrown, also what cannot be made a string. */
export function thrownMessage(thrown: unknown): string {
  try {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return message.length > 200 ? `${message.slice(0, 200)}…` : message;
  } catch {
    return "something that has no message";
  }
}

/** Whether an object has a field that `fields` does not name. */
export function refuseUnknownFields(
  action: string,
  value: unknown,
  fields: readonly string[],
  at = "",
): asserts value is { readonly [field: string]: unknown } {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    refuse(action, `it must be an object, not ${show(value)}`);
  }
  for (const field of Object.keys(value)) {
    if (!fields.includes(field)) {
      const pointer = `${at}/${field.replaceAll("~", "~0").replaceAll("/", "~1").slice(0, 100)}`;
      refuse(action, `${JSON.stringify(pointer)} is not one of its fields, ${fields.join(", ")}`);
    }
  }
}

/** Checks a list of names: sorted, each once, frozen. */
export function checkWords(action: string, value: unknown, at = ""): readonly string[] {
  return checkList(action, value, at, isWord, "a string that is not empty");
}

/** Checks a list of tool ids: sorted, each once, frozen. */
export function checkIds(action: string, value: unknown, at = ""): readonly string[] {
  return checkList(
    action,
    value,
    at,
    isToolId,
    `a tool's id, "name" or "namespace:name", each ${TOOL_NAME_RULE}`,
  );
}

/** Checks a risk level. */
export function checkRisk(action: string, value: unknown, at = ""): RiskLevel {
  if (isRiskLevel(value)) return value;
  return refuse(
    action,
    `${place(at)} must be one of ${RISK_LEVELS.join(", ")}, not ${show(value)}`,
  );
}

/** Checks a flag. */
export function checkFlag(action: string, value: unknown, at: string): boolean {
  if (typeof value === "boolean") return value;
  return refuse(action, `${place(at)} must be true or false, not ${show(value)}`);
}

/** Checks that every item is a function. */
export function checkFunctions(action: string, value: unknown, at = ""): void {
  if (!Array.isArray(value)) refuse(action, `${place(at)} must be a list, not ${show(value)}`);
  for (const [index, item] of value.entries()) {
    if (typeof item !== "function") {
      refuse(action, `${place(at, index)} must be a function, not ${show(item)}`);
    }
  }
}

function isWord(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function checkList(
  action: string,
  value: unknown,
  at: string,
  accepts: (item: unknown) => item is string,
  wanted: string,
): readonly string[] {
  if (!Array.isArray(value)) {
    return refuse(action, `${place(at)} must be a list, not ${show(value)}`);
  }
  if (value.length > MAX_ITEMS) {
    const list = at === "" ? "the list of arguments" : place(at);
    return refuse(action, `${list} must have at most ${MAX_ITEMS} items, not ${value.length}`);
  }
  const items = new Set<string>();
  // Array.from visits holes too, which are no strings.
  Array.from(value, (item: unknown, index) => {
    if (!accepts(item)) {
      return refuse(action, `${place(at, index)} must be ${wanted}, not ${show(item)}`);
    }
    items.add(item);
  });
  return Object.freeze([...items].sort());
}
