/**
 * Filters choose which tools a caller sees. They are plain predicates, so they compose with
 * `allOf`, `anyOf` and `not`, and with `Array.prototype.filter`.
 *
 * Only `true` keeps a tool: a filter that throws, or answers anything else, removes it.
 *
 * @module
 */

import { RISK_LEVELS, type RiskLevel, riskRank, type Tool } from "../tool/mod.ts";
import { checkIds, checkRisk, checkWords, refuse, show } from "./checks.ts";

/** Says whether a tool is in. Pure: same tool, same answer. */
export type ToolFilter = (tool: Tool) => boolean;

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
 * assert.equal(short(defineTool({ name: "echo", description: "Answers what it is given." })), true);
 * assert.equal(short.name, "short id");
 * ```
 *
 * @param name What to call it.
 * @param filter The filter; it is not changed.
 * @returns The same filter as a new function, with the name.
 */
export function namedFilter(name: string, filter: ToolFilter): ToolFilter {
  return Object.defineProperty((tool: Tool): boolean => filter(tool), "name", { value: name });
}

/** Keeps the tools of these namespaces. A tool without a namespace is in none. */
export function namespace(...names: readonly string[]): ToolFilter {
  return ofList(
    "namespace",
    checkWords("filter by namespace", names),
    (wanted) => (tool) => tool.namespace !== undefined && wanted.has(tool.namespace),
  );
}

/** Keeps the tools that carry at least one of these tags. No tags at all keep nothing. */
export function tagsAny(...tags: readonly string[]): ToolFilter {
  return ofList("tagsAny", checkWords("filter by tagsAny", tags), (wanted) => {
    const isWanted = (tag: string): boolean => wanted.has(tag);
    return (tool) => tool.tags.some(isWanted);
  });
}

/** Keeps the tools that carry all of these tags. */
export function tagsAll(...tags: readonly string[]): ToolFilter {
  const list = checkWords("filter by tagsAll", tags);
  return ofList("tagsAll", list, () => (tool) => includesAll(tool.tags, list));
}

/** Keeps the tools of these categories. A tool without a category is in none. */
export function category(...names: readonly string[]): ToolFilter {
  return ofList(
    "category",
    checkWords("filter by category", names),
    (wanted) => (tool) => tool.category !== undefined && wanted.has(tool.category),
  );
}

/** Keeps these tools only. */
export function allowIds(...ids: readonly string[]): ToolFilter {
  return ofList(
    "allowIds",
    checkIds("filter by allowIds", ids),
    (wanted) => (tool) => wanted.has(tool.id),
  );
}

/** Removes these tools. */
export function denyIds(...ids: readonly string[]): ToolFilter {
  return ofList(
    "denyIds",
    checkIds("filter by denyIds", ids),
    (unwanted) => (tool) => !unwanted.has(tool.id),
  );
}

/** Keeps the tools whose risk is `level` or less. */
export function maxRisk(level: RiskLevel): ToolFilter {
  const limit = checkRisk("filter by maxRisk", level);
  return ofList("maxRisk", [limit], () => {
    const within: readonly string[] = RISK_LEVELS.slice(0, riskRank(limit) + 1);
    return (tool) => within.includes(tool.risk);
  });
}

/**
 * Keeps the tools that a caller with this role may use: those that list it, and those that list no
 * roles. `null` is a caller without a role.
 */
export function role(name: string | null): ToolFilter {
  if (name !== null) checkWords("filter by role", [name]);
  return ofList(
    "role",
    [name ?? "none"],
    () => (tool) => tool.roles === undefined || (name !== null && tool.roles.includes(name)),
  );
}

/** Keeps the tools whose scopes are all among those `held`. Without any, tools that need none. */
export function scopes(...held: readonly string[]): ToolFilter {
  return ofList("scopes", checkWords("filter by scopes", held), (wanted) => {
    const isHeld = (scope: string): boolean => wanted.has(scope);
    return (tool) => tool.scopes.every(isHeld);
  });
}

/** Keeps what every filter keeps. No filters keep everything. */
export function allOf(...filters: readonly ToolFilter[]): ToolFilter {
  checkFilters("allOf", filters);
  return namedFilter(
    composed("allOf", filters),
    (tool) => filters.every((filter) => filter(tool) === true),
  );
}

/** Keeps what at least one filter keeps. No filters keep nothing. */
export function anyOf(...filters: readonly ToolFilter[]): ToolFilter {
  checkFilters("anyOf", filters);
  return namedFilter(
    composed("anyOf", filters),
    (tool) => filters.some((filter) => filter(tool) === true),
  );
}

/** Keeps what the filter removes. A filter that throws keeps nothing either way. */
export function not(filter: ToolFilter): ToolFilter {
  checkFilters("not", [filter]);
  return namedFilter(composed("not", [filter]), (tool) => filter(tool) === false);
}

/** What `explain` calls a filter. */
export function filterName(filter: ToolFilter): string {
  return filter.name === "" ? "without a name" : filter.name.slice(0, 200);
}

function includesAll(list: readonly string[], wanted: readonly string[]): boolean {
  for (const item of wanted) if (!list.includes(item)) return false;
  return true;
}

function ofList(
  name: string,
  list: readonly string[],
  make: (list: ReadonlySet<string>) => ToolFilter,
): ToolFilter {
  return namedFilter(
    `${name}(${list.slice(0, 5).join(", ")}${list.length > 5 ? ", …" : ""})`,
    make(
      new Set(list),
    ),
  );
}

function composed(name: string, filters: readonly ToolFilter[]): string {
  return `${name}(${filters.map(filterName).join(", ")})`;
}

function checkFilters(name: string, filters: readonly unknown[]): void {
  filters.forEach((filter, index) => {
    if (typeof filter !== "function") {
      refuse(
        `compose with ${name}`,
        `argument ${index + 1} must be a filter, not ${show(filter)}`,
      );
    }
  });
}
