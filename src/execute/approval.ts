/**
 * Approval: somebody says yes before a tool that requires it runs.
 *
 * @module
 */

import type { CallInfo } from "./hooks.ts";

/** What an approver answers: yes or no, with the reason for the model. */
export type ApprovalAnswer =
  | boolean
  | { readonly approved: boolean; readonly reason?: string | undefined };

/**
 * Decides whether a call of a tool that `requiresApproval` may run. The arguments have been
 * validated. Waiting for the answer does not count against the call's timeout. An approver that
 * throws, or answers something else, refuses.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 *
 * const registry = new ToolRegistry({
 *   tools: [{
 *     name: "launch",
 *     description: "Launches it.",
 *     requiresApproval: true,
 *     execute: () => "launched",
 *   }],
 * });
 * const dispatcher = new ToolDispatcher(registry, {
 *   approve: ({ principal }) =>
 *     principal === "ann" || { approved: false, reason: "only Ann may launch" },
 * });
 *
 * const result = await dispatcher.dispatch({ name: "launch" }, { principal: "bob" });
 * assert.equal(
 *   !result.ok && result.error.message,
 *   'Cannot call "launch": it was not approved: only Ann may launch',
 * );
 * ```
 */
export type Approver = (call: CallInfo) => ApprovalAnswer | Promise<ApprovalAnswer>;
