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
} from "../tool/mod.ts";
import type { Call } from "./layer.ts";
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

/** Fails a call whose hook returned something wrong, and reports what. */
export function wrongAnswer(
  call: Call,
  hook: ToolHooks,
  problem: string,
  phase: "before" | "after" = "before",
): ToolFailure {
  call.report(phase, new TypeError(`Cannot use the answer of ${nameOf(hook)}: ${problem}`));
  return phase === "before" ? refused(call, hook) : withheld(call, hook);
}

/** Fails a call whose `before` hook failed. */
export function refused(call: Call, hook: ToolHooks): ToolFailure {
  return call.fail("denied", `${nameOf(hook)} failed, so the call is refused`);
}

/** Fails a call whose result a failing hook may have had to change. */
export function withheld(call: Call, hook: ToolHooks): ToolFailure {
  const ran = call.toolState === "not started" ? "" : "the tool has run, but ";
  return call.fail("denied", `${ran}${nameOf(hook)} failed, so the result is withheld`);
}

function nameOf(hook: ToolHooks): string {
  return typeof hook.name === "string" ? `the hook "${hook.name.slice(0, 60)}"` : "a hook";
}
