/** Rules for the arguments of every tool, after the schema and the tool's own rule. */

import type { ToolRuleAnswer } from "../../tool/mod.ts";
import { readRule } from "../arguments.ts";
import { callHost, CallView, FAILED } from "../context.ts";
import type { Layer } from "../layer.ts";
import type { CallInfo } from "../ports.ts";

/**
 * A rule for the arguments of every tool, after the schema and the tool's own rule. It returns the
 * same as a tool's `validate`. One that throws rejects the call.
 */
export type CallValidator = (call: CallInfo) => ToolRuleAnswer | Promise<ToolRuleAnswer>;

/**
 * Creates one layer for each rule, in their order. A call that violates one fails with
 * `invalid_arguments`; a rule that throws fails it with `denied`. Stage `run`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { Dispatcher } from "@plue/tools/core";
 * import { validators } from "@plue/tools/layers";
 *
 * const registry = new ToolRegistry({
 *   tools: [{ name: "ping", description: "Answers.", execute: () => "pong" }],
 * });
 * const rule = ({ principal }: { readonly principal: string | undefined }) =>
 *   principal === undefined ? "say who you are" : undefined;
 * const dispatcher = new Dispatcher(registry, { layers: [validators([rule])] });
 *
 * const result = await dispatcher.dispatch({ name: "ping" });
 * assert.equal(!result.ok && result.error.code, "invalid_arguments");
 * ```
 */
export function validators(rules: readonly CallValidator[]): readonly Layer[] {
  return rules.map((rule): Layer => ({
    name: "validator",
    stage: "run",
    for: () => async (call, next) => {
      const answer = await callHost(
        call,
        "checking the arguments",
        "validate",
        () => rule(new CallView(call)),
      );
      if (answer === FAILED) return call.fail("denied", "a rule for its arguments failed");
      return readRule(call, answer) ?? await next(call);
    },
  }));
}
