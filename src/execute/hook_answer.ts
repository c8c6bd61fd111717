/**
 * Checks hooks, reads what they return, and fails the calls of hooks that failed.
 *
 * @module
 */

import {
  type Check,
  clip,
  isFunction,
  isObject,
  isWord,
  must,
  type ToolFailure,
  type ToolResult,
  type ToolSuccess,
} from "../tool/mod.ts";
import type { Call } from "./layer.ts";
import { toResult } from "./output.ts";
import type { BeforeAnswer, ToolHooks } from "./ports.ts";

/** Checks a hook of a host. */
export const checkHook: Check<ToolHooks> = must(
  "an object with a before or an after function",
  (value): value is ToolHooks => {
    if (!isObject(value)) return false;
    const parts = [value["before"], value["after"]].filter((part) => part !== undefined);
    return parts.length > 0 && parts.every(isFunction);
  },
);

const ANSWERS: readonly string[] = ["arguments", "result", "refuse"];

/** What is wrong with the answer of a `before` hook; `undefined` if nothing is. */
export function findProblem(answer: NonNullable<BeforeAnswer>): string | undefined {
  if (!isObject(answer)) return "it is not an object";
  const fields = Object.keys(answer);
  const [field = ""] = fields;
  if (fields.length !== 1 || !ANSWERS.includes(field)) {
    const seen = clip(fields.map((name) => `"/${name}"`).join(", "));
    return `it must have one of "/arguments", "/result" and "/refuse", and has ${seen || "none"}`;
  }
  return "refuse" in answer && !isWord(answer.refuse)
    ? '"/refuse" must be a sentence for the model'
    : undefined;
}

/** Fails the call of a hook that failed, or that returned something wrong, which is reported. */
export function failHook(
  call: Call,
  { name: given }: ToolHooks,
  phase: "before" | "after",
  problem?: string,
): ToolFailure {
  const name = typeof given === "string" ? `the hook "${given.slice(0, 60)}"` : "a hook";
  if (problem !== undefined) {
    call.report(phase, new TypeError(`Cannot use the answer of ${name}: ${problem}`));
  }
  const isRefused = phase === "before";
  const ran = isRefused || call.toolState === "not started" ? "" : "the tool has run, but ";
  const what = isRefused ? "call is refused" : "result is withheld";
  return call.fail("denied", `${ran}${name} failed, so the ${what}`);
}

/** Checks the content of a hook's success, as the tool's would be. */
export async function checkContent(
  call: Call,
  { content, blocks, truncated }: ToolSuccess,
): Promise<ToolResult> {
  return await toResult(call, content, blocks, truncated);
}
