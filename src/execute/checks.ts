/**
 * Validates the arguments of a call: the schema, the view, the library's schema, the tool's own rule.
 * Only those that the tool has are composed.
 *
 * @module
 */

import type { ToolHost } from "../registry/mod.ts";
import { compileOnce, issuesOf, type StandardOutcome, validateStandard } from "../schema/mod.ts";
import {
  atOnce,
  clip,
  describeThrown,
  type Issue,
  isThenable,
  type Tool,
  type ToolFailure,
} from "../tool/mod.ts";
import { UnparsedText } from "./arguments.ts";
import { continueAfter, type KernelCall, type Ring } from "./call.ts";
import { readIssues, validationFailure } from "./failures.ts";
import type { Call } from "./layer.ts";

/** Validates the arguments of calls of `tool`, and continues with `next`. */
export function validate(tool: Tool, host: ToolHost, next: Ring): Ring {
  const rule = applyRule(tool, next);
  const standard = applyStandard(tool, rule);
  if (tool.view === undefined) {
    return tool.parametersStandard === undefined ? checkSchema(tool, rule) : standard;
  }
  return checkSchema(tool, toOriginal(tool, host, standard));
}

/** Checks the arguments against the tool's JSON Schema. */
function checkSchema(tool: Tool, next: Ring): Ring {
  return (call) => {
    const { parameters } = call.runtime;
    const verdict: unknown = parameters.check(call.arguments, call.argumentBytes);
    if (verdict === true) return next(call);
    atOnce(verdict);
    return mismatch(tool, atOnce(parameters.issues(call.arguments)), tool);
  };
}

/**
 * Turns the arguments of a view into those of its tool, and checks them against that tool's own
 * schema: the schema of a library is the next ring's.
 */
function toOriginal(shown: Tool, host: ToolHost, next: Ring): Ring {
  return (call) => {
    for (let { view } = shown; view; view = view.tool.view) {
      const { tool } = view;
      call.setArguments(view.lead(call.arguments), call.argumentBytes);
      if (tool.parametersStandard && !tool.view) break;
      const issues = issuesOf(compileOnce(host.engine, tool.parameters), call.arguments);
      if (issues !== undefined) return mismatch(shown, issues, tool);
    }
    return next(call);
  };
}

/** Has the schema of a library check the arguments: it also fills in defaults and transforms. */
function applyStandard(tool: Tool, next: Ring): Ring {
  const { parametersStandard: schema } = tool;
  if (schema === undefined) return next;
  const accept = (call: KernelCall, { issues, value }: StandardOutcome) => {
    if (issues !== undefined) return mismatch(tool, issues);
    call.setParsed(value);
    return next(call);
  };
  return (call) => {
    const checked = validateStandard(schema, call.arguments);
    return checked instanceof Promise
      ? continueAfter(
        call,
        call.wait("checking the arguments", checked),
        (outcome) => accept(call, outcome),
      )
      : accept(call, checked);
  };
}

/** Applies the tool's own rule for its arguments, which a schema cannot express. */
function applyRule(tool: Tool, next: Ring): Ring {
  const { validate } = tool;
  if (validate === undefined) return next;
  const fail = (call: KernelCall, error: unknown): ToolFailure => {
    const failed = call.thrown(error, "validate");
    const why = `the tool threw while it checked its arguments: ${describeThrown(error)}`;
    return failed.error.code === "threw" ? call.fail("threw", why) : failed;
  };
  return (call) => {
    let answer: unknown;
    try {
      answer = validate(call.arguments, call.context);
    } catch (error) {
      return fail(call, error);
    }
    if (!isThenable(answer)) return readRule(call, answer) ?? next(call);
    return call.wait("checking the arguments", answer).then(
      (issues) => readRule(call, issues) ?? next(call),
      (error) => fail(call, error),
    ).catch((error) => call.thrown(error));
  };
}

/** The failure for what a rule returned; `undefined` if the arguments pass. */
export function readRule(call: Call, answer: unknown): ToolFailure | undefined {
  if (answer === undefined || answer === null || answer === "") return undefined;
  const issues = typeof answer === "string" ? [{ message: clip(answer, 300) }] : answer;
  if (!Array.isArray(issues)) {
    // A rule that returns `false` may have meant a refusal: the call does not continue.
    return call.fail("denied", "a rule for its arguments gave no proper answer");
  }
  const { tool } = call;
  return issues.length === 0 ? undefined : validationFailure(
    "invalid_arguments",
    tool.id,
    "its arguments break a rule",
    readIssues(issues).map((issue) => toViewIssue(tool, issue)),
  );
}

const NOT_JSON: readonly Issue[] = Object.freeze([
  Object.freeze({
    path: "",
    keyword: "json",
    expected: "JSON",
    message: "The arguments are not JSON",
  }),
]);

/**
 * The issues of arguments, or of text that is not JSON, before the view and the schema of a library
 * have changed them; `undefined` if they are valid.
 */
export function issuesBefore(
  call: Call,
): readonly Issue[] | undefined | Promise<readonly Issue[] | undefined> {
  if (call.arguments instanceof UnparsedText) return NOT_JSON;
  const { parametersStandard: schema, view } = call.tool;
  if (schema === undefined || view !== undefined) {
    return issuesOf(call.runtime.parameters, call.arguments);
  }
  const checked = validateStandard(schema, call.arguments);
  return checked instanceof Promise ? checked.then(({ issues }) => issues) : checked.issues;
}

/** An issue of arguments of `owner`, in terms of `tool`, which is that tool or its view. */
export function toViewIssue(tool: Tool, issue: Issue, owner?: Tool): Issue {
  const { view } = tool;
  return view === undefined || tool === owner
    ? issue
    : view.tell(toViewIssue(view.tool, issue, owner));
}

/** @param owner The tool whose arguments have the issues; by default the one behind all views. */
function mismatch(tool: Tool, issues: readonly Issue[], owner?: Tool): ToolFailure {
  const shown = issues.map((issue) => toViewIssue(tool, issue, owner));
  return validationFailure("invalid_arguments", tool.id, "its arguments do not fit", shown);
}
