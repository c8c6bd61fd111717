/** The host's hooks before and after a call. */

import {
  type Check,
  clip,
  createCheck,
  isFunction,
  isObject,
  isWord,
  TIME_OVER,
  type ToolFailure,
  type ToolResult,
  type ToolSuccess,
  within,
} from "../../tool/mod.ts";
import { callHost, CallView, FAILED, settled } from "../context.ts";
import { readResult } from "../failures.ts";
import { MAKE } from "../kernel_options.ts";
import type { Call, Layer, Next } from "../layer.ts";
import { readJson } from "../json_value.ts";
import { toResult } from "../output.ts";
import type { BeforeAnswer, ToolHooks } from "../ports.ts";

/** The layers of hooks. */
export interface HookLayers extends Readonly<Record<"before" | "after", readonly Layer[]>> {}

/**
 * Creates the layers of hooks, in two groups, since other layers may be between them: `after` runs
 * around everything (stage `call`), `before` on parsed arguments (stage `input`). A hook that
 * throws, or returns an invalid value, fails the call with `denied`, and `onError` receives the
 * reason. {@linkcode ToolHooks} has an example.
 *
 * @param values One hook or several, in the order in which `before` runs.
 * @throws {TypeError} If a value is not a hook.
 */
export function hooks(values: ToolHooks | readonly ToolHooks[] = []): HookLayers {
  const list = [values].flat().map((hook) => checkHook(MAKE, hook, "a hook"));
  const layers = (
    part: "before" | "after",
    stage: Layer["stage"],
    run: (hook: ToolHooks, call: Call, next: Next) => Promise<ToolResult>,
  ): readonly Layer[] =>
    list.filter((hook) => hook[part] !== undefined).map((hook) => ({
      name: `${part}-hook`,
      stage,
      for: () => (call, next) => run(hook, call, next),
    }));
  return { before: layers("before", "input", runBefore), after: layers("after", "call", runAfter) };
}

async function runBefore(hook: ToolHooks, call: Call, next: Next): Promise<ToolResult> {
  const before = () => hook.before?.(new CallView(call));
  const answer = await callHost(call, "waiting for a hook", "before", before);
  if (answer === undefined || answer === null) return await next(call);
  if (answer === FAILED) return failHook(call, hook, "before");
  const problem = findProblem(answer);
  if (problem !== undefined) return failHook(call, hook, "before", problem);
  if ("refuse" in answer) return call.fail("denied", answer.refuse);
  if ("result" in answer) {
    const result = readResult(answer.result);
    if (result === undefined) return failHook(call, hook, "before", '"/result" is not a result');
    return result.ok ? await call.wait("waiting for a hook", checkContent(call, result)) : result;
  }
  const verdict = readJson(answer.arguments, call.settings.maxArgumentBytes);
  if (verdict.kind !== "json") {
    return failHook(call, hook, "before", '"/arguments" is not JSON, or is too large');
  }
  call.setArguments(verdict.value, verdict.bytes);
  return await next(call);
}

async function runAfter(hook: ToolHooks, call: Call, next: Next): Promise<ToolResult> {
  const { clock, closeTimeoutMs } = call.settings;
  const startedAt = clock.now();
  const result = await next(call);
  if (result.replayed && call.toolState === "not started") return result;
  // A copy, because the result is completed only after the last hook.
  const shown = Object.freeze({ ...result, durationMs: clock.now() - startedAt });
  const run = (): unknown => hook.after?.(new CallView(call), shown);
  const answer = await within(clock, closeTimeoutMs, settled(call, "after", run));
  if (answer === undefined || answer === null || answer === shown) return result;
  if (answer === FAILED) return failHook(call, hook, "after");
  const changed = answer === TIME_OVER ? undefined : readResult(answer);
  if (changed === undefined) {
    const problem = answer === TIME_OVER
      ? `it did not arrive within ${closeTimeoutMs} ms`
      : "it is not a ToolResult";
    return failHook(call, hook, "after", problem);
  }
  // Unchanged content is not validated again: a Standard Schema may reject its transformed output.
  if (!changed.ok || (result.ok && changed.content === result.content)) return changed;
  const last = await within(clock, closeTimeoutMs, checkContent(call, changed));
  return last === TIME_OVER ? failHook(call, hook, "after") : last;
}

const checkHook: Check<ToolHooks> = createCheck(
  "an object with a before or an after function",
  (value): value is ToolHooks => {
    if (!isObject(value)) return false;
    const parts = [value["before"], value["after"]].filter((part) => part !== undefined);
    return parts.length > 0 && parts.every(isFunction);
  },
);

const ANSWERS: readonly string[] = ["arguments", "result", "refuse"];

function findProblem(answer: NonNullable<BeforeAnswer>): string | undefined {
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

function failHook(
  call: Call,
  { name: label }: ToolHooks,
  phase: "before" | "after",
  problem?: string,
): ToolFailure {
  const name = typeof label === "string" ? `the hook "${label.slice(0, 60)}"` : "a hook";
  if (problem !== undefined) {
    call.report(phase, new TypeError(`Cannot use the return value of ${name}: ${problem}`));
  }
  const isRefused = phase === "before";
  const ran = isRefused || call.toolState === "not started" ? "" : "the tool has run, but ";
  const what = isRefused ? "call is rejected" : "result is hidden";
  return call.fail("denied", `${ran}${name} failed, so the ${what}`);
}

async function checkContent(call: Call, success: ToolSuccess): Promise<ToolResult> {
  return await toResult(call, success.content, success.blocks, success.truncated);
}
