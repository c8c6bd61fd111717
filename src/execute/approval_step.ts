/**
 * The step that asks for approval.
 *
 * @module
 */

import { isWord, type ToolResult } from "../tool/mod.ts";
import type { Approver } from "./approval.ts";
import type { Call } from "./call.ts";
import { CallView } from "./context.ts";
import type { StepAnswer } from "./plan.ts";

/** Asks the approver. The call's own time stands still meanwhile. */
export function askApproval(call: Call): StepAnswer {
  const { approve, approvalTimeoutMs } = call.settings;
  if (approve === undefined) {
    return call.fail("approval_required", "somebody must approve it, and nobody can");
  }
  return decide(call, approve).finally(call.deadline.suspend(approvalTimeoutMs));
}

async function decide(call: Call, approve: Approver): Promise<ToolResult | undefined> {
  try {
    const answer = await approve(new CallView(call));
    const { approved, reason } = typeof answer === "object" && answer !== null
      ? answer
      : { approved: answer, reason: undefined };
    if (approved === true) return undefined;
    return call.fail("denied", `it was not approved${isWord(reason) ? `: ${reason}` : ""}`);
  } catch (error) {
    return call.failed(
      "approve",
      error,
      "denied",
      "the approver failed, so the call is refused",
    );
  }
}
