/**
 * The port of tool search: what the registry asks of an index. The one that plue brings ranks by
 * words ({@linkcode createToolIndex}); another may rank by vectors.
 *
 * @module
 */

import type { Tool } from "../../tool/mod.ts";

/** One answer of a search. */
export interface ToolHit {
  /** The tool's id. */
  readonly id: string;
  /** How well it fits, greater than 0. Comparable within one search only. */
  readonly score: number;
}

/**
 * Finds tools by what they say of themselves.
 *
 * Contract:
 * - `search` sees what `add` and `remove` did before it.
 * - Hits are ordered by score, best first, then by id in code-unit order; the same tools give the
 *   same answer, in whatever order they were added.
 * - `search` never throws, whatever the query is.
 */
export interface ToolIndex {
  /** Takes a tool in. A tool with the same id is replaced. */
  add(tool: Tool): void;
  /** Takes a tool out. An id that is not there is ignored. */
  remove(id: string): void;
  /** The best `limit` tools for a query. */
  search(query: string, limit: number): readonly ToolHit[];
}
