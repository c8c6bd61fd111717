/** The source of a toolset's tools: a registry, or a source that was made of a list. */

import { askAvailable, attempt, fail, makeTool, noop, type Tool } from "../tool/mod.ts";

/** An object with tools: `tools` is a list, a function that returns a list, or absent. */
export interface ToolCollection {
  readonly tools: Iterable<Tool> | (() => Iterable<Tool> | null | undefined) | null | undefined;
}

/** A set of tools, which may change, for selections. */
export interface ToolSource {
  /** All tools. The same array until `revision` changes; best frozen and in order of id. */
  readonly tools: readonly Tool[];
  /** Counts changes. */
  readonly revision: number;
  getTool(id: string): Tool | undefined;
  /** Calls the tool's `isAvailable` if it is a function. Never throws: an error means false. */
  isAvailable(tool: Tool): boolean;
  /** Receives the error of a description function. */
  onDescribeError?(tool: Tool, error: unknown): void;
}

export const ACTION = "make a toolset";

const NOTHING_ELSE = Object.freeze({ services: Object.freeze({}), config: undefined });

/** Creates a source that never changes. Throws for a duplicate id, and for values without tools. */
export function listSource(list: Iterable<Tool>): ToolSource {
  if (typeof list?.[Symbol.iterator] !== "function") {
    fail(ACTION, "the source must be a registry, a toolset or a list of tools");
  }
  const byId = new Map<string, Tool>();
  const names = new Map<string, string>();
  for (const item of list) {
    // A tool of another copy of plue is checked and copied.
    const tool = attempt(ACTION, () => makeTool(item), `item ${byId.size} is invalid. `);
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

/** Adds a tool's id and aliases to `claimed`. Throws if another tool has one of these names. */
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

/** Freezes a list that is in code-unit order of id. */
export function freezeInOrder(tools: readonly Tool[]): readonly Tool[] {
  // Does not freeze a list again, because JavaScriptCore would visit all items again.
  return ordered.has(tools) ? tools : ordered.add(tools) && Object.freeze(tools);
}

/** Returns a frozen list in code-unit order of id: the same list if it is one already. */
export function inOrder(tools: readonly Tool[]): readonly Tool[] {
  // Does not use localeCompare, because every runtime must list tools in the same order.
  return ordered.has(tools)
    ? tools
    : freezeInOrder([...tools].sort((a, b) => a.id < b.id ? -1 : 1));
}
