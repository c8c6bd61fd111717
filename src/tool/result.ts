/**
 * The outcome of one call. A call never rejects: what went wrong is a value, with a message
 * written for the model that made the call. So is what a call asks before it goes on, in the words
 * of MCP.
 *
 * @module
 */

import { type Check, checkText, oneOf, refuse } from "./check.ts";
import { defined, type JsonSchema } from "./json.ts";

/** Why a call failed. */
export type FailureCode =
  | "unknown_tool"
  | "unavailable"
  | "denied"
  | "not_executable"
  | "invalid_arguments"
  | "invalid_result"
  | "approval_required"
  | "input_required"
  | "input_unavailable"
  | "ticket_refused"
  | "aborted"
  | "timeout"
  | "transaction_failed"
  | "output_too_large"
  | "overloaded"
  | "threw";

const FINAL = { retryable: false };
const PASSING = { retryable: true };

/** Every failure code, with whether the same call may succeed if it is tried again later. */
export const FAILURE_CODES: {
  readonly [Code in FailureCode]: { readonly retryable: boolean };
} = /* @__PURE__ */ Object.freeze({
  /** No such tool among those this caller may see. */
  unknown_tool: FINAL,
  /** The tool exists, and cannot be used now. */
  unavailable: PASSING,
  /** A hook, an approver or a policy refused the call. */
  denied: FINAL,
  /** The tool is a definition only. */
  not_executable: FINAL,
  /** The arguments are not JSON, or do not fit the schema or the tool's own rules. */
  invalid_arguments: FINAL,
  /** The tool answered something that its own schema forbids, or that is not JSON. */
  invalid_result: FINAL,
  /** The call needs an approval first. */
  approval_required: FINAL,
  /** The call waits for answers. It goes on with its ticket. */
  input_required: FINAL,
  /** The call asks a question, and there is nobody to ask. */
  input_unavailable: FINAL,
  /** No call can be continued with this ticket. */
  ticket_refused: FINAL,
  /** The caller aborted the call. */
  aborted: PASSING,
  /** The call took too long. */
  timeout: PASSING,
  /** A transaction could not begin, commit or roll back, or there is no transaction manager. */
  transaction_failed: FINAL,
  /** The result is larger than the limit. */
  output_too_large: FINAL,
  /** Too many calls are running and waiting. */
  overloaded: PASSING,
  /** The tool threw. */
  threw: FINAL,
});

/** The HTTP status of each failure, in the HTTP handler and in answers to OpenAPI clients. */
export const HTTP_STATUS: { readonly [Code in FailureCode]: number } = {
  unknown_tool: 404,
  unavailable: 409,
  denied: 403,
  not_executable: 501,
  invalid_arguments: 422,
  invalid_result: 502,
  approval_required: 403,
  input_required: 202,
  input_unavailable: 501,
  ticket_refused: 410,
  // Not registered, but known to mean that the client closed the connection.
  aborted: 499,
  timeout: 504,
  transaction_failed: 500,
  output_too_large: 502,
  overloaded: 503,
  threw: 500,
};

/** Whether `value` is a failure code. */
export function isFailureCode(value: unknown): value is FailureCode {
  return typeof value === "string" && Object.hasOwn(FAILURE_CODES, value);
}

/** What is done with a result that is larger than the limit: refuse it, or cut it. */
export type OutputOverflow = "fail" | "truncate";

export const checkOverflow: Check<OutputOverflow> = /* @__PURE__ */ oneOf(["fail", "truncate"]);

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

/** A part of the arguments of a call that was repaired before the tool got it. */
export interface ArgumentRepair {
  /** Where in the arguments, as a JSON Pointer; `""` is all of them. */
  readonly path: string;
  /** What was done: `a string was read as an integer`. */
  readonly message: string;
}

/**
 * What kind of answer is wanted: content that fits a schema, yes or no, a visit to a URL, after which
 * the tool finds a credential where it looks for it, or the result of a tool that the caller runs.
 */
export type QuestionKind = "input" | "approval" | "authorization" | "client";

/** What a tool asks. */
export interface QuestionFields {
  /** @default {"input"} */
  readonly kind?: QuestionKind | undefined;
  /** The question, for the person who answers. Up to 2,000 characters. */
  readonly message: string;
  /**
   * What the content of the answer must fit, for the kinds `input` and `client`. Absent: any JSON, or
   * none.
   */
  readonly schema?: JsonSchema | undefined;
  /** Where to go, for the kind `authorization`. */
  readonly url?: string | undefined;
}

