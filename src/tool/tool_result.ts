/**
 * The outcome of one call. A call never rejects: what went wrong is a value, with a message
 * written for the model that made the call.
 *
 * @module
 */

import { type Check, must } from "./check.ts";
import { FAILURE_CODES, type FailureCode, isFailureCode } from "./failure_code.ts";

/** One thing that is wrong with a value. */
export interface Issue {
  /** Where in the value, as a JSON Pointer (RFC 6901); `""` is the whole value. */
  readonly path: string;
  /** The schema keyword that failed, such as `required` or `minimum`; `custom` for a tool's own rule. */
  readonly keyword: string;
  /** What would be right, in a few words. */
  readonly expected: string;
  /** The whole sentence. */
  readonly message: string;
}

/** What went wrong in a call. */
export interface ToolCallError {
  /** Which kind of failure it is. */
  readonly code: FailureCode;
  /** What was wrong, where, and what would be right, written for a model to act on. */
  readonly message: string;
  /** What is wrong with the arguments or the result, if that is why. At most 8. */
  readonly issues?: readonly Issue[];
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** After a timeout or an abort: whether the tool stopped within the grace period. */
  readonly acknowledged?: boolean;
}

/** A call that succeeded. */
export interface ToolSuccess<Content = unknown> {
  readonly ok: true;
  /** What the tool answered. */
  readonly content: Content;
  /** How long the call took, in milliseconds, from dispatch to result. */
  readonly durationMs: number;
  /** The content was cut to the output limit. */
  readonly truncated?: true;
  /** The result of an earlier call with the same idempotency key. */
  readonly replayed?: true;
}

/** A call that failed. */
export interface ToolFailure {
  readonly ok: false;
  readonly error: ToolCallError;
  /** How long the call took, in milliseconds, from dispatch to result. */
  readonly durationMs: number;
  /** The result of an earlier call with the same idempotency key. */
  readonly replayed?: true;
}

/** The outcome of one call. */
export type ToolResult<Content = unknown> = ToolSuccess<Content> | ToolFailure;

const checkCode: Check<FailureCode> = must(
  `one of ${Object.keys(FAILURE_CODES).join(", ")}`,
  isFailureCode,
);

/** Marks results made by {@linkcode ToolResult}, so that a tool may return one. Shared by all copies of plue. */
const MADE: unique symbol = Symbol.for("plue.tool_result") as never;

function mark<T extends ToolResult>(result: T): T {
  return Object.defineProperty(result, MADE, { value: true });
}

/** Returns what it is given, so that a subclass puts its private field on that. */
class Identity {
  constructor(object: object) {
    return object;
  }
}

/** A mark that costs a fraction of {@linkcode MADE} and cannot be seen, for this copy of plue only. */
class Branded extends Identity {
  readonly #branded = true;

  static has(object: object): boolean {
    return #branded in object;
  }
}

/** Marks a result that the dispatcher made: a tool that dispatches to another may return it. */
export function brandResult(result: ToolResult): void {
  new Branded(result);
}

/** Whether `value` is a result made with {@linkcode ToolResult} or by a dispatcher, not a plain value. */
export function isToolResult(value: unknown): value is ToolResult {
  return typeof value === "object" && value !== null &&
    (Branded.has(value) || Object.hasOwn(value, MADE));
}

/**
 * Makes results. A tool may return one to choose the failure code and the words itself.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolResult } from "@plue/tools";
 *
 * const failed = ToolResult.error("denied", "Cannot delete the branch: it is protected");
 * assert.equal(failed.error.code, "denied");
 * assert.equal(ToolResult.ok(42).content, 42);
 * ```
 */
export const ToolResult: {
  /** A success with `content`. */
  ok<Content>(content: Content, durationMs?: number): ToolSuccess<Content>;
  /**
   * A failure. `retryable` comes from the code unless it is given.
   *
   * @throws {TypeError} If `code` is not a failure code.
   */
  error(
    code: FailureCode,
    message: string,
    options?: {
      readonly issues?: readonly Issue[];
      readonly retryable?: boolean;
      readonly acknowledged?: boolean;
      readonly durationMs?: number;
    },
  ): ToolFailure;
} = Object.freeze({
  ok<Content>(content: Content, durationMs = 0): ToolSuccess<Content> {
    return mark({ ok: true, content, durationMs });
  },
  error(
    code: FailureCode,
    message: string,
    options: {
      readonly issues?: readonly Issue[];
      readonly retryable?: boolean;
      readonly acknowledged?: boolean;
      readonly durationMs?: number;
    } = {},
  ): ToolFailure {
    checkCode("make a failure", code, "its code");
    const { issues, retryable = FAILURE_CODES[code].retryable, acknowledged, durationMs = 0 } =
      options;
    return mark({
      ok: false,
      error: {
        code,
        message,
        ...(issues === undefined ? {} : { issues }),
        retryable,
        ...(acknowledged === undefined ? {} : { acknowledged }),
      },
      durationMs,
    });
  },
});
