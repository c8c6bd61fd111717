/**
 * A {@linkcode ToolIndex} that ranks by words: BM25F over the fields of a tool, with synonyms,
 * unfinished words and typing errors; and search in a toolset with it.
 *
 * What a word weighs in a tool is worked out once, when the tool comes in. Fields are measured
 * against fixed usual lengths, not against the average of the moment. How rare a word is, is counted
 * among the tools that the caller sees, so a hidden tool does not show in an order or a score.
 *
 * @module
 */

import type { Toolset } from "../../select/mod.ts";
import { type Check, numberFrom, once, readFields, type Tool } from "../../tool/mod.ts";
import { searchFields, type ToolField } from "./fields.ts";
import {
  findTools,
  foundAtOnce,
  type FoundTools,
  providedIndex,
  type ToolAnswer,
  type ToolHit,
  type ToolIndex,
  type ToolMatch,
  type ToolSearchOptions,
  type ToolSearchScope,
} from "./find.ts";
import { checkLines, closeWords, joinWords, lexicon, splitWords, stem } from "./words.ts";

/** How fast more of the same word stops to count: k1 of BM25. */
const SATURATION = 4;
/** How much the length of a field counts: b of BM25. */
const LENGTH_SHARE = 0.6;
/** What a synonym is worth, compared with the word itself. */
const SYNONYM = 0.5;
/** What a word is worth, at most, that may be meant by a mistyped or unfinished one. */
const GUESS = 0.7;
/** What a whole name is worth, when a query is nothing but the name. */
const WHOLE_NAME = 5;
/** What two neighbouring words are worth together, compared with the rarer of them. */
const PAIR = 0.1;
/** How many of the best tools are read for neighbouring words. */
const READ_FOR_PAIRS = 16;
/** From this many words on, it no longer counts how many of them a tool has. */
const MANY_WORDS = 14;
/** What the sentence that fits best is worth, compared with the whole query. */
const SENTENCE_SHARE = 0.4;
/** The score that the best tool must reach by default. See `bench/search_quality.ts`. */
const MIN_SCORE = 0.048;

const MAX_QUERY = 8_192;
const MAX_QUERY_WORDS = 512;
const MAX_SENTENCES = 8;
const MAX_FIELD_WORDS = 1_024;
const MAX_STEMS = 4_096;
const MAX_REMEMBERED_GUESSES = 512;
/** How many words one unknown word may mean. */
const MAX_GUESSES = 8;

/** A weight is kept as one of so many steps, in one number with the slot of its tool. */
const STEPS = 4_096;

const SENTENCE_END = /[.!?;]+(?=\s|$)|[\n。！？；।؟۔]+/u;
const FIELDS: readonly ToolField[] = [
  "name",
  "title",
  "namespace",
  "tags",
  "category",
  "description",
  "parameters",
];
/** The fields whose words are kept in order, for their neighbours: name, title and description. */
const ORDERED: readonly number[] = [0, 1, 5];

/** A word that tools have. */
interface Term {
  readonly word: string;
  /** For each tool that has it, its slot times {@linkcode STEPS}, and what the word weighs there. */
  readonly postings: number[];
  /** While a hit is explained: the fields that have the word, a bit each. */
  fields: number;
}

const NONE: readonly never[] = [];

interface Entry {
  readonly id: string;
  /** The words of each field. */
  readonly fields: readonly (readonly Term[])[];
  /** How many different words it has. */
  readonly size: number;
}

/** The tools that a caller sees. */
interface View {
  /** By slot, 1 for a tool that the caller sees; `undefined` for all of them. */
  readonly shown: Uint8Array | undefined;
  readonly size: number;
  /** How many changes the index had seen. */
  readonly changes: number;
}

/** A word of a query. */
interface Asked {
  readonly typed: string;
  /** Where it stands, a bit each: the whole query, and then its sentences. */
  parts: number;
  /** How much it says. */
  rarity: number;
  /** What it may mean, of what visible tools have: how likely that is, and how much it says. */
  terms: readonly (readonly [term: Term, likeness: number, rarity: number])[];
}

/** A query. */
interface Question {
  /** The words by their stems. */
  readonly words: ReadonlyMap<string, Asked>;
  /** Neighbouring words, and where they stand. */
  readonly pairs: readonly (readonly [first: Asked, second: Asked, parts: number])[];
  /** How many parts are ranked: the whole, and its sentences if there are several. */
  readonly parts: number;
}

