/**
 * A {@linkcode ToolIndex} that ranks by words (BM25F), with synonyms, unfinished words and typing
 * errors; and functions that search a toolset with this index.
 *
 * The weight of a word in a tool is computed when the tool is added. The length of a field is
 * compared with a fixed usual length, and only visible tools determine the rarity of a word. So a
 * hidden tool changes neither order nor scores.
 */

import type { Toolset } from "../../select/mod.ts";
import { type Check, numberFrom, once, readFields, type Tool } from "../../tool/mod.ts";
import {
  FIELDS,
  findTools,
  foundAtOnce,
  type FoundTools,
  providedIndexes,
  type ToolAnswer,
  type ToolHit,
  type ToolIndex,
  type ToolSearchOptions,
  type ToolSearchScope,
} from "./find.ts";
import {
  type Arrays,
  countVisible,
  createArrays,
  type Entry,
  matchesOf,
  type Meaning,
  ORDERED,
  type Query,
  type QueryWord,
  rank,
  rarityOf,
  SATURATION,
  score,
  slotIn,
  STEPS,
  type Term,
  type View,
  type WordPair,
} from "./score.ts";
import {
  actionsOf,
  checkLines,
  closeWords,
  joinWords,
  type Lexicon,
  lexicon,
  searchFields,
  splitWords,
  stem,
} from "./words.ts";

/** The influence of a field's length: b of BM25. */
const LENGTH_SHARE = 0.6;
const SYNONYM = 0.5;
/** The maximum similarity of a word that an unknown word may mean: mistyped or unfinished. */
const GUESS = 0.7;
/** The weight of a whole name, for a query that consists of the name alone. */
const WHOLE_NAME = 5;
/** The default of `minScore`. See `bench/search_quality.ts`. */
const MIN_SCORE = 0.048;

const MAX_QUERY = 8_192;
const MAX_QUERY_WORDS = 512;
const MAX_SENTENCES = 8;
const MAX_CALLER_WORDS = 10;
const MAX_FIELD_WORDS = 1_024;
const MAX_CACHED = 4_096;
const MAX_GUESSES = 8;

/** Words of the lexicon that users often write as several words. */
const APART = /\blook up\b|\bwho am i\b/gi;
/** Phrases about the caller: "my repositories", "assigned to me", "which teams do I have". */
const CALLER = /\b(my|mine|me$|whoami|(am|do|have) i)\b/i;
const SENTENCE_END = /[.!?;](?=\s|$)|[\n。！？；।؟۔]/u;

/** Options for {@linkcode createToolIndex}. */
export interface ToolIndexOptions {
  /**
   * Additional synonyms, for the words of your users. Each text is a group of words with one
   * meaning (`"bill invoice receipt"`), or a short form and its long form (`"so = sales order"`).
   */
  readonly synonyms?: readonly string[] | undefined;
  /** The default minimum score of the best tool; 0 for no minimum. @default {0.048} */
  readonly minScore?: number | undefined;
}

const OPTIONS = { synonyms: checkLines, minScore: numberFrom(0, 1) } satisfies {
  readonly [Name in keyof ToolIndexOptions]-?: Check;
};

/**
 * Returns an empty index that ranks by words. It reads names, titles, namespaces, tags, categories,
 * descriptions and parameters; the first 8,192 characters of a query, and 512 words of a sentence.
 *
 * A score is between 0 and 1. The score of the best tool is the share of the query that the tool
 * contains, weighted by rarity. The other scores are in proportion to this score. A tool with a
 * word of the query itself comes before a tool with only a synonym.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { createToolIndex, defineTool } from "@plue/tools";
 *
 * const index = createToolIndex({ synonyms: ["bill invoice"] });
 * index.add(defineTool({ name: "file-write", description: "Writes text to a file." }));
 * index.add(defineTool({ name: "invoice-send", description: "Sends an invoice." }));
 *
 * assert.deepEqual(index.search("save a file", 5).map((hit) => hit.id), ["file-write"]);
 * assert.deepEqual(index.search("the bill", 5).map((hit) => hit.id), ["invoice-send"]);
 * ```
 *
 * @throws {TypeError | RangeError} If an option is unknown or invalid.
 */
