/**
 * Many tools for few tokens: views of tools, and budgets (`@plue/tools/finding`).
 *
 * @module
 */

export { viewOf, type ViewOptions } from "./view.ts";
export { countTokens, type TokenCounter } from "./count_tokens.ts";
export {
  fitBudget,
  type FitBudgetOptions,
  type FittedTool,
  type FittedTools,
  type LeftOutTool,
  measureTokens,
  type TokenMeasure,
  type ToolDetail,
} from "./fit_budget.ts";
