/**
 * Why a call failed, as a closed set of codes that a program can switch over.
 *
 * @module
 */

/** Why a call failed. */
export type FailureCode =
  | "unknown_tool"
  | "unavailable"
  | "denied"
  | "not_executable"
  | "invalid_arguments"
  | "invalid_result"
  | "approval_required"
  | "aborted"
  | "timeout"
  | "transaction_failed"
  | "output_too_large"
  | "overloaded"
  | "threw";

/** Every failure code, with whether the same call may succeed if it is tried again later. */
export const FAILURE_CODES: {
  readonly [Code in FailureCode]: { readonly retryable: boolean };
} = Object.freeze({
  /** No such tool among those this caller may see. */
  unknown_tool: { retryable: false },
  /** The tool exists, and cannot be used now. */
  unavailable: { retryable: true },
  /** A hook, an approver or a policy refused the call. */
  denied: { retryable: false },
  /** The tool is a definition only. */
  not_executable: { retryable: false },
  /** The arguments are not JSON, or do not fit the schema or the tool's own rules. */
  invalid_arguments: { retryable: false },
  /** The tool answered something that its own schema forbids, or that is not JSON. */
  invalid_result: { retryable: false },
  /** Somebody must approve the call first. */
  approval_required: { retryable: false },
  /** The caller aborted the call. */
  aborted: { retryable: true },
  /** The call took too long. */
  timeout: { retryable: true },
  /** A transaction could not begin, commit or roll back, or there is no transaction manager. */
  transaction_failed: { retryable: false },
  /** The result is larger than the limit. */
  output_too_large: { retryable: false },
  /** Too many calls are running and waiting. */
  overloaded: { retryable: true },
  /** The tool threw. */
  threw: { retryable: false },
});

/** Whether `value` is a failure code. */
export function isFailureCode(value: unknown): value is FailureCode {
  return typeof value === "string" && Object.hasOwn(FAILURE_CODES, value);
}
