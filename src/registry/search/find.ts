/** Search in a toolset, without plue's index, so that bundles that do not use it stay small. */

import type { Toolset, ToolSource } from "../../select/mod.ts";
import * as check from "../../tool/mod.ts";
import { fail, isThenable, noop, type Tool } from "../../tool/mod.ts";

export const FIELDS = [
  "name",
  "title",
  "namespace",
  "tags",
  "category",
  "description",
  "parameters",
] as const;
/** The part of a tool in which a word was found. */
export type ToolField = (typeof FIELDS)[number];

/** A word of a query that was found in a tool: the word, another form of it, or a synonym. */
export interface ToolMatch {
  /** The word of the query, in lower case. */
  readonly word: string;
  /** The parts of the tool in which the word was found. */
  readonly fields: readonly ToolField[];
}

/** One result of a search. */
export interface ToolHit {
  /** The tool's id. */
  readonly id: string;
  /** The quality of the match, greater than 0. Each index has its own scale. */
  readonly score: number;
  /** The words that were found, if the index ranks by words. */
  readonly matches?: readonly ToolMatch[] | undefined;
}

/** The visible tools and the lowest score of a search. */
export interface ToolSearchScope {
  /**
   * The tools that the caller sees. Only these tools may be found, and other tools may not affect
   * the order or the scores. The list is the same object until its tools change, so an index can
   * use the list as a cache key. By default, all tools of the index.
   */
  readonly among?: readonly Tool[] | undefined;
  /** The minimum score of the best tool; else nothing is found. By default, the index decides. */
  readonly minScore?: number | undefined;
}

/** The hits of an index, or a promise of the hits, for example if a provider computes vectors. */
export type ToolAnswer = readonly ToolHit[] | Promise<readonly ToolHit[]>;

/**
 * Finds tools by their texts. `createToolIndex` ranks by words. Another index may rank by vectors,
 * and may be asynchronous. `fuseIndexes` combines several indexes.
 *
 * Contract:
 * - `search` includes the effects of all earlier calls of `add` and `remove`.
 * - Hits are ordered by score, best first, then by id in code-unit order. The order in which tools
 *   were added has no effect.
 * - An empty query finds nothing. `search` never throws; an asynchronous `search` may reject.
 */
export interface ToolIndex<Answer extends ToolAnswer = readonly ToolHit[]> {
  /** Adds a tool. A tool with the same id is replaced. */
  add(tool: Tool): void;
  /** Removes a tool. An unknown id is ignored. */
  remove(id: string): void;
  /** Returns the best `limit` tools for a query. */
  search(query: string, limit: number, scope?: ToolSearchScope): Answer;
}

/** The tools that a search found, best first. */
export interface FoundTools extends ReadonlyArray<Tool> {
  /** For each tool, in the same order: its score, and the words that were found. */
  readonly hits: readonly ToolHit[];
}

/** Options for `searchToolset` and `registry.searchTools()`. */
export interface ToolSearchOptions {
  /** The maximum number of tools. By default 10 in `searchToolset`, no limit in `searchTools`. */
  readonly limit?: number | undefined;
  /** The minimum score of the best tool; else nothing is found. By default, the index decides. */
  readonly minScore?: number | undefined;
}

const OPTIONS = { limit: check.wholeFrom(0), minScore: check.numberFrom(0) } satisfies {
  readonly [Name in keyof ToolSearchOptions]-?: check.Check;
};

/** For each source, the function that returns the index of all its tools. */
export const providedIndexes: WeakMap<ToolSource, () => ToolIndex<ToolAnswer>> = new WeakMap();

export function findTools(
  toolset: Toolset,
  query: string,
  options: ToolSearchOptions,
  otherwise: number,
  indexOf: (toolset: Toolset) => ToolIndex<ToolAnswer>,
): FoundTools | Promise<FoundTools> {
  check.checkText("search", query, "the query");
  const { limit = otherwise, minScore } = check.readFields(
    "search",
    options,
    OPTIONS,
    (field) => `the ${field}`,
  );
  let among = toolset.available();
  const { source } = toolset;
  // An older toolset may have tools that the source has removed since.
  if (source.revision !== toolset.revision) {
    among = among.filter((tool) => toolset.isAvailable(tool));
  }
  const most = Math.min(limit, among.length);
  if (most === 0) return found(toolset, [], 0);
  const answer = indexOf(toolset).search(query, most, { among, minScore });
  return isThenable(answer)
    ? Promise.resolve(answer).then((hits) => found(toolset, hits, most))
    : found(toolset, answer, most);
}

