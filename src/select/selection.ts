/**
 * A selection says which tools a caller sees: data and predicates. Everything given must hold;
 * a field that is left out is not checked. It becomes an ordered list of steps, the same order always.
 *
 * @module
 */

import {
  atOnce,
  attempt,
  type Check,
  checkRisk,
  describeThrown,
  type FieldHint,
  isWord,
  must,
  type RiskLevel,
  type Tool,
} from "../tool/mod.ts";
import {
  isContextField,
  ToolAvailabilityContext,
  type ToolAvailabilityInput,
} from "./availability_context.ts";
import {
  checkCategories,
  checkFunctions,
  checkIds,
  checkWords,
  listOf,
  type NameList,
  readPlain,
} from "./checks.ts";
import {
  allowIds,
  category,
  denyIds,
  describeField,
  maxRisk,
  namespace,
  not,
  role,
  scopes,
  shownName,
  tagsAll,
  tagsAny,
  type ToolFilter,
  whyRemoved,
} from "./filters.ts";
import { POLICY_ADVICE, type ToolPolicy } from "./policies.ts";

/** Which tools a caller sees. An empty list is a list: `allowIds: []` keeps nothing. */
export interface Selection {
  /** What the place offers and permits. */
  readonly context?: ToolAvailabilityInput | undefined;
  /**
   * The caller's role. `null` is a caller without one, who sees only tools that list no roles.
   * Absent: not asked, as for trusted local code.
   */
  readonly role?: string | null | undefined;
  /** The scopes that the caller holds; `[]` for none. Absent: not checked. */
  readonly scopes?: NameList | undefined;
  /** Only tools of this namespace, or of one of these. */
  readonly namespace?: string | NameList | undefined;
  /** Only these tools, by id. */
  readonly allowIds?: NameList | undefined;
  /** Not these tools, by id. Wins over `allowIds`. */
  readonly denyIds?: NameList | undefined;
  /** Only tools of this risk or less. */
  readonly maxRisk?: RiskLevel | undefined;
  /** Only tools of these categories. */
  readonly categories?: NameList | undefined;
  /** No tools of these categories. */
  readonly excludeCategories?: NameList | undefined;
  /** Only tools that carry at least one of these tags. */
  readonly tagsAny?: NameList | undefined;
  /** Only tools that carry all of these tags. */
  readonly tagsAll?: NameList | undefined;
  /** Only tools that every one of these keeps, asked in this order. */
  readonly filters?: readonly ToolFilter[] | undefined;
  /** Only tools that every one of these allows, asked last, in this order. */
  readonly policies?: readonly ToolPolicy[] | undefined;
}

/** A selection that was checked and copied: frozen, lists sorted, the context built. */
export type CheckedSelection =
  & { readonly [Field in keyof Selection]: Exclude<Selection[Field], ReadonlySet<string>> }
  & {
    readonly context?: ToolAvailabilityContext;
    readonly namespace?: readonly string[];
  };

const ACTION = "select tools";

const checkContext = must(
  "an availability context",
  (value) => typeof value === "object" && value !== null,
);

const CHECKS = {
  context: (action: string, value: unknown, place: string): ToolAvailabilityContext => {
    const input = checkContext(action, value, place);
    return attempt(action, () => ToolAvailabilityContext.from(input), `${place} is wrong. `);
  },
  role: must(
    "a string that is not empty, or null for a caller without a role",
    (value): value is string | null => value === null || isWord(value),
  ),
  scopes: checkWords,
  namespace: (action: string, value: unknown, place: string): readonly string[] =>
    checkWords(action, typeof value === "string" ? [value] : value, place),
  allowIds: checkIds,
  denyIds: checkIds,
  maxRisk: checkRisk,
  categories: checkCategories,
  excludeCategories: checkCategories,
  tagsAny: checkWords,
  tagsAll: checkWords,
  filters: checkFunctions as Check<readonly ToolFilter[]>,
  policies: listOf("a policy, with an allow function", isPolicy),
} satisfies { readonly [Field in keyof Required<Selection>]: Check };

/** The fields of a selection that are data: all that a caller can send as JSON. */
export function selectionDataFields(): readonly string[] {
  return Object.keys(CHECKS).filter((field) => field !== "filters" && field !== "policies");
}

