/**
 * Checks of what a selection is made from. What is wrong throws a `TypeError` that says where:
 * a JSON Pointer into data (`"/maxRisk"`), or the number of an argument.
 *
 * @module
 */

import {
  isRiskLevel,
  isToolId,
  pointerStep,
  RISK_LEVELS,
  type RiskLevel,
  TOOL_NAME_RULE,
} from "../tool/mod.ts";

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
  if (typeof value === "object" && value !== null) return "an object";
  return typeof value === "function" ? "a function" : String(value).slice(0, 100);
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

/** Checks a value, and answers what to keep of it. */
export type Check = (action: string, value: unknown, at: string) => unknown;

/** Checks the fields of an object, and copies those that are there. */
export function readFields(
  action: string,
  value: unknown,
  checks: { readonly [field: string]: Check },
): Record<string, unknown> {
  // Any other object, such as a builder, has no fields to see: it would say nothing, and so
  // remove nothing.
  if (!isPlainObject(value)) return refuse(action, `it must be a plain object, not ${show(value)}`);
  for (const field of Object.keys(value)) {
    if (!Object.hasOwn(checks, field)) {
      const fields = Object.keys(checks).join(", ");
      refuse(action, `${show(pointerStep(field))} is not one of its fields, ${fields}`);
    }
  }
  const read: Record<string, unknown> = {};
  for (const [field, check] of Object.entries(checks)) {
    const given = value[field];
    if (given !== undefined) read[field] = check(action, given, `/${field}`);
  }
  return read;
}

/** Checks a list of names: sorted, each once, frozen. */
export function checkWords(action: string, value: unknown, at = ""): readonly string[] {
  return ordered(checkList(action, value, at, isWord, "a string that is not empty"));
}

/** Checks a list of tool ids: sorted, each once, frozen. */
export function checkIds(action: string, value: unknown, at = ""): readonly string[] {
  const wanted = `a tool's id, "name" or "namespace:name", each ${TOOL_NAME_RULE}`;
  return ordered(checkList(action, value, at, isToolId, wanted));
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

/** Checks a list of functions. */
export function checkFunctions(action: string, value: unknown, at = ""): readonly unknown[] {
  return checkList(action, value, at, isFunction, "a function");
}

/** Checks a list, and copies it. */
export function checkList<Item>(
  action: string,
  value: unknown,
  at: string,
  accepts: (item: unknown) => item is Item,
  wanted: string,
): readonly Item[] {
  if (!Array.isArray(value)) {
    return refuse(action, `${place(at)} must be a list, not ${show(value)}`);
  }
  if (value.length > MAX_ITEMS) {
    const list = at === "" ? "the list of arguments" : place(at);
    return refuse(action, `${list} must have at most ${MAX_ITEMS} items, not ${value.length}`);
  }
  // Array.from visits holes too, which are not what is wanted either.
  return Object.freeze(
    Array.from(
      value,
      (item: unknown, index) =>
        accepts(item)
          ? item
          : refuse(action, `${place(at, index)} must be ${wanted}, not ${show(item)}`),
    ),
  );
}

function isPlainObject(value: unknown): value is { readonly [field: string]: unknown } {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Not compared with Object.prototype: another realm has its own.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function isFunction(value: unknown): value is () => unknown {
  return typeof value === "function";
}

function isWord(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function ordered(list: readonly string[]): readonly string[] {
  return Object.freeze([...new Set(list)].sort());
}
