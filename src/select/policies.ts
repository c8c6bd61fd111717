/** Policies are applied last: a policy can deny a tool that passed the filters, with a reason. */

import {
  type Check,
  createCheck,
  isFunction,
  isPlain,
  rejectUnknownFields,
  type RiskLevel,
  type Tool,
} from "../tool/mod.ts";
import { listOf } from "./criteria.ts";
import {
  allOf,
  anyOf,
  category,
  maxRisk,
  namespace,
  reasonOf,
  scopes,
  shownName,
  tagsAny,
  type ToolFilter,
} from "./filters.ts";

/** The alternative to a policy that returns a promise. */
export const POLICY_ADVICE = ": wait in authorize, and give the policy what was decided";

/**
 * A rule over tools.
 *
 * Contract: `allow` returns `false` for `undefined` and `null`. Only `true` allows; a policy that
 * throws denies. It is synchronous: make asynchronous decisions before tools are selected, such as
 * in `authorize`.
 */
export interface ToolPolicy {
  /** Names the policy in explanations. */
  readonly name?: string | undefined;
  /** Returns `true` if the tool may be listed and called. `undefined` and `null` mean no tool. */
  allow(tool: Tool | null | undefined): boolean;
  /**
   * Returns `true` if a call of the tool needs approval, like a tool with `requiresApproval`. It is
   * called for each call. Any result other than `false`, `undefined` and `null`, and an error,
   * require approval.
   */
  requiresApproval?(tool: Tool): boolean;
  /** Returns the reason for a denial. Called only after `allow` denied the tool. */
  reason?(tool: Tool): string;
  /**
   * A value, or a function that returns one, that changes whenever `allow` may return something
   * else for a tool, such as the version of the policy's data. Decisions are reused while it stays
   * the same. Without it `allow` is called again by each `registry.select()`, listing, export and
   * call.
   */
  readonly revision?: unknown;
}

const FIELDS = [
  "name",
  "allow",
  "requiresApproval",
  "reason",
  "revision",
] satisfies readonly (keyof ToolPolicy)[];

const checkShape = /* @__PURE__ */ createCheck("a policy, with an allow function", isPolicy);

/** Checks a list of policies. Instances of classes may have fields of their own; others may not. */
export const checkPolicies: Check<readonly ToolPolicy[]> = /* @__PURE__ */ listOf(
  (action, value, place) => {
    const policy = checkShape(action, value, place);
    if (isPlain(policy)) {
      rejectUnknownFields(`use policy ${shownName(policy.name)}`, policy, FIELDS);
    }
    return policy;
  },
);

function isPolicy(value: unknown): value is ToolPolicy {
  const { name = "", allow } = (value ?? {}) as Partial<ToolPolicy>;
  return typeof name === "string" && isFunction(allow);
}

// Marked as pure, so that a bundle without them leaves them out.
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

/** Allows the tools whose scopes are all among those `held`. */
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
