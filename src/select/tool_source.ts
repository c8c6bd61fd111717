/**
 * Where a toolset's tools come from. The registry is one; a plain list is made into one.
 *
 * @module
 */

import type { Tool } from "../tool/mod.ts";

/** A set of tools that a selection can be made from. */
export interface ToolSource {
  /** All tools, frozen, in code-unit order of id. The same array until `revision` changes. */
  readonly tools: readonly Tool[];
  /** Counts changes. */
  readonly revision: number;
  /** The tool with that id. */
  getTool(id: string): Tool | undefined;
  /** Asks the tool's `isAvailable` now. Never throws: a function that throws answers `false`. */
  isAvailable(tool: Tool): boolean;
}
