/** The failures of a call, with messages for a model. */

import { MAX_ISSUES } from "../schema/mod.ts";
import {
  clip,
  type FailureCode,
  type FailureOptions,
  isFailureCode,
  isObject,
  type Issue,
  isToolResult,
  isToolRun,
  type Tool,
  type ToolFailure,
  ToolResult,
  type ToolRun,
  type ToolSuccess,
} from "../tool/mod.ts";
import type { InterruptCause } from "./deadline.ts";

const MAX_MESSAGE = 2_000;

export type FailureDetails = Omit<FailureOptions, "durationMs">;

/**
 * An error that ends its call with this code and message. Layers and functions of a tool's context
 * throw this error. It is not reported to `onError`.
 */
export class CallFailure extends Error {
  readonly code: FailureCode;

  constructor(code: FailureCode, why: string) {
    super(why);
    this.code = code;
  }
}

export function failure(
  code: FailureCode,
  id: string,
  why: string,
  details?: FailureDetails,
): ToolFailure {
  return ToolResult.error(
    code,
    `Cannot call ${JSON.stringify(id)}: ${clip(why, MAX_MESSAGE)}`,
    details,
  );
}

export function validationFailure(
  code: "invalid_arguments" | "invalid_result",
  id: string,
  what: string,
  issues: readonly Issue[],
): ToolFailure {
  const first = issues.slice(0, MAX_ISSUES);
  const messages = first.map(({ message }) => message).join("; ");
  return failure(code, id, `${what}: ${messages}`, { issues: first });
}

export function notAvailable(id: string): ToolFailure {
  return failure("unavailable", id, "the tool is not available now");
}

/** The failure for a name outside of the caller's tools; the same for hidden and missing tools. */
export function unknownTool(name: string, hint = ""): ToolFailure {
  return failure("unknown_tool", clip(name), `there is no such tool${hint}`, { ran: "no" });
}

/**
 * The failure of an aborted or timed-out call.
 *
 * @param doing The activity of the call: "waiting for a slot".
 * @param acknowledged True if the tool has stopped; `undefined` if the tool did not run.
 */
export function interruption(
  id: string,
  cause: InterruptCause,
  doing: string,
  acknowledged?: boolean,
): ToolFailure {
  const what = cause === "timeout" ? "its time was over" : "the call was aborted";
  const rest = acknowledged === false ? ", and the tool has not stopped yet" : "";
  return failure(cause, id, `${what} while it was ${doing}${rest}`, { acknowledged });
}

/** Creates a success. Flags that are not set are absent. */
export function success(content: unknown, blocks?: true, truncated = false): ToolSuccess {
  return {
    ok: true,
    content,
    ...(blocks && { blocks }),
    ...(truncated && { truncated }),
    durationMs: 0,
  };
}

const isFlag = (value: unknown): boolean => typeof value === "boolean";

/** The checks of the optional fields of an error that a tool or a hook made. */
const DETAILS: { readonly [field: string]: (value: unknown) => boolean } = {
  retryable: isFlag,
  acknowledged: isFlag,
  retryAfterMs: (value) => typeof value === "number" && value >= 0 && value < Infinity,
  ran: isToolRun,
};

/** Returns a tool's or hook's result without unknown fields; `undefined` for other values. */
export function readResult(value: unknown): ToolResult | undefined {
  if (!isObject(value)) return undefined;
  const { ok, content, error, blocks, truncated } = value;
  if (ok === true) return success(content, blocks === true || undefined, truncated === true);
  if (ok !== false || !isObject(error)) return undefined;
  const { code, message, issues } = error;
  if (!isFailureCode(code) || typeof message !== "string") return undefined;
  const details = Object.entries(error).filter(([field, detail]) => DETAILS[field]?.(detail));
  const failed = ToolResult.error(code, clip(message, MAX_MESSAGE), {
    ...Object.fromEntries(details),
    issues: Array.isArray(issues) ? readIssues(issues) : undefined,
  });
  if (code !== "input_required") return failed;
  // Only dispatchers create tickets: the tool has dispatched another call, which is suspended.
  const { questions, ticket } = value;
  return Array.isArray(questions) && typeof ticket === "string"
    ? { ...failed, questions, ticket }
    : undefined;
}

/** Reads issues that a tool, a rule or a hook made: the first 8, with texts of bounded length. */
export function readIssues(list: readonly unknown[]): readonly Issue[] {
  const text = (value: unknown, instead: string): string =>
    typeof value === "string" ? clip(value, 300) : instead;
  return list.slice(0, MAX_ISSUES).map((item) => {
    const { path, keyword, expected, message } = (item ?? {}) as Record<string, unknown>;
    const words = text(message, "The tool's own check rejects this value");
    return {
      path: text(path, ""),
      keyword: text(keyword, "custom"),
      expected: text(expected, words),
      message: words,
    };
  });
}

export type Settable<T> = { -readonly [Key in keyof T]: T[Key] };

/** Returns the result, or a copy if the result is frozen or may belong to another call. */
export function ownResult(result: ToolResult): Settable<ToolResult> {
  const { ok } = result;
  const isForeign = isToolResult(result as unknown) || Object.isFrozen(result) ||
    !ok && Object.isFrozen(result.error);
  if (!isForeign) return result;
  return ok ? { ...result } : { ...result, error: { ...result.error } };
}

/** Sets the fields `ran` and `retryable` of a failure. */
export function completeFailure({ error, replayed }: ToolFailure, ran: ToolRun, tool?: Tool): void {
  if (error.code === "input_required") return;
  const settable = error as Settable<ToolFailure["error"]>;
  // A failure from another process already has the correct `ran`. A replayed failure was stored,
  // and only failures of tools that have run are stored.
  settable.ran ??= replayed ? "yes" : ran;
  if (settable.ran === "unknown" && tool?.idempotent !== true) settable.retryable = false;
}