/** A word of the query that follows another one. */
interface Pair {
  readonly term: Term;
  readonly worth: number;
  parts: number;
}

/** What the tools score for a part of a query. */
interface Ranking {
  /** By slot; 0 for tools that the caller does not see. */
  readonly scores: Float32Array;
  /** By slot, for tools with a score: how much is said by the words that it does not have. */
  readonly missing: Float32Array;
  /** How much a missing word takes off a score. */
  readonly fade: number;
  readonly highest: number;
}

/**
 * Arrays to rank a part of a query in, by slot: the scores; what is missing; of the word that is
 * looked at, the most that one of its meanings is worth; and the last word that the tool has.
 */
type Room = [Float32Array, Float32Array, Float32Array, Float32Array];

/** Options for {@linkcode createToolIndex}. */
export interface ToolIndexOptions {
  /**
   * What your users say, besides what plue knows: each text is words that are used for one another
   * (`"bill invoice receipt"`), or a short form with its long one (`"so = sales order"`).
   */
  readonly synonyms?: readonly string[] | undefined;
  /**
   * The score that the best tool must reach where a search does not say; 0 for any.
   *
   * @default {0.048}
   */
  readonly minScore?: number | undefined;
}

const OPTIONS = { synonyms: checkLines, minScore: numberFrom(0, 1) } satisfies {
  readonly [Name in keyof ToolIndexOptions]-?: Check;
};

/**
 * Makes an empty index that ranks by words. It reads names, titles, tags, categories, descriptions
 * and parameters; of a query it reads 8,192 characters, and 512 words of a sentence.
 *
 * A score is between 0 and 1. The best tool's says how much of the query it has, by how rare the
 * words are; the others' are in proportion to it.
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
 * @throws {TypeError | RangeError} If an option is unknown or wrong.
 */
