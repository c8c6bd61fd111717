/**
 * Ranked search within a toolset: what a caller does not see, the caller does not find.
 *
 * @module
 */

import type { Toolset } from "../../select/mod.ts";
import type { Tool } from "../../tool/mod.ts";
import { createToolIndex } from "./bm25_index.ts";
import { findTools, providedIndex, type ToolSearchOptions } from "./find_tools.ts";
import type { ToolIndex } from "./tool_index.ts";

/** The indexes of sources that keep none, by their list of tools, which never changes. */
const indexes = new WeakMap<readonly Tool[], ToolIndex>();

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
  return findTools(toolset, query, options, indexOf);
}

function indexOf({ source }: Toolset): ToolIndex {
  const provided = providedIndex(source);
  if (provided !== undefined) return provided;
  const { tools } = source;
  let index = indexes.get(tools);
  if (index === undefined) {
    index = createToolIndex();
    for (const tool of tools) index.add(tool);
    indexes.set(tools, index);
  }
  return index;
}
