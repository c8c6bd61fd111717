/**
 * Why a request cannot be read as it is.
 *
 * @module
 */

import { badRequest, ProblemError } from "./problem.ts";

/** What is wrong with a request. The message is safe to send. */
export class RequestError extends ProblemError {
  /** @param pointer Where in the body it is: a JSON Pointer. */
  constructor(message: string, pointer?: string) {
    super(badRequest(message, pointer));
  }
}
