/**
 * Parses the arguments of a call, and validates them with the tool's JSON Schema, its view, its
 * Standard Schema and its `validate` function. Only the checks that a tool has are composed.
 */

import type { ToolHost } from "../registry/mod.ts";
import { compileOnce, issuesOf, type StandardOutcome, validateStandard } from "../schema/mod.ts";
import {
  assertSync,
  clip,
  describeThrown,
  type Issue,
  MAX_DEPTH,
  type Tool,
  type ToolContext,
  type ToolFailure,
} from "../tool/mod.ts";
import { readIssues, validationFailure } from "./failures.ts";
import { describeRefusal, readJson, utf8Length } from "./json_value.ts";
import type { Call, DispatchPhase, Layer, Outcome } from "./layer.ts";

export interface CheckedCall extends Call {
  readonly context: ToolContext<never, never, never>;
  /** An upper bound of the size of the arguments, in bytes of JSON. */
  readonly argumentBytes: number;
  /** Sets the arguments that a Standard Schema returned, which need not be JSON. */
  setParsed(value: unknown): void;
  /**
   * Calls `next` with the value, synchronously or when its promise has resolved. Calls `failed` if
   * the promise rejects. The returned promise never rejects.
   */
  after<T>(
    doing: string,
    value: T | PromiseLike<T>,
    next: (value: T) => Outcome,
    failed?: (error: unknown) => Outcome,
  ): Outcome;
  /** Returns the failure for an error of a ring, a layer or the tool. */
  thrown(error: unknown, phase?: DispatchPhase, why?: string): ToolFailure;
}

/** A function that runs the rest of a call. The returned promise never rejects. */
export type Ring<C extends Call = CheckedCall> = (call: C) => Outcome;

const THREE_DIGITS = /\d{3}/;
const LARGE_NUMBER = /e\+?\d{3}|\d{200}/i;

/**
 * Parses `input`, a JSON string or a value that is JSON, into the arguments of the call. Missing
 * arguments become `{}`.
 *
 * @param reader The layer that reads text other than JSON. Without it, such text fails the call.
 */
export function parseArguments(
  call: Call,
  input: unknown,
  reader?: Layer,
): ToolFailure | undefined {
  const limit = call.settings.maxArgumentBytes;
  let value = input ?? {};
  let bytes: number | undefined;
  if (typeof input === "string") {
    bytes = input.length;
    // A UTF-16 unit has one to three bytes in UTF-8, so the bytes of most texts are not counted.
    if (bytes > limit || (bytes * 3 > limit && utf8Length(input) > limit)) return tooLarge(call);
    try {
      value = JSON.parse(input) ?? {};
    } catch {
      if (input.trim() !== "") {
        if (reader === undefined) return unparsed(call);
        call.setArguments(reader.readText?.(input), bytes);
        return undefined;
      }
      value = {};
    }
    // Each level has two brackets, so a short text is never too deep. JSON.parse returns Infinity
    // for too large numbers. On Node, THREE_DIGITS takes a third of the time of LARGE_NUMBER.
    if (bytes <= 2 * MAX_DEPTH && !(THREE_DIGITS.test(input) && LARGE_NUMBER.test(input))) {
      call.setArguments(value, bytes);
      return undefined;
    }
  }
  // Copies a value that is not text, so that the tool receives the validated arguments even if the
  // caller changes the value later.
  const verdict = readJson(value, bytes === undefined ? limit : Infinity, bytes === undefined);
  if (verdict.kind === "large") return tooLarge(call);
  if (verdict.kind === "refused") return unparsed(call, `: ${describeRefusal(verdict)}`);
  call.setArguments(verdict.value, bytes ?? verdict.bytes);
  return undefined;
}

export function unparsed(call: Call, why = ""): ToolFailure {
  return call.fail("invalid_arguments", `its arguments are not JSON${why}`);
}

function tooLarge(call: Call): ToolFailure {
  const { maxArgumentBytes } = call.settings;
  const why = `its arguments are larger than ${maxArgumentBytes} bytes of JSON`;
  return call.fail("invalid_arguments", why);
}

