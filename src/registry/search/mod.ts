/**
 * Ranked search over tools (`@plue/tools/search`): the index that `@plue/tools` brings, for a
 * registry of `@plue/tools/core`, and search in toolsets that come from no registry.
 *
 * @module
 */

export { createToolIndex } from "./bm25_index.ts";
export type { ToolSearchOptions } from "./find_tools.ts";
export { searchToolset } from "./search_toolset.ts";
export type { ToolHit, ToolIndex } from "./tool_index.ts";
