/** Checks values that callers pass, field by field, and calls functions that callers pass. */

import { pointerStep } from "./json.ts";
import { describe, describeThrown, isWithinEdits } from "./text.ts";

/** The maximum of `setTimeout`, in milliseconds. A larger delay overflows and fires immediately. */
export const MAX_TIMEOUT_MS = 2_147_483_647;

/** Returns the value to use, or throws an error that names the action, such as `select tools`. */
export type Check<T = unknown> = (action: string, value: unknown, place: string) => T;

/** Throws a `TypeError`: `Cannot <action>: <problem>`. */
export function fail(action: string, problem: string, cause?: unknown): never {
  throw new TypeError(`Cannot ${action}: ${problem}`, cause === undefined ? undefined : { cause });
}

/** Runs a function. Rethrows an error of the function with a message that names the action. */
export function attempt<T>(action: string, work: () => T, before = ""): T {
  try {
    return work();
  } catch (cause) {
    fail(action, before + describeThrown(cause).replace(/^Cannot (use|copy) /, ""), cause);
  }
}

/** Returns the value of a function, or the fallback if it throws. */
export function attemptOr<Value>(fallback: Value, work: () => Value): Value {
  try {
    return work();
  } catch {
    return fallback;
  }
}

/** Creates a check that returns the value unchanged. Messages name `wanted`, the valid values. */
export function createCheck<T>(wanted: string, accepts: (value: unknown) => value is T): Check<T> {
  return (action, value, place) =>
    accepts(value) ? value : fail(action, `${place} must be ${wanted}, not ${describe(value)}`);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isText(value: unknown): value is string {
  return typeof value === "string";
}

export function isWord(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

export function isListOf<T>(
  value: unknown,
  accepts: (item: unknown) => item is T,
): value is readonly T[] {
  if (!Array.isArray(value)) return false;
  // `every` skips the holes of a list.
  for (const item of value) if (!accepts(item)) return false;
  return true;
}

export function isFunction(value: unknown): value is () => unknown {
  return typeof value === "function";
}

export function ofType<T>(wanted: string, ...types: readonly string[]): Check<T> {
  return createCheck(wanted, (value): value is T => types.includes(typeof value));
}

export function oneOf<T>(values: readonly T[]): Check<T> {
  return createCheck(
    `one of ${values.join(", ")}`,
    (value): value is T => values.includes(value as T),
  );
}

/** Creates a check for strings that match a pattern. */
export function matching(wanted: string, pattern: RegExp): Check<string> {
  return createCheck(wanted, (value): value is string => isText(value) && pattern.test(value));
}

// Common checks.
export const anyValue: Check = (_action, value) => value;
export const checkFlag: Check<boolean> = /* @__PURE__ */ ofType("true or false", "boolean");
export const checkText: Check<string> = /* @__PURE__ */ ofType("a string", "string");
export const checkWord: Check<string> = /* @__PURE__ */ createCheck(
  "a string that is not empty",
  isWord,
);
export const checkTexts: Check<readonly string[]> = /* @__PURE__ */ createCheck(
  "a list of strings",
  (value) => isListOf(value, isText),
);
export const checkFunction: Check<() => unknown> = /* @__PURE__ */ ofType("a function", "function");

/** Checks that an object from the host has these functions. The object is optional. */
export function checkPort<Port extends object>(
  action: string,
  name: string,
  port: Port | undefined,
  methods: readonly (keyof Port & string)[],
): void {
  for (const method of methods) {
    if (port !== undefined && !isFunction(port[method])) {
      fail(action, `${name} must have a ${method} function`);
    }
  }
}

export function numberFrom(least: number, most: number = Infinity): Check<number> {
  return inRange(`a number from ${least} to ${most}`, (value) => value >= least && value <= most);
}

export function wholeFrom(least: number, most: number = Infinity): Check<number> {
  return inRange(
    most === Infinity
      ? `a whole number, ${least} or above`
      : `a whole number from ${least} to ${most}`,
    (value) => Number.isInteger(value) && value >= least && value <= most,
  );
}

function inRange(wanted: string, accepts: (value: number) => boolean): Check<number> {
  return (action, value, place) => {
    if (typeof value === "number" && accepts(value)) return value;
    throw new RangeError(`Cannot ${action}: ${place} must be ${wanted}, not ${describe(value)}`);
  };
}

/** The checked fields. A field that the caller omitted is absent. */
export type ReadFields<Checks extends { readonly [field: string]: Check }> = {
  -readonly [Field in keyof Checks]?: ReturnType<Checks[Field]>;
};

/** Returns a suggestion for an unknown field: `did you mean "risk"?` */
export type FieldHint = (field: string) => string | undefined;

export function rejectUnknownFields(
  action: string,
  object: object,
  fields: readonly string[],
  hint?: FieldHint,
): void {
  for (const field of Object.keys(object)) {
    if (fields.includes(field)) continue;
    // The known field begins with the unknown name, or differs in at most one letter of three.
    const near = fields.find((other) =>
      field.length > 2 &&
      (other.startsWith(field) || isWithinEdits(other, field, Math.min(2, field.length / 3 | 0)))
    );
    const meant = hint?.(field) ?? (near && `did you mean "${near}"?`);
    fail(
      action,
      `${describe(pointerStep(field))} is not one of its fields: ${meant ?? fields.join(", ")}`,
    );
  }
}

/**
 * Reads each field of an object once, and returns the checked fields. Rejects unknown fields.
 * `place` names a field in messages; by default it is the JSON Pointer.
 */
export function readFields<Checks extends { readonly [field: string]: Check }>(
  action: string,
  object: object,
  checks: Checks,
  place: (field: string) => string = (field) => `"/${field}"`,
  hint?: FieldHint,
): ReadFields<Checks> {
  if (!isObject(object)) fail(action, "the options must be an object");
  rejectUnknownFields(action, object, Object.keys(checks), hint);
  const read: Record<string, unknown> = {};
  for (const [field, check] of Object.entries(checks)) {
    const value = object[field];
    if (value !== undefined) read[field] = check(action, value, place(field));
  }
  // Each field contains the result of its own check.
  return read as ReadFields<Checks>;
}

// Calls of the host's functions: log hooks, listeners, predicates. Their errors and rejections are
// logged, and change no result. An unhandled rejection would end the process: TypeScript accepts an
// `async` function wherever the result is ignored.

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null &&
    typeof (value as { readonly then?: unknown }).then === "function";
}

/** Receives the error of a hook. Must not throw. */
export type HookLog = (error: unknown) => void;

export const noop: HookLog = () => {};

/** Calls a hook without awaiting it. */
export function callHook(hook: () => unknown, log: HookLog): void {
  try {
    const answer = hook();
    if (isThenable(answer)) Promise.resolve(answer).then(undefined, log);
  } catch (error) {
    log(error);
  }
}

/** Returns the result of a synchronous function. Throws if it is a promise: a promise is truthy. */
export function assertSync<T>(answer: T, advice = ""): T {
  if (!isThenable(answer)) return answer;
  Promise.resolve(answer).then(undefined, noop);
  return fail("use a function's result", `the result must not be a promise${advice}`);
}
