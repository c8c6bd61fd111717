/**
 * Ranked search over tools (`@plue/tools/search`): the default index of `@plue/tools` for a
 * registry of `@plue/tools/core`, search in toolsets without a registry, and the combination of
 * indexes.
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
