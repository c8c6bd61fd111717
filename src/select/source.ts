/** The source of a toolset's tools. A registry is a source; a plain list is converted to one. */

import { askAvailable, attempt, fail, makeTool, noop, type Tool } from "../tool/mod.ts";

/** Anything with tools: `tools` is a list, a function that returns a list, or absent. */
export interface ToolCollection {
  readonly tools: Iterable<Tool> | (() => Iterable<Tool> | null | undefined) | null | undefined;
}

/** A set of tools that a selection can be made from, and that may change. */
export interface ToolSource {
  /** All tools; the same array until `revision` changes, best frozen and in order of id. */
  readonly tools: readonly Tool[];
  /** Counts changes. */
  readonly revision: number;
  getTool(id: string): Tool | undefined;
  /** Calls the tool's `isAvailable`, if it is a function. Never throws: an error means no. */
  isAvailable(tool: Tool): boolean;
  /** Receives the error of a description function. */
  onDescribeError?(tool: Tool, error: unknown): void;
}

export const ACTION = "make a toolset";

const NOTHING_ELSE = Object.freeze({ services: Object.freeze({}), config: undefined });

/** Creates a source that never changes. Throws for two tools with one id, or other values. */
export function listSource(list: Iterable<Tool>): ToolSource {
  if (typeof list?.[Symbol.iterator] !== "function") {
    fail(ACTION, "it needs a registry, a toolset or a list of tools");
  }
  const byId = new Map<string, Tool>();
  const names = new Map<string, string>();
  for (const item of list) {
    // A tool that another copy of plue made is checked and made again.
    const tool = attempt(ACTION, () => makeTool(item), `item ${byId.size} is wrong. `);
    if (byId.has(tool.id)) fail(ACTION, `two tools have the id "${tool.id}"`);
    claimNames(ACTION, tool, names);
    byId.set(tool.id, tool);
  }
  const tools = inOrder([...byId.values()]);
  return Object.freeze({
    tools,
    revision: 0,
    getTool: (id: string): Tool | undefined => byId.get(id),
    isAvailable: (tool: Tool): boolean => askAvailable(tool, NOTHING_ELSE, noop),
  });
}

/** Claims a tool's id and its aliases: `claimed` receives them. Throws if another tool has one. */
export function claimNames(
  action: string,
  { id, aliases }: Tool,
  claimed: Map<string, string>,
  taken: ReadonlyMap<string, string> = claimed,
): void {
  for (const name of [id, ...aliases]) {
    const owner = claimed.get(name) ?? taken.get(name) ?? id;
    if (owner !== id) {
      const what = name === id ? "its id" : `its alias "${name}"`;
      fail(action, `${what} is the id or an alias of "${owner}"`);
    }
    claimed.set(name, id);
  }
}

/** The frozen, ordered lists: comparing 10,000 ids again takes JavaScriptCore 5 ms. */
const ordered = new WeakSet<readonly Tool[]>();

/** Freezes a list that is in code-unit order of id, once. */
export function freezeInOrder(tools: readonly Tool[]): readonly Tool[] {
  // Does not freeze a list twice, because JavaScriptCore visits all items again.
  return ordered.has(tools) ? tools : ordered.add(tools) && Object.freeze(tools);
}

/** Returns the tools in code-unit order of id, frozen; the same list if plue has ordered it. */
export function inOrder(tools: readonly Tool[]): readonly Tool[] {
  // Does not use localeCompare, because every runtime must list tools in the same order.
  return ordered.has(tools)
    ? tools
    : freezeInOrder([...tools].sort((a, b) => a.id < b.id ? -1 : 1));
}
