/**
 * Approval of calls that need it, by their tool or by a policy.
 *
 * @module
 */

import { checkFunction, isObject, isWord, type ToolResult } from "../../tool/mod.ts";
import { CallView } from "../context.ts";
import { MAKE } from "../kernel_options.ts";
import type { Call, Layer, Next } from "../layer.ts";
import type { Approver } from "../ports.ts";
import { callHost, FAILED } from "./host_function.ts";
import { InputUnavailable } from "./question_session.ts";
import type { QuestionsLayer } from "./questions.ts";

/**
 * A layer that has calls approved. Without it, and without an approver, tools that require approval
 * fail with `approval_required`.
 *
 * @param approve Decides; `"ask"` asks the caller.
 * @param timeoutMs How long the approver may take, in milliseconds.
 * @param questions Asks the caller.
 * @throws {TypeError} If `approve` is neither a function nor `"ask"`.
 */
export function approval(
  approve: Approver | "ask" | undefined,
  timeoutMs: number,
  questions?: QuestionsLayer,
): Layer {
  if (approve !== undefined && approve !== "ask") checkFunction(MAKE, approve, "approve");
  const decide = (call: Call, next: Next): ToolResult | Promise<ToolResult> =>
    approve === undefined
      ? call.fail("approval_required", "it needs approval, and no approver is set up")
      : approved(call, next, approve, timeoutMs, questions);
  return {
    name: "approval",
    stage: "run",
    when: ({ tool, toolset }) => tool.requiresApproval || toolset.requiresApproval(tool),
    for: () => decide,
  };
}

async function approved(
  call: Call,
  next: Next,
  approve: Approver | "ask",
  timeoutMs: number,
  questions: QuestionsLayer | undefined,
): Promise<ToolResult> {
  const doing = "waiting for approval";
  // The wait for the approver does not count against the call's timeout.
  let answer: unknown = approve === "ask"
    ? approve
    : await callHost(call, doing, "approve", () => approve(new CallView(call)), timeoutMs);
  const message = answer === "ask"
    ? `Run the tool "${call.tool.id}"?`
    : isObject(answer)
    ? answer["ask"]
    : undefined;
  if (isWord(message)) {
    answer = await askCaller(call, doing, message, questions);
    if (answer === undefined) {
      return call.fail("approval_required", "it needs approval, and its caller cannot be asked");
    }
  }
  if (answer === FAILED) {
    return call.fail("denied", "the approver failed, so the call is refused");
  }
  const { approved, reason } = isObject(answer) ? answer : { approved: answer };
  return approved === true
    ? await next(call)
    : call.fail("denied", `it was not approved${isWord(reason) ? `: ${reason}` : ""}`);
}

/** Whether the caller approves; `undefined` if it cannot be asked. */
async function askCaller(
  call: Call,
  doing: string,
  message: string,
  questions: QuestionsLayer | undefined,
): Promise<boolean | undefined | typeof FAILED> {
  const asked = questions?.of(call).askApproval(message).then(
    ({ action }) => action === "accept",
    (error) => {
      if (error instanceof InputUnavailable || call.isOver) return undefined;
      call.report("approve", error);
      return FAILED;
    },
  );
  return asked && await call.wait(doing, asked);
}
