/** A selection of a caller's tools (data and functions), converted to steps in a fixed order. */

import * as check from "../tool/mod.ts";
import { assertSync, attempt, attemptOr, type Tool } from "../tool/mod.ts";
import type { ToolAvailabilityInput } from "./availability_context.ts";
import {
  checkFunctions,
  checkPlain,
  type CompleteAvailabilityFields,
  CONTEXT_CHECKS,
  CRITERIA,
  CRITERION_NAMES,
  type CriterionName,
  isContextFlag,
  readContext,
  type Rule,
  ruleOf,
  type SelectionCriteria,
  type SelectionStepName,
} from "./criteria.ts";
import {
  checkPolicies,
  isFixed,
  POLICY_ADVICE,
  shownName,
  type ToolFilter,
  type ToolPolicy,
} from "./filters.ts";

/** The selection of a caller's tools. */
export interface Selection extends SelectionCriteria {
  /** The features of the environment, and the tools that it permits. */
  readonly context?: ToolAvailabilityInput | undefined;
  /** Keeps only tools that all these filters keep. They are called in this order. */
  readonly filters?: readonly ToolFilter[] | undefined;
  /** Keeps only tools that all these policies allow. They are called last, in this order. */
  readonly policies?: readonly ToolPolicy[] | undefined;
}

/** A checked copy of a selection: frozen, with sorted lists and a parsed context. */
export type CheckedSelection =
  & { readonly [Field in keyof Selection]: Exclude<Selection[Field], ReadonlySet<string>> }
  & {
    readonly context?: Partial<CompleteAvailabilityFields>;
    readonly namespace?: readonly string[];
  };

const ACTION = "select tools";

const CHECKS: { readonly [field: string]: check.Check } = {
  ...Object.fromEntries(
    CRITERION_NAMES.filter((name) => !isContextFlag(name))
      .map((name) => [name, CRITERIA[name].check]),
  ),
  context: (action, value, place) =>
    attempt(action, () => readContext(value), `${place} is invalid. `),
  filters: checkFunctions,
  policies: checkPolicies,
};

/** The fields of a selection that are data, which a caller can send as JSON. */
export function selectionDataFields(): readonly string[] {
  return Object.keys(CHECKS).filter((field) => field !== "filters" && field !== "policies");
}

export const selectionHint: check.FieldHint = (field) =>
  Object.hasOwn(CONTEXT_CHECKS, field) ? 'it belongs in "context"' : undefined;

export function checkSelection(selection: Selection): CheckedSelection {
  // Any other object, such as a builder, has no such fields, so it would remove nothing.
  const fields = checkPlain(ACTION, selection, "the selection");
  return Object.freeze(check.readFields(ACTION, fields, CHECKS, undefined, selectionHint));
}

/** Rejects a field that is `undefined`: ignoring the field would keep every tool. */
export function rejectUndefined(selection: Selection): Selection {
  for (const [field, value] of Object.entries(selection)) {
    // Every check rejects `undefined`. The message contains the valid values.
    if (value === undefined) CHECKS[field]?.(ACTION, value, `"/${field}"`);
  }
  return selection;
}

/** Returns equal texts for equal selections; `undefined` for a selection with functions. */
export function selectionKey(selection: Selection): string | undefined {
  const { filters, policies, ...data } = checkSelection(selection);
  return filters?.length || policies?.length ? undefined : JSON.stringify(data);
}

export interface SelectionStep {
  readonly step: SelectionStepName;
  /** The name of the filter, policy or flag, in steps that may have several. */
  readonly name?: string;
  readonly keeps: Rule;
  /** The criterion and its value, or the function that decides. */
  readonly criterion?: readonly [name: CriterionName, value: unknown];
  readonly decider?: ToolFilter | ToolPolicy;
  /** True if a call of the tool needs approval. Never throws. */
  readonly requiresApproval?: (tool: Tool) => boolean;
  /** Only for functions. While `revision` returns the same value, `keeps` has the same results. */
  readonly revision?: () => unknown;
}

export const AVAILABILITY_STEP: SelectionStep = {
  step: "availability",
  keeps: (tool: Tool): boolean => tool.isAvailable !== false,
};

/** Returns the steps after {@linkcode AVAILABILITY_STEP} that can remove a tool. */
export function selectionSteps(selection: CheckedSelection): readonly SelectionStep[] {
  const { context, filters = [], policies = [] } = selection;
  const steps: SelectionStep[] = [];
  for (const name of CRITERION_NAMES) {
    const { step, context: field } = CRITERIA[name];
    for (const value of [field && context?.[field], selection[name as keyof SelectionCriteria]]) {
      const rule = ruleOf(name, value);
      if (rule === undefined) continue;
      const keeps = step === "deny-list" ? withOriginals(rule) : rule;
      steps.push({ step, ...(isContextFlag(name) && { name }), keeps, criterion: [name, value] });
    }
  }
  return [...steps, ...[...filters, ...policies].map(functionStep)];
}

export function decide(decider: ToolFilter | ToolPolicy, tool: Tool): boolean {
  return "allow" in decider
    ? assertSync(decider.allow(tool), POLICY_ADVICE)
    : assertSync(decider(tool));
}

/** The step of a function. Removes a tool if the function throws or does not return `true`. */
function functionStep(decider: ToolFilter | ToolPolicy): SelectionStep {
  const policy = "allow" in decider ? decider : undefined;
  // Only `false`, `undefined` and `null` mean that no approval is required.
  const requiresApproval = (tool: Tool): boolean =>
    (attemptOr(true, () => assertSync(policy?.requiresApproval?.(tool))) ?? false) !== false;
  return {
    step: policy ? "policy" : "filter",
    name: shownName(decider.name),
    keeps: withOriginals((tool) => attemptOr(false, () => decide(decider, tool) === true)),
    decider,
    ...(policy?.requiresApproval !== undefined && { requiresApproval }),
    ...(!isFixed(policy?.allow ?? decider) && { revision: () => revisionOf(decider) }),
  };
}

/** Returns the revision. Without one, returns a value that equals no other value. */
function revisionOf(decider: { readonly revision?: unknown }): unknown {
  return attemptOr(undefined, () => {
    const { revision } = decider;
    return assertSync(typeof revision === "function" ? revision.call(decider) : revision);
  }) ?? {};
}

/** Applies a rule about ids to a view's original, too: a new name must not allow a denied tool. */
function withOriginals(keeps: Rule): Rule {
  return (tool) => {
    for (let shown: Tool | undefined = tool; shown; shown = shown.view?.tool) {
      if (!keeps(shown)) return false;
    }
    return true;
  };
}
