/**
 * Opens a call's transaction, and closes it with the result.
 *
 * @module
 */

import {
  describeThrown,
  type ToolCallError,
  type ToolFailure,
  ToolResult,
  type Transaction,
} from "../tool/mod.ts";
import type { Call } from "./call.ts";
import { INTERRUPTED, within } from "./deadline.ts";
import type { StepAnswer } from "./plan.ts";
import type { TransactionManager } from "./transaction.ts";

/** Opens the transaction that the tool requires. */
export function beginTransaction(call: Call): StepAnswer {
  const manager = call.settings.transactions;
  if (manager === undefined) {
    return call.fail(
      "transaction_failed",
      "it runs only in a transaction, and there is no transaction manager here",
    );
  }
  return begin(call, manager);
}

async function begin(call: Call, manager: TransactionManager): Promise<ToolResult | undefined> {
  const { sessionId, messageId } = call.options;
  let transaction: Transaction;
  try {
    transaction = await manager.begin({
      tool: call.tool,
      callId: call.callId,
      sessionId,
      messageId,
      signal: call.deadline.signal,
    });
  } catch (error) {
    const why = `its transaction could not begin: ${describeThrown(error)}`;
    return call.failed("begin", error, "transaction_failed", why);
  }
  if (!call.over) {
    call.transaction = transaction;
    return undefined;
  }
  // The call was answered meanwhile; what it opened too late must not stay open.
  const late = ToolResult.error("aborted", "The call had ended before its transaction began");
  await rollBack(call, manager, transaction, late.error);
  return undefined;
}

/** Commits for a success, rolls back for a failure; says so if either does not work. */
export async function closeTransaction(
  call: Call,
  manager: TransactionManager,
  transaction: Transaction,
  result: ToolResult,
): Promise<ToolResult> {
  if (result.ok) {
    const problem = await attempt(call, "commit", () => manager.commit(transaction));
    if (problem === undefined) return result;
    const failed = commitFailed(call, problem);
    const worse = await rollBack(call, manager, transaction, failed.error);
    return worse === undefined ? failed : commitFailed(call, `${problem}; ${worse}`);
  }
  const problem = await rollBack(call, manager, transaction, result.error);
  if (problem === undefined) return result;
  const { code, message, ...rest } = result.error;
  return ToolResult.error(code, `${message}; ${problem}`, rest);
}

function commitFailed(call: Call, problem: string): ToolFailure {
  return call.fail("transaction_failed", problem);
}

async function rollBack(
  call: Call,
  manager: TransactionManager,
  transaction: Transaction,
  reason: ToolCallError,
): Promise<string | undefined> {
  return await attempt(call, "rollback", () => manager.rollback(transaction, reason));
}

/** Does it within the time; says what went wrong, if anything did. */
async function attempt(
  call: Call,
  phase: "commit" | "rollback",
  work: () => void | Promise<void>,
): Promise<string | undefined> {
  const what = phase === "commit"
    ? "its changes could not be committed"
    : "its changes could not be rolled back";
  const { clock, closeTimeoutMs } = call.settings;
  try {
    const done = await within(clock, closeTimeoutMs, (async () => await work())());
    return done === INTERRUPTED
      ? `${what} within ${closeTimeoutMs} ms, and whether they were is not known`
      : undefined;
  } catch (error) {
    call.report(phase, error);
    return `${what}: ${describeThrown(error)}`;
  }
}
