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
export type { ToolField } from "./fields.ts";
export type {
  FoundTools,
  ToolAnswer,
  ToolHit,
  ToolIndex,
  ToolMatch,
  ToolSearchOptions,
  ToolSearchScope,
} from "./find.ts";
export { fuseIndexes } from "./fuse.ts";
