/** Explains the visibility of tools. A function for toolsets, because the core omits its texts. */

import { assertSync, describeThrown, type Tool } from "../tool/mod.ts";
import { type CriterionName, REASONS, type SelectionStepName } from "./criteria.ts";
import { reasonOf, shownName, type ToolFilter, type ToolPolicy } from "./filters.ts";
import { decide, type SelectionStep } from "./selection.ts";

/** One step of the decision about a tool, and its outcome. */
export interface ExplainedStep {
  readonly step: SelectionStepName;
  /** The name of the filter, policy or flag, where there may be several. */
  readonly name?: string;
  readonly passed: boolean;
  /** The reason why the tool did not pass. */
  readonly reason?: string;
}

/** The visibility of a tool, as JSON, for the operator: it names tools that callers do not see. */
export interface ToolExplanation {
  readonly id: string;
  /** The tool is in the toolset, and its filters and policies allow it now. */
  readonly selected: boolean;
  /** The tool is selected and currently available. */
  readonly available: boolean;
  /** All steps, in order, including the steps after the first that the tool did not pass. */
  readonly steps: readonly ExplainedStep[];
  /** The first step that the tool did not pass. */
  readonly removedBy?: SelectionStepName;
  /** The summary, as a sentence. */
  readonly reason: string;
}

export interface ExaminedTool {
  readonly id: string;
  /** The tool; `undefined` if no tool of the source had the id at the creation of the toolset. */
  readonly tool: Tool | undefined;
  /** The source currently has a tool with this id. */
  readonly exists: boolean;
  readonly steps: readonly SelectionStep[];
  /** The source has replaced or removed the tool since. */
  readonly isReplaced: boolean;
  readonly isAvailable: boolean;
  /** The tool passed every step at the creation of the toolset. */
  readonly isMember: boolean;
}

export type Explainer = (examined: ExaminedTool) => ToolExplanation;

export const explainTool: Explainer = ({ id, tool, exists, steps, ...now }) => {
  if (tool === undefined) return explainUnknown(id, exists);
  const { isMember, isReplaced, isAvailable } = now;
  const unavailable = isReplaced
    ? "it was replaced or removed after this toolset was made"
    : !isAvailable && "its isAvailable function does not return true at the moment";
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
  return tool.unavailableReason ?? "its isAvailable is false";
}

function reasonOfCriterion(name: CriterionName, value: unknown, tool: Tool): string {
  return REASONS[name](value as never, tool);
}

/** Calls a filter or a policy again for its error: if it throws, that is the reason. */
function reasonOfDecider(decider: ToolFilter | ToolPolicy, tool: Tool): string {
  const name = shownName(decider.name);
  try {
    decide(decider, tool);
    if (!("allow" in decider)) {
      return reasonOf(decider)?.(tool) ?? `filter ${name} does not keep it`;
    }
    const why = assertSync(decider.reason?.(tool));
    return `policy ${name} denies it${typeof why === "string" ? `: ${why.slice(0, 500)}` : ""}`;
  } catch (thrown) {
    const kind = "allow" in decider ? "policy" : "filter";
    return `${kind} ${name} threw: ${describeThrown(thrown, 200)}`;
  }
}
