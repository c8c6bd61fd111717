/**
 * Validates with a Standard Schema: the library's own `validate` is the authority, since it may
 * contain rules that JSON Schema cannot express, fill in defaults and transform.
 */

import {
  clip,
  type Issue,
  isThenable,
  pointerStep,
  type StandardIssue,
  type StandardResult,
  type StandardSchema,
} from "../tool/mod.ts";
import { MAX_ISSUES } from "./engine.ts";

const MAX_MESSAGE = 200;
const MAX_STEPS = 64;

/** The outcome of a Standard Schema: the value that it returned, or issues. */
export type StandardOutcome =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly value?: undefined; readonly issues: readonly Issue[] };

/**
 * Validates `value` with the library's own rules. Never throws and never rejects: a `validate` that
 * breaks is an issue, so that no value passes unchecked.
 *
 * @returns The library's value, or 1 to 8 issues; a promise if the library returns one.
 */
export function validateStandard(
  schema: StandardSchema,
  value: unknown,
): StandardOutcome | Promise<StandardOutcome> {
  try {
    const result = schema["~standard"].validate(value);
    return isThenable(result) ? Promise.resolve(result).then(outcome, broken) : outcome(result);
  } catch {
    return broken();
  }
}

function outcome(result: StandardResult<unknown>): StandardOutcome {
  try {
    // An answer without a value is not a result: nothing was checked.
    if (result.issues === undefined) return "value" in result ? { value: result.value } : broken();
    const issues: Issue[] = [];
    for (const issue of result.issues) {
      if (issues.push(toIssue(issue)) === MAX_ISSUES) break;
    }
    // A value is valid only if the list of issues is missing, not if it is empty.
    return issues.length === 0 ? broken() : { issues };
  } catch {
    return broken();
  }
}

function toIssue(issue: StandardIssue): Issue {
  let path = "";
  for (const step of (issue.path ?? []).slice(0, MAX_STEPS)) {
    const key = typeof step === "object" ? step.key : step;
    path += pointerStep(clip(String(key)));
  }
  const words = clip(String(issue.message), MAX_MESSAGE);
  return {
    path,
    keyword: "standard",
    expected: words,
    message: path === "" ? words : `${path}: ${words}`,
  };
}

function broken(): StandardOutcome {
  return {
    issues: [{
      path: "",
      keyword: "standard",
      expected: "a value that its schema can check",
      message: "The value could not be checked: its schema failed on it",
    }],
  };
}
