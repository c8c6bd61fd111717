/**
 * Filters choose which tools a caller sees. They are plain predicates, so they compose with
 * `allOf`, `anyOf` and `not`, and with `Array.prototype.filter`.
 *
 * Only `true` keeps a tool: a filter that throws, or returns anything else, removes it. A promise
 * counts as thrown. The filters of this file return `false` for no tool (`undefined` or `null`).
 *
 * @module
 */

import {
  atOnce,
  type Check,
  checkRisk,
  describe,
  RISK_LEVELS,
  type RiskLevel,
  riskRank,
  type Tool,
} from "../tool/mod.ts";
import {
  checkArguments,
  checkCategories,
  checkFunctions,
  checkIds,
  checkNamespaces,
  checkWords,
} from "./checks.ts";

/** Keeps a tool by returning `true`. */
export interface ToolFilter {
  (tool: Tool): boolean;
  /**
   * A value, or a function that returns one, that changes whenever the filter may return something
   * else for a tool. Results are reused while it stays the same. Absent: the filter is called again
   * by each `registry.select()`, listing, export and call.
   */
  readonly revision?: unknown;
}

/**
 * The filters whose results never change: those of this file, and compositions of them. Most have a
 * reason, which says why they remove a tool.
 */
const fixed = new WeakMap<object, ((tool: Tool) => string) | undefined>();

/** True if the results of a filter, or of a policy's `allow`, never change. */
export function isFixed(decide: object): boolean {
  return fixed.has(decide);
}

/** Why a filter of this file removes a tool, in words; absent for other filters and compositions. */
export function reasonOf(filter: ToolFilter): ((tool: Tool) => string) | undefined {
  return fixed.get(filter);
}

/**
 * Gives a filter the name under which `explain` reports it. Without one, the function's own name
 * is reported, which a minifier may have changed.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, namedFilter } from "@plue/tools";
 *
 * const short = namedFilter("short id", (tool) => tool.id.length < 5);
 *
 * assert.equal(short(defineTool({ name: "echo", description: "Returns its input." })), true);
 * assert.equal(short.name, "short id");
 * ```
 *
 * @param name The name.
 * @param filter The filter; it is not changed.
 * @returns The same filter as a new function, with the name and without a revision.
 */
export function namedFilter(name: string, filter: ToolFilter): ToolFilter {
  checkFilters("namedFilter", [filter]);
  return named(name, (tool) => filter(tool), [filter], reasonOf(filter));
}

/** Keeps the tools of these namespaces. A tool without a namespace is in none. */
export function namespace(...names: readonly string[]): ToolFilter {
  return fieldAmong("namespace", names, checkNamespaces);
}

/** Keeps the tools that have at least one of these tags. No tags at all keep nothing. */
export function tagsAny(...tags: readonly string[]): ToolFilter {
  return filterOf("tagsAny", tags, (wanted) => [
    ({ tags }) => {
      for (let index = 0; index < tags.length; index++) {
        if (wanted.has(tags[index] as string)) return true;
      }
      return false;
    },
    () => `it carries none of the tags ${quoted(tags)}`,
  ]);
}

/** Keeps the tools that have all of these tags. */
export function tagsAll(...tags: readonly string[]): ToolFilter {
  return filterOf("tagsAll", tags, (set) => {
    const wanted = [...set];
    return [
      (tool) => {
        for (const tag of wanted) if (!tool.tags.includes(tag)) return false;
        return true;
      },
      (tool) => `it lacks the tags ${quoted(wanted.filter((tag) => !tool.tags.includes(tag)))}`,
    ];
  });
}

/** Keeps the tools of these categories. A tool without a category is in none. */
export function category(...names: readonly string[]): ToolFilter {
  return fieldAmong("category", names, checkCategories);
}

/** Removes the tools of these categories. */
export function notCategory(...names: readonly string[]): ToolFilter {
  return withoutCategories(names, (shown) => `${shown} is excluded`);
}

/** Removes the tools of some categories, for a reason. */
export function withoutCategories(
  names: readonly string[],
  reason: (category: string) => string,
): ToolFilter {
  const isIn = category(...names);
  return named(
    withItems("notCategory", names),
    (tool) => !isIn(tool),
    [],
    (tool) => reason(describeField("category", tool)),
  );
}

/** Keeps these tools only. */
export function allowIds(...ids: readonly string[]): ToolFilter {
  return filterOf("allowIds", ids, (wanted) => [
    (tool) => wanted.has(tool.id),
    () => "it is not on the list of tools that are allowed",
  ], checkIds);
}

/** Removes these tools, by id or by an alias: a tool that was renamed stays removed. */
export function denyIds(...ids: readonly string[]): ToolFilter {
  return filterOf("denyIds", ids, (unwanted) => [
    ({ id, aliases }) => !unwanted.has(id) && !aliases.some((alias) => unwanted.has(alias)),
    () => "it is on the list of tools that are denied",
  ], checkIds);
}