export function createToolIndex(options: ToolIndexOptions = {}): ToolIndex {
  const { synonyms: lines = [], minScore: least = MIN_SCORE } = readFields(
    "make a search index",
    options,
    OPTIONS,
  );
  const { stopWords, abbreviations, synonyms, beginnings } = lexicon(lines);
  const terms = new Map<string, Term>();
  /** The words by their first letter. */
  const byLetter = new Map<string, Set<string>>();
  const slotOf = new Map<string, number>();
  const entries: (Entry | undefined)[] = [];
  const freeSlots: number[] = [];
  let changes = 0;
  // By the list that a caller sees, which is the same list until something changes.
  const views = new WeakMap<readonly Tool[], View>();
  // Most words of a tool are in others too.
  const stemsOf = new Map<string, readonly string[]>();
  // People ask in the same words, also in those that no tool has.
  const guesses = new Map<string, readonly (readonly [word: string, likeness: number])[]>();
  // Kept for the next query: to make such arrays takes as long as to rank (110 µs of 450 on Bun).
  const rooms: Room[] = [];

  function add(tool: Tool): void {
    remove(tool.id);
    changes++;
    const sums = new Map<Term, number>();
    const lists: Term[][] = FIELDS.map(() => []);
    const note = (word: string, amount: number, list: Term[] | undefined): void => {
      const term = termOf(word);
      sums.set(term, (sums.get(term) ?? 0) + amount);
      list?.push(term);
    };
    for (const name of new Set([joinWords(tool.name), joinWords(tool.id)])) {
      if (name !== "") note(name, WHOLE_NAME, lists[0]);
    }
    for (const [text, weight, usualWords, field] of searchFields(tool)) {
      const words = splitWords(text, MAX_FIELD_WORDS).flatMap(stems);
      const amount = weight / (1 - LENGTH_SHARE + LENGTH_SHARE * words.length / usualWords);
      for (const word of words) note(word, amount, lists[FIELDS.indexOf(field)]);
    }
    const slot = freeSlots.pop() ?? entries.length;
    slotOf.set(tool.id, slot);
    entries[slot] = {
      id: tool.id,
      fields: lists.map((list, field) => ORDERED.includes(field) ? [...list] : [...new Set(list)]),
      size: sums.size,
    };
    for (const [{ postings }, sum] of sums) {
      postings.push(STEPS * slot + Math.round((STEPS - 1) * sum / (SATURATION + sum)));
    }
  }

  function termOf(word: string): Term {
    return once(terms, word, () => {
      guesses.clear();
      once(byLetter, word.slice(0, 1), () => new Set()).add(word);
      return { word, postings: [], fields: 0 };
    });
  }

  function remove(id: string): void {
    const slot = slotOf.get(id);
    if (slot === undefined) return;
    changes++;
    for (const { word, postings } of new Set(entries[slot]?.fields.flat())) {
      // The last one takes its place: the order within a term means nothing.
      const index = postings.findIndex((posting) => slotIn(posting) === slot);
      postings[index] = postings.at(-1) as number;
      postings.pop();
      if (postings.length === 0) {
        terms.delete(word);
        byLetter.get(word.slice(0, 1))?.delete(word);
        guesses.clear();
      }
    }
    entries[slot] = undefined;
    slotOf.delete(id);
    freeSlots.push(slot);
  }

  function stems(word: string): readonly string[] {
    let found = stemsOf.get(word);
    if (found === undefined) {
      const base = stem(word);
      found = stopWords.has(base) ? [] : abbreviations.get(base) ?? [base];
      if (stemsOf.size >= MAX_STEMS) stemsOf.clear();
      stemsOf.set(word, found);
    }
    return found;
  }

  function viewOf(among: readonly Tool[] | undefined): View {
    if (among === undefined) return { shown: undefined, size: slotOf.size, changes };
    let view = views.get(among);
    if (view?.changes !== changes) {
      const shown = new Uint8Array(entries.length);
      for (const { id } of among) shown[slotOf.get(id) ?? -1] = 1;
      const size = shown.reduce((sum, one) => sum + one, 0);
      view = { shown: size === slotOf.size ? undefined : shown, size, changes };
      views.set(among, view);
    }
    return view;
  }

  function read(text: string, { shown }: View): Question {
    const words = new Map<string, Asked>();
    const pairs: [Asked, Asked, number][] = [];
    let parts = 1;
    const note = (base: string, typed: string, bits: number): Asked => {
      const word = once(words, base, () => ({ typed, parts: 0, rarity: 0, terms: NONE }));
      word.parts |= bits;
      return word;
    };
    for (const sentence of text.split(SENTENCE_END)) {
      const split = splitWords(sentence, MAX_QUERY_WORDS);
      const found = split.map(stems);
      // Who asks for several things asks for each in a sentence of its own.
      const isPart = parts <= MAX_SENTENCES && found.flat().length > 1;
      const bits = isPart ? 1 | 1 << parts++ : 1;
      let previous: Asked | undefined;
      for (const [index, word] of split.entries()) {
        for (const base of found[index] as readonly string[]) {
          const next = note(base, word, bits);
          if (previous !== undefined) pairs.push([previous, next, bits]);
          previous = next;
        }
        // Written apart, but known as one word: "look up", "who am I".
        let joined = word;
        for (let next = index + 1; next < index + 3 && beginnings.has(joined); next++) {
          joined += split[next] ?? "";
          if (synonyms.has(joined)) note(joined, joined, bits);
          for (const base of abbreviations.get(joined) ?? []) note(base, joined, bits);
        }
      }
    }
    const name = joinWords(text);
    if (count(terms.get(name), shown) > 0) note(name, text.trim(), 1);
    return { words, pairs, parts: parts > 2 ? parts : 1 };
  }

  /** Finds out what a word of a query may mean. */
  function understand(word: string, asked: Asked, { shown, size }: View): void {
    const found: [Term, likeness: number, rarity: number][] = [];
    const note = (other: string, likeness: number): void => {
      const term = terms.get(other);
      const having = count(term, shown);
      if (term !== undefined && having > 0) found.push([term, likeness, rarity(having, size)]);
    };
    note(word, 1);
    // A rare synonym says no more than the word that was asked for, or than its commonest meaning.
    const most = found[0]?.[2];
    for (const other of synonyms.get(word) ?? NONE) if (other !== word) note(other, SYNONYM);
    // "reopen" and "unlock" are about what is open and locked; "research" is not about a search.
    if (most === undefined && /^(un|re(?=[aeiou]))/.test(word)) note(word.slice(2), SYNONYM);
    if (found.length === 0) {
      let close = guesses.get(word);
      if (close === undefined) {
        close = closeWords(word, byLetter.get(word.slice(0, 1)) ?? NONE);
        if (guesses.size >= MAX_REMEMBERED_GUESSES) guesses.clear();
        guesses.set(word, close);
      }
      for (const [other, likeness] of close) {
        if (found.length < MAX_GUESSES) note(other, GUESS * likeness);
      }
    }
    asked.rarity = most ?? Math.min(rarity(0, size), ...found.map(([, , own]) => own));
    asked.terms = found;
  }

  /** Scores the tools for a part of a query. */
  function rank({ words }: Question, part: number, { shown }: View): Ranking {
    const size = entries.length;
    if (rooms[part]?.[0].length !== size) {
      rooms[part] = [0, 0, 0, 0].map(() => new Float32Array(size)) as Room;
    }
    const [scores, missing, best, turns] = rooms[part] as Room;
    for (const list of [scores, missing, turns]) list.fill(0);
    let total = 0;
    let turn = 0;
    for (const { rarity: most, terms: found, parts } of words.values()) {
      if ((parts & 1 << part) === 0) continue;
      total += most;
      turn++;
      for (const [{ postings }, likeness, own] of found) {
        const worth = likeness * Math.min(own, most) / STEPS;
        for (let index = 0; index < postings.length; index++) {
          const posting = postings[index] as number;
          const slot = slotIn(posting);
          if (turns[slot] !== turn) {
            turns[slot] = turn;
            best[slot] = 0;
            (missing[slot] as number) -= most * likeness;
          }
          // Of the words that may be meant, a tool counts for the one that fits it best.
          const more = worth * (posting & STEPS - 1) - (best[slot] as number);
          if (more > 0) {
            (best[slot] as number) += more;
            (scores[slot] as number) += more;
          }
        }
      }
    }
    // A tool that has half of three words is worth half. No tool has all of fifty.
    const fade = Math.max(0, (MANY_WORDS - turn) / (MANY_WORDS - 1)) / total;
    let highest = 0;
    for (let slot = 0; slot < scores.length; slot++) {
      if (scores[slot] === 0) continue;
      const lack = missing[slot] = Math.max(0, total + (missing[slot] as number));
      const score = shown?.[slot] === 0 ? 0 : (scores[slot] as number) * (1 - fade * lack);
      scores[slot] = score;
      if (score > highest) highest = score;
    }
    return { scores, missing, fade, highest };
  }

  function search(
    query: string,
    limit: number,
    { among, minScore = least }: ToolSearchScope = {},
  ): readonly ToolHit[] {
    const view = viewOf(among);
    const take = Math.min(Math.floor(limit), view.size);
    if (!(take > 0)) return [];
    const question = read(query.slice(0, MAX_QUERY), view);
    for (const [word, asked] of question.words) understand(word, asked, view);
    const parts = Array.from({ length: question.parts }, (_, part) => rank(question, part, view));
    const [whole] = parts as [Ranking];
    const sentences = parts.length > 1 ? parts.slice(1) : parts;
    // What was for the words of the whole query is free again.
    const fits = (rooms[0] as Room)[2];
    const fit = (slot: number): number => {
      const own = (whole.scores[slot] as number) / whole.highest;
      let most = 0;
      for (let index = 0; own > 0 && index < sentences.length; index++) {
        const { scores, highest } = sentences[index] as Ranking;
        const score = (scores[slot] as number) / highest;
        if (score > most) most = score;
      }
      return own + SENTENCE_SHARE * (most - own);
    };
    const byFit = (a: number, b: number): number =>
      (fits[b] as number) - (fits[a] as number) ||
      ((entries[a] as Entry).id < (entries[b] as Entry).id ? -1 : 1);
    const enough = Math.max(take, READ_FOR_PAIRS);
    let found: number[] = [];
    let lowest = 0;
    for (let slot = 0; slot < fits.length; slot++) {
      const own = fits[slot] = fit(slot);
      if (own > 0 && own >= lowest && found.push(slot) === 4 * enough) {
        found = found.sort(byFit).slice(0, enough);
        lowest = fits[found.at(-1) as number] as number;
      }
    }
    found.sort(byFit);
    if (found.length === 0) return [];
    const pairs = pairsOf(question);
    for (const slot of found.slice(0, READ_FOR_PAIRS)) {
      const had = pairsIn(entries[slot] as Entry, pairs);
      if (had.size === 0) continue;
      parts.forEach(({ scores, missing, fade }, part) => {
        const share = 1 - fade * (missing[slot] as number);
        for (const { parts, worth } of had) {
          if (parts & 1 << part) (scores[slot] as number) += share * worth;
        }
      });
      fits[slot] = fit(slot);
    }
    const slots = found.slice(0, enough).sort(byFit).slice(0, take);
    const top = slots[0] as number;
    const share = shareOf(whole, top, (entries[top] as Entry).size);
    if (share < minScore) return [];
    return slots.map((slot) => ({
      id: (entries[slot] as Entry).id,
      score: share * (fits[slot] as number) / (fits[top] as number),
      matches: matchesOf(entries[slot] as Entry, question),
    }));
  }

  return { add, remove, search };
}