/** Says which unknown fields of a selection are those of a context. */
export const selectionHint: FieldHint = (field) =>
  isContextField(field) ? 'it belongs in "context"' : undefined;

/**
 * Checks a selection and copies it, so that it cannot change afterwards.
 *
 * @throws {TypeError} If a field is unknown or wrong. The message names its JSON Pointer.
 */
export function checkSelection(selection: Selection): CheckedSelection {
  return Object.freeze(readPlain(ACTION, selection, CHECKS, selectionHint));
}

/**
 * A selection of fields that are all given: one that is absent would not be asked, and keep
 * everything.
 *
 * @throws {TypeError} If a field is `undefined`.
 */
export function given(selection: Selection): Selection {
  for (const [field, value] of Object.entries(selection)) {
    // Every check refuses `undefined`, and names the value that it wants.
    if (value === undefined) CHECKS[field as keyof Selection](ACTION, value, `"/${field}"`);
  }
  return selection;
}

/**
 * A string that is the same for selections that say the same, in whatever order. `undefined` for a
 * selection with filters or policies: what a function does cannot be told from outside.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { selectionKey } from "@plue/tools";
 *
 * assert.equal(
 *   selectionKey({ tagsAny: ["web", "files"], maxRisk: "low" }),
 *   selectionKey({ maxRisk: "low", tagsAny: ["files", "web"] }),
 * );
 * assert.equal(selectionKey({ filters: [() => true] }), undefined);
 * ```
 *
 * @throws {TypeError} If a field is unknown or wrong.
 */
export function selectionKey(selection: Selection): string | undefined {
  const copy = checkSelection(selection);
  if (copy.filters?.length || copy.policies?.length) return undefined;
  const { filters: _filters, policies: _policies, ...data } = copy;
  return JSON.stringify(data);
}

function isPolicy(value: unknown): value is ToolPolicy {
  const { name = "", allow } = (value ?? {}) as Partial<ToolPolicy>;
  return typeof name === "string" && typeof allow === "function";
}

/** The steps of a selection, in the order in which tools pass them. */
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

/** One question that each tool is asked. */
export interface SelectionStep {
  readonly step: SelectionStepName;
  /** Which filter or policy it is, where there may be several. */
  readonly name?: string;
  /** Whether the tool stays. Never throws. */
  readonly keeps: ToolFilter;
  /** Why it did not stay. Asked only when `keeps` said no. */
  readonly reason: (tool: Tool) => string;
  /** Whether a call of it needs approval. Never throws. */
  readonly asks?: ToolFilter;
}

/** The flags of a context: why a `false` removes tools, and of which category. */
const FLAGS: readonly (readonly [
  flag: "hasWorkspace" | "hasTerminal" | "hasEditor" | "hasGitRepository",
  reason: string,
  category: string,
])[] = [
  ["hasWorkspace", "there is no workspace", "workspace"],
  ["hasTerminal", "there is no terminal", "terminal"],
  ["hasEditor", "there is no editor", "editor"],
  ["hasGitRepository", "there is no git repository", "git"],
];

/** The first step, which every selection has. */
export const AVAILABILITY_STEP: SelectionStep = Object.freeze({
  step: "availability",
  keeps: (tool: Tool): boolean => tool.isAvailable !== false,
  reason: (tool: Tool): string =>
    tool.unavailableReason ?? "the tool says that it is not available",
});

/** The steps that may decide by id: a view is asked for its tool, too. */
const ASKS_ORIGINALS: ReadonlySet<SelectionStepName> = new Set(["deny-list", "filter", "policy"]);

/** Removes a view where the tool that it shows is removed: another name must not free a tool. */
function withOriginals(
  keeps: ToolFilter,
  reason: (tool: Tool) => string,
): Pick<SelectionStep, "keeps" | "reason"> {
  const removed = (tool: Tool): Tool | undefined => {
    for (let asked: Tool | undefined = tool; asked; asked = asked.view?.tool) {
      if (!keeps(asked)) return asked;
    }
    return undefined;
  };
  return {
    keeps: (tool) => removed(tool) === undefined,
    reason: (tool) => reason(removed(tool) ?? tool),
  };
}

