/**
 * The arguments of a call, from how a model wrote them to how its tool has them.
 *
 * @module
 */

import { decodeArguments } from "../rewrite_arguments.ts";
import type { ArgumentRewrite } from "../types.ts";
import { isRecord } from "./shape.ts";

/** The value that a text stands for. Nothing stands for `{}`; what is not JSON stays a text. */
export function parsed(text: string): unknown {
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    // JSON in a text in JSON: left as it is, for the validation to name.
    return typeof value === "string" ? text : value ?? {};
  } catch {
    return text;
  }
}

/** The arguments for the tool: parsed, and what the export changed undone. */
export function decodeInput(input: unknown, rewrite: ArgumentRewrite | undefined): unknown {
  const value = typeof input === "string" ? parsed(input) : input ?? {};
  return typeof value === "string" ? value : decodeArguments(value, rewrite);
}

/** Whether arguments of a model that was stopped are whole: as text, an object that is closed is. */
export function isWhole(input: unknown): boolean {
  return typeof input === "string" && input.trim() !== "" && isRecord(parsed(input));
}