/** How much of the query a tool has, between 0 and 1. */
function shareOf({ scores, missing, fade }: Ranking, slot: number, size: number): number {
  const lack = missing[slot] as number;
  const own = (scores[slot] as number) / (1 - fade * lack);
  // A tool that says much has words of any query by chance. It counts by the power of 1/4, from ten
  // words on, and what is missing by 7/8: by square roots, which are exact on every engine.
  const words = Math.max(size, 10);
  const chance = Math.sqrt(lack * Math.sqrt(lack * Math.sqrt(lack * words * words)));
  return own / (own + chance / 2);
}

/** The neighbours in a query: by the first word, what follows it. */
function pairsOf({ pairs }: Question): Map<Term, Pair[]> {
  const found = new Map<Term, Pair[]>();
  for (const [first, second, parts] of pairs) {
    const [before, term] = [first, second].map(({ terms }) => terms[0]?.[0]);
    if (before === undefined || term === undefined) continue;
    const list = once(found, before, () => []);
    const same = list.find((pair) => pair.term === term);
    if (same !== undefined) same.parts |= parts;
    else list.push({ term, worth: PAIR * Math.max(first.rarity, second.rarity), parts });
  }
  return found;
}

/** Which neighbours in a query a tool has. */
function pairsIn({ fields }: Entry, pairs: ReadonlyMap<Term, readonly Pair[]>): Set<Pair> {
  const had = new Set<Pair>();
  for (const field of ORDERED) {
    const list = fields[field] as readonly Term[];
    for (let index = 1; index < list.length; index++) {
      for (const pair of pairs.get(list[index - 1] as Term) ?? NONE) {
        if (pair.term === list[index]) had.add(pair);
      }
    }
  }
  return had;
}

