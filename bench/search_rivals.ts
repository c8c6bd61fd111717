/**
 * The same tools, with the same fields, in plue's index and in MiniSearch.
 *
 * @module
 */

import MiniSearch, { type Options } from "minisearch";
import { createToolIndex } from "../src/registry/search/mod.ts";
import { searchFields } from "../src/registry/search/fields.ts";
import { lexicon, splitWords, stem } from "../src/registry/search/words.ts";
import { makeTool, type Tool } from "../src/tool/mod.ts";
import type { Search } from "./search_quality.ts";

const FIELDS = ["0", "1", "2", "3", "4", "5", "6", "7"];

/** MiniSearch as its guide recommends, with the weights that plue gives the fields. */
const RECOMMENDED: Partial<Options> = {
  searchOptions: {
    boost: Object.fromEntries(
      searchFields(makeTool({ name: "x", description: "x" })).map(([, weight], i) => [i, weight]),
    ),
    fuzzy: 0.2,
    prefix: true,
  },
};

/** Identifiers are split as plue splits them. */
const SPLIT: Partial<Options> = {
  ...RECOMMENDED,
  tokenize: (text) => splitWords(text, 10_000),
};

/** Terms as plue makes them: no stop words, expanded abbreviations, stems. */
function indexed(word: string): string[] | null {
  const { stopWords, abbreviations } = lexicon();
  const base = stem(word);
  return stopWords.has(base) ? null : [...abbreviations.get(base) ?? [base]];
}

/** The same, and synonyms beside each word. */
function asked(word: string): string[] | null {
  const words = indexed(word)?.flatMap((base) => [base, ...lexicon().synonyms.get(base) ?? []]);
  return words === undefined ? null : [...new Set(words)];
}

/** The settings of MiniSearch, by their names in the tables. */
export const RIVALS = {
  "MiniSearch, defaults": {},
  "MiniSearch, recommended": RECOMMENDED,
  "MiniSearch, recommended, plue's splitting": SPLIT,
  "MiniSearch, recommended, all of plue's words": {
    ...SPLIT,
    processTerm: indexed,
    searchOptions: { ...RECOMMENDED.searchOptions, processTerm: asked },
  },
} satisfies Record<string, Partial<Options>>;

export type Rival = keyof typeof RIVALS;

/** An index of plue over `tools`. */
export function plueSearch(tools: readonly Tool[], limit = 20): Search {
  const index = createToolIndex();
  for (const tool of tools) index.add(tool);
  return (query) => index.search(query, limit).map((hit) => hit.id);
}

/** MiniSearch over `tools`. */
export function miniSearch(tools: readonly Tool[], rival: Rival): Search {
  const index = new MiniSearch({ fields: FIELDS, ...RIVALS[rival] });
  index.addAll(
    tools.map((tool) => ({
      id: tool.id,
      ...Object.fromEntries(searchFields(tool).map(([text], i) => [i, text])),
    })),
  );
  return (query) => index.search(query).map((hit) => String(hit.id));
}
