/**
 * The HTTP status of a failed call, the same in the HTTP handler and in what OpenAPI clients get.
 *
 * @module
 */

import type { FailureCode } from "../../tool/mod.ts";

/** The status that each failure of a call is answered with. */
export const HTTP_STATUS: { readonly [Code in FailureCode]: number } = {
  unknown_tool: 404,
  unavailable: 409,
  denied: 403,
  not_executable: 501,
  invalid_arguments: 422,
  invalid_result: 502,
  approval_required: 403,
  // Not in the RFC's registry; the known way to say that the client went away.
  aborted: 499,
  timeout: 504,
  transaction_failed: 500,
  output_too_large: 502,
  overloaded: 503,
  threw: 500,
};
