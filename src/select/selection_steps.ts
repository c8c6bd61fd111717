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
  const { context, role: asRole, filters = [], policies = [] } = selection;
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
  const askOf = (
    step: SelectionStepName,
    filterBy: (...items: readonly string[]) => ToolFilter,
    ...lists: readonly (readonly string[] | undefined)[]
  ): void => {
    for (const items of lists) if (items !== undefined) ask(step, filterBy(...items));
  };

  ask(
    "availability",
    (tool) => tool.isAvailable !== false,
    () => "the tool says that it is not available",
  );
  askOf("allow-list", allowIds, context?.enabledTools, selection.allowIds);
  for (const ids of [context?.disabledTools, selection.denyIds]) {
    if (ids?.length) ask("deny-list", denyIds(...ids));
  }
  for (const level of [context?.maxRiskLevel, selection.maxRisk]) {
    if (level !== undefined && level !== "critical") ask("risk", maxRisk(level));
  }
  askOf("categories", category, context?.includedCategories, selection.categories);
  for (const names of [context?.excludedCategories, selection.excludeCategories]) {
    if (names?.length) {
      ask("categories", not(category(...names)), (tool) => `${the("category", tool)} is excluded`);
    }
  }
  askOf("tags", tagsAny, context?.allowedTags, selection.tagsAny);
  askOf("tags", tagsAll, selection.tagsAll);
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
  if (asRole !== undefined) ask("role", role(asRole));
  askOf("scopes", scopes, selection.scopes);
  askOf("namespace", namespace, selection.namespace);
  for (const filter of filters) {
    const reason = (tool: Tool): string => whyRemoved(filter, tool);
    ask("filter", closed((tool) => filter(tool)), reason, filterName(filter));
  }
  for (const policy of policies) {
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
