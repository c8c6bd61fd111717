/**
 * Ranked search over tools (`@plue/tools/search`): the index that `@plue/tools` brings, for a
 * registry of `@plue/tools/core`, search in toolsets that come from no registry, and several indexes
 * as one.
 *
 * @module
 */

export {
  createToolIndex,
  searchToolset,
  searchToolsetAsync,
  type ToolIndexOptions,
} from "./bm25_index.ts";
export {
  type FoundTools,
  fuseIndexes,
  type ToolAnswer,
  type ToolField,
  type ToolHit,
  type ToolIndex,
  type ToolMatch,
  type ToolSearchOptions,
  type ToolSearchScope,
} from "./find.ts";
