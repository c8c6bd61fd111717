/**
 * The criteria of a selection. Each is one row: its names, how its value is checked, which tools it
 * keeps, and why it removes the others. Selections, contexts, builders, filters, queries and flags are
 * derived from this table. A surface that needs more of a criterion, such as a text for people, has a
 * table of its own with the same keys, which does not compile while a row is missing.
 *
 * @module
 */

import { type Check, checkFlag, checkRisk, isWord, must, type RiskLevel } from "../tool/mod.ts";
import { checkCategories, checkIds, checkNamespaces, checkWords, type NameList } from "./checks.ts";
import {
  allowIds,
  category,
  denyIds,
  maxRisk,
  namespace,
  notCategory,
  role,
  scopes,
  tagsAll,
  tagsAny,
  type ToolFilter,
  withoutCategories,
} from "./filters.ts";

/** The criteria of a selection that are data. An empty list is a list: `allowIds: []` keeps nothing. */
export interface SelectionCriteria {
  /** Only these tools, by id. */
  readonly allowIds?: NameList | undefined;
  /** Not these tools, by id or by alias. Wins over `allowIds`. */
  readonly denyIds?: NameList | undefined;
  /** Only tools of this risk or lower. */
  readonly maxRisk?: RiskLevel | undefined;
  /** Only tools of these categories. */
  readonly categories?: NameList | undefined;
  /** No tools of these categories. */
  readonly excludeCategories?: NameList | undefined;
  /** Only tools with at least one of these tags. */
  readonly tagsAny?: NameList | undefined;
  /** Only tools with all of these tags. */
  readonly tagsAll?: NameList | undefined;
  /**
   * The caller's role. `null` is a caller without one, who sees only tools that list no roles.
   * Absent: roles are not checked, as for trusted local code.
   */
  readonly role?: string | null | undefined;
  /** The scopes that the caller holds; `[]` for none. Absent: not checked. */
  readonly scopes?: NameList | undefined;
  /** Only tools of this namespace, or of one of these. */
  readonly namespace?: string | NameList | undefined;
}

/** What an environment offers and permits, with every field decided. The defaults remove nothing. */
export interface CompleteAvailabilityFields {
  /** Only these tools, by id. `undefined`: every tool. */
  readonly enabledToolIds: readonly string[] | undefined;
  /** Not these tools, by id. Wins over `enabledToolIds`. */
  readonly disabledToolIds: readonly string[];
  /** The highest risk that is permitted. @default {"critical"} */
  readonly maxRiskLevel: RiskLevel;
  /** Only tools of these categories. `undefined`: of every category, and of none. */
  readonly includedCategories: readonly string[] | undefined;
  /** No tools of these categories. */
  readonly excludedCategories: readonly string[];
  /** Only tools that have all of these tags. */
  readonly requiredTags: readonly string[];
  /** A folder is open. `false` removes the category `workspace`. @default {true} */
  readonly hasWorkspace: boolean;
  /** Commands can be run. `false` removes the category `terminal`. @default {true} */
  readonly hasTerminal: boolean;
  /** An editor is open. `false` removes the category `editor`. @default {true} */
  readonly hasEditor: boolean;
  /** The workspace is a git repository. `false` removes the category `git`. @default {true} */
  readonly hasGitRepository: boolean;
  /**
   * The model that reads the descriptions, as its provider names it. This field and the next two
   * remove nothing: tools whose description is a function receive them.
   */
  readonly model: string | undefined;
  /** The model's provider, such as `anthropic`. */
  readonly provider: string | undefined;
  /** The language of the descriptions, such as `de` or `pt-BR`. */
  readonly locale: string | undefined;
}

/** The criteria that only a context has: flags that say what is there. */
export type ContextFlag = "hasWorkspace" | "hasTerminal" | "hasEditor" | "hasGitRepository";

export type CriterionName = keyof SelectionCriteria | ContextFlag;

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

/** A kind of value. */
export interface ValueKind {
  /** How a text is read: the items of a list are separated by commas, a flag is `true` or `false`. */
  readonly shape: "list" | "flag" | "text";
  readonly check: Check;
}

