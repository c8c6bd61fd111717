/**
 * Checks of values that callers hand in: a table says for each field what it must be, and all
 * refusals read alike.
 *
 * @module
 */

import { pointerStep } from "./json.ts";
import { describe, describeThrown, isWithinEdits } from "./text.ts";

/** `setTimeout` overflows above it, and would fire at once. In milliseconds. */
export const MAX_TIMEOUT_MS = 2_147_483_647;

/**
 * Checks a value, and answers what to keep of it.
 *
 * @param action What cannot be done with a wrong value: `select tools`.
 * @param place Which value it is, in words: `its risk`.
 * @throws {TypeError} If the value is wrong.
 */
export type Check<T = unknown> = (action: string, value: unknown, place: string) => T;

/** Throws a `TypeError`: `Cannot <action>: <problem>`. */
export function refuse(action: string, problem: string, cause?: unknown): never {
  throw new TypeError(`Cannot ${action}: ${problem}`, cause === undefined ? undefined : { cause });
}

/**
 * Does the work. What it throws is refused for the action, with `before` in front of its message,
 * which loses a "Cannot use …" or "Cannot copy …" of its own.
 */
export function attempt<T>(action: string, work: () => T, before = ""): T {
  try {
    return work();
  } catch (cause) {
    refuse(action, before + describeThrown(cause).replace(/^Cannot (use|copy) /, ""), cause);
  }
}

/** The check of a value that is kept as it is; `wanted` says in words what it must be. */
export function must<T>(wanted: string, accepts: (value: unknown) => value is T): Check<T> {
  return (action, value, place) =>
    accepts(value) ? value : refuse(action, `${place} must be ${wanted}, not ${describe(value)}`);
}

/** Whether `value` is an object that is no list. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether `value` is a string that is not empty. */
export function isWord(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** Whether `value` is a list of what `accepts` takes, without holes. */
export function isListOf<T>(
  value: unknown,
  accepts: (item: unknown) => item is T,
): value is readonly T[] {
  if (!Array.isArray(value)) return false;
  // `every` would step over holes.
  for (const item of value) if (!accepts(item)) return false;
  return true;
}

export function isFunction(value: unknown): value is () => unknown {
  return typeof value === "function";
}

/** The check of a value by what `typeof` says of it. */
export function ofType<T>(wanted: string, ...types: readonly string[]): Check<T> {
  return must(wanted, (value): value is T => types.includes(typeof value));
}

/** The check of a value that is one of these. */
export function oneOf<T>(values: readonly T[]): Check<T> {
  return must(`one of ${values.join(", ")}`, (value): value is T => values.includes(value as T));
}

// The checks that most tables need.
export const checkFlag: Check<boolean> = /* @__PURE__ */ ofType("true or false", "boolean");
export const checkText: Check<string> = /* @__PURE__ */ ofType("a string", "string");
export const checkWord: Check<string> = /* @__PURE__ */ must("a string that is not empty", isWord);
export const checkFunction: Check<() => unknown> = /* @__PURE__ */ ofType("a function", "function");

/** Checks that what a host handed in, if it did, has these functions. */
export function checkPort<Port extends object>(
  action: string,
  name: string,
  port: Port | undefined,
  methods: readonly (keyof Port & string)[],
): void {
  for (const method of methods) {
    if (port !== undefined && !isFunction(port[method])) {
      refuse(action, `${name} must have a ${method} function`);
    }
  }
}

/** The check of a number from `least` to `most`. Throws a `RangeError`. */
export function numberFrom(least: number, most: number = Infinity): Check<number> {
  return inRange(
    `a number from ${least} to ${most}`,
    (value) => value >= least && value <= most,
  );
}

/** The check of a whole number that is `least` or more. Throws a `RangeError`. */
export function wholeFrom(least: number): Check<number> {
  return inRange(
    `a whole number, ${least} or above`,
    (value) => Number.isInteger(value) && value >= least,
  );
}

function inRange(wanted: string, accepts: (value: number) => boolean): Check<number> {
  return (action, value, place) => {
    if (typeof value === "number" && accepts(value)) return value;
    throw new RangeError(`Cannot ${action}: ${place} must be ${wanted}, not ${describe(value)}`);
  };
}

/** What the fields were checked to be; those that were not given are absent. */
export type ReadFields<Checks extends { readonly [field: string]: Check }> = {
  -readonly [Field in keyof Checks]?: ReturnType<Checks[Field]>;
};

/** Says of a field that is not there what was meant: `did you mean "risk"?` */
export type FieldHint = (field: string) => string | undefined;

/** Refuses an object that has other fields than these. */
export function refuseOthers(
  action: string,
  object: object,
  fields: readonly string[],
  hint?: FieldHint,
): void {
  for (const field of Object.keys(object)) {
    if (fields.includes(field)) continue;
    // The beginning of a field's name, or one with a wrong letter in three.
    const near = fields.find((other) =>
      field.length > 2 &&
      (other.startsWith(field) || isWithinEdits(other, field, Math.min(2, field.length / 3 | 0)))
    );
    const meant = hint?.(field) ?? (near && `did you mean "${near}"?`);
    refuse(
      action,
      `${describe(pointerStep(field))} is not one of its fields` +
        (meant ? `: ${meant}` : `, ${fields.join(", ")}`),
    );
  }
}

/**
 * Reads each field of an object once, checks those that are there, and answers them in a new
 * object.
 *
 * @param checks What each field must be. Other fields are refused.
 * @param place What a field of the table is called in messages: by default its JSON Pointer.
 * @param hint Says what was meant by a field that is not there.
 */
export function readFields<Checks extends { readonly [field: string]: Check }>(
  action: string,
  object: object,
  checks: Checks,
  place: (field: string) => string = (field) => `"/${field}"`,
  hint?: FieldHint,
): ReadFields<Checks> {
  if (!isObject(object)) refuse(action, "its options must be an object");
  refuseOthers(action, object, Object.keys(checks), hint);
  const read: Record<string, unknown> = {};
  for (const [field, check] of Object.entries(checks)) {
    const value = object[field];
    if (value !== undefined) read[field] = check(action, value, place(field));
  }
  // Each field holds what its own check answered.
  return read as ReadFields<Checks>;
}