/** Keeps the tools whose risk is `level` or lower. */
export function maxRisk(level: RiskLevel): ToolFilter {
  checkRisk("filter by maxRisk", level, "argument 1");
  const within: readonly string[] = RISK_LEVELS.slice(0, riskRank(level) + 1);
  return named(
    `maxRisk(${level})`,
    (tool) => within.includes(tool.risk),
    [],
    (tool) => `risk ${tool.risk} is above the limit ${level}`,
  );
}

/**
 * Keeps the tools that a caller with this role may use: those that list it, and those that list no
 * roles. `null` is a caller without a role.
 */
export function role(name: string | null): ToolFilter {
  return filterOf("role", name === null ? [] : [name], () => [
    ({ roles }) => roles === undefined || (name !== null && roles.includes(name)),
    ({ roles = [] }) =>
      `${name === null ? "no role" : `role "${name}"`} is not among ${quoted(roles)}`,
  ]);
}

/** Keeps the tools whose scopes are all among those `held`. Without any, tools that need none. */
export function scopes(...held: readonly string[]): ToolFilter {
  return filterOf("scopes", held, (all) => [
    ({ scopes }) => {
      for (let index = 0; index < scopes.length; index++) {
        if (!all.has(scopes[index] as string)) return false;
      }
      return true;
    },
    (tool) => `the caller does not hold ${quoted(tool.scopes.filter((scope) => !all.has(scope)))}`,
  ]);
}

/** Keeps the tools that every filter keeps. No filters keep everything. */
export function allOf(...filters: readonly ToolFilter[]): ToolFilter {
  return composed(
    "allOf",
    filters,
    (tool) => filters.every((filter) => atOnce(filter(tool)) === true),
  );
}

/** Keeps the tools that at least one filter keeps. No filters keep nothing. */
export function anyOf(...filters: readonly ToolFilter[]): ToolFilter {
  return composed(
    "anyOf",
    filters,
    (tool) => filters.some((filter) => atOnce(filter(tool)) === true),
  );
}

/** Keeps the tools that the filter removes. A filter that throws keeps nothing either way. */
export function not(filter: ToolFilter): ToolFilter {
  return composed("not", [filter], (tool) => atOnce(filter(tool)) === false);
}

/** The name of a filter or a policy in explanations. */
export function shownName(name = ""): string {
  return name.slice(0, 200) || "without a name";
}

/** The tool's category or namespace, for a message. */
function describeField(field: "category" | "namespace", tool: Tool): string {
  const value = tool[field];
  return value === undefined ? `no ${field}` : `${field} "${value}"`;
}

/** A list for a message: at most ten items. */
function quoted(list: readonly string[]): string {
  const shown = list.slice(0, 10).map(describe).join(", ") || "(none)";
  return list.length > 10 ? `${shown} and ${list.length - 10} more` : shown;
}

function fieldAmong(
  field: "category" | "namespace",
  names: readonly string[],
  check: Check<readonly string[]>,
): ToolFilter {
  return filterOf(field, names, (wanted) => [
    (tool) => wanted.has(tool[field] as string),
    (tool) => `${describeField(field, tool)} is not among ${quoted(names)}`,
  ], check);
}

function composed(
  name: string,
  filters: readonly ToolFilter[],
  keeps: (tool: Tool) => boolean,
): ToolFilter {
  return named(withItems(name, checkFilters(name, filters)), keeps, filters);
}

/** Checks the parts of a composition, and returns their names. */
function checkFilters(name: string, filters: readonly ToolFilter[]): readonly string[] {
  checkArguments(`compose filters with ${name}`, filters, checkFunctions);
  return filters.map((filter) => shownName(filter.name));
}

/** A filter that is named after its first arguments. `make` gives it, and why it removes a tool. */
function filterOf(
  name: string,
  items: readonly string[],
  make: (
    wanted: ReadonlySet<string>,
  ) => readonly [keeps: (tool: Tool) => boolean, reason: (tool: Tool) => string],
  check: Check<readonly string[]> = checkWords,
): ToolFilter {
  const [keeps, reason] = make(new Set(checkArguments(`filter by ${name}`, items, check)));
  return named(withItems(name, items), keeps, [], reason);
}

function withItems(name: string, items: readonly string[]): string {
  return `${name}(${items.slice(0, 5).join(", ")}${items.length > 5 ? ", …" : ""})`;
}

/** @param parts The filters that it calls: its results change where theirs do. */
function named(
  name: string,
  keeps: (tool: Tool) => boolean,
  parts: readonly ToolFilter[],
  reason?: (tool: Tool) => string,
): ToolFilter {
  // Untyped code may call it without a tool.
  const filter = (tool?: Tool | null): boolean =>
    tool !== undefined && tool !== null && keeps(tool);
  if (parts.every(isFixed)) fixed.set(filter, reason);
  return Object.defineProperty(filter, "name", { value: name });
}
