/** Words: splitting a text, stems, typing errors, the lexicon, and the searched texts of a tool. */

import { type Check, cutMarks, fail, isText, isWithinEdits, type Tool } from "../../tool/mod.ts";
import type { ToolField } from "./find.ts";

/** Longer words are cut, so that the keys of the index stay short. */
const MAX_WORD = 48;

/** Scripts without spaces between words. In these scripts, pairs of letters are used as words. */
const UNSPACED = String
  .raw`[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmr}\p{scx=Mymr}]`;
const LETTER = String.raw`[\p{L}\p{M}\p{N}]`;
// Created by the first search, because the engine reads long Unicode tables for this pattern.
let unspaced: RegExp | undefined;
let chunk: RegExp | undefined;
const asciiChunk = /[a-z\d]+/gi;
/** Matches most words. These words need no splitting. */
const PLAIN = /^[a-z]+$/;
const ASCII = /^[\0-\x7f]*$/;
/** Accents, and the vowels, hamzas and stretches of Arabic. */
const MARKS = /[\u0300-\u036f\u0640\u064b-\u0655]+/g;

/**
 * Returns at most `limit` words of a text, in order and in lower case. Case, accents and
 * punctuation do not matter. Letters of all scripts are supported.
 *
 * An identifier is split into its words (`file-write`, `HTTPServer2`), and is also a word itself:
 * `GitHub` gives `git`, `hub`, `github`.
 */
export function splitWords(text: string, limit: number): string[] {
  const words: string[] = [];
  unspaced ??= new RegExp(UNSPACED, "u");
  for (const run of runs(text)) {
    if (words.length >= limit) break;
    if (PLAIN.test(run)) {
      words.push(run.slice(0, MAX_WORD));
      continue;
    }
    // "PRs" is one word; "HTTPServer2" is three.
    const parts = run.match(
      /\p{Lu}{2,}s(?!\p{L})|\p{Lu}+(?![^\p{Lu}\p{N}])|\p{Lu}?[^\p{Lu}\p{N}]+|\p{N}+/gu,
    ) ?? [];
    for (const part of parts) {
      const letters = unspaced.test(part) ? Array.from(part) : [];
      if (letters.length < 2) words.push(lower(part));
      for (let end = 2; end <= letters.length && words.length < limit; end++) {
        words.push(letters.slice(end - 2, end).join(""));
      }
    }
    if (parts.length > 1) words.push(lower(run));
  }
  return words.slice(0, limit);
}

/** Returns a text as one word: the same for `file-write`, `fileWrite` and "file write". */
export function joinWords(text: string): string {
  return runs(text).join("").toLowerCase();
}

function lower(word: string): string {
  return word.slice(0, MAX_WORD).toLowerCase();
}

/**
 * Returns sequences of letters and digits, each in one script if the script has no spaces.
 * Compatibility forms (full width, ligatures) become usual letters, and letters lose their accents.
 */
function runs(text: string): readonly string[] {
  chunk ??= new RegExp(`(?:(?=${LETTER})${UNSPACED})+|(?:(?!${UNSPACED})${LETTER})+`, "gu");
  const found = ASCII.test(text)
    ? text.match(asciiChunk)
    : cutMarks(text).normalize("NFKD").replace(MARKS, "").normalize("NFC").match(chunk);
  return found ?? [];
}

/**
 * Returns the stem of one lower-case word: the same for "deletes", "deleted", "deleting" and
 * "deletion". It need not be a word. An Arabic word loses its article. Other words are unchanged.
 */
export function stem(word: string): string {
  // The Arabic article, with the particles that are attached to it: and, with, like, so.
  if (!/^[a-z]{3,}$/.test(word)) return word.replace(/^[وبكف]?ال(?=..)/, "");
  return word
    .replace(/(ss|sh|ch|x|zz)es$|([^sui])s$/, "$1$2")
    // "string" is not stemmed, because the rest of a stemmed word must have a vowel.
    .replace(/^(?=.{5})([^aeiouy]*[aeiouy].*)(ing|ed)$/, "$1")
    .replace(/^(.{5,})ment$|^(.{3,}[st])ion$/, "$1$2")
    .replace(/^(.{4,})er$/, "$1")
    .replace(/^(.{3,})e$/, "$1")
    .replace(/^(.{3,})y$/, "$1i")
    .replace(/([^aeiou])\1$/, "$1");
}

/**
 * Returns the words in `known` that begin with `word` or differ by one typing error (two from eight
 * letters on, none below four). The result has their similarity, 0 to 1, and begins with the
 * likeliest. For words with digits, and for one or two Latin letters, nothing is guessed.
 */
