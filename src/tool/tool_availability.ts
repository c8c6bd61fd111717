/**
 * Whether a tool says that it is available.
 *
 * @module
 */

import type { Tool } from "./tool.ts";
import type { ToolAvailabilityQuery } from "./tool_context.ts";

/** Asks a tool now. Only `true` is a yes, and a function that throws says no. */
export function askAvailable(
  tool: Tool,
  { services, config }: ToolAvailabilityQuery,
): boolean {
  if (typeof tool.isAvailable === "boolean") return tool.isAvailable;
  try {
    return tool.isAvailable({ services, config }) === true;
  } catch {
    return false;
  }
}
