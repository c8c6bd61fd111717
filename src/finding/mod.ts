/**
 * Many tools for few tokens (`@plue/tools/finding`): a bridge to tools that are not listed, views
 * of tools, and budgets of tokens.
 *
 * @module
 */

export { type BridgeSkills, createToolBridge, type ToolBridgeOptions } from "./bridge.ts";
export { viewOf, type ViewOptions } from "./view.ts";
export { countTokens, type TokenCounter } from "./count_tokens.ts";
export {
  fitBudget,
  type FitBudgetOptions,
  type FittedTools,
  type LeftOutTool,
  measureTokens,
  type ToolDetail,
} from "./fit_budget.ts";