export function createToolIndex(options: ToolIndexOptions = {}): ToolIndex {
  const { synonyms = [], minScore = MIN_SCORE } = readFields(
    "make a search index",
    options,
    OPTIONS,
  );
  return new WordIndex(new Vocabulary(lexicon(synonyms)), minScore);
}

class Vocabulary {
  readonly lexicon: Lexicon;
  readonly #terms = new Map<string, Term>();
  readonly #byLetter = new Map<string, Set<string>>();
  readonly #stems = new Map<string, readonly string[]>();
  readonly #guesses = new Map<string, readonly (readonly [word: string, similarity: number])[]>();

  constructor(lexicon: Lexicon) {
    this.lexicon = lexicon;
  }

  get(word: string): Term | undefined {
    return this.#terms.get(word);
  }

  add(word: string): Term {
    return once(this.#terms, word, () => {
      this.#guesses.clear();
      once(this.#byLetter, word.slice(0, 1), () => new Set()).add(word);
      return { word, postings: [] };
    });
  }

  remove({ word }: Term): void {
    this.#guesses.clear();
    this.#terms.delete(word);
    this.#byLetter.get(word.slice(0, 1))?.delete(word);
  }

  /** Returns the stem of a word, the stems of its long form, or an empty list for a stop word. */
  stems(word: string): readonly string[] {
    return cached(this.#stems, word, () => {
      const base = stem(word);
      const { stopWords, abbreviations } = this.lexicon;
      return stopWords.has(base) ? [] : abbreviations.get(base) ?? [base];
    });
  }

  /** Returns the words that an unknown word may mean, the likeliest first. */
  guesses(word: string): readonly (readonly [word: string, similarity: number])[] {
    return cached(
      this.#guesses,
      word,
      () => closeWords(word, this.#byLetter.get(word.slice(0, 1)) ?? []),
    );
  }
}

function cached<Value>(cache: Map<string, Value>, key: string, make: () => Value): Value {
  if (cache.size >= MAX_CACHED) cache.clear();
  return once(cache, key, make);
}

/** Methods are own properties, so that an index can be spread into another object. */
class WordIndex implements ToolIndex {
  readonly #vocabulary: Vocabulary;
  readonly #minScore: number;
  readonly #slots = new Map<string, number>();
  readonly #entries: (Entry | undefined)[] = [];
  readonly #freeSlots: number[] = [];
  #changes = 0;
  /** A cache by the list of visible tools, which is the same object until the tools change. */
  readonly #views = new WeakMap<readonly Tool[], View & { readonly changes: number }>();
  /** Reused, because creating these arrays takes as long as ranking (110 µs of 450 on Bun). */
  readonly #arrays: Arrays[] = [];

  constructor(vocabulary: Vocabulary, minScore: number) {
    this.#vocabulary = vocabulary;
    this.#minScore = minScore;
  }

