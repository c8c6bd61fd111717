/**
 * Ranked search over tools.
 *
 * @module
 */

export { createToolIndex } from "./bm25_index.ts";
export type { ToolHit, ToolIndex } from "./tool_index.ts";
