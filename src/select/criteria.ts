/**
 * The criteria of a selection. Each criterion is one row: its names, the check of its value, its
 * rule, and the reason for a removal. Selections, contexts, builders, filters, queries and flags
 * are derived from this table. Other data about criteria, such as texts for people, are in further
 * tables with the same keys. These do not compile while a row is missing.
 */

import {
  type Check,
  checkCategory,
  checkFlag,
  checkFunction,
  checkRisk,
  checkWord,
  createCheck,
  describe,
  fail,
  isFunction,
  isObject,
  isPlain,
  isToolId,
  isToolName,
  isWord,
  readFields,
  type RiskLevel,
  riskRank,
  type Tool,
  TOOL_NAME_RULE,
} from "../tool/mod.ts";

// Checks. Each returns a frozen copy of the value.

/** Names in any order. They are stored sorted and without duplicates. */
export type NameList = readonly string[] | ReadonlySet<string>;

/** The maximum length of a list: Bun takes long to freeze a longer one. */
const MAX_ITEMS = 10_000;

/** Checks a list and its items. Messages contain the position of an item. */
export function listOf<Item>(check: Check<Item>): Check<readonly Item[]> {
  return (action, value, place) => {
    if (!Array.isArray(value)) {
      return fail(action, `${place} must be a list, not ${describe(value)}`);
    }
    if (value.length > MAX_ITEMS) {
      fail(action, `${place} must have at most ${MAX_ITEMS} items, not ${value.length}`);
    }
    const start = place.slice(0, -1);
    // Array.from also visits holes, which are invalid items.
    return Object.freeze(
      Array.from(value, (item: unknown, at) => check(action, item, `${start}/${at}"`)),
    );
  };
}

function namesOf(check: Check<string>): Check<readonly string[]> {
  const checkList = listOf(check);
  return (action, value, place) => {
    const names = checkList(action, value instanceof Set ? [...value] : value, place);
    return Object.freeze([...new Set(names)].sort());
  };
}

export const checkFunctions: Check<readonly unknown[]> = listOf(checkFunction);
export const checkWords: Check<readonly string[]> = namesOf(checkWord);
export const checkCategories: Check<readonly string[]> = namesOf(checkCategory);
export const checkIds: Check<readonly string[]> = namesOf(
  createCheck(`a tool's id, "name" or "namespace:name", each ${TOOL_NAME_RULE}`, isToolId),
);
const checkNamespaceList = namesOf(createCheck(`a namespace, ${TOOL_NAME_RULE}`, isToolName));
/** Checks namespaces: a list, or one string. */
export const checkNamespaces: Check<readonly string[]> = (action, value, place) =>
  checkNamespaceList(action, typeof value === "string" ? [value] : value, place);

export const checkPlain: Check<Record<string, unknown>> = createCheck(
  "a plain object",
  (value): value is Record<string, unknown> => isObject(value) && isPlain(value),
);

// The table

/** The criteria of a selection that are plain data. An empty list keeps no tool: `allowIds: []`. */
export interface SelectionCriteria {
  /** Only these tools, by id. */
  readonly allowIds?: NameList | undefined;
  /** Not these tools, by id or by alias. A tool that is also in `allowIds` is removed. */
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
  /** The caller's role; `null` for a caller without one. If absent, roles are not checked. */
  readonly role?: string | null | undefined;
  /** The caller's scopes; `[]` for a caller without any. If absent, scopes are not checked. */
  readonly scopes?: NameList | undefined;
  /** Only tools of this namespace, or of one of these namespaces. */
  readonly namespace?: string | NameList | undefined;
}

/** All settings of an environment: its features and permitted tools. Defaults remove no tool. */
export interface CompleteAvailabilityFields {
  /** Only these tools, by id. If `undefined`, every tool. */
  readonly enabledToolIds: readonly string[] | undefined;
  /** Not these tools, by id. A tool that is also in `enabledToolIds` is removed. */
  readonly disabledToolIds: readonly string[];
  /** The highest risk that is permitted. @default {"critical"} */
  readonly maxRiskLevel: RiskLevel;
  /** Only tools of these categories. If `undefined`, every tool, with or without a category. */
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
  /** The model that reads descriptions. Description functions get it, and the next two fields. */
  readonly model: string | undefined;
  /** The model's provider, such as `anthropic`. */
  readonly provider: string | undefined;
  /** The language of the descriptions, such as `de` or `pt-BR`. */
  readonly locale: string | undefined;
}

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

