/**
 * How a toolset is searched: the port of an index, how a registry keeps one in step with its tools,
 * and what of its answers a caller sees. Nothing here imports the index that plue brings, so a
 * program with another index, or without one, does not carry it.
 *
 * @module
 */

import type { Toolset, ToolSource } from "../../select/mod.ts";
import {
  atOnce,
  callHook,
  type Check,
  checkText,
  readFields,
  type Tool,
  wholeFrom,
} from "../../tool/mod.ts";

/** One answer of a search. */
export interface ToolHit {
  /** The tool's id. */
  readonly id: string;
  /** How well it fits, greater than 0. Comparable within one search only. */
  readonly score: number;
}

/**
 * Finds tools by what they say of themselves. `createToolIndex` ranks by words; another index may
 * rank by vectors.
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

/** Options for `searchToolset` and `registry.searchTools()`. */
export interface ToolSearchOptions {
  /**
   * How many tools to answer at most. Absent: all that fit, for `registry.searchTools()`; the best
   * 10, for `searchToolset`, which asks on behalf of a model or of another caller.
   */
  readonly limit?: number | undefined;
}

const OPTIONS = { limit: wholeFrom(0) } satisfies {
  readonly [Name in keyof ToolSearchOptions]-?: Check;
};

const providers = new WeakMap<ToolSource, () => ToolIndex>();

/** Says that `source` has an index of all its tools. */
export function provideIndex(source: ToolSource, index: () => ToolIndex): void {
  providers.set(source, index);
}

/** The index that `source` keeps of all its tools, if it keeps one. */
export function providedIndex(source: ToolSource): ToolIndex | undefined {
  return providers.get(source)?.();
}

/**
 * The available tools of a toolset that fit a query, best first.
 *
 * @param otherwise The limit where the options have none.
 * @param indexOf Gives an index that holds the toolset's tools, and perhaps others.
 */
export function findTools(
  toolset: Toolset,
  query: string,
  options: ToolSearchOptions,
  otherwise: number,
  indexOf: (toolset: Toolset) => ToolIndex,
): readonly Tool[] {
  checkText("search", query, "the query");
  const { limit = otherwise } = readFields("search", { ...options }, OPTIONS, () => "the limit");
  const most = Math.min(limit, toolset.size);
  if (most === 0) return [];
  const index = indexOf(toolset);
  // The index knows tools that this caller does not see, so it may take more hits to find enough.
  for (let wanted = most;; wanted *= 4) {
    const hits = atOnce(index.search(query, wanted));
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

/** The search index of one registry. Registering a tool never fails because of it. */
export class IndexFollower {
  readonly #make: () => ToolIndex;
  readonly #onError: (toolId: string, error: unknown) => void;
  #index: ToolIndex | undefined;

  /**
   * @param make Makes an empty index.
   * @param onError Called when the index could not follow a change. Must not throw.
   */
  constructor(make: () => ToolIndex, onError: (toolId: string, error: unknown) => void) {
    this.#make = make;
    this.#onError = onError;
  }

  /** The index. Where there is none, it is made of what `tools` gives. */
  of(tools: () => readonly Tool[]): ToolIndex {
    if (this.#index === undefined) {
      const index = atOnce(this.#make());
      for (const tool of tools()) atOnce(index.add(tool));
      this.#index = index;
    }
    return this.#index;
  }

  add(tool: Tool): void {
    this.#follow(tool.id, (index) => index.add(tool));
  }

  remove(id: string): void {
    this.#follow(id, (index) => index.remove(id));
  }

  /** Forgets the index. The next search makes another. */
  clear(): void {
    this.#index = undefined;
  }

  #follow(id: string, change: (index: ToolIndex) => unknown): void {
    const index = this.#index;
    if (index === undefined) return;
    callHook(() => change(index), (error) => {
      // Half a change may be in it. The next search makes another, and throws what that throws.
      this.clear();
      this.#onError(id, error);
    });
  }
}
