/**
 * The step that applies rules which a schema cannot say: the tool's own, then the dispatcher's.
 *
 * @module
 */

import type { ToolFailure, ToolResult } from "../tool/mod.ts";
import type { Call } from "./call.ts";
import { CallView } from "./context.ts";
import { failure, issuesFailure, readIssues } from "./failures.ts";
import type { StepAnswer } from "./plan.ts";
import { clipText, describeThrown } from "./thrown.ts";

/** Applies the rules in order, until one says what is wrong. */
export function applyRules(call: Call): StepAnswer {
  let answer: unknown;
  try {
    answer = call.tool.validate?.(call.args, call.context);
  } catch (error) {
    return ruleThrew(call, error);
  }
  if (answer === undefined && call.settings.validators.length === 0) return undefined;
  return applyLater(call, answer);
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
      call.report("validate", error);
      return failure("denied", call.tool.id, "a rule for its arguments failed");
    }
  }
  return undefined;
}

function read(call: Call, answer: unknown): ToolFailure | undefined {
  if (answer === undefined || answer === null || answer === "") return undefined;
  if (Array.isArray(answer)) return answer.length === 0 ? undefined : refuse(call, answer);
  if (typeof answer === "string") {
    return refuse(call, [{ message: clipText(answer, 300) }]);
  }
  // A rule that answers `false`, say, meant something; what it meant is not known.
  return failure("denied", call.tool.id, "a rule for its arguments gave no proper answer");
}

function refuse(call: Call, issues: readonly unknown[]): ToolFailure {
  return issuesFailure(
    "invalid_arguments",
    call.tool.id,
    "its arguments break a rule",
    readIssues(issues),
  );
}

function ruleThrew(call: Call, error: unknown): ToolFailure {
  call.report("validate", error);
  return failure(
    "threw",
    call.tool.id,
    `the tool threw while it checked its arguments: ${describeThrown(error)}`,
  );
}
