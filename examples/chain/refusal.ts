/**
 * Failures of the chain's tools, which a model can act on.
 *
 * @module
 */

import { type FailureCode, type ToolFailure, ToolResult } from "../../mod.ts";

/** Says what cannot be done, and why. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly code: FailureCode;

  constructor(code: FailureCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Runs `work` and returns its refusal as a failure. Other exceptions are thrown again. */
export async function answer<T>(work: () => Promise<T>): Promise<T | ToolFailure> {
  try {
    return await work();
  } catch (reason) {
    if (reason instanceof Refusal) return ToolResult.error(reason.code, reason.message);
    throw reason;
  }
}
