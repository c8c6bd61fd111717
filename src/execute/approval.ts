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
 */
export type Approver = (call: CallInfo) => ApprovalAnswer | Promise<ApprovalAnswer>;
