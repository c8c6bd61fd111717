/**
 * Opens a call's transaction, and closes it with the result.
 *
 * @module
 */

import { describeThrown, ToolResult, type Transaction } from "../tool/mod.ts";
import type { Call } from "./call.ts";
import { INTERRUPTED, within } from "./deadline.ts";
import type { StepAnswer } from "./plan.ts";
import type { TransactionManager } from "./transaction.ts";

/** Opens the transaction that the tool requires. */
export function beginTransaction(call: Call): StepAnswer {
  const { transactions } = call.settings;
  return transactions === undefined
    ? call.fail(
      "transaction_failed",
      "it runs only in a transaction, and there is no transaction manager here",
    )
    : begin(call, transactions);
}

async function begin(call: Call, manager: TransactionManager): Promise<ToolResult | undefined> {
  const { tool, callId, deadline: { signal }, options: { sessionId, messageId } } = call;
  let transaction: Transaction;
  try {
    transaction = await manager.begin({ tool, callId, sessionId, messageId, signal });
  } catch (error) {
    const why = `its transaction could not begin: ${describeThrown(error)}`;
    return call.failed("begin", error, "transaction_failed", why);
  }
  if (typeof transaction !== "object" || transaction === null) {
    return call.fail("transaction_failed", "its transaction manager began no transaction");
  }
  if (!call.over) {
    call.transaction = transaction;
    return undefined;
  }
  // The call was answered meanwhile; what it opened too late must not stay open.
  const late = ToolResult.error("aborted", "The call had ended before its transaction began");
  await attempt(call, "rollback", () => manager.rollback(transaction, late.error));
  return undefined;
}

/** Commits for a success, rolls back for a failure; says so if either does not work. */
export async function closeTransaction(
  call: Call,
  manager: TransactionManager,
  transaction: Transaction,
  result: ToolResult,
): Promise<ToolResult> {
  let failed = result;
  if (result.ok) {
    const problem = await attempt(call, "commit", () => manager.commit(transaction));
    if (problem === undefined) return result;
    failed = call.fail("transaction_failed", problem);
  }
  if (failed.ok) return failed;
  const { code, message, ...rest } = failed.error;
  const reason = failed.error;
  const problem = await attempt(call, "rollback", () => manager.rollback(transaction, reason));
  return problem === undefined ? failed : ToolResult.error(code, `${message}; ${problem}`, rest);
}

/** Does it within the time; says what went wrong, if anything did. */
async function attempt(
  call: Call,
  phase: "commit" | "rollback",
  work: () => void | Promise<void>,
): Promise<string | undefined> {
  const what = `its changes could not be ${phase === "commit" ? "committed" : "rolled back"}`;
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
