/**
 * The options that all sources have in common: checked once, before anything is read.
 *
 * @module
 */

import { clip } from "../../schema/mod.ts";
import { isRiskLevel, isToolName, RISK_LEVELS, type RiskLevel } from "../../tool/mod.ts";
import type { ImportLimits, ImportOptions, RiskQuestion } from "./types.ts";

const MAX_TOOLS = 5_000;
const MAX_VALUES = 2_000_000;

/**
 * Checks the options.
 *
 * @returns The limits.
 * @throws {TypeError | RangeError} If one is wrong.
 */
export function checkOptions(options: ImportOptions): Required<ImportLimits> {
  const { namespace, risk, tags, limits = {} } = options;
  if (namespace !== undefined && !isToolName(namespace)) {
    throw new TypeError(
      `Cannot import tools: the namespace must be 1 to 128 letters, digits, "_", "." or "-", not "${
        clip(String(namespace))
      }"`,
    );
  }
  if (risk !== undefined && typeof risk !== "function" && !isRiskLevel(risk)) wrongRisk(risk);
  if (tags !== undefined && !(Array.isArray(tags) && tags.every(isTag))) {
    throw new TypeError(
      "Cannot import tools: the tags must be a list of strings that are not empty",
    );
  }
  return {
    maxTools: countOption("maxTools", limits.maxTools ?? MAX_TOOLS),
    maxValues: countOption("maxValues", limits.maxValues ?? MAX_VALUES),
  };
}

/** The risk of a tool. */
export function riskOf({ risk }: ImportOptions, question: RiskQuestion): RiskLevel {
  if (risk === undefined) return question.suggested;
  if (typeof risk !== "function") return risk;
  const level = risk(question);
  return isRiskLevel(level) ? level : wrongRisk(level);
}

function wrongRisk(risk: unknown): never {
  throw new TypeError(
    `Cannot import tools: the risk must be one of ${RISK_LEVELS.join(", ")}, not "${
      clip(String(risk))
    }"`,
  );
}

function isTag(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function countOption(name: string, value: number): number {
  if (Number.isInteger(value) && value > 0) return value;
  throw new RangeError(
    `Cannot import tools: ${name} must be a whole number above 0, not "${clip(String(value))}"`,
  );
}