/** A question, as the one who answers gets it. JSON. */
export interface Question extends QuestionFields {
  /** Names it among the questions of its call. The answer comes under this key. */
  readonly key: string;
  readonly kind: QuestionKind;
  /** The arguments of the call, for the kinds `approval` and `client`. */
  readonly arguments?: unknown;
  /** What was wrong with the last answer, if the question is asked again. */
  readonly issues?: readonly Issue[];
}

/** What the person did: answered, said no, or went away without an answer. */
export type Answer<Content = unknown> =
  | { readonly action: "accept"; readonly content?: Content }
  | { readonly action: "decline" }
  | { readonly action: "cancel" };

/** Answers, by the keys of their questions. */
export interface Answers {
  readonly [key: string]: Answer;
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
  /** Before when the same call need not be tried again, in milliseconds from now, if that is known. */
  readonly retryAfterMs?: number;
  /** After a timeout or an abort: whether the tool stopped within the grace period. */
  readonly acknowledged?: boolean;
  /**
   * Whether the tool ran: not at all, or at least in part. `unknown` where it still runs although its
   * call has ended, or where the answer of another process was lost: that is `retryable` only for an
   * idempotent tool, and stored for its idempotency key. Every failure of a dispatcher has it.
   */
  readonly ran?: ToolRun;
}

/** Whether the tool of a failed call ran. */
export type ToolRun = "no" | "yes" | "unknown";

/** True if `value` is a {@linkcode ToolRun}. */
export function isToolRun(value: unknown): value is ToolRun {
  return value === "no" || value === "yes" || value === "unknown";
}

/** A call that succeeded. */
export interface ToolSuccess<Content = unknown> {
  readonly ok: true;
  /** What the tool answered. */
  readonly content: Content;
  /** How long the call took, in milliseconds, from dispatch to result. */
  readonly durationMs: number;
  /** The content is blocks, such as an image: a `ToolContent`. */
  readonly blocks?: true;
  /** The content was cut to the output limit. */
  readonly truncated?: true;
  /** The result of an earlier call: with the same idempotency key, or of a cache. */
  readonly replayed?: true;
  /** What was repaired in the arguments. */
  readonly repaired?: readonly ArgumentRepair[];
}

/** A call that failed, or waits. */
export interface ToolFailure {
  readonly ok: false;
  readonly error: ToolCallError;
  /** What a call with the code `input_required` waits for. */
  readonly questions?: readonly Question[];
  /** With what it is continued. Whoever has it and is the same caller can do that. */
  readonly ticket?: string;
  /** How long the call took, in milliseconds, from dispatch to result. */
  readonly durationMs: number;
  /** The result of an earlier call with the same idempotency key. */
  readonly replayed?: true;
  /** What was repaired in the arguments. */
  readonly repaired?: readonly ArgumentRepair[];
}

/** A call that waits for answers. */
export interface SuspendedCall extends ToolFailure {
  readonly questions: readonly Question[];
  readonly ticket: string;
}

/** Whether a result is that of a call that waits for answers. */
export function isSuspended(result: ToolResult): result is SuspendedCall {
  return !result.ok && result.error.code === "input_required" &&
    Array.isArray(result.questions) && typeof result.ticket === "string";
}

/** The outcome of one call. */
export type ToolResult<Content = unknown> = ToolSuccess<Content> | ToolFailure;

/** Details of a failure for `ToolResult.error`. */
export interface FailureOptions {
  readonly issues?: readonly Issue[] | undefined;
  readonly retryable?: boolean | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly acknowledged?: boolean | undefined;
  readonly ran?: ToolRun | undefined;
  readonly durationMs?: number | undefined;
}

const checkCode: Check<FailureCode> = /* @__PURE__ */ oneOf(
  /* @__PURE__ */ Object.keys(FAILURE_CODES) as FailureCode[],
);

/**
 * Marks the results that {@linkcode ToolResult} makes, so that a tool may return one. All copies of
 * plue share it.
 */
const MADE: unique symbol = /* @__PURE__ */ Symbol.for("plue.tool_result") as never;

