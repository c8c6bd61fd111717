/**
 * A {@linkcode ToolIndex} that ranks by words: BM25F over the fields of a tool, with synonyms,
 * unfinished words and typing errors; and search in a toolset with it.
 *
 * What a word weighs in a tool is worked out once, when the tool comes in. Fields are measured
 * against fixed usual lengths, not against the average of the moment. So a tool that comes or goes
 * changes no weight in the others, and the order of coming does not show in a score.
 *
 * @module
 */

import type { Toolset } from "../../select/mod.ts";
import type { Tool } from "../../tool/mod.ts";
import {
  findTools,
  providedIndex,
  type ToolHit,
  type ToolIndex,
  type ToolSearchOptions,
} from "./find.ts";
import { closeWords, joinWords, lexicon, splitWords, stem } from "./words.ts";

/** How fast more of the same word stops to count: k1 of BM25. */
const SATURATION = 2.5;
/** How much the length of a field counts: b of BM25. */
const LENGTH_SHARE = 0.6;
/** What a synonym is worth, compared with the word itself. */
const SYNONYM = 0.5;
/** What a whole name is worth, when a query is nothing but the name. */
const WHOLE_NAME = 5;

const MAX_QUERY = 512;
const MAX_QUERY_WORDS = 32;
const MAX_FIELD_WORDS = 1_024;
const MAX_STEMS = 4_096;

/** A word: the slots of the tools that have it, and what it weighs in each. */
interface Term {
  readonly slots: number[];
  readonly weights: number[];
}

interface Entry {
  readonly id: string;
  readonly words: readonly string[];
}

/**
 * Makes an empty index that ranks by words. It reads names, titles, tags, categories, descriptions
 * and parameters; of a query it reads 512 characters and 32 words.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { createToolIndex, defineTool } from "@plue/tools";
 *
 * const index = createToolIndex();
 * index.add(defineTool({ name: "file-write", description: "Writes text to a file." }));
 * index.add(defineTool({ name: "git-log", description: "Lists commits." }));
 *
 * assert.deepEqual(index.search("save a file", 5).map((hit) => hit.id), ["file-write"]);
 * ```
 */