/** Returns true to keep a tool. Never throws. */
export type Rule = (tool: Tool) => boolean;

export interface Criterion {
  readonly step: SelectionStepName;
  readonly check: Check;
  /** Creates the rule for a checked value. If the value is a list, `wanted` has its items. */
  readonly rule: (value: never, wanted: ReadonlySet<unknown>) => Rule;
  /** The criterion's name in a `ToolAvailabilityContext`, if contexts have the criterion. */
  readonly context: keyof CompleteAvailabilityFields | undefined;
  /** The value that removes no tool, if there is one. */
  readonly open: unknown;
}

const NONE: readonly string[] = Object.freeze([]);

export const checkRole: Check<string | null> = createCheck(
  "a string that is not empty, or null for a caller without a role",
  (value): value is string | null => value === null || isWord(value),
);

/** The fields of a context about the reader of descriptions. They remove no tool. */
export const READER_FIELDS = ["model", "provider", "locale"] as const;

export const checkReader: Check<string> = createCheck(
  "1 to 128 visible ASCII characters",
  (value): value is string => typeof value === "string" && /^[!-~]{1,128}$/.test(value),
);

/** The table. Its order is the order in which tools are checked. */
export const CRITERIA: { readonly [Name in CriterionName]: Criterion } = {
  allowIds: row("allow-list", checkIds, (_ids, allowed) => ({ id }) => allowed.has(id), {
    context: "enabledToolIds",
  }),
  denyIds: row(
    "deny-list",
    checkIds,
    (_ids, denied) => ({ id, aliases }) => !denied.has(id) && !hasAny(aliases, denied),
    { context: "disabledToolIds", open: NONE },
  ),
  maxRisk: row("risk", checkRisk, (level: RiskLevel) => {
    const most = riskRank(level);
    return ({ risk }) => riskRank(risk) <= most;
  }, { context: "maxRiskLevel", open: "critical" }),
  categories: row(
    "categories",
    checkCategories,
    (_names, wanted) => ({ category }) => wanted.has(category),
    { context: "includedCategories" },
  ),
  excludeCategories: row(
    "categories",
    checkCategories,
    (_names, unwanted) => ({ category }) => !unwanted.has(category),
    { context: "excludedCategories", open: NONE },
  ),
  tagsAny: row("tags", checkWords, (_names, wanted) => ({ tags }) => hasAny(tags, wanted)),
  tagsAll: row(
    "tags",
    checkWords,
    (names: readonly string[]) => ({ tags }) => {
      for (const name of names) if (!tags.includes(name)) return false;
      return true;
    },
    { context: "requiredTags", open: NONE },
  ),
  hasWorkspace: flag("hasWorkspace", "workspace"),
  hasTerminal: flag("hasTerminal", "terminal"),
  hasEditor: flag("hasEditor", "editor"),
  hasGitRepository: flag("hasGitRepository", "git"),
  role: row(
    "role",
    checkRole,
    (role: string | null) => ({ roles }) =>
      roles === undefined || role !== null && roles.includes(role),
  ),
  scopes: row(
    "scopes",
    checkWords,
    (_names, held) => ({ scopes }) => {
      for (let index = 0; index < scopes.length; index++) {
        if (!held.has(scopes[index])) return false;
      }
      return true;
    },
  ),
  namespace: row(
    "namespace",
    checkNamespaces,
    (_names, wanted) => ({ namespace }) => wanted.has(namespace),
  ),
};