/** The steps of a selection after {@linkcode AVAILABILITY_STEP}: only those that ask something. */
export function selectionSteps(selection: CheckedSelection): readonly SelectionStep[] {
  const { context, role: asRole, filters = [], policies = [] } = selection;
  const steps: SelectionStep[] = [];
  const add = (
    step: SelectionStepName,
    keeps: ToolFilter,
    reason: (tool: Tool) => string = (tool) => whyRemoved(keeps, tool),
    name?: string,
  ): void => {
    const asked = ASKS_ORIGINALS.has(step) ? withOriginals(keeps, reason) : { keeps, reason };
    steps.push(name === undefined ? { step, ...asked } : { step, name, ...asked });
  };
  /** A step for each list that is given: the one of the context, the one of the selection. */
  const addEach = (
    step: SelectionStepName,
    filterBy: (...items: readonly string[]) => ToolFilter,
    ...lists: readonly (readonly string[] | undefined)[]
  ): void => {
    for (const items of lists) if (items !== undefined) add(step, filterBy(...items));
  };

  addEach("allow-list", allowIds, context?.enabledToolIds, selection.allowIds);
  for (const ids of [context?.disabledToolIds, selection.denyIds]) {
    if (ids?.length) add("deny-list", denyIds(...ids));
  }
  for (const level of [context?.maxRiskLevel, selection.maxRisk]) {
    if (level !== undefined && level !== "critical") add("risk", maxRisk(level));
  }
  addEach("categories", category, context?.includedCategories, selection.categories);
  for (const names of [context?.excludedCategories, selection.excludeCategories]) {
    if (names?.length) {
      add(
        "categories",
        not(category(...names)),
        (tool) => `${describeField("category", tool)} is excluded`,
      );
    }
  }
  if (context?.requiredTags.length) add("tags", tagsAll(...context.requiredTags));
  addEach("tags", tagsAny, context?.allowedTags, selection.tagsAny);
  addEach("tags", tagsAll, selection.tagsAll);
  for (const [flag, reason, needing] of FLAGS) {
    if (context?.[flag] === false) {
      add(
        "context",
        not(category(needing)),
        (tool) => `${reason}, which ${describeField("category", tool)} needs`,
        flag,
      );
    }
  }
  if (asRole !== undefined) add("role", role(asRole));
  addEach("scopes", scopes, selection.scopes);
  addEach("namespace", namespace, selection.namespace);
  for (const filter of filters) {
    const reason = (tool: Tool): string => whyRemoved(filter, tool);
    add("filter", failClosed((tool) => filter(tool)), reason, shownName(filter.name));
  }
  for (const policy of policies) {
    const reason = (tool: Tool): string => whyDenied(policy, tool);
    add("policy", failClosed((tool) => policy.allow(tool)), reason, shownName(policy.name));
    const asks = approvalWanted(policy);
    if (asks !== undefined) steps.push({ ...steps.pop() as SelectionStep, asks });
  }
  return steps;
}

/** A predicate that removes the tool when it throws or answers anything but `true`. */
function failClosed(predicate: ToolFilter): ToolFilter {
  return (tool) => {
    try {
      return atOnce(predicate(tool)) === true;
    } catch {
      return false;
    }
  };
}

/** Whether a policy wants calls approved: also where it throws. */
function approvalWanted(policy: ToolPolicy): ToolFilter | undefined {
  if (policy.asks === undefined) return undefined;
  return (tool) => {
    try {
      return (atOnce(policy.asks?.(tool)) ?? false) !== false;
    } catch {
      return true;
    }
  };
}

function whyDenied(policy: ToolPolicy, tool: Tool): string {
  const name = shownName(policy.name);
  try {
    // Called again for its error: if it throws, that is the reason.
    atOnce(policy.allow(tool), POLICY_ADVICE);
    const reason = atOnce(policy.reason?.(tool));
    return `policy ${name} denies it${
      typeof reason === "string" ? `: ${reason.slice(0, 500)}` : ""
    }`;
  } catch (thrown) {
    return `policy ${name} threw: ${describeThrown(thrown, 200)}`;
  }
}
