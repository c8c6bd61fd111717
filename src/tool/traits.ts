/**
 * What a tool says of itself for those who choose tools: its risk, its category, its hints.
 *
 * @module
 */

import { type Check, checkWord, oneOf, refuse } from "./check.ts";
import { describe } from "./text.ts";

/** The levels, from harmless to grave. The index of a level is its rank. */
export const RISK_LEVELS = ["safe", "low", "medium", "high", "critical"] as const;

/**
 * How much harm a tool can do:
 * - `safe`: cannot change or reveal anything (echo, arithmetic);
 * - `low`: reads what the caller may see;
 * - `medium`: changes that can be undone, or reads from outside;
 * - `high`: changes that are hard to undo, or runs commands;
 * - `critical`: cannot be undone, or reaches beyond the workspace.
 */
export type RiskLevel = (typeof RISK_LEVELS)[number];

/** Whether `value` is a risk level. */
export function isRiskLevel(value: unknown): value is RiskLevel {
  return (RISK_LEVELS as readonly unknown[]).includes(value);
}

export const checkRisk: Check<RiskLevel> = /* @__PURE__ */ oneOf<RiskLevel>(RISK_LEVELS);

/** The rank of a level, 0 (`safe`) to 4 (`critical`). */
export function riskRank(level: RiskLevel): number {
  return RISK_LEVELS.indexOf(level);
}

/**
 * Compares two levels, for sorting: negative when `a` is the lesser risk.
 */
export function compareRisk(a: RiskLevel, b: RiskLevel): number {
  return riskRank(a) - riskRank(b);
}

/**
 * The categories that plue knows. The set is open: any name is a category. The flags of an
 * availability context remove some of these: `withTerminal(false)` removes `terminal`.
 */
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

/** A category that plue knows. */
export type KnownToolCategory = (typeof KNOWN_CATEGORIES)[number];

/** What a tool works on: a known category, or a name of your own. */
export type ToolCategory = KnownToolCategory | (string & Record<never, never>);

/** The known category that `name` is another spelling of: `filesystem` for `FileSystem`. */
export function misspeltCategory(name: string): KnownToolCategory | undefined {
  const plain = name.toLowerCase().replace(/[^a-z]/g, "");
  return KNOWN_CATEGORIES.find((known) => known === plain && known !== name);
}

/** Checks a category. A context that removes `terminal` would keep a tool of `Terminal`. */
export const checkCategory: Check<string> = (action, value, place) => {
  const name = checkWord(action, value, place);
  const known = misspeltCategory(name);
  return known === undefined
    ? name
    : refuse(action, `${place} is ${describe(name)}: did you mean "${known}"?`);
};

/**
 * Hints about a tool's behaviour, as the Model Context Protocol names them. They inform; they do not
 * protect: plue neither grants nor refuses a call because of them.
 */
export interface ToolAnnotations {
  /** The tool changes nothing. */
  readonly readOnlyHint?: boolean;
  /** The tool may destroy what is there (only meaningful when it is not read-only). */
  readonly destructiveHint?: boolean;
  /** A second call with the same arguments changes nothing more. */
  readonly idempotentHint?: boolean;
  /** The tool reaches an open world (the web), not a closed one (a workspace). */
  readonly openWorldHint?: boolean;
}

/** The fields of a tool that hints follow from. */
export interface AnnotatedFields {
  readonly risk: RiskLevel;
  readonly category: string | undefined;
  readonly tags: readonly string[];
  readonly idempotent: boolean;
}

/**
 * Fills in hints that the author did not give, with care: a client may skip a question to its user
 * because of one. Only the tag `read-only` makes a tool read-only, only a tool that is read-only is
 * told to destroy nothing, and none is told to be closed to the world. A hint that the tool's fields
 * do not answer is left out, and clients then assume the worst.
 *
 * @param tool The tool's fields.
 * @param said The hints that its author gave.
 */
export function deriveAnnotations(
  tool: AnnotatedFields,
  said: ToolAnnotations = {},
): ToolAnnotations {
  const { risk, category, tags, idempotent } = tool;
  const has = (tag: string): boolean => tags.includes(tag);
  const { readOnlyHint = has("read-only") && !has("write") && !has("destructive") } = said;
  const destroys = has("destructive") || risk === "high" || risk === "critical";
  return {
    readOnlyHint,
    ...((readOnlyHint || destroys) && { destructiveHint: !readOnlyHint }),
    idempotentHint: readOnlyHint || idempotent,
    ...((category === "network" || has("network")) && { openWorldHint: true }),
    ...said,
  };
}
