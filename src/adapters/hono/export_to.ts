/**
 * Exports to a target that a client named.
 *
 * @module
 */

import type { Exportable, ExportResult, TargetName } from "../../formats/mod.ts";
import type { FormatFunctions } from "./formats.ts";
import { QueryError } from "./query.ts";

/**
 * Exports tools.
 *
 * @throws {QueryError} If there is no such target; it names those that there are.
 */
export function exportTo(
  { exportTools }: FormatFunctions,
  tools: Exportable,
  target: string,
): ExportResult {
  try {
    return exportTools(tools, target as TargetName);
  } catch (error) {
    throw error instanceof RangeError ? new QueryError(error.message) : error;
  }
}
