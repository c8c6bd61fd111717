/**
 * The steps that ask what the host handed in: hooks, the approver, the transaction manager. One
 * that fails refuses the call.
 *
 * @module
 */

import {
  describeThrown,
  inPromise,
  isObject,
  isWord,
  TIME_OVER,
  type ToolCallError,
  type ToolFailure,
  ToolResult,
  type Transaction,
  within,
} from "../tool/mod.ts";
import type { Call, StepAnswer } from "./call.ts";
import { CallView } from "./context.ts";
import { readResult } from "./failures.ts";
import { readJson } from "./json_value.ts";
import { toResult } from "./output.ts";
import type { Approver, BeforeAnswer, ToolHooks } from "./ports.ts";
import { InputUnavailable } from "./questions.ts";

/** Asks every `before` hook, in order, until one answers or refuses. */
export async function runBeforeHooks(call: Call): Promise<StepAnswer> {
  for (const hook of call.settings.beforeHooks) {
    try {
      const answer = await hook.before?.(new CallView(call));
      if (call.over) return undefined;
      const result = answer === undefined || answer === null
        ? undefined
        : await follow(call, hook, answer);
      if (result !== undefined) return result;
    } catch (error) {
      call.report("before", error);
      return broken(call, hook);
    }
  }
  return undefined;
}

async function follow(
  call: Call,
  hook: ToolHooks,
  answer: NonNullable<BeforeAnswer>,
): Promise<StepAnswer> {
  if (typeof answer !== "object") return broken(call, hook);
  if ("refuse" in answer) {
    return isWord(answer.refuse) ? call.fail("denied", answer.refuse) : broken(call, hook);
  }
  if ("result" in answer) {
    const result = readResult(answer.result) ?? broken(call, hook);
    return result.ok ? await toResult(call, result) : result;
  }
  const verdict = readJson(answer.arguments, call.settings.maxArgumentBytes);
  if (verdict.kind !== "json") return broken(call, hook);
  call.args = verdict.value;
  call.argumentLength = verdict.bytes;
  return undefined;
}

/** Shows the result to every `after` hook, in reverse order, and takes what they put in its place. */
async function runAfterHooks(call: Call, outcome: ToolResult): Promise<ToolResult> {
  let result = outcome;
  for (const hook of call.settings.afterHooks) {
    // A copy: the result is not finished before the last hook has seen it.
    const shown = Object.freeze({ ...result, durationMs: call.elapsedMs });
    try {
      const answer = await inTime(call, hook.after?.(new CallView(call), shown));
      if (answer === undefined || answer === null || answer === shown) continue;
      const changed = readResult(answer);
      if (changed === undefined) result = withheld(call, hook);
      // The same content is not checked again: a library's schema may have transformed it.
      else if (!changed.ok || (result.ok && changed.content === result.content)) result = changed;
      else {
        const checked = await inTime(call, toResult(call, changed));
        result = checked === TIME_OVER ? withheld(call, hook) : checked;
      }
    } catch (error) {
      call.report("after", error);
      result = withheld(call, hook);
    }
  }
  return result;
}

function broken(call: Call, hook: ToolHooks): ToolFailure {
  return call.fail("denied", `${nameOf(hook)} failed, so the call is refused`);
}

export function withheld(call: Call, hook: ToolHooks): ToolFailure {
  const ran = call.ran ? "the tool has run, but " : "";
  return call.fail("denied", `${ran}${nameOf(hook)} failed, so the result is withheld`);
}

function nameOf(hook: ToolHooks): string {
  return typeof hook.name === "string" ? `the hook "${hook.name.slice(0, 60)}"` : "a hook";
}

export function askApproval(call: Call): StepAnswer | Promise<StepAnswer> {
  const { approve } = call.settings;
  if (approve !== undefined) return approval(call, approve);
  return call.fail("approval_required", "it needs approval, and no approver is set up");
}

