/**
 * Tools whose description depends on who reads it. Calls, search and checks use the tool itself,
 * whose description is for a reader of whom nothing is known; listings use its copy for the reader.
 *
 * @module
 */

import { adopt, describedBy } from "./define_tool.ts";
import { once } from "./memo.ts";
import type { Tool, ToolReader } from "./tool.ts";

/** How many readers a tool's copies are kept for. Callers may choose what they say of themselves. */
const MAX_READERS = 64;

/** The copies of each tool, by reader; the one that was made first comes first. */
const copies = new WeakMap<Tool, Map<string, Tool>>();
const originals = new WeakMap<Tool, Tool>();

/** The tool that a copy for a reader was made of; any other tool itself. */
export function originalOf(tool: Tool): Tool {
  return originals.get(tool) ?? tool;
}

/**
 * A tool as a reader sees it: the same object for the same reader.
 *
 * @param log Is given what the tool's function threw. The description for a reader of whom nothing is
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
  const byReader = once(copies, original, () => new Map());
  const key = JSON.stringify([model, provider, locale]);
  let copy = byReader.get(key);
  if (copy !== undefined) return copy;
  copy = original;
  try {
    const reader = { model, provider, locale };
    const description = describedBy(`describe tool "${tool.id}"`, describe, reader);
    if (description !== original.description) {
      originals.set(copy = adopt({ ...original, description }), original);
    }
  } catch (error) {
    log(original, error);
  }
  const [oldest] = byReader.keys();
  if (byReader.size >= MAX_READERS) byReader.delete(oldest as string);
  byReader.set(key, copy);
  return copy;
}
