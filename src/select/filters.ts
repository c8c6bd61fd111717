/**
 * Filters choose which tools a caller sees. They are plain predicates, so they compose with
 * `allOf`, `anyOf` and `not`, and with `Array.prototype.filter`.
 *
 * Only `true` keeps a tool: a filter that throws, or answers anything else, removes it.
 *
 * @module
 */

import { RISK_LEVELS, type RiskLevel, riskRank, type Tool } from "../tool/mod.ts";
import { checkFunctions, checkIds, checkRisk, checkWords, show, thrownMessage } from "./checks.ts";

/** Says whether a tool is in. Pure: same tool, same answer. */
export type ToolFilter = (tool: Tool) => boolean;

/** Why the filters of this file remove a tool, in words. */
const reasons = new WeakMap<ToolFilter, (tool: Tool) => string>();

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
  checkFilters("namedFilter", [filter]);
  return explained(name, (tool) => filter(tool), reasons.get(filter));
}

/** Keeps the tools of these namespaces. A tool without a namespace is in none. */
export function namespace(...names: readonly string[]): ToolFilter {
  const wanted = new Set(checkWords("filter by namespace", names));
  return explained(
    `namespace(${brief(names)})`,
    (tool) => tool.namespace !== undefined && wanted.has(tool.namespace),
    (tool) => `${theNamespace(tool)} is not among ${quoted(names)}`,
  );
}

/** Keeps the tools that carry at least one of these tags. No tags at all keep nothing. */
export function tagsAny(...tags: readonly string[]): ToolFilter {
  const wanted = new Set(checkWords("filter by tagsAny", tags));
  return explained(
    `tagsAny(${brief(tags)})`,
    ({ tags }) => {
      for (let index = 0; index < tags.length; index++) {
        if (wanted.has(tags[index] as string)) return true;
      }
      return false;
    },
    () => `it carries none of the tags ${quoted(tags)}`,
  );
}

/** Keeps the tools that carry all of these tags. */
export function tagsAll(...tags: readonly string[]): ToolFilter {
  const wanted = checkWords("filter by tagsAll", tags);
  return explained(
    `tagsAll(${brief(tags)})`,
    (tool) => {
      for (const tag of wanted) if (!tool.tags.includes(tag)) return false;
      return true;
    },
    (tool) => `it lacks the tags ${quoted(wanted.filter((tag) => !tool.tags.includes(tag)))}`,
  );
}

/** Keeps the tools of these categories. A tool without a category is in none. */
export function category(...names: readonly string[]): ToolFilter {
  const wanted = new Set(checkWords("filter by category", names));
  return explained(
    `category(${brief(names)})`,
    (tool) => tool.category !== undefined && wanted.has(tool.category),
    (tool) => `${theCategory(tool)} is not among ${quoted(names)}`,
  );
}

/** Keeps these tools only. */
export function allowIds(...ids: readonly string[]): ToolFilter {
  const wanted = new Set(checkIds("filter by allowIds", ids));
  return explained(
    `allowIds(${brief(ids)})`,
    (tool) => wanted.has(tool.id),
    () => "it is not on the list of tools that are allowed",
  );
}

/** Removes these tools. */
export function denyIds(...ids: readonly string[]): ToolFilter {
  const unwanted = new Set(checkIds("filter by denyIds", ids));
  return explained(
    `denyIds(${brief(ids)})`,
    (tool) => !unwanted.has(tool.id),
    () => "it is on the list of tools that are denied",
  );
}

/** Keeps the tools whose risk is `level` or less. */
export function maxRisk(level: RiskLevel): ToolFilter {
  const limit = checkRisk("filter by maxRisk", level);
  const within: readonly string[] = RISK_LEVELS.slice(0, riskRank(limit) + 1);
  return explained(
    `maxRisk(${limit})`,
    (tool) => within.includes(tool.risk),
    (tool) => `risk ${tool.risk} is above the limit ${limit}`,
  );
}

/**
 * Keeps the tools that a caller with this role may use: those that list it, and those that list no
 * roles. `null` is a caller without a role.
 */
export function role(name: string | null): ToolFilter {
  if (name !== null) checkWords("filter by role", [name]);
  return explained(
    `role(${name ?? ""})`,
    (tool) => tool.roles === undefined || (name !== null && tool.roles.includes(name)),
    ({ roles = [] }) =>
      `${name === null ? "no role" : `role "${name}"`} is not among ${quoted(roles)}`,
  );
}

/** Keeps the tools whose scopes are all among those `held`. Without any, tools that need none. */
export function scopes(...held: readonly string[]): ToolFilter {
  const all = new Set(checkWords("filter by scopes", held));
  return explained(
    `scopes(${brief(held)})`,
    ({ scopes }) => {
      for (let index = 0; index < scopes.length; index++) {
        if (!all.has(scopes[index] as string)) return false;
      }
      return true;
    },
    (tool) => `the caller does not hold ${quoted(tool.scopes.filter((scope) => !all.has(scope)))}`,
  );
}

/** Keeps what every filter keeps. No filters keep everything. */
export function allOf(...filters: readonly ToolFilter[]): ToolFilter {
  const name = checkFilters("allOf", filters);
  return explained(name, (tool) => filters.every((filter) => filter(tool) === true));
}

/** Keeps what at least one filter keeps. No filters keep nothing. */
export function anyOf(...filters: readonly ToolFilter[]): ToolFilter {
  const name = checkFilters("anyOf", filters);
  return explained(name, (tool) => filters.some((filter) => filter(tool) === true));
}

/** Keeps what the filter removes. A filter that throws keeps nothing either way. */
export function not(filter: ToolFilter): ToolFilter {
  return explained(checkFilters("not", [filter]), (tool) => filter(tool) === false);
}

/** What `explain` calls a filter. */
export function filterName(filter: ToolFilter): string {
  return filter.name.slice(0, 200) || "without a name";
}

/** Why a filter removed a tool, in words. Never throws, whatever the filter does. */
export function whyRemoved(filter: ToolFilter, tool: Tool): string {
  const reason = reasons.get(filter);
  if (reason !== undefined) return reason(tool);
  try {
    filter(tool);
    return `filter ${filterName(filter)} does not keep it`;
  } catch (thrown) {
    return `filter ${filterName(filter)} threw: ${thrownMessage(thrown)}`;
  }
}

/** The tool's category, for a message. */
export function theCategory({ category }: Tool): string {
  return category === undefined ? "no category" : `category "${category}"`;
}

function theNamespace({ namespace }: Tool): string {
  return namespace === undefined ? "no namespace" : `namespace "${namespace}"`;
}

/** A list for a name: at most five items. */
function brief(list: readonly string[]): string {
  return list.slice(0, 5).join(", ") + (list.length > 5 ? ", …" : "");
}

/** A list for a message: at most ten items. */
function quoted(list: readonly string[]): string {
  const shown = list.slice(0, 10).map(show).join(", ") || "(none)";
  return list.length > 10 ? `${shown} and ${list.length - 10} more` : shown;
}

function explained(
  name: string,
  filter: ToolFilter,
  reason?: (tool: Tool) => string,
): ToolFilter {
  if (reason !== undefined) reasons.set(filter, reason);
  return Object.defineProperty(filter, "name", { value: name });
}

/** Checks the parts of a composition, and names the whole. */
function checkFilters(name: string, filters: readonly ToolFilter[]): string {
  checkFunctions(`compose filters with ${name}`, filters);
  return `${name}(${brief(filters.map(filterName))})`;
}