async function approval(call: Call, approve: Approver | "ask"): Promise<StepAnswer> {
  let answer = approve === "ask" ? approve : await askApprover(call, approve);
  const asked = answer === "ask"
    ? `Run the tool "${call.tool.id}"?`
    : isObject(answer)
    ? answer["ask"]
    : undefined;
  if (isWord(asked)) answer = (await call.asking.askApproval(asked)).action === "accept";
  const { approved, reason } = isObject(answer) ? answer : { approved: answer };
  return approved === true
    ? undefined
    : call.fail("denied", `it was not approved${isWord(reason) ? `: ${reason}` : ""}`);
}

/** Asks the approver. The wait does not count against the call's timeout. */
async function askApprover(call: Call, approve: Approver): Promise<unknown> {
  const resume = call.deadline.suspend(call.settings.approvalTimeoutMs);
  try {
    return await approve(new CallView(call));
  } finally {
    resume();
  }
}

export function approverFailed(call: Call, error: unknown): ToolFailure {
  if (error instanceof InputUnavailable) {
    return call.fail("approval_required", "it needs approval, and its caller cannot be asked");
  }
  // The call waits for its approval.
  if (call.questions?.isSuspended) return call.fail("aborted", "it waits for approval");
  return call.failed("approve", error, "denied", "the approver failed, so the call is refused");
}

export function beginTransaction(call: Call): unknown {
  const { tool, callId, services, deadline: { signal } } = call;
  const { sessionId, messageId, principal } = call.options;
  const info = { tool, callId, services, signal, sessionId, messageId, principal };
  return inPromise(call.settings.transactions?.begin(info));
}

export function keepTransaction(call: Call, transaction: unknown): StepAnswer {
  if (!isTransaction(transaction)) {
    return call.fail("transaction_failed", "its transaction manager began no transaction");
  }
  if (call.over) {
    // The call ended while its transaction was opened: it must not stay open.
    const late = ToolResult.error("aborted", "The call had ended before its transaction began");
    void closeBy(call, transaction, late.error);
  } else call.transaction = transaction;
  return undefined;
}

export function notBegun(call: Call, error: unknown): ToolFailure {
  const why = `its transaction could not begin: ${describeThrown(error)}`;
  return call.failed("begin", error, "transaction_failed", why);
}

function isTransaction(value: unknown): value is Transaction {
  return isObject(value);
}

/** Closes the transaction, cleans up and runs the `after` hooks, once the result is known. */
export async function closeCall(call: Call, outcome: ToolResult): Promise<ToolResult> {
  let result = outcome;
  if (call.transaction !== undefined) {
    result = await closeTransaction(call, call.transaction, result);
  }
  await call.cleanUp();
  return call.replays ? result : await runAfterHooks(call, result);
}

/** Waits for what closes a call, for as long as that may take. */
function inTime<T>(call: Call, work: T | Promise<T>): Promise<T | typeof TIME_OVER> {
  const { clock, closeTimeoutMs } = call.settings;
  return within(clock, closeTimeoutMs, Promise.resolve(work));
}

/** Commits for a success, rolls back for a failure; says so if either does not work. */
async function closeTransaction(
  call: Call,
  transaction: Transaction,
  result: ToolResult,
): Promise<ToolResult> {
  let failed = result;
  if (failed.ok) {
    const problem = await closeBy(call, transaction);
    if (problem === undefined) return result;
    failed = call.fail("transaction_failed", problem);
  }
  const { code, message, ...rest } = failed.error;
  const problem = await closeBy(call, transaction, failed.error);
  return problem === undefined ? failed : ToolResult.error(code, `${message}; ${problem}`, rest);
}

/** Commits, or rolls back where there is a reason to; says what went wrong, if anything did. */
async function closeBy(
  call: Call,
  transaction: Transaction,
  reason?: ToolCallError,
): Promise<string | undefined> {
  const { closeTimeoutMs, transactions } = call.settings;
  const what = `its changes could not be ${reason ? "rolled back" : "committed"}`;
  try {
    const work = reason
      ? transactions?.rollback(transaction, reason)
      : transactions?.commit(transaction);
    return await inTime(call, work) === TIME_OVER
      ? `${what} within ${closeTimeoutMs} ms, and whether they were is not known`
      : undefined;
  } catch (error) {
    call.report(reason ? "rollback" : "commit", error);
    return `${what}: ${describeThrown(error)}`;
  }
}
