/**
 * Tools whose description depends on who reads it. Calls, search and checks use the tool itself,
 * whose description is for a reader of whom nothing is known; listings use its copy for the reader.
 *
 * @module
 */

import { adopt, describedBy } from "./define_tool.ts";
import type { Tool, ToolReader } from "./tool.ts";

const originals = new WeakMap<Tool, Tool>();

/** The tool that a copy for a reader was made of; any other tool itself. */
export function originalOf(tool: Tool): Tool {
  return originals.get(tool) ?? tool;
}

/**
 * A tool as a reader sees it: a copy of it, if that reader has another description.
 *
 * @param log Receives what the tool's function threw. The description for a reader of whom nothing is
 * known stands in.
 */
export function describedFor(
  tool: Tool,
  { model, provider, locale }: ToolReader,
  log: (tool: Tool, error: unknown) => void,
): Tool {
  const original = originalOf(tool);
  const { describe } = original;
  if (describe === undefined) return tool;
  try {
    const reader = { model, provider, locale };
    const description = describedBy(`describe tool "${tool.id}"`, describe, reader);
    if (description === original.description) return original;
    const copy = adopt({ ...original, description });
    originals.set(copy, original);
    return copy;
  } catch (error) {
    log(original, error);
    return original;
  }
}
