/**
 * The outcome of a call in the forms that providers take: a value, and words for a model.
 *
 * @module
 */

import { type JsonValue, type ToolCallError, ToolResult } from "../../tool/mod.ts";
import type { ToolEncoding } from "../types.ts";
import type { Answer } from "./types.ts";

/** How long a failure may be, in characters: no provider takes fewer. */
const MAX_FAILURE = 16_384;

/** How many issues are said. More do not help a model to mend a call. */
const MAX_ISSUES = 8;

/**
 * Prepares a result for a format.
 *
 * @param encoding How the tool was exported, if that is known.
 * @param maxCharacters How long the text may be.
 */
export function answerOf(
  result: ToolResult,
  encoding: ToolEncoding | undefined,
  maxCharacters: number = Infinity,
): Answer {
  if (typeof result?.ok !== "boolean") {
    throw new TypeError(
      "Cannot encode the result: it must be a ToolResult, as ToolResult.ok makes",
    );
  }
  if (!result.ok) return failed(result.error);
  // `undefined` is no JSON; a tool that answers nothing answers `null`.
  const content = result.content ?? null;
  let json: string | undefined;
  try {
    json = JSON.stringify(content);
  } catch {
    json = undefined;
  }
  if (json === undefined) {
    const message = "Cannot send the result: it is not JSON";
    return failed(ToolResult.error("invalid_result", message).error);
  }
  const text = typeof content === "string" ? content : json;
  if (text.length > maxCharacters) {
    const message =
      `Cannot send the result: it has ${text.length} characters, and at most ${maxCharacters} are taken`;
    return failed(ToolResult.error("output_too_large", message).error);
  }
  // It was written as JSON above.
  const value = content as JsonValue;
  return {
    ok: true,
    value: encoding?.wrapsResult === true ? { result: value } : value,
    text,
    typed: encoding?.sendsReturns === true,
  };
}

function failed(error: ToolCallError): Answer {
  return { ok: false, error, text: failureText(error).slice(0, MAX_FAILURE) };
}

/** A failure in words: its message, and the issues that the message does not name. */
export function failureText(error: ToolCallError): string {
  const { message, issues = [] } = error;
  const more = issues.slice(0, MAX_ISSUES).filter((issue) => !message.includes(issue.message));
  return [message, ...more.map((issue) => `- ${issue.path || "the whole"}: ${issue.message}`)]
    .join("\n");
}

/** The text of an answer, for a target that cannot mark a failure as one. */
export function plainText(answer: Answer): string {
  return answer.ok ? answer.text : `Error (${answer.error.code}): ${answer.text}`;
}
