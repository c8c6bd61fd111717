/**
 * Hints about a tool's behaviour, as the Model Context Protocol names them. They inform; they do
 * not protect: nothing in plue grants or refuses a call because of them.
 *
 * @module
 */

import type { RiskLevel } from "./risk_level.ts";

/** Hints about a tool's behaviour. */
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

/**
 * Derives hints from what a tool says of itself: `safe` and `low` tools are read-only, `high` and
 * `critical` ones may destroy, `network` ones reach an open world.
 */
export function deriveAnnotations(tool: {
  readonly risk: RiskLevel;
  readonly category: string | undefined;
  readonly tags: readonly string[];
  readonly idempotent: boolean;
}): ToolAnnotations {
  const has = (tag: string): boolean => tool.tags.includes(tag);
  const readOnly = !has("write") && !has("destructive") &&
    (has("read") || has("read-only") || tool.risk === "safe" || tool.risk === "low");
  return {
    readOnlyHint: readOnly,
    destructiveHint: !readOnly &&
      (has("destructive") || tool.risk === "high" || tool.risk === "critical"),
    idempotentHint: tool.idempotent || readOnly,
    openWorldHint: tool.category === "network" || has("network"),
  };
}
