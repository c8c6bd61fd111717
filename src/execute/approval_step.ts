/**
 * The step that asks for approval.
 *
 * @module
 */

import type { ToolResult } from "../tool/mod.ts";
import type { ApprovalAnswer } from "./approval.ts";
import type { Call } from "./call.ts";
import { CallView } from "./context.ts";
import { failure } from "./failures.ts";
import type { StepAnswer } from "./plan.ts";

/** Asks the approver. The call's own time stands still meanwhile. */
export function askApproval(call: Call): StepAnswer {
  const { approve, approvalTimeoutMs } = call.settings;
  if (approve === undefined) {
    return failure("approval_required", call.tool.id, "somebody must approve it, and nobody can");
  }
  const resume = call.deadline.suspend(approvalTimeoutMs);
  return decide(call, async () => await approve(new CallView(call))).finally(resume);
}

async function decide(
  call: Call,
  ask: () => Promise<ApprovalAnswer>,
): Promise<ToolResult | undefined> {
  let answer: ApprovalAnswer;
  try {
    answer = await ask();
  } catch (error) {
    call.report("approve", error);
    return failure("denied", call.tool.id, "the approver failed, so the call is refused");
  }
  const approved = typeof answer === "object" ? answer?.approved : answer;
  if (approved === true) return undefined;
  const reason = typeof answer === "object" ? answer?.reason : undefined;
  return failure(
    "denied",
    call.tool.id,
    typeof reason === "string" && reason !== ""
      ? `it was not approved: ${reason}`
      : "it was not approved",
  );
}
