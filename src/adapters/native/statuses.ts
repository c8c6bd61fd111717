/**
 * The numbers of failure codes and of kinds of results in `plue.h`.
 *
 * @module
 */

import type { FailureCode, ToolSuccess } from "../../tool/mod.ts";

/** Codes of failures between libplue and the dispatcher. */
export type BridgeFailureCode =
  | "invalid_argument"
  | "runtime_unavailable"
  | "output_too_large"
  | "unknown_task";

/** `PLUE_UNKNOWN_TOOL` and so on. */
export const STATUS: { readonly [Code in FailureCode | BridgeFailureCode]: number } = {
  unknown_tool: 1,
  unavailable: 2,
  denied: 3,
  not_executable: 4,
  invalid_arguments: 5,
  invalid_result: 6,
  approval_required: 7,
  aborted: 8,
  timeout: 9,
  transaction_failed: 10,
  output_too_large: 11,
  overloaded: 12,
  threw: 13,
  input_required: 14,
  input_unavailable: 15,
  ticket_refused: 16,
  invalid_argument: 64,
  runtime_unavailable: 66,
  unknown_task: 71,
};

/** The code of a number; `threw` for an unknown one. */
export function codeOf(status: number): string {
  return Object.entries(STATUS).find(([, number]) => number === status)?.[0] ?? "threw";
}

/** The properties of a result besides its content: `PLUE_RESULT_BLOCKS` and so on. */
export function flagsOf({ blocks, truncated, replayed, repaired }: ToolSuccess): number {
  return (blocks ? 1 : 0) | (truncated ? 2 : 0) | (replayed ? 4 : 0) | (repaired ? 8 : 0);
}
