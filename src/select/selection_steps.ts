/**
 * A selection as the ordered list of questions that each tool is asked. The order is always the
 * same, and questions that nobody asks are not in the list.
 *
 * @module
 */

import { describeThrown, type Tool } from "../tool/mod.ts";
import {
  allowIds,
  category,
  denyIds,
  filterName,
  maxRisk,
  namespace,
  not,
  role,
  scopes,
  tagsAll,
  tagsAny,
  the,
  type ToolFilter,
  whyRemoved,
} from "./filters.ts";
import type { ToolPolicy } from "./policies.ts";
import type { CheckedSelection } from "./selection.ts";

/** The questions, in the order in which they are asked. */
export type SelectionStepName =
  | "availability"
  | "allow-list"
  | "deny-list"
  | "risk"
  | "categories"
  | "tags"
  | "context"
  | "role"
  | "scopes"
  | "namespace"
  | "filter"
  | "policy";

/** One question. */
export interface SelectionStep {
  readonly step: SelectionStepName;
  /** Which filter or policy it is, where there may be several. */
  readonly name?: string;
  /** Whether the tool stays. Never throws. */
  readonly keeps: ToolFilter;
  /** Why it did not stay. Asked only when `keeps` said no. */
  readonly reason: (tool: Tool) => string;
}

/** What the flags of a context take away. */
const FLAGS: readonly (readonly [
  flag: "hasWorkspace" | "hasTerminal" | "hasEditor" | "hasGit",
  reason: string,
  ...categories: readonly string[],
])[] = [
  ["hasWorkspace", "there is no workspace", "workspace", "filesystem"],
  ["hasTerminal", "there is no terminal", "terminal"],
  ["hasEditor", "there is no editor", "editor"],
  ["hasGit", "there is no git repository", "git"],
];

/** The steps of a selection. */
export function selectionSteps(selection: CheckedSelection): readonly SelectionStep[] {
  const { context } = selection;
  const steps: SelectionStep[] = [];
  const ask = (
    step: SelectionStepName,
    keeps: ToolFilter,
    reason: (tool: Tool) => string = (tool) => whyRemoved(keeps, tool),
    name?: string,
  ): void => {
    steps.push(name === undefined ? { step, keeps, reason } : { step, name, keeps, reason });
  };
  /** What the context and the selection both may say: both must hold. */
  const both = <T>(first: T | undefined, second: T | undefined): readonly T[] =>
    [first, second].filter((value) => value !== undefined);

  ask(
    "availability",
    (tool) => tool.isAvailable !== false,
    () => "the tool says that it is not available",
  );
  for (const ids of both(context?.enabledTools, selection.allowIds)) {
    ask("allow-list", allowIds(...ids));
  }
  for (const ids of both(context?.disabledTools, selection.denyIds)) {
    if (ids.length > 0) ask("deny-list", denyIds(...ids));
  }
  for (const level of both(context?.maxRiskLevel, selection.maxRisk)) {
    if (level !== "critical") ask("risk", maxRisk(level));
  }
  for (const names of both(context?.includedCategories, selection.categories)) {
    ask("categories", category(...names));
  }
  for (const names of both(context?.excludedCategories, selection.excludeCategories)) {
    if (names.length > 0) {
      ask("categories", not(category(...names)), (tool) => `${the("category", tool)} is excluded`);
    }
  }
  for (const tags of both(context?.allowedTags, selection.tagsAny)) ask("tags", tagsAny(...tags));
  if (selection.tagsAll !== undefined) ask("tags", tagsAll(...selection.tagsAll));
  for (const [flag, reason, ...categories] of FLAGS) {
    if (context?.[flag] === false) {
      ask(
        "context",
        not(category(...categories)),
        (tool) => `${reason}, which ${the("category", tool)} needs`,
        flag,
      );
    }
  }
  if (context?.readOnly) {
    ask(
      "context",
      (tool) => tool.annotations.readOnlyHint === true,
      () => "it does not say of itself that it only reads",
      "readOnly",
    );
  }
  if (selection.role !== undefined) ask("role", role(selection.role));
  if (selection.scopes !== undefined) ask("scopes", scopes(...selection.scopes));
  if (selection.namespace !== undefined) ask("namespace", namespace(...selection.namespace));
  for (const filter of selection.filters ?? []) {
    const reason = (tool: Tool): string => whyRemoved(filter, tool);
    ask("filter", closed((tool) => filter(tool)), reason, filterName(filter));
  }
  for (const policy of selection.policies ?? []) {
    const reason = (tool: Tool): string => whyDenied(policy, tool);
    ask("policy", closed((tool) => policy.allow(tool)), reason, policy.name.slice(0, 200));
  }
  return steps;
}

/** Somebody else's predicate: what throws, or answers anything but `true`, removes. */
function closed(predicate: ToolFilter): ToolFilter {
  return (tool) => {
    try {
      return predicate(tool) === true;
    } catch {
      return false;
    }
  };
}

function whyDenied(policy: ToolPolicy, tool: Tool): string {
  const name = policy.name.slice(0, 200);
  try {
    // Asked again: if allow threw, that is the reason.
    policy.allow(tool);
    const reason: unknown = policy.reason?.(tool);
    return `policy ${name} denies it${
      typeof reason === "string" ? `: ${reason.slice(0, 500)}` : ""
    }`;
  } catch (thrown) {
    return `policy ${name} threw: ${describeThrown(thrown, 200)}`;
  }
}
