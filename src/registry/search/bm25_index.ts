/**
 * A {@linkcode ToolIndex} that ranks by words: BM25F over the fields of a tool, with synonyms of
 * the field, unfinished words and typing errors.
 *
 * What a word weighs in a tool is worked out once, when the tool comes in: fields are measured
 * against fixed usual lengths, not against the average of the moment, so a tool that comes or goes
 * changes nothing in the others, and the order of coming does not show in the scores.
 *
 * @module
 */

import type { Tool } from "../../tool/mod.ts";
import { allowedEdits, editDistance, letterMask, maskDifference } from "./close_words.ts";
import { type Lexicon, theLexicon } from "./lexicon.ts";
import { stem } from "./stem.ts";
import type { ToolHit, ToolIndex } from "./tool_index.ts";
import { type ToolText, toolText } from "./tool_text.ts";
import { takeFirst } from "./top_hits.ts";
import { splitWords } from "./words.ts";

interface FieldRule {
  readonly field: keyof ToolText;
  readonly weight: number;
  /** How many words are usual. */
  readonly usual: number;
  /** How much a length other than the usual counts, 0 to 1. */
  readonly b: number;
}

export const TUNE = {
  fields: [
    { field: "name", weight: 5, usual: 4, b: 0.6 },
    { field: "namespace", weight: 2, usual: 1, b: 0.5 },
    { field: "title", weight: 3, usual: 4, b: 0.6 },
    { field: "tags", weight: 2, usual: 3, b: 0.5 },
    { field: "category", weight: 2, usual: 1, b: 0.5 },
    { field: "description", weight: 1.5, usual: 20, b: 0.5 },
    { field: "parameters", weight: 0.6, usual: 10, b: 0.5 },
    { field: "parameterText", weight: 0.3, usual: 40, b: 0.5 },
  ] as FieldRule[],
  k1: 1.2,
  synonym: 0.6,
  prefix: 0.7,
  edit: 0.7,
  stop: 0.3,
  joined: 0.7,
  coverage: 1,
};

const MAX_QUERY = 512;
const MAX_QUERY_WORDS = 32;
const MAX_FIELD_WORDS = 1_024;
/** Words that an unknown word of a query may mean, at most. */
const MAX_GUESSES = 8;

interface Term {
  readonly word: string;
  readonly mask: number;
  /** The tools with the word, and what it weighs in each. Removed tools stay until `compact`. */
  readonly slots: number[];
  readonly weights: number[];
  /** How many tools have the word now. */
  count: number;
  /** The tool being added, and what was summed up for it so far. */
  adding: number;
  sum: number;
}

interface Entry {
  readonly id: string;
  readonly terms: readonly Term[];
}

interface Meaning {
  readonly term: Term;
  readonly weight: number;
}

