/**
 * Asks an index for the tools of a toolset. It imports no index: whoever hands in one of their own,
 * or none, does not carry plue's.
 *
 * @module
 */

import type { Toolset, ToolSource } from "../../select/mod.ts";
import { checkText, type Tool, wholeFrom } from "../../tool/mod.ts";
import type { ToolIndex } from "./tool_index.ts";

/** Options for `searchToolset` and `registry.searchTools()`. */
export interface ToolSearchOptions {
  /**
   * How many tools to answer at most.
   *
   * @default {10}
   */
  readonly limit?: number | undefined;
}

/** Gives an index that holds a toolset's tools, and perhaps others. */
export type IndexProvider = (toolset: Toolset) => ToolIndex;

const checkLimit = wholeFrom(0);

const providers = new WeakMap<ToolSource, () => ToolIndex>();

/** Says that `source` has an index of all its tools. */
export function provideIndex(source: ToolSource, index: () => ToolIndex): void {
  providers.set(source, index);
}

/** The index that `source` keeps of all its tools, if it keeps one. */
export function providedIndex(source: ToolSource): ToolIndex | undefined {
  return providers.get(source)?.();
}

/** The available tools of a toolset that fit a query, best first. */
export function findTools(
  toolset: Toolset,
  query: string,
  { limit = 10 }: ToolSearchOptions,
  indexOf: IndexProvider,
): readonly Tool[] {
  checkText("search", query, "the query");
  checkLimit("search", limit, "the limit");
  const most = Math.min(limit, toolset.size);
  if (most === 0) return [];
  const index = indexOf(toolset);
  // The index knows tools that this caller does not see, so it may take more hits to find enough.
  for (let wanted = most;; wanted *= 4) {
    const hits = index.search(query, wanted);
    const found: Tool[] = [];
    for (const { id } of hits) {
      const tool = toolset.get(id);
      if (tool !== undefined && toolset.isAvailable(tool) && found.push(tool) === most) {
        return found;
      }
    }
    if (hits.length < wanted) return found;
  }
}
