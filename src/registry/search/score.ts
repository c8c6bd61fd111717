/**
 * Ranks tools for a query, as pure functions over plain data.
 *
 * The score of a tool is BM25F with synonyms, and a discount for the words that it lacks:
 *
 * ```text
 *                                        max          similarity(t, w) · min(rarity(t), rarity(w)) · weight(t, tool)
 * sum(tool)     =  Σ  words w of query   terms t of w
 * missing(tool) =  Σ  words w of query that the tool lacks   rarity(w)
 * score(tool)   =  sum · (1 - brevity · missing / Σ rarity(w))
 *
 * rarity(t)       ln(1 + (N - n + 0.5) / (n + 0.5)): n of the N visible tools have the term
 * weight(t, tool) f / (k1 + f), where f = Σ fields  fieldWeight / (1 - b + b · length / usualLength)
 * brevity         1 for one word, 0 from 14 words on: no tool has all words of a long question
 * ```
 *
 * The weights are computed when a tool is added. A posting holds one of them, with the slot of its
 * tool; the arrays of a ranking have one element per slot:
 *
 * ```text
 * terms   "read"  -> postings  [0·4096 + 2410]  [2·4096 + 902]
 *         "file"  -> postings  [0·4096 + 1871]  [1·4096 + 1871]
 *
 * slot           0           1            2
 * entries        file-read   file-write   (git-log)      in brackets: hidden from the caller
 * scores         11.2        3.1          0
 * missing        0           2.7          1.9            rarity of the words that the tool lacks
 * best           4.1         3.1          1.2            best term of the current word
 * lastWord       2           2            1              last word that the tool has
 * literal        1           1            0              1: it has a word that is no synonym
 * ```
 */

import { once } from "../../tool/mod.ts";
import { FIELDS, type ToolField, type ToolMatch } from "./find.ts";

/** The saturation of term frequency: k1 of BM25. */
export const SATURATION = 4;
/** A posting is a slot multiplied by `STEPS`, plus a weight from 0 to 4,095. */
export const STEPS = 4_096;
/** The number of best tools that are compared with the query in detail. */
const MAX_DETAILED = 16;
/** The weight of two neighbouring words, relative to the rarer word. */
const PAIR = 0.1;
/** The weight of the best sentence, relative to the whole query. */
const SENTENCE_SHARE = 0.4;
/** The maximum gain of a tool whose title consists of words of the query. */
const HEADING_GAIN = 0.5;
/** The gain of a tool whose action (read, create, update or delete) matches the query's verb. */
const ACTION_GAIN = 0.4;
/** From this number of words on, {@linkcode brevity} is 0. */
const MANY_WORDS = 14;

/** The fields with the order of their words: name, title and description. */
export const ORDERED: readonly number[] = [0, 1, 5];

export interface Term {
  readonly word: string;
  readonly postings: number[];
}

export interface Entry {
  readonly id: string;
  /** The terms of each field of {@linkcode FIELDS}. */
  readonly fields: readonly (readonly Term[])[];
  /** The different terms of the title, or of the name if there is no title. */
  readonly heading: readonly Term[];
  /** The actions of the tool, as bits; 0 if unknown. */
  readonly action: number;
  /** The number of different terms. */
  readonly size: number;
}

/** The tools that a caller sees. */
export interface View {
  /** For each slot, 1 if its tool is visible; `undefined` if all tools are visible. */
  readonly shown: Uint8Array | undefined;
  readonly size: number;
}

/** A meaning of a word: the word itself, a synonym, or a guess. */
export interface Meaning {
  readonly term: Term;
  /** The similarity of the word itself is 1. */
  readonly similarity: number;
  /** False for the word itself, even if it is unfinished or mistyped. */
  readonly isSynonym: boolean;
  readonly rarity: number;
}

export interface QueryWord {
  readonly typed: string;
  /** A bit for each part of the query that has the word: bit 0 is the whole query. */
  readonly parts: number;
  readonly rarity: number;
  readonly meanings: readonly Meaning[];
}

/** A query, in the terms of the visible tools. */
export interface Query {
  readonly words: readonly QueryWord[];
  /** True if tools with a word of the query come before tools that only have synonyms. */
  readonly literalFirst: boolean;
  /** The words of the query that may mean a term. */
  readonly byTerm: ReadonlyMap<Term, readonly QueryWord[]>;
  readonly pairs: readonly WordPair[];
  /** The number of parts: the whole query, and its sentences if there are several. */
  readonly parts: number;
  /** The actions that the first word names, as bits; 0 if unknown. */
  readonly action: number;
}

export type WordPair = readonly [first: QueryWord, second: QueryWord, parts: number];