/** One row. */
export interface Criterion {
  readonly step: SelectionStepName;
  readonly kind: ValueKind;
  /** Makes the filter of a value, or of the items of a list. It says why it removes a tool. */
  readonly filter: (...value: never[]) => ToolFilter;
  /** Its name in a `ToolAvailabilityContext`, if it has one there. */
  readonly context: keyof CompleteAvailabilityFields | undefined;
  /** The value that removes nothing, if there is one. */
  readonly open: unknown;
}

const NONE: readonly string[] = Object.freeze([]);
const IDS: ValueKind = { shape: "list", check: checkIds };
const CATEGORIES: ValueKind = { shape: "list", check: checkCategories };
const WORDS: ValueKind = { shape: "list", check: checkWords };
const NAMESPACES: ValueKind = { shape: "list", check: checkNamespaces };
const RISK: ValueKind = { shape: "text", check: checkRisk };
const FLAG: ValueKind = { shape: "flag", check: checkFlag };
const ROLE: ValueKind = {
  shape: "text",
  check: must(
    "a string that is not empty, or null for a caller without a role",
    (value): value is string | null => value === null || isWord(value),
  ),
};

/** What describes the reader of descriptions: fields of a context that remove nothing. */
export const READER_FIELDS = ["model", "provider", "locale"] as const;

export const READER: ValueKind = {
  shape: "text",
  check: must(
    "1 to 128 letters, digits or signs of ASCII",
    (value): value is string => typeof value === "string" && /^[!-~]{1,128}$/.test(value),
  ),
};

/** The table. Its order is the order in which tools are checked. */
export const CRITERIA: { readonly [Name in CriterionName]: Criterion } = {
  allowIds: row("allow-list", IDS, allowIds, "enabledToolIds"),
  denyIds: row("deny-list", IDS, denyIds, "disabledToolIds", NONE),
  maxRisk: row("risk", RISK, maxRisk, "maxRiskLevel", "critical"),
  categories: row("categories", CATEGORIES, category, "includedCategories"),
  excludeCategories: row("categories", CATEGORIES, notCategory, "excludedCategories", NONE),
  tagsAny: row("tags", WORDS, tagsAny),
  tagsAll: row("tags", WORDS, tagsAll, "requiredTags", NONE),
  hasWorkspace: row("context", FLAG, needing("workspace"), "hasWorkspace", true),
  hasTerminal: row("context", FLAG, needing("terminal"), "hasTerminal", true),
  hasEditor: row("context", FLAG, needing("editor"), "hasEditor", true),
  hasGitRepository: row("context", FLAG, needing("git", " repository"), "hasGitRepository", true),
  role: row("role", ROLE, role),
  scopes: row("scopes", WORDS, scopes),
  namespace: row("namespace", NAMESPACES, namespace),
};

export const CRITERION_NAMES = Object.keys(CRITERIA) as readonly CriterionName[];

/** True if a value removes nothing. */
export function isOpen(value: unknown, open: unknown): boolean {
  return value === open || Array.isArray(value) && open === NONE && value.length === 0;
}

/** The filter of a value that was checked; `undefined` if the value removes nothing. */
export function filterOf(name: CriterionName, value: unknown): ToolFilter | undefined {
  const { filter, open } = CRITERIA[name];
  const make = filter as (...values: readonly unknown[]) => ToolFilter;
  return value === undefined || isOpen(value, open) ? undefined : make(...[value].flat());
}

export function isContextFlag(name: CriterionName): name is ContextFlag {
  return CRITERIA[name].step === "context";
}

function row(
  step: SelectionStepName,
  kind: ValueKind,
  filter: Criterion["filter"],
  context?: keyof CompleteAvailabilityFields,
  open?: unknown,
): Criterion {
  return { step, kind, filter, context, open };
}

/** Makes the filter of a flag that is `false`: it removes the tools of a category. */
function needing(category: string, rest = ""): () => ToolFilter {
  const reason = (shown: string): string => `there is no ${category}${rest}, which ${shown} needs`;
  return () => withoutCategories([category], reason);
}
