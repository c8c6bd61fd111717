/** The same tools, with the same fields, in plue's index and in MiniSearch. */

import MiniSearch, { type Options } from "minisearch";
import { createToolIndex, type ToolIndexOptions } from "../src/registry/search/mod.ts";
import { searchFields } from "../src/registry/search/words.ts";
import { lexicon, splitWords, stem } from "../src/registry/search/words.ts";
import { makeTool, type Tool } from "../src/tool/mod.ts";
import type { Search } from "./search_quality.ts";

const FIELDS = ["0", "1", "2", "3", "4", "5", "6", "7"];

/** MiniSearch as its guide recommends, with plue's weights of the fields. */
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

/** The terms of a query: the terms of {@linkcode indexed}, with synonyms for each word. */
function termsOf(word: string): string[] | null {
  const words = indexed(word)?.flatMap((base) => [base, ...lexicon().synonyms.get(base) ?? []]);
  return words === undefined ? null : [...new Set(words)];
}

/** Plue's stems without its synonyms and stop words. */
function stemmed(word: string): string | null {
  const base = stem(word);
  return lexicon().stopWords.has(base) ? null : base;
}
function unstopped(word: string): string | null {
  return stemmed(word) === null ? null : word;
}

const EXACT = { ...RECOMMENDED.searchOptions, fuzzy: false, prefix: false };
const LONG = {
  ...RECOMMENDED.searchOptions,
  fuzzy: (term: string) => term.length > 4 ? 0.2 : false,
  prefix: (term: string) => term.length > 3,
};

/** The settings of MiniSearch, by their names in the tables. */
export const RIVALS = {
  "MiniSearch, defaults": {},
  "MiniSearch, recommended": RECOMMENDED,
  "MiniSearch, recommended, plue's splitting": SPLIT,
  "MiniSearch, without stop words": { ...SPLIT, processTerm: unstopped },
  "MiniSearch, without stop words, whole words": {
    ...SPLIT,
    processTerm: unstopped,
    searchOptions: EXACT,
  },
  "MiniSearch, stems": { ...SPLIT, processTerm: stemmed },
  "MiniSearch, stems, whole words": { ...SPLIT, processTerm: stemmed, searchOptions: EXACT },
  "MiniSearch, stems, guesses for long words": {
    ...SPLIT,
    processTerm: stemmed,
    searchOptions: LONG,
  },
  "MiniSearch, recommended, all of plue's words": {
    ...SPLIT,
    processTerm: indexed,
    searchOptions: { ...RECOMMENDED.searchOptions, processTerm: termsOf },
  },
} satisfies Record<string, Partial<Options>>;

export type Rival = keyof typeof RIVALS;

/** An index of plue over `tools`. */
export function plueSearch(
  tools: readonly Tool[],
  options: ToolIndexOptions = {},
  limit = 20,
): Search {
  const index = createToolIndex(options);
  for (const tool of tools) index.add(tool);
  return (query) => index.search(query, limit).map((hit) => hit.id);
}

/** BM25 as in the textbook, over all texts of a tool as one text. */
export function plainBm25(tools: readonly Tool[]): Search {
  const wordsOf = (text: string): string[] => splitWords(text, 10_000);
  const documents = tools.map((tool) => ({
    id: tool.id,
    words: searchFields(tool).flatMap(([text]) => wordsOf(text)),
  }));
  const usual = documents.reduce((sum, { words }) => sum + words.length, 0) / tools.length;
  const postings = new Map<string, Map<number, number>>();
  documents.forEach(({ words }, document) => {
    for (const word of words) {
      const counts = postings.get(word) ?? new Map<number, number>();
      postings.set(word, counts.set(document, (counts.get(document) ?? 0) + 1));
    }
  });
  return (query) => {
    const scores = new Map<number, number>();
    for (const word of new Set(wordsOf(query))) {
      const counts = postings.get(word) ?? new Map<number, number>();
      const rarity = Math.log(1 + (tools.length - counts.size + 0.5) / (counts.size + 0.5));
      for (const [document, count] of counts) {
        const length = (documents[document]?.words.length ?? 0) / usual;
        const weight = count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length));
        scores.set(document, (scores.get(document) ?? 0) + rarity * weight);
      }
    }
    return [...scores].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, 20)
      .map(([document]) => documents[document]?.id ?? "");
  };
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
