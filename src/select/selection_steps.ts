/**
 * A selection as the ordered list of questions that each tool is asked. The order is always the
 * same, and questions that nobody asks are not in the list.
 *
 * @module
 */

import type { Tool } from "../tool/mod.ts";
import type { ToolAvailabilityContext } from "./availability_context.ts";
import { thrownMessage } from "./checks.ts";
import {
  allowIds,
  category,
  denyIds,
  filterName,
  maxRisk,
  namespace,
  role,
  scopes,
  tagsAll,
  tagsAny,
  type ToolFilter,
} from "./filters.ts";
import { missingScopes, quoted, type ToolPolicy } from "./policies.ts";
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

/** What each flag of a context takes away when it is `false`. */
const NEEDS = [
  ["hasWorkspace", "there is no workspace", ["workspace", "filesystem"]],
  ["hasTerminal", "there is no terminal", ["terminal"]],
  ["hasEditor", "there is no editor", ["editor"]],
  ["hasGit", "there is no git repository", ["git"]],
] as const;

/** The steps of a selection. */
export function selectionSteps(selection: CheckedSelection): readonly SelectionStep[] {
  const { context } = selection;
  const steps: SelectionStep[] = [{
    step: "availability",
    keeps: (tool) => tool.isAvailable !== false,
    reason: () => "the tool says that it is not available",
  }];
  for (const ids of [context?.enabledTools, selection.allowIds]) {
    if (ids !== undefined) {
      steps.push({
        step: "allow-list",
        keeps: allowIds(...ids),
        reason: () => `it is not one of the ${ids.length} that are allowed`,
      });
    }
  }
  for (const ids of [context?.disabledTools, selection.denyIds]) {
    if (ids !== undefined && ids.length > 0) {
      steps.push({
        step: "deny-list",
        keeps: denyIds(...ids),
        reason: () => "it is denied by id",
      });
    }
  }
  for (const level of [context?.maxRiskLevel, selection.maxRisk]) {
    if (level !== undefined && level !== "critical") {
      steps.push({
        step: "risk",
        keeps: maxRisk(level),
        reason: (tool) => `risk ${tool.risk} is above the limit ${level}`,
      });
    }
  }
  for (const included of [context?.includedCategories, selection.categories]) {
    if (included !== undefined) {
      steps.push({
        step: "categories",
        keeps: category(...included),
        reason: (tool) => `${categoryOf(tool)} is not among ${quoted(included)}`,
      });
    }
  }
  for (const excluded of [context?.excludedCategories, selection.excludeCategories]) {
    if (excluded !== undefined && excluded.length > 0) {
      steps.push({
        step: "categories",
        keeps: without(excluded),
        reason: (tool) => `${categoryOf(tool)} is excluded`,
      });
    }
  }
  for (const tags of [context?.allowedTags, selection.tagsAny]) {
    if (tags !== undefined) {
      steps.push({
        step: "tags",
        keeps: tagsAny(...tags),
        reason: () => `it carries none of the tags ${quoted(tags)}`,
      });
    }
  }
  if (selection.tagsAll !== undefined) {
    const tags = selection.tagsAll;
    steps.push({
      step: "tags",
      keeps: tagsAll(...tags),
      reason: (tool) =>
        `it lacks the tags ${quoted(tags.filter((tag) => !tool.tags.includes(tag)))}`,
    });
  }
  if (context !== undefined) steps.push(...placeSteps(context));
  if (selection.role !== undefined) {
    const name = selection.role;
    steps.push({
      step: "role",
      keeps: role(name),
      reason: (tool) =>
        `${name === null ? "a caller without a role" : `role "${name}"`} is not among ${
          quoted(tool.roles ?? [])
        }`,
    });
  }
  if (selection.scopes !== undefined) {
    const held = selection.scopes;
    steps.push({
      step: "scopes",
      keeps: scopes(...held),
      reason: (tool) => missingScopes(tool, held),
    });
  }
  if (selection.namespace !== undefined) {
    const names = selection.namespace;
    steps.push({
      step: "namespace",
      keeps: namespace(...names),
      reason: (tool) =>
        `${
          tool.namespace === undefined ? "no namespace" : `namespace "${tool.namespace}"`
        } is not among ${quoted(names)}`,
    });
  }
  return [
    ...steps,
    ...(selection.filters ?? []).map(filterStep),
    ...(selection.policies ?? []).map(policyStep),
  ];
}

function placeSteps(context: ToolAvailabilityContext): readonly SelectionStep[] {
  const steps: SelectionStep[] = [];
  for (const [flag, reason, categories] of NEEDS) {
    if (!context[flag]) {
      steps.push({
        step: "context",
        name: flag,
        keeps: without(categories),
        reason: (tool) => `${reason}, which ${categoryOf(tool)} needs`,
      });
    }
  }
  if (context.readOnly) {
    steps.push({
      step: "context",
      name: "readOnly",
      keeps: (tool) => tool.annotations.readOnlyHint === true,
      reason: () => "only tools that change nothing are permitted, and this one may",
    });
  }
  return steps;
}

function filterStep(filter: ToolFilter): SelectionStep {
  return {
    step: "filter",
    name: filterName(filter),
    keeps: (tool) => {
      try {
        return filter(tool) === true;
      } catch {
        return false;
      }
    },
    reason: (tool) => {
      try {
        filter(tool);
        return `filter ${filterName(filter)} does not keep it`;
      } catch (thrown) {
        return `filter ${filterName(filter)} threw: ${thrownMessage(thrown)}`;
      }
    },
  };
}

function policyStep(policy: ToolPolicy): SelectionStep {
  const name = policy.name.slice(0, 200);
  return {
    step: "policy",
    name,
    keeps: (tool) => {
      try {
        return policy.allow(tool) === true;
      } catch {
        return false;
      }
    },
    reason: (tool) => {
      try {
        policy.allow(tool);
        const reason = policy.reason?.(tool);
        return `policy ${name} denies it${typeof reason === "string" ? `: ${reason}` : ""}`;
      } catch (thrown) {
        return `policy ${name} threw: ${thrownMessage(thrown)}`;
      }
    },
  };
}

function without(categories: readonly string[]): ToolFilter {
  const unwanted = new Set(categories);
  return (tool) => tool.category === undefined || !unwanted.has(tool.category);
}

function categoryOf(tool: Tool): string {
  return tool.category === undefined ? "no category" : `category ${JSON.stringify(tool.category)}`;
}