export const REASONS: {
  readonly [Name in CriterionName]: (value: never, tool: Tool) => string;
} = {
  allowIds: () => "the id is not on the list of allowed tools",
  denyIds: () => "the id or an alias is on the list of denied tools",
  maxRisk: (level: RiskLevel, { risk }) => `risk ${risk} is above the limit ${level}`,
  categories: (names: readonly string[], { category }) => notAmong("category", category, names),
  excludeCategories: (_names, { category }) => `category "${category}" is excluded`,
  tagsAny: (names: readonly string[]) => `none of the tags ${quoted(names)} is set`,
  tagsAll: (names: readonly string[], { tags }) =>
    `the tags ${quoted(names.filter((name) => !tags.includes(name)))} are not set`,
  hasWorkspace: () => missing("workspace"),
  hasTerminal: () => missing("terminal"),
  hasEditor: () => missing("editor"),
  hasGitRepository: () => missing("git", " repository"),
  role: (role: string | null, { roles = NONE }) => notAmong("role", role ?? undefined, roles),
  scopes: (held: readonly string[], { scopes }) =>
    `the caller lacks the scopes ${quoted(scopes.filter((scope) => !held.includes(scope)))}`,
  namespace: (names: readonly string[], { namespace }) => notAmong("namespace", namespace, names),
};

export const CRITERION_NAMES = Object.keys(CRITERIA) as readonly CriterionName[];

export const CONTEXT_CHECKS: { readonly [field: string]: Check } = Object.fromEntries([
  ...Object.values(CRITERIA).flatMap(({ context, check }) => context ? [[context, check]] : []),
  ...READER_FIELDS.map((field) => [field, checkReader]),
]);

export function isOpen(value: unknown, open: unknown): boolean {
  return value === open || Array.isArray(value) && open === NONE && value.length === 0;
}

/** Returns the rule for a checked value; `undefined` if every tool would pass it. */
export function ruleOf(name: CriterionName, value: unknown): Rule | undefined {
  const { rule, open } = CRITERIA[name];
  if (value === undefined || isOpen(value, open)) return undefined;
  return rule(value as never, new Set([value].flat()));
}

export function isContextFlag(name: CriterionName): name is ContextFlag {
  return CRITERIA[name].step === "context";
}

/** Reads a context, its builder or its fields. Ignores fields that are `undefined` or `null`. */
export function readContext(input: unknown): Partial<CompleteAvailabilityFields> {
  const action = "read an availability context";
  // Contexts and builders of another copy of plue are recognised by their methods.
  const { build, toJSON } = Object(input) as { build?(): unknown; toJSON?(): unknown };
  if (isFunction(build)) return readContext(build.call(input));
  const plain = checkPlain(action, isFunction(toJSON) ? toJSON.call(input) : input, "the context");
  const fields = Object.entries(plain).map(([field, value]) => [field, value ?? undefined]);
  return readFields(action, Object.fromEntries(fields), CONTEXT_CHECKS);
}

function row<Value>(
  step: SelectionStepName,
  check: Check<Value>,
  rule: (value: Value, wanted: ReadonlySet<unknown>) => Rule,
  { context, open }: Partial<Pick<Criterion, "context" | "open">> = {},
): Criterion {
  return { step, check, rule, context, open };
}

/** The row of a flag: `false` removes the tools of a category. */
function flag(context: ContextFlag, needed: string): Criterion {
  return row("context", checkFlag, () => ({ category }) => category !== needed, {
    context,
    open: true,
  });
}

/** Returns true if an item is in the set. For-of over a frozen list takes Bun twice as long. */
function hasAny(list: readonly string[], set: ReadonlySet<unknown>): boolean {
  for (let index = 0; index < list.length; index++) if (set.has(list[index])) return true;
  return false;
}

function missing(category: string, more = ""): string {
  return `the category "${category}" needs a ${category}${more}, and there is none`;
}

function notAmong(field: string, value: string | undefined, names: readonly string[]): string {
  return `${field} ${value === undefined ? "(none)" : `"${value}"`} is not among ${quoted(names)}`;
}

function quoted(list: readonly string[]): string {
  const shown = list.slice(0, 10).map(describe).join(", ") || "(none)";
  return list.length > 10 ? `${shown} and ${list.length - 10} more` : shown;
}