function mark<T extends ToolResult>(result: T): T {
  return Object.defineProperty(result, MADE, { value: true });
}

/** Its constructor returns the given object, so that a subclass puts its private field on that. */
class Identity {
  constructor(object: object) {
    return object;
  }
}

/**
 * A private field as a mark, for this copy of plue only. To set it takes Node 45 ns, against 310 ns
 * for {@linkcode MADE} and 400 ns for a `WeakSet`.
 */
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
 * assert.equal(ToolResult.error("The disk is full").error.code, "threw");
 * assert.equal(ToolResult.ok(42).content, 42);
 *
 * const data = "R0lGODlhAQABAAAAACw=";
 * const image = ToolResult.blocks([{ type: "image", data, mimeType: "image/gif" }], {
 *   metadata: { file: "dot.gif" }, // for the application: no model gets it
 * });
 * assert.equal(image.blocks, true);
 * ```
 */
export const ToolResult: {
  /**
   * A success with `content`.
   *
   * @throws {TypeError} If `content` is a result itself: return that one.
   */
  ok<Content>(content: Content, durationMs?: number): ToolSuccess<Content>;
  /**
   * A success of blocks: texts, images, audio, files. Each provider gets the blocks that it takes in
   * its own shape, and a short text in place of the others.
   */
  blocks(content: readonly ContentBlock[], options?: ContentOptions): ToolSuccess<ToolContent>;
  /** A failure with the code `threw`, as if the tool had thrown an error with this message. */
  error(message: string): ToolFailure;
  /**
   * A failure. `retryable` comes from the code unless it is given.
   *
   * @throws {TypeError} If `code` is not a failure code, or `message` not a string.
   */
  error(code: FailureCode, message: string, options?: FailureOptions): ToolFailure;
} = /* @__PURE__ */ Object.freeze({
  ok<Content>(content: Content, durationMs = 0): ToolSuccess<Content> {
    // A model would get all of it as a value, the metadata of blocks too.
    if (isToolResult(content)) refuse("make a result", "its content is one; return that");
    return mark({ ok: true, content, durationMs });
  },
  blocks(content: readonly ContentBlock[], options?: ContentOptions): ToolSuccess<ToolContent> {
    return mark({ ok: true, content: { content, ...options }, blocks: true, durationMs: 0 });
  },
  error(codeOrMessage: string, words?: string, options: FailureOptions = {}): ToolFailure {
    const [said, text] = words === undefined ? ["threw", codeOrMessage] : [codeOrMessage, words];
    const code = checkCode("make a failure", said, "its code");
    const message = checkText("make a failure", text, "its message");
    const { durationMs = 0, ...details } = options;
    const error = { code, message, ...FAILURE_CODES[code], ...defined(details) };
    return mark({ ok: false, error: error as ToolCallError, durationMs });
  },
});

/** A text for the model. */
export interface TextBlock {
  readonly type: "text";
  readonly text: string;
}

/** An image or a recording. */
export interface MediaBlock {
  readonly type: "image" | "audio";
  /** The bytes in base64, without a `data:` in front. */
  readonly data: string;
  /** Such as `image/png`. */
  readonly mimeType: string;
}

/** A file, with what is in it. */
export interface ResourceBlock {
  readonly type: "resource";
  readonly resource:
    & {
      readonly uri: string;
      readonly mimeType?: string | undefined;
    }
    & ({ readonly text: string } | {
      /** The bytes in base64. */
      readonly blob: string;
    });
}

/** A link. The model gets its address, and nothing is fetched. */
export interface ResourceLinkBlock {
  readonly type: "resource_link";
  readonly uri: string;
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly mimeType?: string | undefined;
  readonly size?: number | undefined;
}

/** One part of a result. MCP clients also get members that are not named here. */
export type ContentBlock = TextBlock | MediaBlock | ResourceBlock | ResourceLinkBlock;

/** What a result of blocks has besides them. */
export interface ContentOptions {
  /**
   * The same as a value. The `returns` schema of the tool is about it; programs and the output of
   * typed targets get it.
   */
  readonly structuredContent?: unknown;
  /** For the application, such as an id or a path. No model gets it. JSON. */
  readonly metadata?: { readonly [key: string]: unknown };
}

/** The content of a result of blocks. It is JSON. */
export interface ToolContent extends ContentOptions {
  readonly content: readonly ContentBlock[];
}
