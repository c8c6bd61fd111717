/**
 * How much harm a tool can do, as an ordered scale of five levels.
 *
 * @module
 */

import { type Check, must } from "./check.ts";

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

/** Checks a risk level. */
export const checkRisk: Check<RiskLevel> = must(`one of ${RISK_LEVELS.join(", ")}`, isRiskLevel);

/** The rank of a level, 0 (`safe`) to 4 (`critical`). */
export function riskRank(level: RiskLevel): number {
  return RISK_LEVELS.indexOf(level);
}

/**
 * Compares two levels, for sorting: negative when `a` is the lesser risk.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { compareRisk } from "@plue/tools";
 *
 * assert.ok(compareRisk("low", "high") < 0);
 * ```
 */
export function compareRisk(a: RiskLevel, b: RiskLevel): number {
  return riskRank(a) - riskRank(b);
}