/** Makes an index that ranks by words. */
export function createToolIndex(): ToolIndex {
  const lexicon = theLexicon();
  let terms = new Map<string, Term>();
  let slotOf = new Map<string, number>();
  let entries: (Entry | undefined)[] = [];

  // Reused by every search; a search leaves them as it finds them.
  let scores = new Float64Array(0);
  let best = new Float64Array(0);
  let covered = new Float64Array(0);
  let inGroup = new Int32Array(0);
  let group = 0;

  const termOf = (word: string): Term => {
    let term = terms.get(word);
    if (term === undefined) {
      term = {
        word,
        mask: letterMask(word),
        slots: [],
        weights: [],
        count: 0,
        adding: -1,
        sum: 0,
      };
      terms.set(word, term);
    }
    return term;
  };

  function add(tool: Tool): void {
    remove(tool.id);
    const slot = entries.length;
    const found: Term[] = [];
    const text = toolText(tool);
    for (const { field, weight, usual, b } of TUNE.fields) {
      const isName = field === "name" || field === "title";
      const words = stems(text[field], MAX_FIELD_WORDS, lexicon);
      const step = weight / (1 - b + b * words.length / usual);
      const note = (word: string, amount: number): void => {
        const term = termOf(word);
        if (term.adding !== slot) {
          term.adding = slot;
          term.sum = 0;
          found.push(term);
        }
        term.sum += amount;
      };
      words.forEach((word, index) => {
        if (isName || !lexicon.stop.has(word)) note(word, step);
        const next = words[index + 1];
        if (isName && next !== undefined) note(word + next, step * TUNE.joined);
      });
    }
    for (const term of found) {
      term.slots.push(slot);
      term.weights.push(term.sum / (TUNE.k1 + term.sum));
      term.count++;
      term.adding = -1;
    }
    entries.push({ id: tool.id, terms: found });
    slotOf.set(tool.id, slot);
  }

  function remove(id: string): void {
    const slot = slotOf.get(id);
    const entry = slot === undefined ? undefined : entries[slot];
    if (slot === undefined || entry === undefined) return;
    for (const term of entry.terms) term.count--;
    entries[slot] = undefined;
    slotOf.delete(id);
    if (entries.length > 2 * slotOf.size + 64) compact();
  }

  /** Forgets removed tools, once they are more than half: each removal pays for its share. */
  function compact(): void {
    const kept = entries;
    entries = [];
    slotOf = new Map();
    const moved = new Map<number, number>();
    kept.forEach((entry, slot) => {
      if (entry === undefined) return;
      moved.set(slot, entries.length);
      slotOf.set(entry.id, entries.length);
      entries.push(entry);
    });
    const old = terms;
    terms = new Map();
    for (const [word, term] of old) {
      if (term.count === 0) continue;
      let end = 0;
      term.slots.forEach((slot, index) => {
        const to = moved.get(slot);
        if (to === undefined) return;
        term.slots[end] = to;
        term.weights[end++] = term.weights[index] ?? 0;
      });
      term.slots.length = term.weights.length = end;
      terms.set(word, term);
    }
  }

  function meanings(word: string): Meaning[] {
    const exact = known(word);
    const list: Meaning[] = exact === undefined ? [] : [{ term: exact, weight: 1 }];
    const synonyms = lexicon.synonyms.get(word);
    if (synonyms !== undefined) {
      for (const other of synonyms) {
        const term = known(other);
        if (term !== undefined) list.push({ term, weight: TUNE.synonym });
      }
    }
    return list.length > 0 || lexicon.stop.has(word) ? list : guesses(word);
  }

  function known(word: string): Term | undefined {
    const term = terms.get(word);
    return term === undefined || term.count === 0 ? undefined : term;
  }

  /** What an unknown word may mean: words that it begins, or words a typing error away. */
  function guesses(word: string): Meaning[] {
    const edits = allowedEdits(word.length);
    const mask = letterMask(word);
    const list: Meaning[] = [];
    for (const term of terms.values()) {
      if (term.count === 0) continue;
      if (word.length > 1 && term.word.startsWith(word)) {
        list.push({
          term,
          weight: TUNE.prefix * (0.5 + 0.5 * word.length / term.word.length),
        });
      } else if (
        Math.abs(term.word.length - word.length) <= edits &&
        maskDifference(term.mask, mask) <= 2 * edits
      ) {
        const distance = editDistance(word, term.word, edits);
        if (distance <= edits) list.push({ term, weight: TUNE.edit / distance });
      }
    }
    return takeFirst(
      list,
      MAX_GUESSES,
      (a, b) => a.weight > b.weight || a.weight === b.weight && a.term.word < b.term.word,
    );
  }

  function search(query: string, limit: number): readonly ToolHit[] {
    const take = Math.min(Math.floor(limit), slotOf.size);
    if (!(take >= 1)) return [];
    if (scores.length < entries.length) {
      const size = entries.length * 2;
      scores = new Float64Array(size);
      best = new Float64Array(size);
      covered = new Float64Array(size);
      inGroup = new Int32Array(size);
      group = 0;
    }
    const words = stems(query.slice(0, MAX_QUERY), MAX_QUERY_WORDS, lexicon);
    const touched: number[] = [];
    let total = 0;
    const look = (list: readonly Meaning[], share: number): void => {
      if (list.length === 0) return;
      group++;
      total += share;
      for (const { term, weight } of list) {
        const value = weight * share * rarity(term.count, slotOf.size);
        const { slots, weights } = term;
        for (let index = 0; index < slots.length; index++) {
          const slot = slots[index] as number;
          const score = value * (weights[index] as number);
          if (inGroup[slot] !== group) {
            if (scores[slot] === 0) touched.push(slot);
            inGroup[slot] = group;
            best[slot] = 0;
            (covered[slot] as number) += share * weight;
          }
          const before = best[slot] as number;
          if (score > before) {
            (scores[slot] as number) += score - before;
            best[slot] = score;
          }
        }
      }
    };
    const seen = new Set<string>();
    words.forEach((word, index) => {
      for (const [candidate, list, share] of [
        [word, undefined, lexicon.stop.has(word) ? TUNE.stop : 1],
        [word + words[index + 1], "joined", TUNE.joined],
      ] as const) {
        if (seen.has(candidate)) continue;
        seen.add(candidate);
        if (list === undefined) look(meanings(candidate), share);
        else {
          const t = known(candidate);
          if (t !== undefined) look([{ term: t, weight: 1 }], share);
        }
      }
    });

    const hits: ToolHit[] = [];
    for (const slot of touched) {
      const entry = entries[slot];
      if (entry !== undefined) {
        hits.push({
          id: entry.id,
          score: (scores[slot] as number) *
            Math.pow((covered[slot] as number) / total, TUNE.coverage),
        });
      }
      scores[slot] = 0;
      covered[slot] = 0;
    }
    return takeFirst(hits, take, isBetter);
  }

  return { add, remove, search };
}

function isBetter(a: ToolHit, b: ToolHit): boolean {
  return a.score > b.score || a.score === b.score && a.id < b.id;
}

/** Rare words say more. Rounded, because engines differ in the last bits of a logarithm. */
function rarity(count: number, size: number): number {
  return Math.round(1_024 * Math.log(1 + (size - count + 0.5) / (count + 0.5))) / 1_024;
}

function stems(text: string, limit: number, lexicon: Lexicon): string[] {
  return splitWords(text, limit).flatMap((word) => lexicon.abbreviations.get(word) ?? stem(word));
}
