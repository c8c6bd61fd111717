/**
 * Ranked search over tools (`@plue/tools/search`): the index that `@plue/tools` brings, for a
 * registry of `@plue/tools/core`, and search in toolsets that come from no registry.
 *
 * @module
 */

export { createToolIndex, searchToolset } from "./bm25_index.ts";
export type { ToolHit, ToolIndex, ToolSearchOptions } from "./find.ts";