/** Returns the ring that validates the arguments of calls of `tool`, and then calls `next`. */
export function validate<C extends CheckedCall>(
  tool: Tool,
  host: ToolHost,
  next: Ring<C>,
): Ring<C> {
  const standard = applyStandard(tool, applyRule(tool, next));
  return tool.view === undefined && tool.parametersStandard !== undefined
    ? standard
    : checkSchema(tool, host, standard);
}

/**
 * Checks the arguments against the tool's JSON Schema. The arguments of a view are then converted
 * to the arguments of the original tool.
 */
function checkSchema<C extends CheckedCall>(
  { view }: Tool,
  host: ToolHost,
  next: Ring<C>,
): Ring<C> {
  return (call) => {
    const { parameters } = call.runtime;
    const verdict: unknown = parameters.check(call.arguments, call.argumentBytes);
    if (verdict !== true) {
      assertSync(verdict);
      return mismatch(call, assertSync(parameters.issues(call.arguments)));
    }
    if (view !== undefined) {
      const { issues, value } = view.toOriginalArguments(
        call.arguments,
        (schema, original) => issuesOf(compileOnce(host.engine, schema), original),
      );
      if (issues !== undefined) return mismatch(call, issues);
      call.setArguments(value, call.argumentBytes);
    }
    return next(call);
  };
}

/** Validates the arguments with a Standard Schema, which also adds defaults and transforms. */
function applyStandard<C extends CheckedCall>(tool: Tool, next: Ring<C>): Ring<C> {
  const { parametersStandard: schema } = tool;
  return schema === undefined ? next : (call) =>
    call.after(
      "checking the arguments",
      validateStandard(schema, call.arguments),
      ({ issues, value }: StandardOutcome) => {
        if (issues !== undefined) return mismatch(call, inView(tool, issues));
        call.setParsed(value);
        return next(call);
      },
    );
}

/** Calls the tool's `validate` function, which checks rules that a schema cannot express. */
function applyRule<C extends CheckedCall>({ validate }: Tool, next: Ring<C>): Ring<C> {
  return validate === undefined ? next : (call) => {
    const fail = (error: unknown): ToolFailure => {
      const why = `the tool threw while it checked its arguments: ${describeThrown(error)}`;
      return call.thrown(error, "validate", why);
    };
    let answer: unknown;
    try {
      answer = validate(call.arguments, call.context);
    } catch (error) {
      return fail(error);
    }
    const read = (value: unknown): Outcome => readRule(call, value) ?? next(call);
    return call.after("checking the arguments", answer, read, fail);
  };
}

/** Returns the failure for the return value of a rule; `undefined` if the arguments are valid. */
export function readRule(call: Call, answer: unknown): ToolFailure | undefined {
  if (answer === undefined || answer === null || answer === "") return undefined;
  const issues = typeof answer === "string" ? [{ message: clip(answer, 300) }] : answer;
  if (!Array.isArray(issues)) {
    // `false` may mean that the rule rejects the arguments, so the call does not continue.
    return call.fail("denied", "a rule for its arguments returned no valid value");
  }
  return issues.length === 0
    ? undefined
    : mismatch(call, inView(call.tool, readIssues(issues)), "break a rule");
}

/** Converts issues with the original tool's arguments to issues with the arguments of its view. */
function inView({ view }: Tool, issues: readonly Issue[]): readonly Issue[] {
  return view === undefined ? issues : issues.map(view.toViewIssue);
}

function mismatch({ tool }: Call, issues: readonly Issue[], what = "do not fit"): ToolFailure {
  return validationFailure("invalid_arguments", tool.id, `its arguments ${what}`, issues);
}

/** The text of arguments that are not JSON, before the arguments are repaired. */
export class UnparsedText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * Returns the issues with the current arguments, before a view or a Standard Schema converts them;
 * `undefined` if the arguments are valid.
 */
export function issuesBefore(
  call: Call,
): readonly Issue[] | undefined | Promise<readonly Issue[] | undefined> {
  if (call.arguments instanceof UnparsedText) {
    return [{ path: "", keyword: "json", expected: "JSON", message: "The arguments are not JSON" }];
  }
  const { parametersStandard: schema, view } = call.tool;
  if (schema === undefined || view !== undefined) {
    return issuesOf(call.runtime.parameters, call.arguments);
  }
  const checked = validateStandard(schema, call.arguments);
  return checked instanceof Promise ? checked.then(({ issues }) => issues) : checked.issues;
}
