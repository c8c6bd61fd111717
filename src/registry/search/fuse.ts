/**
 * Several indexes as one, by the places that each gives a tool: reciprocal rank fusion. Scores of
 * different indexes cannot be compared, places can.
 *
 * @module
 */

import { isThenable, type Tool } from "../../tool/mod.ts";
import type { ToolAnswer, ToolHit, ToolIndex, ToolMatch, ToolSearchScope } from "./find.ts";

/** How much the first places stand out; 60 in the paper of Cormack, Clarke and Büttcher (2009). */
const EVENNESS = 60;
/** How many hits each index is asked for at least. */
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