/** Which words of the query a tool has, and where. */
function matchesOf({ fields }: Entry, { words }: Question): ToolMatch[] {
  fields.forEach((list, field) => {
    for (const term of list) term.fields |= 1 << field;
  });
  const matches: ToolMatch[] = [];
  for (const { typed, terms } of words.values()) {
    const bits = terms.reduce((sum, [term]) => sum | term.fields, 0);
    if (bits > 0) matches.push({ word: typed, fields: fieldsOf(bits) });
  }
  for (const list of fields) for (const term of list) term.fields = 0;
  return matches;
}

/** The slot of the tool that a posting is about. */
function slotIn(posting: number): number {
  return posting / STEPS | 0;
}

/** How many of the tools that the caller sees have a word. */
function count(term: Term | undefined, shown: Uint8Array | undefined): number {
  if (term === undefined || shown === undefined) return term?.postings.length ?? 0;
  let found = 0;
  for (const posting of term.postings) found += shown[slotIn(posting)] as number;
  return found;
}

/**
 * Rare words say more. Rounded, because engines differ in the last bits of a logarithm. A few tools
 * do not show how rare a word is, so they are taken for a hundred.
 */
function rarity(count: number, size: number): number {
  const others = Math.max(size, 100) - count;
  return Math.round(1_024 * Math.log(1 + (others + 0.5) / (count + 0.5))) / 1_024;
}

const fieldLists: (readonly ToolField[] | undefined)[] = [];

/** The fields of a set of bits. The same list for the same bits: hits share them. */
function fieldsOf(bits: number): readonly ToolField[] {
  return fieldLists[bits] ??= Object.freeze(FIELDS.filter((_, index) => bits & 1 << index));
}

/** The indexes of sources that keep none, by their list of tools, which never changes. */
const indexes = new WeakMap<readonly Tool[], ToolIndex>();

/**
 * The available tools of a toolset that fit a query, best first, with scores and reasons in `hits`.
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
 * @param toolset Where to search.
 * @param query Words, or an identifier, in any case.
 * @returns At most `limit` tools.
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
 * {@linkcode searchToolset} for any index: it waits for one that is asynchronous.
 *
 * @param toolset Where to search.
 * @param query Words, or an identifier, in any case.
 * @returns At most `limit` tools. Rejects with what the index rejects with.
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
  const provided = providedIndex(source);
  if (provided !== undefined) return provided;
  return once(indexes, source.tools, () => {
    const index = createToolIndex();
    for (const tool of source.tools) index.add(tool);
    return index;
  });
}
