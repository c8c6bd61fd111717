/**
 * Filters choose the tools of a caller. They are plain predicates, so they compose with `allOf`,
 * `anyOf` and `not`, and with `Array.prototype.filter`. Policies are applied last: a policy can deny
 * a tool that passed the filters, with a reason.
 *
 * Only `true` keeps a tool: a filter that throws, or returns any other value or a promise, removes
 * the tool. The filters of this file return `false` for no tool (`undefined` or `null`).
 */

import * as check from "../tool/mod.ts";
import { assertSync, isFunction, isPlain, type RiskLevel, type Tool } from "../tool/mod.ts";
import {
  checkFunctions,
  CRITERIA,
  type CriterionName,
  listOf,
  REASONS,
  ruleOf,
} from "./criteria.ts";

/** Returns `true` to keep a tool. */
export interface ToolFilter {
  (tool: Tool): boolean;
  /**
   * A value, or a function that returns one. It must change whenever the filter may return another
   * result for a tool: results are reused while it stays the same. Without it, each
   * `registry.select()`, listing, export and call calls the filter again.
   */
  readonly revision?: unknown;
}

/** The filters of this file, whose results never change, and the reasons for removed tools. */
const fixed = new WeakMap<object, ((tool: Tool) => string) | undefined>();

const ARGUMENTS = '"arguments"';

/** Returns true if the results of a filter, or of a policy's `allow`, never change. */
export function isFixed(decide: object): boolean {
  return fixed.has(decide);
}

/** Returns the function for the reason why a filter of this file removes a tool. */
export function reasonOf(filter: ToolFilter): ((tool: Tool) => string) | undefined {
  return fixed.get(filter);
}

/**
 * Names a filter for `explain`. Without this name, `explain` returns the function's own name, which
 * a minifier may have changed.
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
 * @returns A new function that filters in the same way, with the name and without a revision.
 */
export function namedFilter(name: string, filter: ToolFilter): ToolFilter {
  checkFilters("namedFilter", [filter]);
  return named(name, (tool) => filter(tool), [filter], reasonOf(filter));
}

/** Keeps the tools of these namespaces. Removes tools without a namespace. */
export function namespace(...names: readonly string[]): ToolFilter {
  return filterOf("namespace", names);
}

/** Keeps the tools that have at least one of these tags. Without arguments, keeps no tool. */
export function tagsAny(...tags: readonly string[]): ToolFilter {
  return filterOf("tagsAny", tags);
}

/** Keeps the tools that have all of these tags. */
export function tagsAll(...tags: readonly string[]): ToolFilter {
  return filterOf("tagsAll", tags);
}

/** Keeps the tools of these categories. Removes tools without a category. */
export function category(...names: readonly string[]): ToolFilter {
  return filterOf("categories", names, "category");
}

/** Keeps only these tools, by id. */
export function allowIds(...ids: readonly string[]): ToolFilter {
  return filterOf("allowIds", ids);
}

/** Removes these tools, by id or alias: a tool that was renamed is still removed. */
export function denyIds(...ids: readonly string[]): ToolFilter {
  return filterOf("denyIds", ids);
}

/** Keeps the tools whose risk is `level` or lower. */
export function maxRisk(level: RiskLevel): ToolFilter {
  return filterOf("maxRisk", level);
}

/** Keeps the tools that list the role, or no role. `null` is a caller without a role. */
export function role(name: string | null): ToolFilter {
  return filterOf("role", name);
}

/** Keeps the tools whose scopes are all in `held`. No arguments keep tools without scopes. */
export function scopes(...held: readonly string[]): ToolFilter {
  return filterOf("scopes", held);
}

/** Keeps the tools that every filter keeps. Without filters, keeps every tool. */
export function allOf(...filters: readonly ToolFilter[]): ToolFilter {
  return composed("allOf", filters, (tool) => filters.every((filter) => keeps(filter, tool)));
}

/** Keeps the tools that at least one filter keeps. Without filters, keeps no tool. */
export function anyOf(...filters: readonly ToolFilter[]): ToolFilter {
  return composed("anyOf", filters, (tool) => filters.some((filter) => keeps(filter, tool)));
}

/** Keeps the tools that the filter removes. If the filter throws, the tool is removed. */
export function not(filter: ToolFilter): ToolFilter {
  return composed("not", [filter], (tool) => assertSync(filter(tool)) === false);
}

function keeps(filter: ToolFilter, tool: Tool): boolean {
  return assertSync(filter(tool)) === true;
}

export function shownName(name = ""): string {
  return name.slice(0, 200) || "without a name";
}

/** Creates the filter for a row of the table. The filter is named after its first arguments. */
function filterOf(
  criterion: CriterionName,
  value: string | readonly string[] | null,
  name: string = criterion,
): ToolFilter {
  const place = Array.isArray(value) ? ARGUMENTS : "argument 1";
  CRITERIA[criterion].check(`filter by ${name}`, value, place);
  const keeps = ruleOf(criterion, value) ?? (() => true);
  const reason = (tool: Tool): string => REASONS[criterion](value as never, tool);
  return named(withItems(name, [value ?? []].flat()), keeps, [], reason);
}

function composed(
  name: string,
  filters: readonly ToolFilter[],
  keeps: (tool: Tool) => boolean,
): ToolFilter {
  return named(withItems(name, checkFilters(name, filters)), keeps, filters);
}

function checkFilters(name: string, filters: readonly ToolFilter[]): readonly string[] {
  checkFunctions(`compose filters with ${name}`, filters, ARGUMENTS);
  return filters.map((filter) => shownName(filter.name));
}

