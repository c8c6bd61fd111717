/** Search in a toolset, without plue's own index, so that bundles without it stay small. */

import type { Toolset, ToolSource } from "../../select/mod.ts";
import {
  type Check,
  checkText,
  fail,
  isThenable,
  noop,
  numberFrom,
  readFields,
  type Tool,
  wholeFrom,
} from "../../tool/mod.ts";

/** Where in a tool a word was found. */
export type ToolField =
  | "name"
  | "title"
  | "namespace"
  | "tags"
  | "category"
  | "description"
  | "parameters";

/** A word of a query that was found in a tool: the word itself, another form of it, or a synonym. */
export interface ToolMatch {
  /** The word as the query has it, in lower case. */
  readonly word: string;
  /** Where in the tool it was found. */
  readonly fields: readonly ToolField[];
}

/** One answer of a search. */
export interface ToolHit {
  /** The tool's id. */
  readonly id: string;
  /** The quality of the match, greater than 0. Each index has a scale of its own. */
  readonly score: number;
  /** Why it was found, if the index ranks by words. */
  readonly matches?: readonly ToolMatch[] | undefined;
}

/** The visible tools and the lowest score of a search. */
export interface ToolSearchScope {
  /**
   * The tools that the caller sees. Only they may be found, and other tools may not affect the
   * order or the scores. The list is the same object until its tools change, so an index can cache
   * by it. By default, all tools of the index.
   */
  readonly among?: readonly Tool[] | undefined;
  /** The score that the best tool must reach for an answer. By default, the index decides. */
  readonly minScore?: number | undefined;
}

/** The hits of an index, or a promise of them, for example while a provider computes vectors. */
export type ToolAnswer = readonly ToolHit[] | Promise<readonly ToolHit[]>;

/**
 * Finds tools by their texts. `createToolIndex` ranks by words; another index may
 * rank by vectors, and may be asynchronous; `fuseIndexes` makes one of several.
 *
 * Contract:
 * - `search` sees what `add` and `remove` did before it.
 * - Hits are ordered by score, best first, then by id in code-unit order; the same tools give the
 *   same answer, in whatever order they were added.
 * - An empty query finds nothing. `search` never throws, whatever the query is; an asynchronous one
 *   may reject.
 */
export interface ToolIndex<Answer extends ToolAnswer = readonly ToolHit[]> {
  /** Adds a tool. A tool with the same id is replaced. */
  add(tool: Tool): void;
  /** Removes a tool. An unknown id is ignored. */
  remove(id: string): void;
  /** The best `limit` tools for a query. */
  search(query: string, limit: number, scope?: ToolSearchScope): Answer;
}

/** The tools that a search found, best first. */
export interface FoundTools extends ReadonlyArray<Tool> {
  /** For each of the tools, in the same order: its score, and why it was found. */
  readonly hits: readonly ToolHit[];
}

/** Options for `searchToolset` and `registry.searchTools()`. */
export interface ToolSearchOptions {
  /** The maximum number of tools: by default all in `searchTools`, 10 in `searchToolset`. */
  readonly limit?: number | undefined;
  /** The minimum score of the best tool; below it nothing is found. By default, the index decides. */
  readonly minScore?: number | undefined;
}

const OPTIONS = { limit: wholeFrom(0), minScore: numberFrom(0) } satisfies {
  readonly [Name in keyof ToolSearchOptions]-?: Check;
};

/** The functions that return the index of all tools of a source. */
export const providedIndexes: WeakMap<ToolSource, () => ToolIndex<ToolAnswer>> = new WeakMap();

/** Finds the available tools of a toolset that match a query. */
export function findTools(
  toolset: Toolset,
  query: string,
  options: ToolSearchOptions,
  otherwise: number,
  indexOf: (toolset: Toolset) => ToolIndex<ToolAnswer>,
): FoundTools | Promise<FoundTools> {
  checkText("search", query, "the query");
  const { limit = otherwise, minScore } = readFields(
    "search",
    options,
    OPTIONS,
    (field) => `the ${field}`,
  );
  let among = toolset.available();
  const { source } = toolset;
  // An older toolset may have tools that its source has removed.
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

/** Keeps the hits that the caller sees, because an index may ignore `among`. */
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
  // Not enumerable, so that the list is compared and shown as the list of tools that it is.
  return Object.freeze(
    Object.defineProperty(tools, "hits", { value: hits }),
  ) as unknown as FoundTools;
}

/** Returns the found tools of a synchronous index, and throws for an asynchronous one. */
export function foundAtOnce(answer: FoundTools | Promise<FoundTools>): FoundTools {
  if (!isThenable(answer)) return answer;
  answer.then(undefined, noop);
  return fail("search", "the index is asynchronous: use searchToolsetAsync");
}

/** The constant k of reciprocal rank fusion; 60 in the paper of Cormack, Clarke and Büttcher (2009). */
const EVENNESS = 60;
const DEPTH = 100;

/**
 * Makes one index of several. A tool's score is 1 if it is first in all of them, and falls with its
 * places; an index that does not find it adds nothing. Each index has its own `minScore`; the one of
 * a search is for the fused score.
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
 * @param indexes Empty indexes. If one of them answers later, the fused one does.
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
      // It is a promise if and only if one of the answers is.
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