export function closeWords(word: string, known: Iterable<string>): [string, number][] {
  if (/\p{N}|^[a-z]{1,2}$/u.test(word)) return [];
  const limit = word.length < 4 ? 0 : word.length < 8 ? 1 : 2;
  const second = word.charCodeAt(1);
  const found: [string, number][] = [];
  for (const other of known) {
    const longer = other.length - word.length;
    // Comparing the second letter first excludes most words, and is faster than "startsWith".
    if (longer >= 0 && (limit === 0 || other.charCodeAt(1) === second) && other.startsWith(word)) {
      found.push([other, 0.5 + word.length / other.length / 2]);
    } else if (longer <= limit && longer >= -limit && isWithinEdits(word, other, limit)) {
      found.push([other, isWithinEdits(word, other, 1) ? 1 : 0.5]);
    }
  }
  return found.sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

const STOP_WORDS =
  "a about all am an and any are as be by can could do does for from had has have how i if in into is it its like me my need of on or our please so some that the their them there these they this those to tool use via was we what when where which who will with would you your";

/**
 * Abbreviations with their long forms, and groups of synonyms. A digit before a group is the action
 * of its verbs, as bits: 1 reads, 2 creates, 4 updates, 8 deletes.
 */
const WORDS =
  "my=authenticated|pr=pull request|repo=repository|dir=directory|org=organization|config=configuration|db=database|doc=document|env=environment|whoami=current user profile|8 delete remove drop erase discard|2 create make new add open|1 list show get fetch view read|1 open read view|4 update edit change modify set|6 write save put|rename title|1 search find lookup query grep|2 comment reply answer|ci workflow pipeline build job|directory folder|run execute trigger start|stop cancel abort|copy duplicate clone fork|issue ticket bug|user person account member|latest newest last recent|version release|notification inbox alert|terminal shell command|2 send post submit|access permission|log history";

/** Other verbs, and question words, with their actions. */
const VERBS =
  "1 check describe download display count what which who whose where when my|2 publish invite insert upload|4 add assign close rename replace|12 write manage";

/**
 * Returns the actions of the verbs that begin a text, as bits: "Create or update a file" creates
 * and updates. Stop words before the verb are skipped.
 *
 * @param anywhere True if the verb may follow other words, as in the name `issues_list`.
 */
export function actionsOf(text: string, anywhere = false): number {
  const { actions, stopWords } = lexicon();
  let found = 0;
  for (const word of splitWords(text.slice(0, MAX_ACTION_TEXT), MAX_LINE).map(stem)) {
    const bits = actions.get(word) ?? 0;
    found |= bits;
    if (bits === 0 && word !== "or" && (found > 0 || !(anywhere || stopWords.has(word)))) break;
  }
  return found;
}

const MAX_ACTION_TEXT = 100;

/** The lexicon. Its words are stems. */
export interface Lexicon {
  readonly stopWords: ReadonlySet<string>;
  readonly abbreviations: ReadonlyMap<string, readonly string[]>;
  readonly synonyms: ReadonlyMap<string, readonly string[]>;
  /** The actions of verbs, as bits. */
  readonly actions: ReadonlyMap<string, number>;
}

let known: Lexicon | undefined;

/** Returns the lexicon with a user's lines. Without lines, all callers share one lexicon. */
export function lexicon(lines: readonly string[] = []): Lexicon {
  if (lines.length === 0 && known !== undefined) return known;
  const abbreviations = new Map<string, readonly string[]>();
  const synonyms = new Map<string, readonly string[]>();
  const actions = new Map<string, number>();
  for (const line of [...WORDS.split("|"), ...lines]) {
    const [group = [], long] = line.replace(/^\d /, "").split("=").map(stems);
    for (const word of group) {
      const bits = (actions.get(word) ?? 0) | parseInt(line);
      if (bits > 0) actions.set(word, bits);
      if (long !== undefined) abbreviations.set(word, long);
      else synonyms.set(word, [...new Set([...synonyms.get(word) ?? [], ...group])]);
    }
  }
  for (const line of VERBS.split("|")) {
    for (const word of stems(line)) actions.set(word, (actions.get(word) ?? 0) | parseInt(line));
  }
  const made = { stopWords: new Set(stems(STOP_WORDS)), abbreviations, synonyms, actions };
  if (lines.length === 0) known = made;
  return made;
}

const MAX_LINE = 1_024;

function stems(words: string): string[] {
  return splitWords(words, MAX_LINE).map(stem);
}

export const checkLines: Check<readonly string[]> = (action, value, place) => {
  const isLine = (line: unknown): boolean =>
    typeof line === "string" && stems(line).length > 1 && line.split("=").length < 3 &&
    line.split("=").every((part) => stems(part).length > 0);
  if (Array.isArray(value) && value.every(isLine)) return value;
  fail(action, `${place} must be a list of texts like "bill invoice" or "so = sales order"`);
};

/** A text, the weight of its words, its usual number of words, and its field. */
export type SearchField = readonly [
  text: string,
  weight: number,
  usualWords: number,
  field: ToolField,
];

/** The maximum number of characters of a field that are read. */
const MAX_TEXT = 8_192;
/** The maximum number of subschemas of a tool, and of entries of each subschema, that are read. */
const MAX_SCHEMAS = 256;

/** Returns the fields of a tool, from its name to the texts of its parameters. */
export function searchFields(tool: Tool): SearchField[] {
  const names: string[] = [];
  const texts: string[] = [];
  readSchema(tool.parameters, names, texts);
  // The weights were tuned on several catalogues together: see `bench/search_quality.ts`.
  return [
    [tool.name, 3, 4, "name"],
    [tool.title ?? "", 3, 4, "title"],
    [tool.namespace ?? "", 3, 2, "namespace"],
    [join(tool.tags), 2, 3, "tags"],
    [tool.category ?? "", 2, 1, "category"],
    [join([tool.description]), 1, 20, "description"],
    [join(names), 0.75, 10, "parameters"],
    [join(texts), 0.15, 40, "parameters"],
  ];
}

function join(texts: readonly string[]): string {
  return texts.join(" ").slice(0, MAX_TEXT);
}

/** Collects the parameters' names and listed values, and descriptions, from the root down. */
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
