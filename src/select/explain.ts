/**
 * Why a caller sees a tool, or does not.
 *
 * @module
 */

import type { Tool } from "../tool/mod.ts";
import type { SelectionStep, SelectionStepName } from "./selection_steps.ts";

/** One question that a tool was asked, and its answer. */
export interface ExplainedStep {
  readonly step: SelectionStepName;
  /** Which filter, policy or flag, where there may be several. */
  readonly name?: string;
  readonly passed: boolean;
  /** Why it did not pass. */
  readonly reason?: string;
}

/**
 * Why a caller sees a tool, or does not. JSON.
 *
 * It tells what is hidden, so it is for the owner of the tools, not for a caller one does not trust.
 */
export interface ToolExplanation {
  readonly id: string;
  /** The tool is in the toolset. */
  readonly selected: boolean;
  /** The tool is in the toolset, and says that it is available now. */
  readonly available: boolean;
  /** Every question, in order, also those after the first that the tool did not pass. */
  readonly steps: readonly ExplainedStep[];
  /** The first question that the tool did not pass. */
  readonly removedBy?: SelectionStepName;
  /** The answer in a sentence. */
  readonly reason: string;
}

/** Asks a tool every question of `steps`; `unavailable` is why it cannot be used at the moment. */
export function explainTool(
  tool: Tool,
  steps: readonly SelectionStep[],
  unavailable: string | undefined,
): ToolExplanation {
  let selected = true;
  const answers = steps.map(({ keeps, reason, ...names }): ExplainedStep => {
    if (!keeps(tool)) {
      selected = false;
      return { ...names, passed: false, reason: reason(tool) };
    }
    return names.step === "availability" && unavailable !== undefined
      ? { ...names, passed: false, reason: unavailable }
      : { ...names, passed: true };
  });
  const removed = answers.find((answer) => !answer.passed);
  const id = tool.id;
  if (removed === undefined) {
    const reason = `"${id}" is in the toolset and available`;
    return { id, selected, available: true, steps: answers, reason };
  }
  return {
    id,
    selected,
    available: false,
    steps: answers,
    removedBy: removed.step,
    reason: selected
      ? `"${id}" is in the toolset, but not available now: ${removed.reason}`
      : `"${id}" is removed by ${removed.step}: ${removed.reason}`,
  };
}

/** What is said of an id that no tool had; `near` are ids that the caller sees. */
export function explainUnknown(
  id: string,
  near: readonly string[],
  isNew: boolean,
): ToolExplanation {
  const shown = JSON.stringify(id.slice(0, 257));
  const nearest = near.length === 0
    ? ""
    : `. Near it: ${near.map((other) => `"${other}"`).join(", ")}`;
  return {
    id: id.slice(0, 257),
    selected: false,
    available: false,
    steps: [],
    reason: isNew
      ? `Tool ${shown} was added after this toolset was made`
      : `There is no tool ${shown}${nearest}`,
  };
}
