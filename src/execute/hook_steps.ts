/**
 * Runs the hooks of a call. What decides and breaks, denies.
 *
 * @module
 */

import { isWord, type ToolFailure, type ToolResult } from "../tool/mod.ts";
import type { Call } from "./call.ts";
import { CallView } from "./context.ts";
import { INTERRUPTED, within } from "./deadline.ts";
import { readResult } from "./failures.ts";
import type { BeforeAnswer, ToolHooks } from "./hooks.ts";
import { readJson } from "./json_value.ts";
import { toResult } from "./output.ts";

/** Asks every `before` hook, in order, until one answers or refuses. */
export async function runBeforeHooks(call: Call): Promise<ToolResult | undefined> {
  for (const hook of call.settings.beforeHooks) {
    try {
      const answer = await hook.before?.(new CallView(call));
      if (call.over) return undefined;
      const result = answer === undefined || answer === null
        ? undefined
        : await follow(call, hook, answer);
      if (result !== undefined) return result;
    } catch (error) {
      call.report("before", error);
      return broken(call, hook);
    }
  }
  return undefined;
}

/** Does what a hook answered. */
async function follow(
  call: Call,
  hook: ToolHooks,
  answer: NonNullable<BeforeAnswer>,
): Promise<ToolResult | undefined> {
  if (typeof answer !== "object") return broken(call, hook);
  if ("refuse" in answer) {
    return isWord(answer.refuse) ? call.fail("denied", answer.refuse) : broken(call, hook);
  }
  if ("result" in answer) {
    const result = readResult(answer.result) ?? broken(call, hook);
    return result.ok ? await toResult(call, result.content) : result;
  }
  const verdict = readJson(answer.arguments, call.settings.maxArgumentBytes);
  if (verdict.kind !== "json") return broken(call, hook);
  call.args = verdict.value;
  return undefined;
}

/** Shows the result to every `after` hook, in reverse order, and takes what they put in its place. */
export async function runAfterHooks(call: Call, outcome: ToolResult): Promise<ToolResult> {
  let result = outcome;
  for (const hook of call.settings.afterHooks) {
    // The result itself is not finished before the last hook has seen it.
    const shown = Object.freeze({ ...result, durationMs: call.elapsedMs });
    try {
      const answer = await within(
        call.settings.clock,
        call.settings.closeTimeoutMs,
        Promise.resolve(hook.after?.(new CallView(call), shown)),
      );
      if (answer === undefined || answer === null || answer === shown) continue;
      const changed = answer === INTERRUPTED ? undefined : readResult(answer);
      if (changed === undefined) result = withheld(call, hook);
      // What has been checked is not checked again: a library's schema may have transformed it.
      else if (!changed.ok || (result.ok && changed.content === result.content)) result = changed;
      else result = await toResult(call, changed.content);
    } catch (error) {
      call.report("after", error);
      result = withheld(call, hook);
    }
  }
  return result;
}

function broken(call: Call, hook: ToolHooks): ToolFailure {
  return call.fail("denied", `${nameOf(hook)} failed, so the call is refused`);
}

function withheld(call: Call, hook: ToolHooks): ToolFailure {
  const ran = call.ran ? "the tool has run, but " : "";
  return call.fail("denied", `${ran}${nameOf(hook)} failed, so the result is withheld`);
}

function nameOf(hook: ToolHooks): string {
  return typeof hook.name === "string" ? `the hook "${hook.name.slice(0, 60)}"` : "a hook";
}
