/**
 * Rules for the arguments of every tool, after the schema and the tool's own rule.
 *
 * @module
 */

import type { ToolRuleAnswer } from "../../tool/mod.ts";
import { readRule } from "../checks.ts";
import { CallView } from "../context.ts";
import type { Layer } from "../layer.ts";
import type { CallInfo } from "../ports.ts";
import { callHost, FAILED } from "../host_function.ts";

/**
 * A rule for the arguments of every tool, after the schema and the tool's own rule. It returns what a
 * tool's `validate` returns. One that throws refuses the call.
 */
export type CallValidator = (call: CallInfo) => ToolRuleAnswer | Promise<ToolRuleAnswer>;

/** One layer for each rule, in their order. */
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
