/**
 * Exports to a target that a client named.
 *
 * @module
 */

import type { Exportable, ExportResult, TargetName } from "../../formats/mod.ts";
import type { FormatFunctions } from "./formats.ts";
import { RequestError } from "./request_error.ts";

/**
 * Exports tools.
 *
 * @throws {RequestError} If there is no such target; it names those that there are.
 */
export function exportTo(
  { exportTools }: FormatFunctions,
  tools: Exportable,
  target: string,
): ExportResult {
  try {
    return exportTools(tools, target as TargetName);
  } catch (error) {
    throw error instanceof RangeError ? new RequestError(error.message) : error;
  }
}