  readonly add = (tool: Tool): void => {
    this.remove(tool.id);
    this.#changes++;
    const { entry, weights } = readTool(tool, this.#vocabulary);
    const slot = this.#freeSlots.pop() ?? this.#entries.length;
    this.#slots.set(tool.id, slot);
    this.#entries[slot] = entry;
    for (const [{ postings }, weight] of weights) {
      postings.push(STEPS * slot + Math.round((STEPS - 1) * weight / (SATURATION + weight)));
    }
  };

  readonly remove = (id: string): void => {
    const slot = this.#slots.get(id);
    if (slot === undefined) return;
    this.#changes++;
    for (const term of new Set(this.#entries[slot]?.fields.flat())) {
      const { postings } = term;
      // Postings have no order, so the last posting replaces the removed one.
      const index = postings.findIndex((posting) => slotIn(posting) === slot);
      postings[index] = postings.at(-1) as number;
      postings.pop();
      if (postings.length === 0) this.#vocabulary.remove(term);
    }
    this.#entries[slot] = undefined;
    this.#slots.delete(id);
    this.#freeSlots.push(slot);
  };

  readonly search = (
    query: string,
    limit: number,
    { among, minScore = this.#minScore }: ToolSearchScope = {},
  ): readonly ToolHit[] => {
    const view = this.#view(among);
    const take = Math.min(Math.floor(limit), view.size);
    if (!(take > 0)) return [];
    const terms = readQuery(query.slice(0, MAX_QUERY), this.#vocabulary, view);
    const rankings = Array.from(
      { length: terms.parts },
      (_, part) => score(terms, part, view, this.#arraysFor(part)),
    );
    const found = rank(this.#entries, terms, rankings, take);
    if ((found[0]?.score ?? 0) < minScore) return [];
    return found.map(({ slot, score }) => {
      const entry = this.#entries[slot] as Entry;
      return { id: entry.id, score, matches: matchesOf(entry, terms) };
    });
  };

  #arraysFor(part: number): Arrays {
    const size = this.#entries.length;
    const arrays = this.#arrays[part];
    if (arrays?.scores.length === size) return arrays;
    return this.#arrays[part] = createArrays(size);
  }

  #view(among: readonly Tool[] | undefined): View {
    const total = this.#slots.size;
    if (among === undefined) return { shown: undefined, size: total };
    let view = this.#views.get(among);
    if (view?.changes !== this.#changes) {
      const shown = new Uint8Array(this.#entries.length);
      for (const { id } of among) shown[this.#slots.get(id) ?? -1] = 1;
      const size = shown.reduce((sum, one) => sum + one, 0);
      view = { shown: size === total ? undefined : shown, size, changes: this.#changes };
      this.#views.set(among, view);
    }
    return view;
  }
}

/** Adds new words to the vocabulary. */
function readTool(
  tool: Tool,
  vocabulary: Vocabulary,
): { readonly entry: Entry; readonly weights: ReadonlyMap<Term, number> } {
  const weights = new Map<Term, number>();
  const fields: Term[][] = FIELDS.map(() => []);
  const note = (word: string, amount: number, list: Term[] | undefined): void => {
    const term = vocabulary.add(word);
    weights.set(term, (weights.get(term) ?? 0) + amount);
    list?.push(term);
  };
  for (const [text, weight, usualLength, field] of searchFields(tool)) {
    const words = splitWords(text, MAX_FIELD_WORDS).flatMap((word) => vocabulary.stems(word));
    const amount = weight / (1 - LENGTH_SHARE + LENGTH_SHARE * words.length / usualLength);
    for (const word of words) note(word, amount, fields[FIELDS.indexOf(field)]);
  }
  const [name = [], title = []] = fields;
  const heading = [...new Set(title.length > 0 ? title : name)];
  for (const whole of new Set([joinWords(tool.name), joinWords(tool.id)])) {
    if (whole !== "") note(whole, WHOLE_NAME, name);
  }
  return {
    weights,
    entry: {
      id: tool.id,
      fields: fields.map((list, at) => ORDERED.includes(at) ? [...list] : [...new Set(list)]),
      heading,
      action: actionsOf(tool.title ?? "") || actionsOf(tool.name, true) ||
        actionsOf(tool.description),
      size: weights.size,
    },
  };
}

function readQuery(text: string, vocabulary: Vocabulary, view: View): Query {
  const words = new Map<string, { typed: string; parts: number } & QueryWord>();
  const pairs: WordPair[] = [];
  const { abbreviations, actions } = vocabulary.lexicon;
  let parts = 1;
  const isKnown = (word: string): boolean => countVisible(vocabulary.get(word), view) > 0;
  const note = (base: string, typed: string, bits: number): QueryWord => {
    const word = once(
      words,
      base,
      () => ({ typed, parts: 0, ...understand(base, vocabulary, view) }),
    );
    word.parts |= bits;
    return word;
  };
  const joined = text.replace(APART, (words) => words.replaceAll(" ", ""));
  for (const sentence of joined.split(SENTENCE_END)) {
    const split = splitWords(sentence, MAX_QUERY_WORDS);
    const found = split.map((word) => vocabulary.stems(word));
    // In a question about several things, each thing has a sentence.
    const isPart = parts <= MAX_SENTENCES && found.flat().length > 1;
    const bits = isPart ? 1 | 1 << parts++ : 1;
    let previous: QueryWord | undefined;
    for (const [index, bases] of found.entries()) {
      for (const base of bases) {
        const next = note(base, split[index] as string, bits);
        if (previous !== undefined) pairs.push([previous, next, bits]);
        previous = next;
      }
    }
    if (split.length > MAX_CALLER_WORDS || !CALLER.test(sentence)) continue;
    for (const base of abbreviations.get("my") ?? []) if (isKnown(base)) note(base, "my", bits);
  }
  const name = joinWords(text);
  if (isKnown(name)) note(name, text.trim(), 1);
  // Ignores the query's verb: for "show folder", tools that show other things must not come first.
  const nouns = [...words].filter(([word]) => !actions.has(word));
  const byTerm = new Map<Term, QueryWord[]>();
  for (const word of words.values()) {
    for (const { term } of word.meanings) once(byTerm, term, () => []).push(word);
  }
  return {
    words: [...words.values()],
    byTerm,
    literalFirst: nouns.length === 0 ||
      nouns.some(([, { meanings }]) => meanings[0]?.isSynonym === false),
    pairs,
    parts: parts > 2 ? parts : 1,
    action: actionsOf(text),
  };
}

function understand(
  word: string,
  vocabulary: Vocabulary,
  view: View,
): { readonly rarity: number; readonly meanings: readonly Meaning[] } {
  const meanings: Meaning[] = [];
  const note = (other: string, similarity: number, isSynonym: boolean): void => {
    const term = vocabulary.get(other);
    const count = countVisible(term, view);
    if (term === undefined || count === 0) return;
    meanings.push({ term, similarity, isSynonym, rarity: rarityOf(count, view.size) });
  };
  note(word, 1, false);
  // A synonym that is rarer than the word counts only as much as the word.
  const own = meanings[0]?.rarity;
  for (const other of vocabulary.lexicon.synonyms.get(word) ?? []) {
    if (other !== word) note(other, SYNONYM, true);
  }
  // The rest of "reopen" or "unlock" is a synonym; the rest of "research" is not.
  if (own === undefined && /^(un|re(?=[aeiou]))/.test(word)) note(word.slice(2), SYNONYM, true);
  if (meanings.length === 0) {
    for (const [other, similarity] of vocabulary.guesses(word)) {
      if (meanings.length < MAX_GUESSES) note(other, GUESS * similarity, false);
    }
  }
  const rarity = own ?? Math.min(rarityOf(0, view.size), ...meanings.map(({ rarity }) => rarity));
  return { rarity, meanings };
}

/** The indexes that are built for sources without an index, by their list of tools. */
const indexes = new WeakMap<readonly Tool[], ToolIndex>();

/**
 * Returns a toolset's available tools that match a query, best first, with reasons in `hits`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, searchToolset, ToolsetBuilder } from "@plue/tools";
 *
 * const toolset = new ToolsetBuilder("files").fromTools([
 *   defineTool({ name: "file-read", description: "Reads a file.", risk: "low" }),
 *   defineTool({ name: "file-write", description: "Writes a file.", risk: "high" }),
 * ]).build();
 *
 * const found = searchToolset(toolset, "write a file");
 * assert.equal(found[0]?.id, "file-write");
 * assert.deepEqual(found.hits[0]?.matches, [
 *   { word: "write", fields: ["name", "description"] },
 *   { word: "file", fields: ["name", "description"] },
 * ]);
 * assert.deepEqual(searchToolset(toolset, "tomorrow's weather in Rome"), []);
 * ```
 *
 * @throws {TypeError} If an option is unknown, or the toolset's index is asynchronous.
 * @throws {RangeError} If an option is out of its range.
 */
export function searchToolset(
  toolset: Toolset,
  query: string,
  options: ToolSearchOptions = {},
): FoundTools {
  return foundAtOnce(findTools(toolset, query, options, 10, indexOf));
}

/**
 * {@linkcode searchToolset} for any index, including asynchronous indexes.
 *
 * @returns At most `limit` tools. Rejects if the index rejects.
 * @throws {TypeError} If an option is unknown.
 * @throws {RangeError} If an option is out of its range.
 */
export async function searchToolsetAsync(
  toolset: Toolset,
  query: string,
  options: ToolSearchOptions = {},
): Promise<FoundTools> {
  return await findTools(toolset, query, options, 10, indexOf);
}

function indexOf({ source }: Toolset): ToolIndex<ToolAnswer> {
  const provided = providedIndexes.get(source)?.();
  if (provided !== undefined) return provided;
  return once(indexes, source.tools, () => {
    const index = createToolIndex();
    for (const tool of source.tools) index.add(tool);
    return index;
  });
}
