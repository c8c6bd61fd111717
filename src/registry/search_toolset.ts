/**
 * Ranked search within a toolset: what a caller does not see, the caller does not find.
 *
 * @module
 */

import type { Toolset, ToolSource } from "../select/mod.ts";
import { type Tool, wholeFrom } from "../tool/mod.ts";
import { createToolIndex, type ToolIndex } from "./search/mod.ts";

/** Options for {@linkcode searchToolset} and `registry.searchTools()`. */
export interface ToolSearchOptions {
  /**
   * How many tools to answer at most.
   *
   * @default {10}
   */
  readonly limit?: number | undefined;
}

const checkLimit = wholeFrom(0);

/** How a source that keeps an index of its own, such as a registry, gives it. */
const providers = new WeakMap<ToolSource, () => ToolIndex>();
/** The indexes of other sources, by their list of tools, which never changes. */
const indexes = new WeakMap<readonly Tool[], ToolIndex>();

/** Says that `source` has an index of all its tools. */
export function provideIndex(source: ToolSource, index: () => ToolIndex): void {
  providers.set(source, index);
}

/**
 * The available tools of a toolset that fit a query, best first.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, searchToolset, ToolsetBuilder } from "@plue/tools";
 *
 * const toolset = new ToolsetBuilder("files").fromTools([
 *   defineTool({ name: "file-read", description: "Reads a file.", risk: "low" }),
 *   defineTool({ name: "file-write", description: "Writes a file.", risk: "high" }),
 * ]).build();
 *
 * assert.equal(searchToolset(toolset, "write a file")[0]?.id, "file-write");
 * ```
 *
 * @param toolset Where to search.
 * @param query Words, or an identifier, in any case.
 * @returns At most `limit` tools.
 * @throws {RangeError} If the limit is not a whole number, 0 or above.
 */
export function searchToolset(
  toolset: Toolset,
  query: string,
  options: ToolSearchOptions = {},
): readonly Tool[] {
  const { limit = 10 } = options;
  checkLimit("search", limit, "the limit");
  const most = Math.min(limit, toolset.size);
  if (most === 0) return [];
  const index = indexFor(toolset);
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

function indexFor(toolset: Toolset): ToolIndex {
  const { source } = toolset;
  const provider = source && providers.get(source);
  if (provider !== undefined) return provider();
  const tools = source?.tools ?? toolset.tools;
  let index = indexes.get(tools);
  if (index === undefined) {
    index = createToolIndex();
    for (const tool of tools) index.add(tool);
    indexes.set(tools, index);
  }
  return index;
}
