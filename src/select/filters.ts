/**
 * Filters choose which tools a caller sees. They are plain predicates, so they compose with
 * `allOf`, `anyOf` and `not`, and with `Array.prototype.filter`.
 *
 * Only `true` keeps a tool: a filter that throws, or returns anything else, removes it. A promise
 * counts as thrown. The filters of this file return `false` for no tool (`undefined` or `null`).
 *
 * @module
 */

import { atOnce, describeThrown, type RiskLevel, type Tool } from "../tool/mod.ts";
import { checkArguments, checkFunctions } from "./checks.ts";
import { CRITERIA, type Criterion, type Rule } from "./criteria.ts";

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
 * The revision of a function that always returns the same for a tool. All copies of plue share it.
 */
const FIXED: unique symbol = Symbol.for("plue.fixed");

/** Marks a filter or a policy as one whose results never change. A spread copy is not marked. */
export function markFixed<Decider extends object>(decider: Decider): Decider {
  return Object.defineProperty(decider, "revision", { value: FIXED });
}

/** True if the results of a filter or a policy never change. */
export function isFixed(decider: { readonly revision?: unknown }): boolean {
  return decider.revision === FIXED;
}

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
 * assert.equal(short(defineTool({ name: "echo", description: "Returns its input." })), true);
 * assert.equal(short.name, "short id");
 * ```
 *
 * @param name The name.
 * @param filter The filter; it is not changed.
 * @returns The same filter as a new function, with the name and the filter's revision.
 */
export function namedFilter(name: string, filter: ToolFilter): ToolFilter {
  checkFilters("namedFilter", [filter]);
  const renamed = named(name, (tool) => filter(tool), reasons.get(filter));
  return Object.defineProperty(renamed, "revision", { get: () => filter.revision });
}

/** Keeps the tools of these namespaces. A tool without a namespace is in none. */
export function namespace(...names: readonly string[]): ToolFilter {
  return byNames("namespace", CRITERIA.namespace, names);
}

/** Keeps the tools that have at least one of these tags. No tags at all keep nothing. */
export function tagsAny(...tags: readonly string[]): ToolFilter {
  return byNames("tagsAny", CRITERIA.tagsAny, tags);
}

/** Keeps the tools that have all of these tags. */
export function tagsAll(...tags: readonly string[]): ToolFilter {
  return byNames("tagsAll", CRITERIA.tagsAll, tags);
}

/** Keeps the tools of these categories. A tool without a category is in none. */
export function category(...names: readonly string[]): ToolFilter {
  return byNames("category", CRITERIA.categories, names);
}

/** Keeps these tools only. */
export function allowIds(...ids: readonly string[]): ToolFilter {
  return byNames("allowIds", CRITERIA.allowIds, ids);
}

/** Removes these tools, by id or by an alias: a tool that was renamed stays removed. */
export function denyIds(...ids: readonly string[]): ToolFilter {
  return byNames("denyIds", CRITERIA.denyIds, ids);
}

/** Keeps the tools whose risk is `level` or lower. */
export function maxRisk(level: RiskLevel): ToolFilter {
  return byValue("maxRisk", CRITERIA.maxRisk, level);
}

/**
 * Keeps the tools that a caller with this role may use: those that list it, and those that list no
 * roles. `null` is a caller without a role.
 */
export function role(name: string | null): ToolFilter {
  return byValue("role", CRITERIA.role, name);
}

/** Keeps the tools whose scopes are all among those `held`. Without any, tools that need none. */
export function scopes(...held: readonly string[]): ToolFilter {
  return byNames("scopes", CRITERIA.scopes, held);
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

/** True for a tool; untyped code may pass `undefined` or `null`. */
export function isPresent(tool: Tool | null | undefined): tool is Tool {
  return tool !== undefined && tool !== null;
}

/** Why a filter removed a tool, in words. Never throws. */
export function whyRemoved(filter: ToolFilter, tool: Tool): string {
  const reason = reasons.get(filter);
  if (reason !== undefined) return reason(tool);
  try {
    atOnce(filter(tool));
    return `filter ${shownName(filter.name)} does not keep it`;
  } catch (thrown) {
    return `filter ${shownName(filter.name)} threw: ${describeThrown(thrown, 200)}`;
  }
}

function byNames(
  name: string,
  { kind, rule }: Criterion<readonly string[]>,
  names: readonly string[],
): ToolFilter {
  checkArguments(`filter by ${name}`, names, kind.check);
  return ruled(name, names, rule(names));
}

function byValue<Value extends string | null>(
  name: string,
  { kind, rule }: Criterion<Value>,
  value: Value,
): ToolFilter {
  const checked = kind.check(`filter by ${name}`, value, "argument 1");
  return ruled(name, checked === null ? [] : [checked], rule(checked));
}

function ruled(name: string, items: readonly string[], rule: Rule | undefined): ToolFilter {
  const [keeps, reason] = rule ?? [() => true];
  return markFixed(named(withItems(name, items), keeps, reason));
}

function composed(
  name: string,
  filters: readonly ToolFilter[],
  keeps: (tool: Tool) => boolean,
): ToolFilter {
  const filter = named(withItems(name, checkFilters(name, filters)), keeps);
  return filters.every(isFixed) ? markFixed(filter) : filter;
}

/** Checks the parts of a composition, and returns their names. */
function checkFilters(name: string, filters: readonly ToolFilter[]): readonly string[] {
  checkArguments(`compose filters with ${name}`, filters, checkFunctions);
  return filters.map((filter) => shownName(filter.name));
}

/** A filter's name: that of its function, with the first arguments. */
function withItems(name: string, items: readonly string[]): string {
  return `${name}(${items.slice(0, 5).join(", ")}${items.length > 5 ? ", …" : ""})`;
}

function named(
  name: string,
  keeps: (tool: Tool) => boolean,
  reason?: (tool: Tool) => string,
): ToolFilter {
  const filter: ToolFilter = (tool) => isPresent(tool) && keeps(tool);
  if (reason !== undefined) reasons.set(filter, reason);
  return Object.defineProperty(filter, "name", { value: name });
}
