/**
 * The host's hooks before and after a call.
 *
 * @module
 */

import { TIME_OVER, type ToolResult, within } from "../../tool/mod.ts";
import { CallView } from "../context.ts";
import { readResult } from "../failures.ts";
import {
  callHost,
  checkContent,
  checkHook,
  FAILED,
  failHook,
  findProblem,
  settled,
} from "../host_function.ts";
import { readJson } from "../json_value.ts";
import { MAKE } from "../kernel_options.ts";
import type { Call, Layer, Next } from "../layer.ts";
import type { ToolHooks } from "../ports.ts";

/** The layers of hooks. */
export interface HookLayers {
  readonly before: readonly Layer[];
  readonly after: readonly Layer[];
}

/**
 * Creates the layers of hooks, in two groups, since other layers may be between them: `after` runs
 * around everything (stage `call`), `before` on parsed arguments (stage `input`). A hook that
 * throws, or returns an invalid value, fails the call with `denied`, and `onError` receives the
 * reason.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { Dispatcher } from "@plue/tools/core";
 * import { hooks } from "@plue/tools/layers";
 *
 * const registry = new ToolRegistry({
 *   tools: [{
 *     name: "echo",
 *     description: "Answers.",
 *     parameters: { type: "object" },
 *     execute: (params) => params,
 *   }],
 * });
 * const { before, after } = hooks({ before: () => ({ arguments: { by: "a hook" } }) });
 * const dispatcher = new Dispatcher(registry, { layers: [after, before] });
 *
 * const result = await dispatcher.dispatch({ name: "echo" });
 * assert.deepEqual(result.ok && result.content, { by: "a hook" });
 * ```
 *
 * @param given One hook or several, in the order in which `before` runs.
 * @throws {TypeError} If one is not a hook.
 */
export function hooks(
  given: ToolHooks | readonly ToolHooks[] = [],
): HookLayers {
  const list = [given].flat().map((hook) => checkHook(MAKE, hook, "a hook"));
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
  return {
    before: layers("before", "input", runBefore),
    after: layers("after", "call", runAfter),
  };
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
  // A copy: the result is not complete before the last hook has seen it.
  const shown = Object.freeze({ ...result, durationMs: clock.now() - startedAt });
  const run = (): unknown => hook.after?.(new CallView(call), shown);
  const answer = await within(clock, closeTimeoutMs, settled(call, "after", run));
  if (answer === undefined || answer === null || answer === shown) return result;
  if (answer === FAILED) return failHook(call, hook, "after");
  const changed = answer === TIME_OVER ? undefined : readResult(answer);
  if (changed === undefined) {
    const problem = answer === TIME_OVER ? "it did not come in time" : "it is not a result";
    return failHook(call, hook, "after", problem);
  }
  // The same content is not checked again: a library's schema may have transformed it.
  if (!changed.ok || (result.ok && changed.content === result.content)) return changed;
  const last = await within(clock, closeTimeoutMs, checkContent(call, changed));
  return last === TIME_OVER ? failHook(call, hook, "after") : last;
}
