/**
 * The failures of a call, in words for a model.
 *
 * @module
 */

import { MAX_ISSUES } from "../schema/mod.ts";
import {
  clip,
  type FailureCode,
  isFailureCode,
  isObject,
  type Issue,
  type ToolFailure,
  ToolResult,
} from "../tool/mod.ts";
import type { InterruptCause } from "./deadline.ts";

/** How long a message that a tool, a hook or a rule wrote may be, in characters. */
const MAX_MESSAGE = 2_000;

/** A failure that says what could not be done, and why. */
export function failure(code: FailureCode, id: string, why: string): ToolFailure {
  return ToolResult.error(code, `Cannot call "${id}": ${clip(why, MAX_MESSAGE)}`);
}

/** A failure for a name that is not among the caller's tools, whether it exists or not. */
export function unknownTool(name: string, near: readonly string[]): ToolFailure {
  const hint = near.length === 0
    ? ""
    : `. Did you mean ${near.map((id) => `"${id}"`).join(" or ")}?`;
  return ToolResult.error(
    "unknown_tool",
    `Cannot call ${JSON.stringify(clip(name))}: there is no such tool${hint}`,
  );
}

/**
 * A failure of a call that was ended from outside.
 *
 * @param doing What it was doing: "waiting for its turn".
 * @param acknowledged Whether its tool stopped; `undefined` if the tool did not run.
 */
export function interruption(
  id: string,
  cause: InterruptCause,
  doing: string,
  acknowledged?: boolean,
): ToolFailure {
  const what = cause === "timeout" ? "its time was over" : "the call was aborted";
  const rest = acknowledged === false ? ", and the tool has not stopped yet" : "";
  return ToolResult.error(
    cause,
    `Cannot call "${id}": ${what} while it was ${doing}${rest}`,
    acknowledged === undefined ? {} : { acknowledged },
  );
}

/** A failure because of what is wrong with the arguments or the result. */
export function misfit(
  code: "invalid_arguments" | "invalid_result",
  id: string,
  what: string,
  issues: readonly Issue[],
): ToolFailure {
  const kept = issues.slice(0, MAX_ISSUES);
  const words = kept.map(({ message }) => message).join("; ");
  return ToolResult.error(code, `Cannot call "${id}": ${what}: ${clip(words, MAX_MESSAGE)}`, {
    issues: kept,
  });
}

/** A result that somebody else made, as one that holds what a result must; `undefined` if it cannot be. */
export function readResult(value: unknown): ToolResult | undefined {
  if (!isObject(value)) return undefined;
  const { ok, content, error } = value;
  if (ok === true) return { ok, content, durationMs: 0 };
  if (ok !== false || !isObject(error)) return undefined;
  const { code, message, issues, retryable, acknowledged } = error;
  if (!isFailureCode(code) || typeof message !== "string") return undefined;
  return ToolResult.error(code, clip(message, MAX_MESSAGE), {
    ...(Array.isArray(issues) ? { issues: readIssues(issues) } : {}),
    ...(typeof retryable === "boolean" ? { retryable } : {}),
    ...(typeof acknowledged === "boolean" ? { acknowledged } : {}),
  });
}

/** At most 8 issues, with no more than text in them. */
export function readIssues(list: readonly unknown[]): readonly Issue[] {
  const text = (value: unknown, instead: string): string =>
    typeof value === "string" ? clip(value, 300) : instead;
  return list.slice(0, MAX_ISSUES).map((item) => {
    const { path, keyword, expected, message } = (item ?? {}) as Record<string, unknown>;
    const words = text(message, "The tool's own rule refuses it");
    return {
      path: text(path, ""),
      keyword: text(keyword, "custom"),
      expected: text(expected, words),
      message: words,
    };
  });
}
