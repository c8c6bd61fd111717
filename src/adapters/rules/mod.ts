/**
 * Rules that decide on a call by its arguments, its caller, and the earlier calls of its session.
 *
 * @module
 */

export { readRules, type RuleDocument } from "./document.ts";
export { type CallExplanation, explainCall, explainTool } from "./explain.ts";
export { rules, type RulesOptions, type RuleVerdict } from "./layer.ts";
export {
  amountAtMost,
  type ArgumentRuleOptions,
  neverAfter,
  noTrifecta,
  onlyAfter,
  pathWithin,
} from "./ready.ts";
export { ask, deny, type EarlierCall, type Rule, type RuleCall, type Verdict } from "./rule.ts";
export type { ToolPattern } from "./tools.ts";