export interface Arrays {
  readonly scores: Float32Array;
  readonly missing: Float32Array;
  readonly best: Float32Array;
  readonly lastWord: Float32Array;
  readonly literal: Uint8Array;
}

export interface Ranking extends Arrays {
  /** The discount per unit of `missing`. */
  readonly discount: number;
  readonly highest: number;
}

export function createArrays(size: number): Arrays {
  const floats = (): Float32Array => new Float32Array(size);
  return {
    scores: floats(),
    missing: floats(),
    best: floats(),
    lastWord: floats(),
    literal: new Uint8Array(size),
  };
}

/** Scores the tools for one part of a query, by the formula above. Overwrites `arrays`. */
export function score(query: Query, part: number, { shown }: View, arrays: Arrays): Ranking {
  const { scores, missing, best, lastWord, literal } = arrays;
  for (const array of [scores, missing, lastWord, literal]) array.fill(0);
  let total = 0;
  let count = 0;
  for (const { rarity: most, meanings, parts } of query.words) {
    if ((parts & 1 << part) === 0) continue;
    total += most;
    count++;
    for (const { term: { postings }, similarity, rarity, isSynonym } of meanings) {
      const worth = similarity * Math.min(rarity, most) / STEPS;
      const isLiteral = isSynonym ? 0 : 1;
      for (let index = 0; index < postings.length; index++) {
        const posting = postings[index] as number;
        const slot = slotIn(posting);
        (literal[slot] as number) |= isLiteral;
        if (lastWord[slot] !== count) {
          lastWord[slot] = count;
          best[slot] = 0;
          (missing[slot] as number) -= most * similarity;
        }
        const gain = worth * (posting & STEPS - 1) - (best[slot] as number);
        if (gain > 0) {
          (best[slot] as number) += gain;
          (scores[slot] as number) += gain;
        }
      }
    }
  }
  const discount = brevity(count) / total;
  let highest = 0;
  for (let slot = 0; slot < scores.length; slot++) {
    if (scores[slot] === 0) continue;
    const lack = missing[slot] = Math.max(0, total + (missing[slot] as number));
    const own = shown?.[slot] === 0 ? 0 : (scores[slot] as number) * (1 - discount * lack);
    scores[slot] = own;
    if (own > highest) highest = own;
  }
  return { ...arrays, discount, highest };
}

/** Returns 1 for a query of one word, 0 for a query of many words. */
function brevity(words: number): number {
  return Math.max(0, (MANY_WORDS - words) / (MANY_WORDS - 1));
}

/** Returns the best `count` tools, best first. */
export function rank(
  entries: readonly (Entry | undefined)[],
  query: Query,
  rankings: readonly Ranking[],
  count: number,
): readonly { readonly slot: number; readonly score: number }[] {
  const [whole] = rankings as readonly [Ranking];
  const { literal } = whole;
  // Reuses the array, because the scores of the whole query do not need it any more.
  const fits = whole.best;
  const compare = (a: number, b: number): number =>
    (query.literalFirst ? (literal[b] as number) - (literal[a] as number) : 0) ||
    (fits[b] as number) - (fits[a] as number) ||
    ((entries[a] as Entry).id < (entries[b] as Entry).id ? -1 : 1);
  const enough = Math.max(count, MAX_DETAILED);
  const top: number[] = [];
  let worst: number | undefined;
  let strongest = 0;
  for (let slot = 0; slot < fits.length; slot++) {
    const fit = fits[slot] = fitOf(rankings, slot);
    if (fit > (fits[strongest] as number)) strongest = slot;
    if (fits[slot] === 0 || (worst !== undefined && compare(slot, worst) > 0)) continue;
    // Sorts in batches, because that costs less than keeping the list sorted.
    if (top.push(slot) === 4 * enough) {
      top.sort(compare).length = enough;
      worst = top.at(-1);
    }
  }
  if (top.length === 0) return [];
  top.sort(compare).length = Math.min(top.length, enough);
  const pairs = pairsByTerm(query);
  const gain = brevity(query.words.length);
  // Scores only increase, so these tools stay ahead of all others, whatever the limit is.
  for (const slot of top.slice(0, MAX_DETAILED)) {
    const entry = entries[slot] as Entry;
    addPairs(entry, slot, pairs, rankings);
    fits[slot] = fitOf(rankings, slot) * (1 + gain * gainOf(entry, query));
  }
  top.sort(compare).length = Math.min(top.length, count);
  const first = top[0] as number;
  const share = shareOf(whole, strongest, entries[strongest] as Entry);
  let last = share;
  return top.map((slot) => {
    last = Math.min(last, share * (fits[slot] as number) / (fits[first] as number));
    return { slot, score: last };
  });
}

