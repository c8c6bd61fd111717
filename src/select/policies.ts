/**
 * Policies have the last word: a policy can deny whatever passed the filters, and can say why.
 *
 * @module
 */

import type { RiskLevel, Tool } from "../tool/mod.ts";
import {
  category,
  isPresent,
  maxRisk,
  namespace,
  scopes,
  tagsAny,
  type ToolFilter,
  whyRemoved,
} from "./filters.ts";

/** What to do instead of a policy that answers a promise. */
export const POLICY_ADVICE = ": wait in authorize, and give the policy what was decided";

/**
 * A rule over tools.
 *
 * Contract: `allow` answers `false` for `undefined` and `null`. Only `true` allows; a policy that
 * throws denies. It answers at once: what must be waited for is decided before tools are selected,
 * such as in `authorize`.
 */
export interface ToolPolicy {
  /** Names the policy in explanations. */
  readonly name?: string | undefined;
  /** Whether the tool may be seen and used. `undefined` and `null` are no tool. */
  allow(tool: Tool | null | undefined): boolean;
  /**
   * Whether a call of the tool needs approval, as that of a tool that `requiresApproval`. Only
   * `false` and nothing say no; one that throws says yes.
   */
  asks?(tool: Tool): boolean;
  /** Why the tool was denied, in words. Asked only when `allow` said no. */
  reason?(tool: Tool): string;
}

/** Allows every tool that exists. */
export const allowAll: ToolPolicy = Object.freeze({
  name: "allowAll",
  allow: isPresent,
});

/** Denies every tool. */
export const denyAll: ToolPolicy = Object.freeze({
  name: "denyAll",
  allow: (): boolean => false,
  reason: (): string => "every tool is denied",
});

/** Allows the tools of these namespaces. */
export function byNamespace(...names: readonly string[]): ToolPolicy {
  return policyOf("byNamespace", namespace(...names));
}

/** Allows the tools that carry at least one of these tags. */
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

/** Allows the tools whose risk is `level` or less. */
export function byMaximumRisk(level: RiskLevel): ToolPolicy {
  return policyOf("byMaximumRisk", maxRisk(level));
}

/**
 * Allows every tool, and wants calls approved whose tool has a risk above `level`.
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
  return Object.freeze({ ...allowAll, name: "askAboveRisk", asks: (tool: Tool) => !isBelow(tool) });
}

function policyOf(name: string, filter: ToolFilter): ToolPolicy {
  return Object.freeze({
    name,
    // The filters of plue answer `false` for no tool.
    allow: filter as ToolPolicy["allow"],
    reason: (tool: Tool): string => whyRemoved(filter, tool),
  });
}
