/** Explains the visibility of tools. Toolsets do not import this file: the core omits its texts. */

import { assertSync, describeThrown, type Tool } from "../tool/mod.ts";
import { type CriterionName, REASONS, type SelectionStepName } from "./criteria.ts";
import { reasonOf, shownName, type ToolFilter, type ToolPolicy } from "./filters.ts";
import { decide, type SelectionStep } from "./selection.ts";

/** One step of the decision about a tool, and its outcome. */
export interface ExplainedStep {
  readonly step: SelectionStepName;
  /** The name of the filter, policy or flag, in steps that may have several. */
  readonly name?: string;
  readonly passed: boolean;
  /** The reason why the tool did not pass. */
  readonly reason?: string;
}

/** The visibility of a tool, as JSON. Only for the operator: it names tools hidden from callers. */
export interface ToolExplanation {
  readonly id: string;
  /** True if the tool is in the toolset, and its filters and policies allow it now. */
  readonly selected: boolean;
  /** True if the tool is selected and currently available. */
  readonly available: boolean;
  /** All steps in order, including those after the first step that the tool did not pass. */
  readonly steps: readonly ExplainedStep[];
  /** The first step that the tool did not pass. */
  readonly removedBy?: SelectionStepName;
  /** The summary, as a sentence. */
  readonly reason: string;
}

export interface ExaminedTool {
  readonly id: string;
  /** The tool; `undefined` if the source had no tool with this id when the toolset was made. */
  readonly tool: Tool | undefined;
  /** True if the source currently has a tool with this id. */
  readonly exists: boolean;
  readonly steps: readonly SelectionStep[];
  /** True if the source has replaced or removed the tool since the toolset was made. */
  readonly isReplaced: boolean;
  readonly isAvailable: boolean;
  /** True if the tool passed every step when the toolset was made. */
  readonly isMember: boolean;
}

export type Explainer = (examined: ExaminedTool) => ToolExplanation;

export const explainTool: Explainer = ({ id, tool, exists, steps, ...now }) => {
  if (tool === undefined) return explainUnknown(id, exists);
  const { isMember, isReplaced, isAvailable } = now;
  const unavailable = isReplaced
    ? "the tool was replaced or removed after this toolset was made"
    : !isAvailable &&
      (tool.unavailableReason ?? "the tool's isAvailable function does not return true now");
  let selected = isMember;
  const explained = steps.map((checked): ExplainedStep => {
    const { step, name, keeps } = checked;
    const isKept = keeps(tool);
    selected &&= isKept;
    const why = !isKept ? reasonFor(checked, tool) : step === "availability" && unavailable;
    return { step, ...(name && { name }), passed: !why, ...(why && { reason: why }) };
  });
  const removed = explained.find(({ passed }) => !passed);
  const why = removed === undefined
    ? selected
      ? "is in the toolset and available"
      : "was removed when this toolset was made; select again"
    : `is ${
      selected ? "in the toolset, but not available now" : `removed by ${removed.step}`
    }: ${removed.reason}`;
  return {
    id,
    selected,
    available: selected && removed === undefined,
    steps: explained,
    ...(removed && { removedBy: removed.step }),
    reason: `"${id}" ${why}`,
  };
};

function explainUnknown(id: string, exists: boolean): ToolExplanation {
  const start = id.slice(0, 257);
  const shown = JSON.stringify(start);
  return {
    id: start,
    selected: false,
    available: false,
    steps: [],
    reason: exists
      ? `Tool ${shown} was added after this toolset was made`
      : `There is no tool ${shown}`,
  };
}

function reasonFor({ keeps, criterion, decider }: SelectionStep, tool: Tool): string {
  if (criterion !== undefined && criterion[0] !== "denyIds") {
    return reasonOfCriterion(...criterion, tool);
  }
  let removed = tool;
  // The step also checks the original of a view.
  for (let shown = tool.view?.tool; shown && !keeps(shown); shown = shown.view?.tool) {
    removed = shown;
  }
  if (criterion !== undefined) return reasonOfCriterion(...criterion, removed);
  if (decider !== undefined) return reasonOfDecider(decider, removed);
  return tool.unavailableReason ?? "the tool's isAvailable is false";
}

function reasonOfCriterion(name: CriterionName, value: unknown, tool: Tool): string {
  return REASONS[name](value as never, tool);
}

/** Calls a filter or a policy again. If it throws, its error is the reason. */
function reasonOfDecider(decider: ToolFilter | ToolPolicy, tool: Tool): string {
  const name = shownName(decider.name);
  try {
    decide(decider, tool);
    if (!("allow" in decider)) {
      return reasonOf(decider)?.(tool) ?? `filter ${name} does not keep the tool`;
    }
    const why = assertSync(decider.reason?.(tool));
    return `policy ${name} denies it${typeof why === "string" ? `: ${why.slice(0, 500)}` : ""}`;
  } catch (thrown) {
    const kind = "allow" in decider ? "policy" : "filter";
    return `${kind} ${name} threw: ${describeThrown(thrown, 200)}`;
  }
}