/** Returns a tool's fit to the whole query and its best sentence, relative to the best tools. */
function fitOf(rankings: readonly Ranking[], slot: number): number {
  const [whole] = rankings as readonly [Ranking];
  const own = (whole.scores[slot] as number) / whole.highest;
  if (rankings.length === 1 || !(own > 0)) return own > 0 ? own : 0;
  let most = 0;
  for (let part = 1; part < rankings.length; part++) {
    const { scores, highest } = rankings[part] as Ranking;
    const fit = (scores[slot] as number) / highest;
    if (fit > most) most = fit;
  }
  return own + SENTENCE_SHARE * (most - own);
}

interface Follower {
  readonly term: Term;
  readonly worth: number;
  parts: number;
}

function pairsByTerm({ pairs }: Query): ReadonlyMap<Term, readonly Follower[]> {
  const found = new Map<Term, Follower[]>();
  for (const [first, second, parts] of pairs) {
    const [before, term] = [first.meanings[0]?.term, second.meanings[0]?.term];
    if (before === undefined || term === undefined) continue;
    const list = once(found, before, () => []);
    const same = list.find((follower) => follower.term === term);
    if (same !== undefined) same.parts |= parts;
    else list.push({ term, worth: PAIR * Math.max(first.rarity, second.rarity), parts });
  }
  return found;
}

/** Increases the scores of a tool that has two neighbouring words of the query side by side. */
function addPairs(
  { fields }: Entry,
  slot: number,
  pairs: ReadonlyMap<Term, readonly Follower[]>,
  rankings: readonly Ranking[],
): void {
  if (pairs.size === 0) return;
  const had = new Set<Follower>();
  for (const field of ORDERED) {
    const list = fields[field] as readonly Term[];
    for (let index = 1; index < list.length; index++) {
      for (const follower of pairs.get(list[index - 1] as Term) ?? NONE) {
        if (follower.term === list[index]) had.add(follower);
      }
    }
  }
  for (const [part, { scores, missing, discount }] of rankings.entries()) {
    const share = 1 - discount * (missing[slot] as number);
    for (const { parts, worth } of had) {
      if (parts & 1 << part) (scores[slot] as number) += share * worth;
    }
  }
}

function gainOf({ heading, action }: Entry, query: Query): number {
  const had = heading.filter((term) => query.byTerm.has(term)).length;
  const covered = had / Math.max(1, heading.length);
  // If the query has no verb, a tool that only deletes gains nothing.
  const agrees = query.action === 0 ? action !== DELETE : action === 0 || action & query.action;
  return HEADING_GAIN * covered * covered + (agrees ? ACTION_GAIN : 0);
}

/** The bit of actions that delete. */
const DELETE = 8;

/** Returns the share of the query that a tool contains, from 0 to 1. */
function shareOf({ scores, missing, discount }: Ranking, slot: number, { size }: Entry): number {
  const lack = missing[slot] as number;
  const own = (scores[slot] as number) / (1 - discount * lack);
  // A tool with a long text has words of any query by chance. From ten words on, its length counts
  // with the exponent 1/4, and the missing rarity with 7/8: square roots are exact on every engine.
  const words = Math.max(size, 10);
  const chance = Math.sqrt(lack * Math.sqrt(lack * Math.sqrt(lack * words * words)));
  return own / (own + chance / 2);
}

/** Returns the words of the query that a tool has, and the fields that contain them. */
export function matchesOf({ fields }: Entry, { words, byTerm }: Query): readonly ToolMatch[] {
  const found = new Map<QueryWord, Set<ToolField>>();
  fields.forEach((list, field) => {
    for (const term of list) {
      for (const word of byTerm.get(term) ?? NONE) {
        once(found, word, () => new Set()).add(FIELDS[field] as ToolField);
      }
    }
  });
  return words.flatMap((word) => {
    const had = found.get(word);
    return had === undefined ? [] : [{ word: word.typed, fields: [...had] }];
  });
}

const NONE: readonly never[] = [];

export function slotIn(posting: number): number {
  return posting / STEPS | 0;
}

export function countVisible(term: Term | undefined, { shown }: View): number {
  if (term === undefined || shown === undefined) return term?.postings.length ?? 0;
  let found = 0;
  for (const posting of term.postings) found += shown[slotIn(posting)] as number;
  return found;
}

/**
 * Returns the rarity of a term. Rounded, because engines differ in the last bits of a logarithm.
 * Fewer than a hundred tools count as a hundred, because they do not show how rare a word is.
 */
export function rarityOf(count: number, size: number): number {
  const others = Math.max(size, 100) - count;
  return Math.round(1_024 * Math.log(1 + (others + 0.5) / (count + 0.5))) / 1_024;
}
