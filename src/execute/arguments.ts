/**
 * Parses the arguments of a call, and validates them by the tool's schema, its view, the library's
 * schema and the tool's own rule. Only the checks that the tool has are composed.
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
  /** An upper bound of the size of the arguments as JSON. */
  readonly argumentBytes: number;
  /** Sets the arguments that the schema of a library returned, which need not be JSON. */
  setParsed(value: unknown): void;
  /**
   * Calls `next` with the value when it is available, synchronously or after a wait. Calls `failed`
   * if the value rejects. Never rejects.
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

/** The rest of a call. Its promise never rejects. */
export type Ring<C extends Call = CheckedCall> = (call: C) => Outcome;

const THREE_DIGITS = /\d{3}/;
const LARGE_NUMBER = /e\+?\d{3}|\d{200}/i;

/**
 * Parses `given`, a JSON string or a value that is JSON, into the arguments of the call. Missing
 * arguments mean `{}`.
 *
 * @param reader Reads text that is not JSON. Without it, such text fails the call.
 */
export function parseArguments(
  call: Call,
  given: unknown,
  reader?: Layer,
): ToolFailure | undefined {
  const limit = call.settings.maxArgumentBytes;
  let value = given ?? {};
  let bytes: number | undefined;
  if (typeof given === "string") {
    bytes = given.length;
    // A UTF-16 unit takes one to three bytes, so the bytes of most texts need not be counted.
    if (bytes > limit || (bytes * 3 > limit && utf8Length(given) > limit)) return tooLarge(call);
    try {
      value = JSON.parse(given) ?? {};
    } catch {
      if (given.trim() !== "") {
        if (reader === undefined) return unparsed(call);
        call.setArguments(reader.readText?.(given), bytes);
        return undefined;
      }
      value = {};
    }
    // A nested value adds two characters, so a short text is never too deep. JSON.parse reads too
    // large numbers as Infinity; on Node, THREE_DIGITS takes a third of the time of LARGE_NUMBER.
    if (bytes <= 2 * MAX_DEPTH && !(THREE_DIGITS.test(given) && LARGE_NUMBER.test(given))) {
      call.setArguments(value, bytes);
      return undefined;
    }
  }
  // Copies the value, so that the tool receives the validated arguments even if the caller changes
  // its object later.
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

/** Validates the arguments of calls of `tool`, and continues with `next`. */
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
 * Checks the arguments against the tool's JSON Schema. The arguments of a view are converted to its
 * tool's arguments.
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
        (schema, led) => issuesOf(compileOnce(host.engine, schema), led),
      );
      if (issues !== undefined) return mismatch(call, issues);
      call.setArguments(value, call.argumentBytes);
    }
    return next(call);
  };
}

/**
 * Validates the arguments with the schema of a library, which also fills in defaults and
 * transforms.
 */
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

/** Applies the tool's own rule for its arguments, which a schema cannot express. */
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
    const read = (given: unknown): Outcome => readRule(call, given) ?? next(call);
    return call.after("checking the arguments", answer, read, fail);
  };
}

/** Returns the failure for a rule's result, or `undefined` if the arguments pass. */
export function readRule(call: Call, answer: unknown): ToolFailure | undefined {
  if (answer === undefined || answer === null || answer === "") return undefined;
  const issues = typeof answer === "string" ? [{ message: clip(answer, 300) }] : answer;
  if (!Array.isArray(issues)) {
    // A rule that returns `false` may mean a rejection, so the call does not continue.
    return call.fail("denied", "a rule for its arguments returned no valid value");
  }
  return issues.length === 0
    ? undefined
    : mismatch(call, inView(call.tool, readIssues(issues)), "break a rule");
}

/** Converts issues of the original tool's arguments to the names of `tool`. */
function inView({ view }: Tool, issues: readonly Issue[]): readonly Issue[] {
  return view === undefined ? issues : issues.map(view.toViewIssue);
}

function mismatch({ tool }: Call, issues: readonly Issue[], what = "do not fit"): ToolFailure {
  return validationFailure("invalid_arguments", tool.id, `its arguments ${what}`, issues);
}

/** Arguments that are text and not JSON, until they are repaired. */
export class UnparsedText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * The issues of arguments, or of text that is not JSON, before the view and the schema of a library
 * have changed them; `undefined` if they are valid.
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
