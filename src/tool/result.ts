/** The result of a call, which never rejects: errors and questions are values. */

import { type Check, checkText, fail, oneOf } from "./check.ts";
import { defined, type JsonSchema } from "./json.ts";

const CODES = [
  // The caller's toolset does not contain the tool.
  "unknown_tool",
  // The tool exists, but cannot be used now.
  "unavailable",
  // A hook, an approver or a policy denied the call.
  "denied",
  // The tool is a definition only.
  "not_executable",
  // The arguments are not JSON, or violate the schema or the tool's own rules.
  "invalid_arguments",
  // The result violates the tool's own schema, or is not JSON.
  "invalid_result",
  // The call needs an approval first.
  "approval_required",
  // The call waits for answers. Its ticket resumes it.
  "input_required",
  // The call asks a question, and there is no way to ask it.
  "input_unavailable",
  // The ticket is invalid, expired or used, or belongs to another caller.
  "ticket_refused",
  // The caller aborted the call.
  "aborted",
  // The call took too long.
  "timeout",
  // A transaction could not begin, commit or roll back, or there is no transaction manager.
  "transaction_failed",
  // The result is larger than the limit.
  "output_too_large",
  // Too many calls are running and waiting.
  "overloaded",
  // The tool threw.
  "threw",
] as const;

/** The code of a failure. */
export type FailureCode = (typeof CODES)[number];

/** The failures of calls that may succeed later. */
const RETRYABLE: readonly FailureCode[] = ["unavailable", "aborted", "timeout", "overloaded"];

/** The HTTP status of each failure. The core does not contain it. */
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
  // Not registered, but commonly used for "client closed the connection".
  aborted: 499,
  timeout: 504,
  transaction_failed: 500,
  output_too_large: 502,
  overloaded: 503,
  threw: 500,
};

/** Returns the address of the page that explains a code of a failure or of a problem. */
export function helpUrl(code: string): string {
  return `https://github.com/plue/tools/blob/main/docs/troubleshooting.md#${code}`;
}

export function isFailureCode(value: unknown): value is FailureCode {
  return CODES.includes(value as FailureCode);
}

/** The treatment of a result that is larger than the limit: reject it, or truncate it. */
export type OutputOverflow = "fail" | "truncate";

export const checkOverflow: Check<OutputOverflow> = /* @__PURE__ */ oneOf(["fail", "truncate"]);

/** One problem of a value. */
export interface Issue {
  /** The JSON Pointer (RFC 6901) in the value; `""` is the whole value. */
  readonly path: string;
  /** The schema keyword that failed, such as `required` or `minimum`; `custom` for a tool's own rule. */
  readonly keyword: string;
  /** The expectation, in a few words. */
  readonly expected: string;
  /** The complete message. */
  readonly message: string;
}

/** A repaired part of a call's arguments. */
export interface ArgumentRepair {
  /** The JSON Pointer in the arguments; `""` is all of them. */
  readonly path: string;
  /** The change: `a string was read as an integer`. */
  readonly message: string;
}

/** The kind of answer: content, yes or no, a visit to a URL, or the result of a caller's tool. */
export type QuestionKind = "input" | "approval" | "authorization" | "client";

/** A question of a tool. */
export interface QuestionFields {
  /** @default {"input"} */
  readonly kind?: QuestionKind | undefined;
  /** The question, for the person who answers: at most 2,000 characters. */
  readonly message: string;
  /** The schema of the content, for `input` and `client`. Without it, any JSON value is valid. */
  readonly schema?: JsonSchema | undefined;
  /** The URL to visit, for the kind `authorization`. */
  readonly url?: string | undefined;
  /**
   * The shown arguments: JSON of at most 64 kB. An approval is valid only for these. A tool that
   * calls others passes the arguments of the call that the question is about.
   *
   * @default {the arguments of the call, for `approval` and `client`}
   */
  readonly arguments?: unknown;
  /**
   * True if the call itself notices when the person has finished at the URL. Answer with `accept`
   * as soon as the person has the URL; the call then waits, and continues without another answer.
   *
   * @default {false}
   */
  readonly resumes?: boolean | undefined;
}

