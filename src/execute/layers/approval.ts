/** The host's decisions before a tool runs: rules for the arguments, and approval. */

import {
  type Check,
  checkFunction,
  createCheck,
  isFunction,
  isListOf,
  isObject,
  isWord,
  MAX_TIMEOUT_MS,
  numberFrom,
  type ToolResult,
  type ToolRuleAnswer,
} from "../../tool/mod.ts";
import { readRule } from "../arguments.ts";
import { callHost, CallView, FAILED } from "../context.ts";
import { CallFailure } from "../failures.ts";
import { MAKE } from "../kernel_options.ts";
import { type Call, type Layer, type Next, note, type Outcome } from "../layer.ts";
import type { Approver, CallInfo } from "../ports.ts";
import type { QuestionsLayer } from "./questions.ts";

/**
 * A rule for the arguments of every tool, after the schema and the tool's own `validate`. It
 * returns the same values as `validate`. If it throws, the call fails with `denied`.
 */
export type CallValidator = (call: CallInfo) => ToolRuleAnswer | Promise<ToolRuleAnswer>;

const checkRules: Check<readonly CallValidator[]> = createCheck(
  "a list of functions",
  (value) => isListOf(value, (item): item is CallValidator => isFunction(item)),
);

/**
 * Creates one layer for each rule, in the given order. A call that violates a rule fails with
 * `invalid_arguments`. If a rule throws, the call fails with `denied`. Stage `run`.
 *
 * @throws {TypeError} If a rule is not a function.
 */
export function validators(rules: readonly CallValidator[] = []): readonly Layer[] {
  return checkRules(MAKE, rules, "validators").map((rule): Layer => ({
    name: "validator",
    stage: "run",
    for: () => async (call, next) => {
      const check = () => rule(new CallView(call));
      const answer = await callHost(call, "checking the arguments", "validate", check);
      if (answer === FAILED) return call.fail("denied", "a rule for its arguments failed");
      return readRule(call, answer) ?? await next(call);
    },
  }));
}

/** Options for {@linkcode approval}. */
export interface ApprovalOptions {
  /**
   * The time limit of the approver, in milliseconds. It does not count against the call's timeout.
   *
   * @default {600_000}
   */
  readonly timeoutMs?: number | undefined;
  /** The layer that asks the caller if `approve` is or returns `"ask"`. */
  readonly questions?: QuestionsLayer | undefined;
}

/** Runs the rest of a call after its approval. A call with a `message` needs a new approval. */
export type ApprovalFunction = (call: Call, next: Next, message?: string) => Outcome;

const approvedArguments: WeakMap<Call, unknown> = new WeakMap();

/**
 * Creates a layer that requests approval for tools with `requiresApproval`, and for calls for which
 * a policy requires it. A call that is not approved fails with `denied`. Stage `run`.
 *
 * @param approve Approves or denies a call; `"ask"` asks the caller. Without an approver, calls
 * that need approval fail with `approval_required`.
 * @throws {TypeError | RangeError} If `approve` is neither a function nor `"ask"`, or an option is
 * invalid.
 */
export function approval(
  approve: Approver | "ask" | undefined,
  { timeoutMs: limitMs = 600_000, questions }: ApprovalOptions = {},
): Layer & { readonly approver: Approver | "ask" | undefined } {
  const timeoutMs = numberFrom(1, MAX_TIMEOUT_MS)(MAKE, limitMs, "approvalTimeoutMs");
  if ((approve ?? "ask") !== "ask") checkFunction(MAKE, approve, "approve");
  const decide: ApprovalFunction = (call, next, message) =>
    message === undefined && approvedArguments.get(call) === call.arguments
      ? next(call)
      : approve === undefined
      ? call.fail("approval_required", "it needs approval, and the option approve is not set")
      : approved(call, next, approve, timeoutMs, questions, message);
  return {
    name: "approval",
    stage: "run",
    meets: "approval",
    approver: approve,
    for: () => decide,
  };
}

async function approved(
  call: Call,
  next: Next,
  approve: Approver | "ask",
  timeoutMs: number,
  questions: QuestionsLayer | undefined,
  text: string | undefined,
): Promise<ToolResult> {
  const doing = "waiting for approval";
  // The wait for the approver does not count against the call's timeout.
  let answer: unknown = approve === "ask"
    ? approve
    : await callHost(call, doing, "approve", () => approve(new CallView(call), text), timeoutMs);
  const message = answer === "ask" ? text ?? `Run the tool "${call.tool.id}"?` : Object(answer).ask;
  if (isWord(message)) {
    answer = await askCaller(call, doing, message, questions);
    if (answer === undefined) {
      return call.fail("approval_required", "it needs approval, and its caller cannot be asked");
    }
  }
  const { approved, reason } = isObject(answer) ? answer : { approved: answer };
  const why = answer === FAILED ? "the approver failed" : isWord(reason) ? reason : undefined;
  const verdict = approved === true ? "allow" : "deny";
  note(call, { by: isWord(message) ? "caller" : "approver", verdict, reason: why });
  if (approved !== true) {
    return call.fail("denied", `it was not approved${why ? `: ${why}` : ""}`);
  }
  approvedArguments.set(call, call.arguments);
  return await next(call);
}

/** Returns true if the caller approves; `undefined` if the caller cannot be asked. */
async function askCaller(
  call: Call,
  doing: string,
  message: string,
  questions: QuestionsLayer | undefined,
): Promise<boolean | undefined | typeof FAILED> {
  const approval = questions?.of(call).askApproval(message).then(
    ({ action }) => action === "accept",
    (error) => {
      if (error instanceof CallFailure || call.isOver) return undefined;
      call.report("approve", error);
      return FAILED;
    },
  );
  return approval && await call.wait(doing, approval);
}
