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
import { type Check, numberFrom, readFields, type Tool } from "../../tool/mod.ts";
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
const SATURATION = 4.5;
/** How much the length of a field counts: b of BM25. */
const LENGTH_SHARE = 0.6;
/** What a synonym is worth, compared with the word itself. */
const SYNONYM = 0.5;
/** What a whole name is worth, when a query is nothing but the name. */
const WHOLE_NAME = 5;
/** What two neighbouring words are worth together, compared with one word. */
const PAIR = 0.3;
/** From this many words on, it no longer counts how many of them a tool has. */
const MANY_WORDS = 14;
/** What the sentence that fits best is worth, compared with the whole query. */
const SENTENCE_SHARE = 0.4;
/** The score that the best tool must reach by default. See `bench/search_quality.ts`. */
const MIN_SCORE = 0.075;

const MAX_QUERY = 8_192;
const MAX_QUERY_WORDS = 512;
const MAX_SENTENCES = 8;
const MAX_FIELD_WORDS = 1_024;
const MAX_STEMS = 4_096;
const MAX_REMEMBERED_GUESSES = 512;
/** How many words one unknown word may mean. */
const MAX_GUESSES = 8;

const SENTENCE_END = /[.!?;]+(?=\s|$)|[\n。！？；।؟۔]+/u;
/** The fields whose neighbouring words are kept as pairs. */
const PAIRED: ReadonlySet<ToolField> = new Set(["name", "title", "description"]);

/** A word, or two neighbouring ones: the slots of the tools that have it, and for each of them… */
interface Term {
  readonly slots: number[];
  /** …what it weighs there… */
  readonly weights: number[];
  /** …and the fields that it is in, a bit each. */
  readonly fields: number[];
}

interface Entry {
  readonly id: string;
  readonly words: readonly string[];
}

/** The tools that a caller sees. */
interface View {
  /** By slot, 1 for a tool that the caller sees; `undefined` for all of them. */
  readonly shown: Uint8Array | undefined;
  readonly size: number;
  /** How many changes the index had seen. */
  readonly changes: number;
}

/** A query or a sentence of it. */
interface Question {
  /** The words by their stems. */
  readonly words: Map<string, string>;
  /** Neighbouring stems. */
  readonly pairs: Set<string>;
}

/** What a word of a query may mean. */
interface Meaning {
  /** How much the word says. */
  readonly rarity: number;
  /** Terms that at least one visible tool has: how likely each is meant, and how much it says. */
  readonly terms: readonly (readonly [term: Term, likeness: number, rarity: number])[];
}

