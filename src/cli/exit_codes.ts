/**
 * The exit code of a call that failed, by its failure code. They are a promise to scripts: a code
 * never changes its meaning.
 *
 * @module
 */

import type { FailureCode } from "../tool/mod.ts";

/** Ctrl-C ends programs with 128 + SIGINT; `timeout` of coreutils answers 124. */
export const EXIT_CODES = {
  unknown_tool: 10,
  unavailable: 11,
  denied: 12,
  not_executable: 13,
  invalid_arguments: 14,
  invalid_result: 15,
  approval_required: 16,
  transaction_failed: 17,
  output_too_large: 18,
  overloaded: 19,
  threw: 20,
  input_required: 21,
  input_unavailable: 22,
  ticket_refused: 23,
  timeout: 124,
  aborted: 130,
} as const satisfies Record<FailureCode, number>;

/** The table of exit codes, for `--help`. */
export function exitCodesHelp(): string {
  const rows: readonly (readonly [number, string])[] = [
    [0, "success"],
    [1, "a check found something, or plue failed"],
    [2, "the command line, a setting or a source cannot be used"],
    ...Object.entries(EXIT_CODES).map(([name, code]) => [code, name] as const),
  ];
  return rows.map(([code, name]) => `  ${String(code).padStart(3)}  ${name}`).join("\n");
}
