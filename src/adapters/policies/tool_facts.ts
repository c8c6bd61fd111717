/**
 * The facts about a tool that a policy engine receives.
 *
 * @module
 */

import {
  type Check,
  isObject,
  must,
  RISK_LEVELS,
  type RiskLevel,
  type Tool,
} from "../../tool/mod.ts";

/** The facts about a tool that a policy engine receives, as JSON. */
export interface ToolFacts {
  readonly id: string;
  readonly name: string;
  readonly namespace?: string;
  readonly category?: string;
  readonly risk: RiskLevel;
  /** The risk as a number, to compare: 0 for `safe` up to 4 for `critical`. */
  readonly riskLevel: number;
  readonly tags: readonly string[];
  /** Absent for a tool without roles, which everyone may use. */
  readonly roles?: readonly string[];
  readonly scopes: readonly string[];
  readonly requiresApproval: boolean;
  readonly requiresTransaction: boolean;
}

/** Returns the facts about a tool. Missing fields are absent, because Cedar has no null. */
export function toolFacts(tool: Tool): ToolFacts {
  const { id, name, namespace, category, risk, tags, roles, scopes } = tool;
  const { requiresApproval, requiresTransaction } = tool;
  return {
    ...{ id, name, risk, riskLevel: RISK_LEVELS.indexOf(risk), tags, scopes },
    ...{ requiresApproval, requiresTransaction },
    ...(namespace === undefined ? {} : { namespace }),
    ...(category === undefined ? {} : { category }),
    ...(roles === undefined ? {} : { roles }),
  };
}

/** Checks the additional input of a policy. */
export const checkTold: Check<{ readonly [field: string]: unknown }> = must("an object", isObject);