/** A question as JSON, in the form that is sent to the caller. */
export interface Question extends QuestionFields {
  /** Identifies the question in its call. The answer has the same key. */
  readonly key: string;
  readonly kind: QuestionKind;
  /** The issues of the last answer, if the question is repeated. */
  readonly issues?: readonly Issue[];
}

/**
 * Returns a question of another call as a question of the tool that made that call.
 *
 * @param shown The tool's own arguments. The question has its arguments only if they differ.
 */
export function forwardedQuestion(
  { kind, message, schema, url, resumes, issues = [], arguments: args }: Question,
  shown?: unknown,
): QuestionFields {
  const words = [...issues.map((issue) => issue.message), message];
  const isSame = JSON.stringify(args) === JSON.stringify(shown);
  const more = { schema, url, resumes, ...(!isSame && { arguments: args }) };
  return { kind, message: words.join("\n"), ...more };
}

/** The person's action: answered, declined, or left without an answer. */
export type Answer<Content = unknown> =
  | { readonly action: "accept"; readonly content?: Content }
  | { readonly action: "decline" }
  | { readonly action: "cancel" };

/** Answers, by the keys of their questions. */
export interface Answers {
  readonly [key: string]: Answer;
}

/** The error of a failed call. */
export interface ToolCallError {
  readonly code: FailureCode;
  /** The problem, its position and the expectation, written for a model. */
  readonly message: string;
  /** At most 8 issues of the arguments or the result, if they caused the failure. */
  readonly issues?: readonly Issue[];
  /** True if the same call may succeed later. */
  readonly retryable: boolean;
  /** The minimum delay before a retry, in milliseconds, if known. */
  readonly retryAfterMs?: number;
  /** After a timeout or an abort: true if the tool stopped within the grace period. */
  readonly acknowledged?: boolean;
  /**
   * Whether the tool ran, at least in part. `unknown` if the tool still runs although its call has
   * ended, or if the answer of another process was lost. Such a failure is `retryable` only for an
   * idempotent tool, and is stored for the idempotency key. A dispatcher always sets this field.
   */
  readonly ran?: ToolRun;
}

/** `no` if the tool of a failed call did not run, `unknown` if it may have run. */
export type ToolRun = "no" | "yes" | "unknown";

export function isToolRun(value: unknown): value is ToolRun {
  return value === "no" || value === "yes" || value === "unknown";
}

/** A call that succeeded. */
export interface ToolSuccess<Content = unknown> {
  readonly ok: true;
  /** The tool's result. */
  readonly content: Content;
  /** The duration of the call from dispatch to result, in milliseconds. */
  readonly durationMs: number;
  /** True if the content consists of blocks, such as an image: a `ToolContent`. */
  readonly blocks?: true;
  /** True if the content was truncated to the output limit. */
  readonly truncated?: true;
  /** True for the result of an earlier call, by idempotency key or from a cache. */
  readonly replayed?: true;
  readonly repaired?: readonly ArgumentRepair[];
}

/** A call that failed, or is suspended. */
export interface ToolFailure {
  readonly ok: false;
  readonly error: ToolCallError;
  /** The questions of a call with the code `input_required`. */
  readonly questions?: readonly Question[];
  /** Resumes the call. Only the same caller can use it. */
  readonly ticket?: string;
  /** The duration of the call from dispatch to result, in milliseconds. */
  readonly durationMs: number;
  /** True for the result of an earlier call with the same idempotency key. */
  readonly replayed?: true;
  readonly repaired?: readonly ArgumentRepair[];
}

/** A suspended call. */
export interface SuspendedCall extends ToolFailure {
  readonly questions: readonly Question[];
  readonly ticket: string;
}

/** Returns true if a result belongs to a suspended call. */
export function isSuspended(result: ToolResult): result is SuspendedCall {
  return !result.ok && result.error.code === "input_required" &&
    Array.isArray(result.questions) && typeof result.ticket === "string";
}

/** The result of one call. */
export type ToolResult<Content = unknown> = ToolSuccess<Content> | ToolFailure;

export interface FailureOptions {
  readonly issues?: readonly Issue[] | undefined;
  readonly retryable?: boolean | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly acknowledged?: boolean | undefined;
  readonly ran?: ToolRun | undefined;
  readonly durationMs?: number | undefined;
}

