/**
 * The criteria of a selection. Each is one row: its names, how its value is checked, which tools it
 * keeps, and why it removes the others. Selections, contexts, builders, filters, queries and flags are
 * derived from this table. A surface that needs more of a criterion, such as a text for people, has a
 * table of its own with the same keys, which does not compile while a row is missing.
 *
 * @module
 */

import {
  type Check,
  checkFlag,
  checkRisk,
  describe,
  isWord,
  must,
  RISK_LEVELS,
  type RiskLevel,
  riskRank,
  type Tool,
} from "../tool/mod.ts";
import { checkCategories, checkIds, checkNamespaces, checkWords, type NameList } from "./checks.ts";

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

/** What a place offers and permits, with every field decided. The defaults remove nothing. */
export interface CompleteAvailabilityFields {
  /** Only these tools, by id. `undefined`: every tool. */
  readonly enabledToolIds: readonly string[] | undefined;
  /** Not these tools, by id. Wins over `enabledToolIds`. */
  readonly disabledToolIds: readonly string[];
  /**
   * The highest risk that is permitted.
   *
   * @default {"critical"}
   */
  readonly maxRiskLevel: RiskLevel;
  /** Only tools of these categories. `undefined`: of every category, and of none. */
  readonly includedCategories: readonly string[] | undefined;
  /** No tools of these categories. */
  readonly excludedCategories: readonly string[];
  /** Only tools that have all of these tags. */
  readonly requiredTags: readonly string[];
  /**
   * A folder is open. `false` removes the category `workspace`.
   *
   * @default {true}
   */
  readonly hasWorkspace: boolean;
  /**
   * Commands can be run. `false` removes the category `terminal`.
   *
   * @default {true}
   */
  readonly hasTerminal: boolean;
  /**
   * An editor is open. `false` removes the category `editor`.
   *
   * @default {true}
   */
  readonly hasEditor: boolean;
  /**
   * The workspace is a git repository. `false` removes the category `git`.
   *
   * @default {true}
   */
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

/** Which tools a value keeps, and why it removes another one. Neither throws. */
export type Rule = readonly [keeps: (tool: Tool) => boolean, reason: (tool: Tool) => string];

/** A kind of value: how a text is read as one, and what it must be. */
export interface ValueKind<Value = unknown> {
  /** A query separates the items of a list by commas; a flag is `true` or `false`. */
  readonly shape: "list" | "flag" | "text";
  readonly check: Check<Value>;
  /** The value that removes nothing, if the criterion has no rule for it. */
  readonly open?: Value;
}

/** One row. */
export interface Criterion<Value> {
  readonly step: SelectionStepName;
  readonly kind: ValueKind<Value>;
  /** Its name in a `ToolAvailabilityContext`, if it has one there. */
  readonly context?: keyof CompleteAvailabilityFields;
  /** The rule of a value; `undefined` if the value removes nothing. */
  rule(value: Value): Rule | undefined;
}

type Names = readonly string[];

type CriterionValue<Name extends CriterionName> = Name extends "maxRisk" ? RiskLevel
  : Name extends "role" ? string | null
  : Name extends ContextFlag ? boolean
  : Names;

const NONE: Names = Object.freeze([]);
const IDS: ValueKind<Names> = { shape: "list", check: checkIds, open: NONE };
const CATEGORIES: ValueKind<Names> = { shape: "list", check: checkCategories, open: NONE };
const WORDS: ValueKind<Names> = { shape: "list", check: checkWords, open: NONE };
const NAMESPACES: ValueKind<Names> = { shape: "list", check: checkNamespaces };
const RISK: ValueKind<RiskLevel> = { shape: "text", check: checkRisk, open: "critical" };
const FLAG: ValueKind<boolean> = { shape: "flag", check: checkFlag, open: true };
const ROLE: ValueKind<string | null> = {
  shape: "text",
  check: must(
    "a string that is not empty, or null for a caller without a role",
    (value): value is string | null => value === null || isWord(value),
  ),
};

/** What describes the reader of descriptions: fields of a context that remove nothing. */
export const READER_FIELDS = ["model", "provider", "locale"] as const;

export const READER: ValueKind<string> = {
  shape: "text",
  check: must(
    "1 to 128 letters, digits or signs of ASCII",
    (value): value is string => typeof value === "string" && /^[!-~]{1,128}$/.test(value),
  ),
};

/** The table. Its order is the order in which tools are checked. */
export const CRITERIA: { readonly [Name in CriterionName]: Criterion<CriterionValue<Name>> } = {
  allowIds: {
    step: "allow-list",
    kind: IDS,
    context: "enabledToolIds",
    rule(ids) {
      const allowed = new Set(ids);
      return [
        (tool) => allowed.has(tool.id),
        () => "it is not on the list of tools that are allowed",
      ];
    },
  },
  denyIds: {
    step: "deny-list",
    kind: IDS,
    context: "disabledToolIds",
    rule(ids) {
      const denied = new Set(ids);
      return denied.size === 0 ? undefined : [
        // A tool that was renamed stays denied.
        ({ id, aliases }) => !denied.has(id) && !aliases.some((alias) => denied.has(alias)),
        () => "it is on the list of tools that are denied",
      ];
    },
  },
  maxRisk: {
    step: "risk",
    kind: RISK,
    context: "maxRiskLevel",
    rule(level) {
      const within: Names = RISK_LEVELS.slice(0, riskRank(level) + 1);
      return level === "critical" ? undefined : [
        (tool) => within.includes(tool.risk),
        (tool) => `risk ${tool.risk} is above the limit ${level}`,
      ];
    },
  },
  categories: {
    step: "categories",
    kind: CATEGORIES,
    context: "includedCategories",
    rule: (names) => isAmong("category", names),
  },
  excludeCategories: {
    step: "categories",
    kind: CATEGORIES,
    context: "excludedCategories",
    rule(names) {
      const excluded: ReadonlySet<string | undefined> = new Set(names);
      return excluded.size === 0 ? undefined : [
        (tool) => !excluded.has(tool.category),
        (tool) => `${describeField("category", tool)} is excluded`,
      ];
    },
  },
  tagsAny: {
    step: "tags",
    kind: WORDS,
    rule(tags) {
      const wanted = new Set(tags);
      return [
        (tool) => {
          // By index: faster than for-of over frozen arrays.
          for (let index = 0; index < tool.tags.length; index++) {
            if (wanted.has(tool.tags[index] as string)) return true;
          }
          return false;
        },
        () => `it carries none of the tags ${quoted(tags)}`,
      ];
    },
  },
  tagsAll: {
    step: "tags",
    kind: WORDS,
    context: "requiredTags",
    rule: (tags) =>
      tags.length === 0 ? undefined : [
        (tool) => {
          for (const tag of tags) if (!tool.tags.includes(tag)) return false;
          return true;
        },
        (tool) => `it lacks the tags ${quoted(tags.filter((tag) => !tool.tags.includes(tag)))}`,
      ],
  },
  hasWorkspace: flag("hasWorkspace", "workspace", "workspace"),
  hasTerminal: flag("hasTerminal", "terminal", "terminal"),
  hasEditor: flag("hasEditor", "editor", "editor"),
  hasGitRepository: flag("hasGitRepository", "git repository", "git"),
  role: {
    step: "role",
    kind: ROLE,
    rule: (name) => [
      ({ roles }) => roles === undefined || (name !== null && roles.includes(name)),
      ({ roles = [] }) =>
        `${name === null ? "no role" : `role "${name}"`} is not among ${quoted(roles)}`,
    ],
  },
  scopes: {
    step: "scopes",
    kind: WORDS,
    rule(held) {
      const all = new Set(held);
      return [
        ({ scopes }) => {
          for (let index = 0; index < scopes.length; index++) {
            if (!all.has(scopes[index] as string)) return false;
          }
          return true;
        },
        ({ scopes }) =>
          `the caller does not hold ${quoted(scopes.filter((scope) => !all.has(scope)))}`,
      ];
    },
  },
  namespace: {
    step: "namespace",
    kind: NAMESPACES,
    rule: (names) => isAmong("namespace", names),
  },
};

export const CRITERION_NAMES = Object.keys(CRITERIA) as readonly CriterionName[];

export function isContextFlag(name: CriterionName): name is ContextFlag {
  return CRITERIA[name].step === "context";
}

function flag(field: ContextFlag, name: string, category: string): Criterion<boolean> {
  return {
    step: "context",
    kind: FLAG,
    context: field,
    rule: (isThere) =>
      isThere ? undefined : [
        (tool) => tool.category !== category,
        () => `there is no ${name}, which category "${category}" needs`,
      ],
  };
}

function isAmong(field: "category" | "namespace", names: Names): Rule {
  const wanted: ReadonlySet<string | undefined> = new Set(names);
  return [
    (tool) => wanted.has(tool[field]),
    (tool) => `${describeField(field, tool)} is not among ${quoted(names)}`,
  ];
}

/** The tool's category or namespace, for a message. */
function describeField(field: "category" | "namespace", tool: Tool): string {
  const value = tool[field];
  return value === undefined ? `no ${field}` : `${field} "${value}"`;
}

/** A list for a message: at most ten items. */
function quoted(list: Names): string {
  const shown = list.slice(0, 10).map(describe).join(", ") || "(none)";
  return list.length > 10 ? `${shown} and ${list.length - 10} more` : shown;
}