export function createToolIndex(): ToolIndex {
  const { stopWords, abbreviations, synonyms } = lexicon();
  const terms = new Map<string, Term>();
  const slotOf = new Map<string, number>();
  const entries: (Entry | undefined)[] = [];
  const freeSlots: number[] = [];
  // Most words of a tool are in others too.
  const stemsOf = new Map<string, readonly string[]>();

  // By slot, made for all searches. A search leaves `scores` and `covered` at 0.
  let scores = new Float64Array(0);
  let covered = new Float64Array(0);
  let best = new Float64Array(0);
  let lastGroup = new Uint32Array(0);

  function add(tool: Tool): void {
    remove(tool.id);
    const sums = new Map([
      [joinWords(tool.name), WHOLE_NAME],
      [joinWords(tool.id), WHOLE_NAME],
    ]);
    for (const [text, weight, usualWords] of searchFields(tool)) {
      const words = stems(splitWords(text, MAX_FIELD_WORDS));
      const amount = weight / (1 - LENGTH_SHARE + LENGTH_SHARE * words.length / usualWords);
      for (const word of words) sums.set(word, (sums.get(word) ?? 0) + amount);
    }
    const slot = freeSlots.pop() ?? entries.length;
    slotOf.set(tool.id, slot);
    entries[slot] = { id: tool.id, words: [...sums.keys()] };
    for (const [word, sum] of sums) {
      let term = terms.get(word);
      if (term === undefined) terms.set(word, term = { slots: [], weights: [] });
      term.slots.push(slot);
      term.weights.push(sum / (SATURATION + sum));
    }
  }

  function remove(id: string): void {
    const slot = slotOf.get(id);
    if (slot === undefined) return;
    for (const word of entries[slot]?.words ?? []) {
      const { slots, weights } = terms.get(word) as Term;
      // The last one takes its place: the order within a term means nothing.
      const index = slots.indexOf(slot);
      slots[index] = slots.at(-1) as number;
      weights[index] = weights.at(-1) as number;
      weights.pop();
      slots.pop();
      if (slots.length === 0) terms.delete(word);
    }
    entries[slot] = undefined;
    slotOf.delete(id);
    freeSlots.push(slot);
  }

  function stems(words: readonly string[]): string[] {
    return words.flatMap((word) => {
      let found = stemsOf.get(word);
      if (found === undefined) {
        const base = stem(word);
        found = stopWords.has(base) ? [] : abbreviations.get(base) ?? [base];
        if (stemsOf.size >= MAX_STEMS) stemsOf.clear();
        stemsOf.set(word, found);
      }
      return found;
    });
  }

  /** The words to look for, each once. */
  function queryWords(query: string): Set<string> {
    const words = splitWords(query, MAX_QUERY_WORDS);
    const found = stems(words);
    // Written apart, but known as one word: "look up", "who am I".
    words.forEach((word, index) => {
      const two = word + words[index + 1];
      for (const joined of [stem(two), stem(two + words[index + 2])]) {
        if (synonyms.has(joined)) found.push(joined);
        found.push(...abbreviations.get(joined) ?? []);
      }
    });
    const name = joinWords(query);
    if (name !== "" && terms.has(name)) found.push(name);
    return new Set(found);
  }

  /** What a word may mean: terms, and how likely each is. */
  function meanings(word: string): [Term, number][] {
    const found: [Term, number][] = [];
    const note = (other: string, likeness: number): void => {
      const term = terms.get(other);
      if (term !== undefined) found.push([term, likeness]);
    };
    note(word, 1);
    for (const other of synonyms.get(word) ?? []) note(other, SYNONYM);
    if (found.length === 0) {
      for (const [other, likeness] of closeWords(word, terms.keys())) note(other, likeness);
    }
    return found;
  }

  /**
   * How many tools have the word, or else the most common one that it may mean: a rare synonym says
   * no more than the word that was asked for.
   */
  function commonness(word: string, alternatives: readonly [Term, number][]): number {
    const own = terms.get(word);
    if (own !== undefined) return own.slots.length;
    return alternatives.reduce((most, [{ slots }]) => Math.max(most, slots.length), 0);
  }

  function search(query: string, limit: number): readonly ToolHit[] {
    const size = slotOf.size;
    const take = Math.min(Math.floor(limit), size);
    if (!(take > 0)) return [];
    if (scores.length < entries.length) {
      scores = new Float64Array(2 * entries.length);
      covered = new Float64Array(scores.length);
      best = new Float64Array(scores.length);
      lastGroup = new Uint32Array(scores.length);
    }
    lastGroup.fill(0);
    const touched: number[] = [];
    let group = 0;
    for (const word of queryWords(query.slice(0, MAX_QUERY))) {
      const alternatives = meanings(word);
      if (alternatives.length > 0) group++;
      const most = rarity(commonness(word, alternatives), size);
      for (const [{ slots, weights }, likeness] of alternatives) {
        const worth = likeness * Math.min(rarity(slots.length, size), most);
        for (let index = 0; index < slots.length; index++) {
          const slot = slots[index] as number;
          if (lastGroup[slot] !== group) {
            if (lastGroup[slot] === 0) touched.push(slot);
            lastGroup[slot] = group;
            best[slot] = 0;
            (covered[slot] as number) += likeness;
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

    let hits: ToolHit[] = [];
    let least = 0;
    for (const slot of touched) {
      // A tool that has half of what was asked for is worth half.
      const score = (scores[slot] as number) * (covered[slot] as number) / group;
      scores[slot] = covered[slot] = 0;
      if (score < least) continue;
      hits.push({ id: (entries[slot] as Entry).id, score });
      if (hits.length >= 2 * take + 32) {
        hits = hits.sort(byScore).slice(0, take);
        least = hits.at(-1)?.score ?? 0;
      }
    }
    return hits.sort(byScore).slice(0, take);
  }

  return { add, remove, search };
}

function byScore(a: ToolHit, b: ToolHit): number {
  return b.score - a.score || (a.id < b.id ? -1 : 1);
}

/** Rare words say more. Rounded, because engines differ in the last bits of a logarithm. */
function rarity(count: number, size: number): number {
  return Math.round(1_024 * Math.log(1 + (size - count + 0.5) / (count + 0.5))) / 1_024;
}

/** A text, how much its words weigh, and how many words such a text usually has. */
export type SearchField = readonly [text: string, weight: number, usualWords: number];

/** Characters that are read of one field. */
const MAX_TEXT = 8_192;
/** Subschemas that are read of one tool, and entries of each of them. */
const MAX_SCHEMAS = 256;

/** The fields of a tool, from its name to the texts of its parameters. */
export function searchFields(tool: Tool): SearchField[] {
  const names: string[] = [];
  const texts: string[] = [];
  readSchema(tool.parameters, names, texts);
  // Weights were tuned on half of the questions in `bench/search_questions.ts`.
  return [
    [tool.name, 5, 4],
    [tool.title ?? "", 3, 4],
    [tool.namespace ?? "", 2, 1],
    [join(tool.tags), 2, 3],
    [tool.category ?? "", 2, 1],
    [join([tool.description]), 1, 20],
    [join(names), 0.5, 10],
    [join(texts), 0.2, 40],
  ];
}

function join(texts: readonly string[]): string {
  return texts.join(" ").slice(0, MAX_TEXT);
}

/**
 * Collects names of parameters and the values they list (a tool with a `method` parameter does what
 * its values say), and descriptions. Breadth first, so that a large schema is read from its root.
 */
function readSchema(root: unknown, names: string[], texts: string[]): void {
  const queue = [root];
  for (let index = 0; index < queue.length; index++) {
    for (const [key, value] of entries(queue[index])) {
      if (key === "properties") {
        for (const [name, schema] of entries(value)) {
          names.push(name);
          queue.push(schema);
        }
      } else if (key === "enum" || key === "const") {
        names.push(...[value].flat().slice(0, MAX_SCHEMAS).filter(isText));
      } else if (isText(value)) {
        if (key === "description" || key === "title") texts.push(value);
      } else {
        queue.push(value);
      }
    }
    queue.length = Math.min(queue.length, MAX_SCHEMAS);
  }
}

function entries(value: unknown): [string, unknown][] {
  return typeof value === "object" && value !== null
    ? Object.entries(value).slice(0, MAX_SCHEMAS)
    : [];
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

/** The indexes of sources that keep none, by their list of tools, which never changes. */
const indexes = new WeakMap<readonly Tool[], ToolIndex>();

/**
 * The available tools of a toolset that fit a query, best first.
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
 * assert.equal(searchToolset(toolset, "write a file")[0]?.id, "file-write");
 * ```
 *
 * @param toolset Where to search.
 * @param query Words, or an identifier, in any case.
 * @returns At most `limit` tools.
 * @throws {TypeError} If an option is unknown.
 * @throws {RangeError} If the limit is not a whole number, 0 or above.
 */
export function searchToolset(
  toolset: Toolset,
  query: string,
  options: ToolSearchOptions = {},
): readonly Tool[] {
  return findTools(toolset, query, options, 10, indexOf);
}

function indexOf({ source }: Toolset): ToolIndex {
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