const checkCode: Check<FailureCode> = /* @__PURE__ */ oneOf(CODES);

/** Marks the results of {@linkcode ToolResult} in all copies of plue, so that tools return them. */
const MADE: unique symbol = /* @__PURE__ */ Symbol.for("plue.tool_result") as never;

function mark<T extends ToolResult>(result: T): T {
  return Object.defineProperty(result, MADE, { value: true });
}

/** The constructor returns its argument, so a subclass adds its private field to that object. */
class Identity {
  constructor(object: object) {
    return object;
  }
}

/** The mark of this copy of plue. Reading it takes 45 ns on Node; {@linkcode MADE} takes 310 ns. */
class Branded extends Identity {
  readonly #branded = true;

  static has(object: object): boolean {
    return #branded in object;
  }
}

/** Marks a result of the dispatcher, which a tool that dispatches to another may return. */
export function brandResult(result: ToolResult): void {
  new Branded(result);
}

/** True for a result of {@linkcode ToolResult} or a dispatcher, not for a plain value. */
export function isToolResult(value: unknown): value is ToolResult {
  return typeof value === "object" && value !== null &&
    (Branded.has(value) || Object.hasOwn(value, MADE));
}

/**
 * Creates results. A tool may return one to choose the failure code and the message.
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
 * const image = ToolResult.blocks(
 *   [{ type: "image", data: "R0lGODlhAQABAAAAACw=", mimeType: "image/gif" }],
 *   { metadata: { file: "dot.gif" } }, // for the application, never sent to a model
 * );
 * assert.equal(image.blocks, true);
 * ```
 */
export const ToolResult: {
  /** Creates a success. Throws if `content` is a result itself: return that instead. */
  ok<Content>(content: Content, durationMs?: number): ToolSuccess<Content>;
  /** Creates a success with blocks. Each provider gets the blocks in its own form, or as texts. */
  blocks(content: readonly ContentBlock[], options?: ContentOptions): ToolSuccess<ToolContent>;
  /** Creates a failure with the code `threw`, as if the tool had thrown this message. */
  error(message: string): ToolFailure;
  /** Creates a failure. `retryable` follows from the code. Throws for an unknown code. */
  error(code: FailureCode, message: string, options?: FailureOptions): ToolFailure;
} = /* @__PURE__ */ Object.freeze({
  ok<Content>(content: Content, durationMs = 0): ToolSuccess<Content> {
    // As content, a model would receive all of a result, including the metadata of blocks.
    if (isToolResult(content)) {
      fail("make a result", "the content is a ToolResult; return the content itself");
    }
    return mark({ ok: true, content, durationMs });
  },
  blocks(content: readonly ContentBlock[], options?: ContentOptions): ToolSuccess<ToolContent> {
    return mark({ ok: true, content: { content, ...options }, blocks: true, durationMs: 0 });
  },
  error(codeOrMessage: string, words?: string, options: FailureOptions = {}): ToolFailure {
    const [name, text] = words === undefined ? ["threw", codeOrMessage] : [codeOrMessage, words];
    const code = checkCode("make a failure", name, "the code");
    const message = checkText("make a failure", text, "the message");
    const { durationMs = 0, ...details } = options;
    const error = { code, message, retryable: RETRYABLE.includes(code), ...defined(details) };
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

/** A file with its content. */
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

/** A link. The model gets its address; plue does not fetch it. */
export interface ResourceLinkBlock {
  readonly type: "resource_link";
  readonly uri: string;
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly mimeType?: string | undefined;
  readonly size?: number | undefined;
}

/** One part of a result. MCP clients also get fields that these types do not have. */
export type ContentBlock = TextBlock | MediaBlock | ResourceBlock | ResourceLinkBlock;

/** The other fields of a result with blocks. */
export interface ContentOptions {
  /** The same content as a value, for programs and typed targets. `returns` is its schema. */
  readonly structuredContent?: unknown;
  /** JSON for the application, such as an id or a path. Models never receive it. */
  readonly metadata?: { readonly [key: string]: unknown };
}

/** The content of a result of blocks. It is JSON. */
export interface ToolContent extends ContentOptions {
  readonly content: readonly ContentBlock[];
}