/** Removes hits that the caller does not see, because an index may ignore `among`. */
function found(toolset: Toolset, answer: readonly ToolHit[], most: number): FoundTools {
  const tools: Tool[] = [];
  const hits: ToolHit[] = [];
  for (const hit of answer) {
    const tool = toolset.get(hit.id);
    if (tools.length === most) break;
    if (tool === undefined || !toolset.isAvailable(tool)) continue;
    tools.push(tool);
    hits.push(hit);
  }
  // Not enumerable, so that the list is compared and printed as a list of tools.
  return Object.freeze(
    Object.defineProperty(tools, "hits", { value: hits }),
  ) as unknown as FoundTools;
}

/** Returns the tools that a synchronous index has found. Throws for an asynchronous index. */
export function foundAtOnce(answer: FoundTools | Promise<FoundTools>): FoundTools {
  if (!isThenable(answer)) return answer;
  answer.then(undefined, noop);
  return fail("search", "the index is asynchronous: use searchToolsetAsync");
}

/** The constant k of reciprocal rank fusion: 60 in the paper of Cormack et al. (2009). */
const EVENNESS = 60;
const DEPTH = 100;

/**
 * Combines several indexes. The score of a tool is 1 if it is first in all indexes, and decreases
 * with its ranks. An index that does not find the tool adds nothing. Each index has its own
 * `minScore`; the `minScore` of a search applies to the fused score.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { createToolIndex, ToolRegistry } from "@plue/tools";
 * import { fuseIndexes } from "@plue/tools/search";
 *
 * const registry = new ToolRegistry({
 *   index: () => fuseIndexes(createToolIndex(), createToolIndex({ synonyms: ["bill invoice"] })),
 *   tools: [{ name: "invoice-send", description: "Sends an invoice." }],
 * });
 * assert.equal(registry.searchTools("the bill")[0]?.id, "invoice-send");
 * ```
 *
 * @param indexes Empty indexes. If one of them is asynchronous, so is the fused index.
 */
export function fuseIndexes<Answer extends ToolAnswer>(
  ...indexes: readonly ToolIndex<Answer>[]
): ToolIndex<Answer> {
  return {
    add(tool: Tool): void {
      for (const index of indexes) index.add(tool);
    },
    remove(id: string): void {
      for (const index of indexes) index.remove(id);
    },
    search(query: string, limit: number, { among, minScore = 0 }: ToolSearchScope = {}): Answer {
      const take = Math.max(0, Math.floor(limit) || 0);
      const depth = Math.max(take, DEPTH);
      const answers = indexes.map((index) => index.search(query, depth, { among }));
      const fused: ToolAnswer = answers.some(isThenable)
        ? Promise.all(answers).then((lists) => fuse(lists, take, minScore))
        : fuse(answers as readonly (readonly ToolHit[])[], take, minScore);
      // The result is a promise if and only if one of the indexes returns a promise.
      return fused as Answer;
    },
  };
}

function fuse(
  lists: readonly (readonly ToolHit[])[],
  take: number,
  minScore: number,
): readonly ToolHit[] {
  const share = (EVENNESS + 1) / lists.length;
  const fused = new Map<string, { score: number; matches: readonly ToolMatch[] | undefined }>();
  for (const list of lists) {
    list.forEach(({ id, matches }, place) => {
      const known = fused.get(id);
      fused.set(id, {
        score: (known?.score ?? 0) + share / (EVENNESS + 1 + place),
        matches: known?.matches ?? matches,
      });
    });
  }
  const hits = [...fused].map(([id, hit]): ToolHit => ({ id, ...hit }))
    .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
  return (hits[0]?.score ?? 0) < minScore ? [] : hits.slice(0, take);
}
