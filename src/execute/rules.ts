/**
 * The step that applies rules which a schema cannot say: the tool's own, then the dispatcher's.
 *
 * @module
 */

import { clip, describeThrown, type ToolFailure, type ToolResult } from "../tool/mod.ts";
import type { Call } from "./call.ts";
import { CallView } from "./context.ts";
import { readIssues } from "./failures.ts";
import type { StepAnswer } from "./plan.ts";

/** Applies the rules in order, until one says what is wrong. */
export function applyRules(call: Call): StepAnswer {
  try {
    const answer: unknown = call.tool.validate?.(call.args, call.context);
    return answer === undefined && call.settings.validators.length === 0
      ? undefined
      : applyLater(call, answer);
  } catch (error) {
    return ruleThrew(call, error);
  }
}

async function applyLater(call: Call, own: unknown): Promise<ToolResult | undefined> {
  try {
    const refused = read(call, await own);
    if (refused !== undefined) return refused;
  } catch (error) {
    return ruleThrew(call, error);
  }
  for (const validator of call.settings.validators) {
    if (call.over) return undefined;
    try {
      const refused = read(call, await validator(new CallView(call)));
      if (refused !== undefined) return refused;
    } catch (error) {
      return call.failed("validate", error, "denied", "a rule for its arguments failed");
    }
  }
  return undefined;
}

function read(call: Call, answer: unknown): ToolFailure | undefined {
  if (answer === undefined || answer === null || answer === "") return undefined;
  const issues = typeof answer === "string" ? [{ message: clip(answer, 300) }] : answer;
  if (!Array.isArray(issues)) {
    // A rule that answers `false`, say, meant something; what it meant is not known.
    return call.fail("denied", "a rule for its arguments gave no proper answer");
  }
  return issues.length === 0
    ? undefined
    : call.misfit("invalid_arguments", "its arguments break a rule", readIssues(issues));
}

function ruleThrew(call: Call, error: unknown): ToolFailure {
  const words = describeThrown(error);
  return call.failed(
    "validate",
    error,
    "threw",
    `the tool threw while it checked its arguments: ${words}`,
  );
}
