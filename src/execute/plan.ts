/**
 * The order of a call, always the same. What a tool under these settings has no use for is left
 * out once, when its plan is made, and costs its calls nothing.
 *
 * @module
 */

import type { ToolHost } from "../registry/mod.ts";
import type { Tool, ToolResult } from "../tool/mod.ts";
import { askApproval } from "./approval_step.ts";
import { parseArguments, validateArguments } from "./arguments.ts";
import type { Call } from "./call.ts";
import { runTool } from "./execute.ts";
import { runBeforeHooks } from "./hook_steps.ts";
import { claimKey } from "./idempotency_step.ts";
import { readOutput } from "./output.ts";
import { acquireTool, checkAvailable, checkTime, refuseDefinition } from "./prepare.ts";
import { applyRules } from "./rules.ts";
import type { Settings } from "./settings.ts";
import type { ToolStats } from "./stats.ts";
import { beginTransaction } from "./transaction_steps.ts";
import { takeTurn } from "./turn_step.ts";

/** What a step says: nothing to go on, or the result, at once or later. */
export type StepAnswer = ToolResult | undefined | Promise<ToolResult | undefined>;

/** One step of a call. */
export interface Step {
  /** What the call is doing meanwhile, for messages: "waiting for its turn". */
  readonly doing: string;
  readonly run: (call: Call) => StepAnswer;
  readonly next: Step | undefined;
}

/** How calls of one tool run. Made once per tool. */
export interface ToolPlan {
  readonly tool: Tool;
  readonly first: Step | undefined;
  readonly timeoutMs: number;
  readonly stats: ToolStats;
  /** What runs the tool. */
  readonly host: ToolHost;
}

interface OrderedStep {
  readonly doing: string;
  readonly run: (call: Call) => StepAnswer;
  /** Whether the step has anything to do for the tool's calls. Absent: always. */
  readonly when?: (tool: Tool, settings: Settings) => boolean;
}

/** The order. Resolving the name came before it; closing the call comes after it. */
const ORDER: readonly OrderedStep[] = [
  { doing: "beginning", run: checkTime },
  {
    doing: "being looked up",
    run: checkAvailable,
    when: (tool) => tool.isAvailable !== true,
  },
  {
    doing: "being looked up",
    run: refuseDefinition,
    when: (tool) => tool.execute === undefined,
  },
  { doing: "reading the arguments", run: parseArguments },
  { doing: "waiting for the first call with its key", run: claimKey },
  { doing: "starting up", run: acquireTool },
  {
    doing: "waiting for a hook",
    run: runBeforeHooks,
    when: (_, settings) => settings.beforeHooks.length > 0,
  },
  { doing: "checking the arguments", run: validateArguments },
  {
    doing: "checking the arguments",
    run: applyRules,
    when: (tool, settings) => tool.validate !== undefined || settings.validators.length > 0,
  },
  {
    doing: "waiting for approval",
    run: askApproval,
    when: (tool) => tool.requiresApproval,
  },
  {
    doing: "waiting for its turn",
    run: takeTurn,
    when: (_, { limits }) => Math.min(limits.maxConcurrent, limits.maxConcurrentPerTool) < Infinity,
  },
  {
    doing: "opening its transaction",
    run: beginTransaction,
    when: (tool) => tool.requiresTransaction,
  },
  { doing: "running", run: runTool },
  { doing: "checking the result", run: readOutput },
];

/** Makes the plan of a tool. */
export function planFor(
  tool: Tool,
  settings: Settings,
  where: Pick<ToolPlan, "stats" | "host">,
): ToolPlan {
  let first: Step | undefined;
  for (const { doing, run, when } of ORDER.toReversed()) {
    if (when === undefined || when(tool, settings)) first = { doing, run, next: first };
  }
  const { timeoutMs, maxTimeoutMs } = settings;
  return { tool, first, timeoutMs: Math.min(tool.timeoutMs ?? timeoutMs, maxTimeoutMs), ...where };
}
