/** Opens a transaction for tools that require one; commits a success, rolls back a failure. */

import {
  checkPort,
  describeThrown,
  isObject,
  TIME_OVER,
  type ToolCallError,
  ToolResult,
  type Transaction,
  within,
} from "../../tool/mod.ts";
import { settled } from "../context.ts";
import { MAKE } from "../kernel_options.ts";
import type { Call, Layer, Next } from "../layer.ts";
import type { TransactionManager } from "../ports.ts";

/**
 * A layer for tools that require a transaction. The transaction is committed after a success and
 * rolled back after a failure. If the transaction cannot begin or be committed, the call fails with
 * `transaction_failed`. Stage `run`.
 *
 * @param manager Opens and closes transactions. Without a manager, these tools fail with
 * `transaction_failed`.
 * @throws {TypeError} If the manager lacks a function.
 */
export function transactions(manager?: TransactionManager): Layer {
  checkPort(MAKE, "transactions", manager, ["begin", "commit", "rollback"]);
  const open: WeakMap<Call, Transaction> = new WeakMap();
  const missing = "it runs only in a transaction, and there is no transaction manager here";
  return {
    name: "transactions",
    stage: "run",
    meets: "transaction",
    context: { transaction: (call) => open.get(call) },
    for: ({ requiresTransaction }) =>
      !requiresTransaction
        ? undefined
        : manager === undefined
        ? (call) => call.fail("transaction_failed", missing)
        : (call, next) => run(manager, open, call, next),
  };
}

async function run(
  manager: TransactionManager,
  open: WeakMap<Call, Transaction>,
  call: Call,
  next: Next,
): Promise<ToolResult> {
  const { tool, callId, context: { services }, deadline: { signal } } = call;
  const { sessionId, messageId, principal } = call.options;
  const info = { tool, callId, services, signal, sessionId, messageId, principal };
  const begun = (async (): Promise<unknown> => await manager.begin(info))();
  let transaction: unknown;
  try {
    transaction = await call.wait("opening its transaction", begun);
  } catch (error) {
    if (call.isOver) {
      void closeLate(manager, call, begun);
      throw error;
    }
    call.report("begin", error);
    const why = `its transaction could not begin: ${describeThrown(error)}`;
    return call.fail("transaction_failed", why);
  }
  if (!isTransaction(transaction)) {
    return call.fail("transaction_failed", "its transaction manager began no transaction");
  }
  open.set(call, transaction);
  let result = await next(call);
  // From here on, no abort or timeout can interrupt the end of the transaction.
  call.deadline.close();
  if (result.ok) {
    const problem = await close(manager, call, transaction);
    if (problem === undefined) return result;
    result = call.fail("transaction_failed", problem);
  }
  const { code, message, ...rest } = result.error;
  const problem = await close(manager, call, transaction, result.error);
  return problem === undefined ? result : ToolResult.error(code, `${message}; ${problem}`, rest);
}

/** Rolls back a transaction that began after the end of its call. */
async function closeLate(
  manager: TransactionManager,
  call: Call,
  begun: Promise<unknown>,
): Promise<void> {
  const transaction = await settled(call, "begin", () => begun);
  if (!isTransaction(transaction)) return;
  const late = ToolResult.error("aborted", "The call had ended before its transaction began");
  await close(manager, call, transaction, late.error);
}

function isTransaction(value: unknown): value is Transaction {
  return isObject(value);
}

/** Commits a transaction; with a `reason`, rolls it back. Returns the problem, if there is one. */
async function close(
  manager: TransactionManager,
  call: Call,
  transaction: Transaction,
  reason?: ToolCallError,
): Promise<string | undefined> {
  const { clock, closeTimeoutMs } = call.settings;
  const what = `its changes could not be ${reason ? "rolled back" : "committed"}`;
  const work = async (): Promise<void> =>
    await (reason ? manager.rollback(transaction, reason) : manager.commit(transaction));
  try {
    return await within(clock, closeTimeoutMs, work()) === TIME_OVER
      ? `${what} within ${closeTimeoutMs} ms, and it is unknown whether they were`
      : undefined;
  } catch (error) {
    call.report(reason ? "rollback" : "commit", error);
    return `${what}: ${describeThrown(error)}`;
  }
}
