/**
 * The port through which a tool's changes are made whole or not at all.
 *
 * @module
 */

import type { Tool, ToolCallError, Transaction } from "../tool/mod.ts";

/** The call that a transaction is opened for. */
export interface TransactionInfo {
  readonly tool: Tool;
  readonly callId: string;
  readonly sessionId: string | undefined;
  readonly messageId: string | undefined;
  /** Aborts when the call does: `begin` may give up. */
  readonly signal: AbortSignal;
}

/**
 * Opens and closes transactions.
 *
 * Contract:
 * - `begin` is called once per call of a tool that `requiresTransaction`, before the tool runs.
 * - What it gave is closed exactly once by `commit`, after the result was found valid, or by
 *   `rollback`; a `commit` that fails is followed by one `rollback`. A `begin` that answers after
 *   its call has ended is rolled back.
 * - Each may answer at once or with a promise. What they throw fails the call.
 * - `rollback` may run while a tool that ignored its signal is still working.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry, type Transaction, type TransactionManager } from "@plue/tools";
 *
 * interface Draft extends Transaction {
 *   readonly lines: string[];
 * }
 * const notebook: string[] = [];
 * const transactions: TransactionManager<Draft> = {
 *   begin: ({ callId }) => ({ id: callId, lines: [] }),
 *   commit: ({ lines }) => void notebook.push(...lines),
 *   rollback: () => {},
 * };
 * const registry = new ToolRegistry({
 *   tools: [{
 *     name: "note",
 *     description: "Writes a line down.",
 *     requiresTransaction: true,
 *     execute(_, { transaction }) {
 *       (transaction as Draft).lines.push("written");
 *       throw new Error("The pen broke");
 *     },
 *   }],
 * });
 *
 * const dispatcher = new ToolDispatcher(registry, { transactions });
 * const result = await dispatcher.dispatch({ name: "note" });
 * assert.equal(result.ok, false);
 * assert.deepEqual(notebook, []);
 * ```
 */
export interface TransactionManager<Tx extends Transaction = Transaction> {
  begin(info: TransactionInfo): Tx | Promise<Tx>;
  commit(transaction: Tx): void | Promise<void>;
  /** `reason` is why the call failed. */
  rollback(transaction: Tx, reason: ToolCallError): void | Promise<void>;
}