/** What the tools score for a question. */
interface Ranking {
  /** By slot. Those of tools that the caller does not see mean nothing. */
  readonly scores: Float64Array;
  readonly highest: number;
  /** How much of the question the tool with the highest score has. */
  readonly share: number;
}

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
   * @default {0.075}
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
    { ...options },
    OPTIONS,
  );
  const { stopWords, abbreviations, synonyms } = lexicon(lines);
  const terms = new Map<string, Term>();
  /** The words among the terms by their first letter. */
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

  function add(tool: Tool): void {
    remove(tool.id);
    changes++;
    const sums = new Map<string, [amount: number, fields: number]>();
    const note = (word: string, amount: number, bit: number): void => {
      const [sum, bits] = sums.get(word) ?? [0, 0];
      sums.set(word, [sum + amount, bits | bit]);
    };
    for (const name of new Set([joinWords(tool.name), joinWords(tool.id)])) {
      note(name, WHOLE_NAME, bitOf("name"));
    }
    for (const [text, weight, usualWords, field] of searchFields(tool)) {
      const words = splitWords(text, MAX_FIELD_WORDS).flatMap(stems);
      const amount = weight / (1 - LENGTH_SHARE + LENGTH_SHARE * words.length / usualWords);
      const bit = bitOf(field);
      words.forEach((word, index) => {
        note(word, amount, bit);
        if (index > 0 && PAIRED.has(field)) note(`${words[index - 1]} ${word}`, amount, bit);
      });
    }
    const slot = freeSlots.pop() ?? entries.length;
    slotOf.set(tool.id, slot);
    entries[slot] = { id: tool.id, words: [...sums.keys()] };
    for (const [word, [sum, bits]] of sums) {
      let term = terms.get(word);
      if (term === undefined) {
        terms.set(word, term = { slots: [], weights: [], fields: [] });
        guesses.clear();
        if (!word.includes(" ")) {
          const letter = word.slice(0, 1);
          byLetter.set(letter, (byLetter.get(letter) ?? new Set()).add(word));
        }
      }
      term.slots.push(slot);
      term.weights.push(sum / (SATURATION + sum));
      term.fields.push(bits);
    }
  }

  function remove(id: string): void {
    const slot = slotOf.get(id);
    if (slot === undefined) return;
    changes++;
    for (const word of entries[slot]?.words ?? []) {
      const { slots, weights, fields } = terms.get(word) as Term;
      const index = slots.indexOf(slot);
      // The last one takes its place: the order within a term means nothing.
      for (const list of [slots, weights, fields]) {
        list[index] = list.at(-1) as number;
        list.pop();
      }
      if (slots.length === 0) {
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

  function read(text: string): Question {
    const words = new Map<string, string>();
    const pairs = new Set<string>();
    const note = (found: readonly string[], typed: string): void => {
      for (const base of found) if (!words.has(base)) words.set(base, typed);
    };
    const split = splitWords(text, MAX_QUERY_WORDS);
    let previous = "";
    split.forEach((word, index) => {
      const found = stems(word);
      note(found, word);
      for (const base of found) {
        pairs.add(`${previous} ${base}`);
        previous = base;
      }
      // Written apart, but known as one word: "look up", "who am I".
      let joined = word;
      for (const next of split.slice(index + 1, index + 3)) {
        joined += next;
        if (synonyms.has(joined)) note([joined], joined);
        note(abbreviations.get(joined) ?? [], joined);
      }
    });
    return { words, pairs };
  }

  /** How many of the tools that the caller sees have a term. */
  function count(word: string, { shown }: View): number {
    const { slots } = terms.get(word) ?? { slots: [] };
    if (shown === undefined) return slots.length;
    let found = 0;
    for (let index = 0; index < slots.length; index++) {
      found += shown[slots[index] as number] as number;
    }
    return found;
  }

  function meaningOf(word: string, view: View): Meaning {
    const found: [Term, likeness: number, rarity: number][] = [];
    const note = (other: string, likeness: number): void => {
      const having = count(other, view);
      if (having > 0) found.push([terms.get(other) as Term, likeness, rarity(having, view.size)]);
    };
    note(word, 1);
    // A rare synonym says no more than the word that was asked for, or than its commonest meaning.
    let most = found[0]?.[2];
    for (const other of synonyms.get(word) ?? []) if (other !== word) note(other, SYNONYM);
    // "reopen" and "unlock" are about what is open and locked; "research" is not about a search.
    if (most === undefined && /^(un|re(?=[aeiou]))/.test(word)) note(word.slice(2), SYNONYM);
    if (found.length === 0) {
      let close = guesses.get(word);
      if (close === undefined) {
        close = closeWords(word, byLetter.get(word.slice(0, 1)) ?? []);
        if (guesses.size >= MAX_REMEMBERED_GUESSES) guesses.clear();
        guesses.set(word, close);
      }
      for (const [other, likeness] of close) if (found.length < MAX_GUESSES) note(other, likeness);
    }
    most ??= Math.min(rarity(0, view.size), ...found.map(([, , own]) => own));
    return { rarity: most, terms: found };
  }

  /** Scores the tools for a question. */
  function rank(
    { words, pairs }: Question,
    meaning: (word: string) => Meaning,
    view: View,
  ): Ranking {
    const scores = new Float64Array(entries.length);
    const present = new Float64Array(entries.length);
    const best = new Float64Array(entries.length);
    const lastGroup = new Uint16Array(entries.length);
    let total = 0;
    let group = 0;
    for (const word of words.keys()) {
      const { rarity: most, terms: found } = meaning(word);
      total += most;
      group++;
      for (const [{ slots, weights }, likeness, own] of found) {
        const worth = likeness * Math.min(own, most);
        for (let index = 0; index < slots.length; index++) {
          const slot = slots[index] as number;
          if (lastGroup[slot] !== group) {
            lastGroup[slot] = group;
            best[slot] = 0;
            (present[slot] as number) += most * likeness;
          }
          // Of the words that may be meant, a tool counts for the one that fits it best.
          const more = worth * (weights[index] as number) - (best[slot] as number);
          if (more > 0) {
            (best[slot] as number) += more;
            (scores[slot] as number) += more;
          }
        }
      }
    }
    for (const pair of pairs) {
      const term = terms.get(pair);
      if (term === undefined) continue;
      const worth = PAIR * rarity(count(pair, view), view.size);
      for (let index = 0; index < term.slots.length; index++) {
        (scores[term.slots[index] as number] as number) += worth * (term.weights[index] as number);
      }
    }
    // A tool that has half of three words is worth half. No tool has all of fifty.
    const fade = Math.max(0, (MANY_WORDS - group) / (MANY_WORDS - 1));
    let highest = 0;
    let share = 0;
    for (let slot = 0; slot < scores.length; slot++) {
      const own = scores[slot] as number;
      if (own === 0 || view.shown?.[slot] === 0) continue;
      const missing = Math.max(0, total - (present[slot] as number));
      const score = scores[slot] = own * (1 - fade * missing / total);
      if (score > highest) {
        highest = score;
        // The power of 3/4 by square roots, which are exact on every engine.
        share = own / (own + Math.sqrt(missing * Math.sqrt(missing)));
      }
    }
    return { scores, highest, share };
  }

  function search(
    query: string,
    limit: number,
    { among, minScore = least }: ToolSearchScope = {},
  ): readonly ToolHit[] {
    const view = viewOf(among);
    const take = Math.min(Math.floor(limit), view.size);
    if (!(take > 0)) return [];
    const text = query.slice(0, MAX_QUERY);
    const sentences = text.split(SENTENCE_END).map(read);
    const question: Question = { words: new Map(), pairs: new Set() };
    for (const { words, pairs } of sentences) {
      for (const [base, typed] of words) question.words.set(base, typed);
      for (const pair of pairs) question.pairs.add(pair);
    }
    const name = joinWords(text);
    if (name !== "" && terms.has(name)) question.words.set(name, text.trim());
    const meanings = new Map<string, Meaning>();
    const meaning = (word: string): Meaning => {
      let found = meanings.get(word);
      if (found === undefined) meanings.set(word, found = meaningOf(word, view));
      return found;
    };
    const { scores, highest, share } = rank(question, meaning, view);
    if (highest === 0 || share < minScore) return [];

    // Who asks for several things asks for each in a sentence of its own.
    const asked = sentences.filter(({ words }) => words.size > 1).slice(0, MAX_SENTENCES);
    const best = asked.length > 1 ? new Float64Array(scores.length) : undefined;
    for (const sentence of best === undefined ? [] : asked) {
      const part = rank(sentence, meaning, view);
      for (let slot = 0; slot < scores.length && part.highest > 0; slot++) {
        const own = (part.scores[slot] as number) / part.highest;
        if (best !== undefined && own > (best[slot] as number)) best[slot] = own;
      }
    }
    for (let slot = 0; slot < scores.length; slot++) {
      const own = (scores[slot] as number) / highest;
      scores[slot] = own && best ? own + SENTENCE_SHARE * ((best[slot] as number) - own) : own;
    }
    const slots = bestSlots(scores, view, take);
    const scale = share / (scores[slots[0] as number] as number);
    const matches = matchesOf(question, meaning, slots);
    return slots.map((slot, place) => ({
      id: (entries[slot] as Entry).id,
      score: scale * (scores[slot] as number),
      matches: matches[place],
    }));
  }

  /** The slots of visible tools with the highest scores, best first. */
  function bestSlots(scores: Float64Array, view: View, take: number): number[] {
    const byScore = (a: number, b: number): number =>
      (scores[b] as number) - (scores[a] as number) ||
      ((entries[a] as Entry).id < (entries[b] as Entry).id ? -1 : 1);
    let found: number[] = [];
    let lowest = 0;
    for (let slot = 0; slot < scores.length; slot++) {
      const score = scores[slot] as number;
      if (score === 0 || score < lowest || view.shown?.[slot] === 0) continue;
      if (found.push(slot) >= 2 * take + 32) {
        found = found.sort(byScore).slice(0, take);
        lowest = scores[found.at(-1) as number] as number;
      }
    }
    return found.sort(byScore).slice(0, take);
  }

  /** Which words of the query each of these tools has, and where. */
  function matchesOf(
    { words }: Question,
    meaning: (word: string) => Meaning,
    found: readonly number[],
  ): ToolMatch[][] {
    const matches: ToolMatch[][] = found.map(() => []);
    const placeOf = new Uint32Array(entries.length);
    found.forEach((slot, index) => placeOf[slot] = index + 1);
    for (const [base, word] of words) {
      const bits = new Uint8Array(found.length + 1);
      for (const [{ slots, fields }] of meaning(base).terms) {
        for (let index = 0; index < slots.length; index++) {
          (bits[placeOf[slots[index] as number] as number] as number) |= fields[index] as number;
        }
      }
      matches.forEach((list, index) => {
        const own = bits[index + 1] as number;
        if (own > 0) list.push({ word, fields: fieldsOf(own) });
      });
    }
    return matches;
  }

  return { add, remove, search };
}

/**
 * Rare words say more. Rounded, because engines differ in the last bits of a logarithm. A few tools
 * do not show how rare a word is, so they are taken for a hundred.
 */
function rarity(count: number, size: number): number {
  const others = Math.max(size, 100) - count;
  return Math.round(1_024 * Math.log(1 + (others + 0.5) / (count + 0.5))) / 1_024;
}

const FIELDS: readonly ToolField[] = [
  "name",
  "title",
  "namespace",
  "tags",
  "category",
  "description",
  "parameters",
];

function bitOf(field: ToolField): number {
  return 1 << FIELDS.indexOf(field);
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
  const { tools } = source;
  let index = indexes.get(tools);
  if (index === undefined) {
    index = createToolIndex();
    for (const tool of tools) index.add(tool);
    indexes.set(tools, index);
  }
  return index;
}
