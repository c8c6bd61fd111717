/**
 * A source of tools made from a list.
 *
 * @module
 */

import { askAvailable, isTool, makeTool, refuse, type Tool } from "../tool/mod.ts";
import type { ToolSource } from "./tool_source.ts";

const NOTHING_ELSE = Object.freeze({ services: Object.freeze({}), config: undefined });

/**
 * Makes a source that never changes. Availability functions are asked with no services and no
 * configuration: tools that need those belong in a registry.
 *
 * @throws {TypeError} If two tools share an id, or something is not a tool.
 */
export function listSource(list: Iterable<Tool>): ToolSource {
  if (typeof list?.[Symbol.iterator] !== "function") {
    refuse("make a toolset", "it needs a registry, a toolset or a list of tools");
  }
  const byId = new Map<string, Tool>();
  for (const item of list) {
    // A tool that another copy of plue made is checked and made again.
    const tool = isTool(item) ? item : makeTool(item);
    if (byId.has(tool.id)) {
      refuse("make a toolset", `two tools have the id "${tool.id}"`);
    }
    byId.set(tool.id, tool);
  }
  // Code-unit order, not localeCompare: every runtime must list tools alike.
  const tools = Object.freeze([...byId.values()].sort((a, b) => a.id < b.id ? -1 : 1));
  return Object.freeze({
    tools,
    revision: 0,
    getTool: (id: string): Tool | undefined => byId.get(id),
    isAvailable: (tool: Tool): boolean => askAvailable(tool, NOTHING_ELSE),
  });
}