function withItems(name: string, items: readonly string[]): string {
  return `${name}(${items.slice(0, 5).join(", ")}${items.length > 5 ? ", …" : ""})`;
}

/** @param parts The filters that this filter calls. Its results change only if theirs change. */
function named(
  name: string,
  keeps: (tool: Tool) => boolean,
  parts: readonly ToolFilter[],
  reason?: (tool: Tool) => string,
): ToolFilter {
  // A caller in JavaScript may pass no tool.
  const filter = (tool?: Tool | null): boolean =>
    tool !== undefined && tool !== null && keeps(tool);
  if (parts.every(isFixed)) fixed.set(filter, reason);
  return Object.defineProperty(filter, "name", { value: name });
}

// Policies

/** The alternative to a policy that returns a promise. */
export const POLICY_ADVICE = ": decide in authorize, and pass the decision to the policy";

/**
 * A rule that allows or denies tools.
 *
 * Contract: `allow` returns `false` for `undefined` and `null`. Only `true` allows a tool; a policy
 * that throws denies the tool. `allow` is synchronous: make asynchronous decisions before tools are
 * selected, such as in `authorize`.
 */
export interface ToolPolicy {
  /** Names the policy in explanations. */
  readonly name?: string | undefined;
  /** Returns `true` if the tool may be listed and called. `undefined` and `null` mean no tool. */
  allow(tool: Tool | null | undefined): boolean;
  /**
   * Returns `true` if a call of the tool needs approval, like a tool with `requiresApproval`.
   * Called for each call. An error requires approval, and so does any result except `false`,
   * `undefined` and `null`.
   */
  requiresApproval?(tool: Tool): boolean;
  /** Returns the reason for a denial. Called only after `allow` denied the tool. */
  reason?(tool: Tool): string;
  /**
   * A value, or a function that returns one, such as the version of the policy's data. It must
   * change whenever `allow` may return another result for a tool: decisions are reused while it
   * stays the same. Without it, each `registry.select()`, listing, export and call calls `allow`
   * again.
   */
  readonly revision?: unknown;
}

const FIELDS: (keyof ToolPolicy)[] = ["name", "allow", "requiresApproval", "reason", "revision"];

const checkShape = /* @__PURE__ */ check.createCheck("a policy, with an allow function", isPolicy);

/** Checks a list of policies. Only instances of classes may have unknown fields. */
export const checkPolicies: check.Check<readonly ToolPolicy[]> = /* @__PURE__ */ listOf(
  (action, value, place) => {
    const policy = checkShape(action, value, place);
    if (isPlain(policy)) {
      check.rejectUnknownFields(`use policy ${shownName(policy.name)}`, policy, FIELDS);
    }
    return policy;
  },
);

function isPolicy(value: unknown): value is ToolPolicy {
  const { name = "", allow } = (value ?? {}) as Partial<ToolPolicy>;
  return typeof name === "string" && isFunction(allow);
}

// Marked as pure, so that a bundle without policies omits it.
const NO_TOOL: ToolFilter = /* @__PURE__ */ anyOf();
const ANY_TOOL: ToolFilter = /* @__PURE__ */ allOf();

/** Allows every tool that exists. */
export const allowAll: ToolPolicy = /* @__PURE__ */ policyOf("allowAll", ANY_TOOL);

/** Denies every tool. */
export const denyAll: ToolPolicy = /* @__PURE__ */ policyOf(
  "denyAll",
  NO_TOOL,
  () => "every tool is denied",
);

/** Allows the tools of these namespaces. */
export function byNamespace(...names: readonly string[]): ToolPolicy {
  return policyOf("byNamespace", namespace(...names));
}

/** Allows the tools that have at least one of these tags. */
export function byTag(...tags: readonly string[]): ToolPolicy {
  return policyOf("byTag", tagsAny(...tags));
}

/** Allows the tools of these categories. */
export function byCategory(...names: readonly string[]): ToolPolicy {
  return policyOf("byCategory", category(...names));
}

/** Allows the tools whose scopes are all in `held`. */
export function byScopes(...held: readonly string[]): ToolPolicy {
  return policyOf("byScopes", scopes(...held));
}

/** Allows the tools whose risk is `level` or lower. */
export function byMaximumRisk(level: RiskLevel): ToolPolicy {
  return policyOf("byMaximumRisk", maxRisk(level));
}

/**
 * Allows every tool, and requires approval for calls of tools whose risk is above `level`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { askAboveRisk, ToolDispatcher, ToolRegistry } from "@plue/tools";
 *
 * const registry = new ToolRegistry({
 *   tools: [{ name: "rm", description: "Deletes.", risk: "high", execute: () => "deleted" }],
 * });
 * const toolset = registry.select({ policies: [askAboveRisk("medium")] });
 * const dispatcher = new ToolDispatcher(toolset, { approve: () => false });
 *
 * const result = await dispatcher.dispatch({ name: "rm" });
 * assert.equal(!result.ok && result.error.code, "denied");
 * ```
 */
export function askAboveRisk(level: RiskLevel): ToolPolicy {
  const isBelow = maxRisk(level);
  const requiresApproval = (tool: Tool): boolean => !isBelow(tool);
  return Object.freeze({ ...allowAll, name: "askAboveRisk", requiresApproval });
}

function policyOf(
  name: string,
  filter: ToolFilter,
  reason: ((tool: Tool) => string) | undefined = reasonOf(filter),
): ToolPolicy {
  // The filters of plue return `false` for no tool.
  const allow = filter as ToolPolicy["allow"];
  return Object.freeze({ name, allow, ...(reason && { reason }) });
}
