/**
 * Policies have the last word: a policy can deny whatever passed the filters, and can say why.
 *
 * @module
 */

import type { RiskLevel, Tool } from "../tool/mod.ts";
import { maxRisk, namespace, scopes, tagsAny, type ToolFilter } from "./filters.ts";

/**
 * A rule of the house, with a name.
 *
 * Contract: `allow(undefined)` is `false`. Only `true` allows; a policy that throws denies.
 */
export interface ToolPolicy {
  /** Names the policy in explanations. */
  readonly name: string;
  /** Whether the tool may be seen and used. `undefined` is a tool that does not exist. */
  allow(tool: Tool | undefined): boolean;
  /** Why the tool was denied, in words. Asked only when `allow` said no. */
  reason?(tool: Tool): string;
}

/** Allows every tool that exists. */
export const allowAll: ToolPolicy = Object.freeze({
  name: "allowAll",
  allow: (tool: Tool | undefined): boolean => tool !== undefined,
});

/** Denies every tool. */
export const denyAll: ToolPolicy = Object.freeze({
  name: "denyAll",
  allow: (): boolean => false,
  reason: (): string => "every tool is denied",
});

/** Allows the tools of these namespaces. */
export function byNamespace(...names: readonly string[]): ToolPolicy {
  return policyOf(
    "byNamespace",
    namespace(...names),
    (tool) =>
      `${
        tool.namespace === undefined ? "no namespace" : `namespace "${tool.namespace}"`
      } is not among ${quoted(names)}`,
  );
}

/** Allows the tools that carry at least one of these tags. */
export function byTag(...tags: readonly string[]): ToolPolicy {
  return policyOf(
    "byTag",
    tagsAny(...tags),
    () => `it carries none of the tags ${quoted(tags)}`,
  );
}

/** Allows the tools whose scopes are all among those `held`. */
export function byScopes(...held: readonly string[]): ToolPolicy {
  return policyOf("byScopes", scopes(...held), (tool) => missingScopes(tool, held));
}

/** Allows the tools whose risk is `level` or less. */
export function byMaximumRisk(level: RiskLevel): ToolPolicy {
  return policyOf(
    "byMaximumRisk",
    maxRisk(level),
    (tool) => `risk ${tool.risk} is above the limit ${level}`,
  );
}

/** Which scopes a caller lacks, in words. */
export function missingScopes(tool: Tool, held: readonly string[]): string {
  return `the caller lacks ${quoted(tool.scopes.filter((scope) => !held.includes(scope)))}`;
}

/** A list for a message: `"a", "b"`, at most ten of them. */
export function quoted(list: readonly string[]): string {
  if (list.length === 0) return "(none)";
  const shown = list.slice(0, 10).map((item) => JSON.stringify(item.slice(0, 100))).join(", ");
  return list.length > 10 ? `${shown} and ${list.length - 10} more` : shown;
}

function policyOf(name: string, filter: ToolFilter, reason: (tool: Tool) => string): ToolPolicy {
  return Object.freeze({
    name,
    allow: (tool: Tool | undefined): boolean => tool !== undefined && filter(tool),
    reason,
  });
}
