/**
 * Identity, and the traits by which tools are selected: risk, category and hints. An id is
 * `namespace:name`, or `name` alone, each 1 to 128 letters, digits, `_`, `.` or `-`, so an id splits
 * in one way only.
 */

import { type Check, checkWord, fail, oneOf } from "./check.ts";
import { describe } from "./text.ts";

const PART = "[A-Za-z0-9_.-]{1,128}";
const NAME = RegExp(`^${PART}$`);
const ID = RegExp(`^(${PART}:)?${PART}$`);

/** The rule for names and namespaces, for messages. */
export const TOOL_NAME_RULE = '1 to 128 letters, digits, "_", "." or "-"';

export function isToolName(value: unknown): value is string {
  return typeof value === "string" && NAME.test(value);
}

export function isToolId(value: unknown): value is string {
  return typeof value === "string" && ID.test(value);
}

/**
 * Makes an id of a name and an optional namespace.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { toolId } from "@plue/tools";
 *
 * assert.equal(toolId("status", "chain"), "chain:status");
 * assert.equal(toolId("file-read"), "file-read");
 * ```
 */
export function toolId(name: string, namespace?: string): string {
  return namespace === undefined ? name : `${namespace}:${name}`;
}

/** Splits an id into its namespace (if any) and its name. */
export function parseToolId(id: string): { readonly namespace?: string; readonly name: string } {
  const colon = id.indexOf(":");
  return colon === -1 ? { name: id } : { namespace: id.slice(0, colon), name: id.slice(colon + 1) };
}

/** The levels, from harmless to critical. The index of a level is its rank. */
export const RISK_LEVELS = ["safe", "low", "medium", "high", "critical"] as const;

/**
 * The possible harm of a tool:
 * - `safe`: cannot change or reveal anything (echo, arithmetic);
 * - `low`: reads what the caller may see;
 * - `medium`: changes that can be undone, or reads from outside;
 * - `high`: changes that are hard to undo, or runs commands;
 * - `critical`: cannot be undone, or reaches beyond the workspace.
 */
export type RiskLevel = (typeof RISK_LEVELS)[number];

export function isRiskLevel(value: unknown): value is RiskLevel {
  return (RISK_LEVELS as readonly unknown[]).includes(value);
}

export const checkRisk: Check<RiskLevel> = /* @__PURE__ */ oneOf<RiskLevel>(RISK_LEVELS);

/** Returns the rank of a level, 0 (`safe`) to 4 (`critical`). */
export function riskRank(level: RiskLevel): number {
  return RISK_LEVELS.indexOf(level);
}

/** The predefined categories. Others are allowed. A context's flags remove some of these. */
export const KNOWN_CATEGORIES = [
  "filesystem",
  "terminal",
  "editor",
  "git",
  "workspace",
  "search",
  "network",
  "system",
] as const;

/** A predefined category. */
export type KnownToolCategory = (typeof KNOWN_CATEGORIES)[number];

/** The subject of a tool: a predefined category, or a name of your own. */
export type ToolCategory = KnownToolCategory | (string & Record<never, never>);

/** Returns the predefined category for another spelling: `filesystem` for `FileSystem`. */
export function misspeltCategory(name: string): KnownToolCategory | undefined {
  const plain = name.toLowerCase().replace(/[^a-z]/g, "");
  return KNOWN_CATEGORIES.find((known) => known === plain && known !== name);
}

/** Checks a category. A selection without `terminal` would keep the other spelling `Terminal`. */
export const checkCategory: Check<string> = (action, value, place) => {
  const name = checkWord(action, value, place);
  const known = misspeltCategory(name);
  return known === undefined
    ? name
    : fail(action, `${place} is ${describe(name)}: did you mean "${known}"?`);
};

export const HINTS = [
  "readOnlyHint",
  "destructiveHint",
  "idempotentHint",
  "openWorldHint",
] as const;

/** Hints of MCP about a tool's behaviour. plue grants or denies no call because of them. */
export interface ToolAnnotations {
  /** The tool changes nothing. */
  readonly readOnlyHint?: boolean;
  /** The tool may destroy data (only meaningful when it is not read-only). */
  readonly destructiveHint?: boolean;
  /** A repeated call with the same arguments has no further effect. */
  readonly idempotentHint?: boolean;
  /** The tool reaches an open world (the web), not a closed one (a workspace). */
  readonly openWorldHint?: boolean;
}

export interface AnnotatedFields {
  readonly risk: RiskLevel;
  readonly category: string | undefined;
  readonly tags: readonly string[];
  readonly idempotent: boolean;
}

/**
 * Adds missing hints conservatively, because a client may skip an approval for a hint. Only the tag
 * `read-only` makes a tool read-only, only read-only tools are non-destructive, and no tool is
 * declared closed-world. A hint that does not follow from the tool's fields is omitted, and clients
 * then assume the worst.
 */
export function deriveAnnotations(
  tool: AnnotatedFields,
  stated: ToolAnnotations = {},
): ToolAnnotations {
  const { risk, category, tags, idempotent } = tool;
  const has = (tag: string): boolean => tags.includes(tag);
  const { readOnlyHint = has("read-only") && !has("write") && !has("destructive") } = stated;
  const destroys = has("destructive") || risk === "high" || risk === "critical";
  return {
    readOnlyHint,
    ...((readOnlyHint || destroys) && { destructiveHint: !readOnlyHint }),
    idempotentHint: readOnlyHint || idempotent,
    ...((category === "network" || has("network")) && { openWorldHint: true }),
    ...stated,
  };
}
