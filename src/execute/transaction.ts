/**
 * Commits and rolls back transactions of a host's manager.
 *
 * @module
 */

import {
  describeThrown,
  isObject,
  TIME_OVER,
  type ToolCallError,
  type Transaction,
  within,
} from "../tool/mod.ts";
import type { Call } from "./layer.ts";
import type { TransactionManager } from "./ports.ts";

/** True if a manager has begun a transaction. */
export function isTransaction(value: unknown): value is Transaction {
  return isObject(value);
}

/** Commits, or rolls back for a reason; returns what went wrong. */
export async function close(
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
      ? `${what} within ${closeTimeoutMs} ms, and whether they were is not known`
      : undefined;
  } catch (error) {
    call.report(reason ? "rollback" : "commit", error);
    return `${what}: ${describeThrown(error)}`;
  }
}
