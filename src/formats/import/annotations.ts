/**
 * What a source says of a tool's behaviour, and the risk that follows. A source may be wrong or may
 * lie: hints inform, they protect nobody.
 *
 * @module
 */

import type { RiskLevel, ToolAnnotations } from "../../tool/mod.ts";
import { flagIn } from "./fields.ts";

/** The names of the hints. */
export const HINTS = [
  "readOnlyHint",
  "destructiveHint",
  "idempotentHint",
  "openWorldHint",
] as const;

/** The hints of which the source said something. */
export function readHints(value: unknown): ToolAnnotations {
  const hints: Record<string, boolean> = {};
  for (const hint of HINTS) {
    const flag = flagIn(value, hint);
    if (flag !== undefined) hints[hint] = flag;
  }
  return hints;
}

/** All hints: where the source said nothing, the Model Context Protocol's defaults, which fear the worst. */
export function withDefaults(hints: ToolAnnotations): Required<ToolAnnotations> {
  const { readOnlyHint = false, destructiveHint = !readOnlyHint } = hints;
  const { idempotentHint = readOnlyHint, openWorldHint = true } = hints;
  return { readOnlyHint, destructiveHint, idempotentHint, openWorldHint };
}

/** The risk that hints lead to. Who says both that it only reads and that it destroys, destroys. */
export function suggestRisk(hints: ToolAnnotations): RiskLevel {
  if (hints.destructiveHint === true) return "high";
  return hints.readOnlyHint === true ? "low" : "medium";
}
