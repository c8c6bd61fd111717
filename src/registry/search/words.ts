/**
 * Words: how a text is split into them, which form of a word is its stem, which words a mistyped one
 * may mean, and which words people use for one another when they look for a tool.
 *
 * @module
 */

import { type Check, isWithinEdits, refuse } from "../../tool/mod.ts";

/** Longer words are cut, so that the keys of the index stay short. */
const MAX_WORD = 48;

/** Scripts that do not put spaces between words: pairs of letters stand for words there. */
const UNSPACED = String
  .raw`[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmr}\p{scx=Mymr}]`;
const LETTER = String.raw`[\p{L}\p{M}\p{N}]`;
const unspaced = new RegExp(UNSPACED, "u");
const chunk = new RegExp(`(?:(?=${LETTER})${UNSPACED})+|(?:(?!${UNSPACED})${LETTER})+`, "gu");
const asciiChunk = /[a-z\d]+/gi;
// "PRs" is one word; "HTTPServer2" is three.
const PART = /\p{Lu}{2,}s(?!\p{L})|\p{Lu}+(?![^\p{Lu}\p{N}])|\p{Lu}?[^\p{Lu}\p{N}]+|\p{N}+/gu;
/** Most words: nothing to split. */
const PLAIN = /^[a-z]+$/;
const ASCII = /^[\0-\x7f]*$/;
/** Accents, and the vowels, hamzas and stretches of Arabic. */
const MARKS = /[\u0300-\u036f\u0640\u064b-\u0655]+/g;

/**
 * The words of a text in lower case, in order, at most `limit`. Case, accents and punctuation do not
 * matter, and letters are those of any script.
 *
 * An identifier is split where people see words in it (`file-write`,
 * `HTTPServer2`), and is a word itself: `GitHub` gives `git`, `hub`, `github`.
 */
export function splitWords(text: string, limit: number): string[] {
  const words: string[] = [];
  for (const run of runs(text)) {
    if (words.length >= limit) break;
    if (PLAIN.test(run)) {
      words.push(run.slice(0, MAX_WORD));
      continue;
    }
    const parts = run.match(PART) ?? [];
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

/** The whole text as one word: `file-write`, `fileWrite` and "file write" are the same here. */
export function joinWords(text: string): string {
  return runs(text).join("").toLowerCase();
}

function lower(word: string): string {
  return word.slice(0, MAX_WORD).toLowerCase();
}

/**
 * Letters and digits without a break, in one script where a script has no spaces. Compatibility
 * forms are usual letters (full width, ligatures), and letters have no accents.
 */
function runs(text: string): readonly string[] {
  const found = ASCII.test(text)
    ? text.match(asciiChunk)
    : text.normalize("NFKD").replace(MARKS, "").normalize("NFC").match(chunk);
  return found ?? [];
}

/**
 * The stem of one lower-case word: "deletes", "deleted", "deleting" and "deletion" have the same. It
 * need not be a word. An Arabic word loses its article. Other words stay as they are.
 */
export function stem(word: string): string {
  // The Arabic article, and what is written together with it: and, with, like, so.
  if (!/^[a-z]{3,}$/.test(word)) return word.replace(/^[وبكف]?ال(?=..)/, "");
  return word
    .replace(/(ss|sh|ch|x|zz)es$|([^sui])s$/, "$1$2")
    // Not "string": what is left must have a vowel.
    .replace(/^(?=.{5})([^aeiouy]*[aeiouy].*)(ing|ed)$/, "$1")
    .replace(/^(.{5,})ment$|^(.{3,}[st])ion$/, "$1$2")
    .replace(/^(.{4,})er$/, "$1")
    .replace(/^(.{3,})e$/, "$1")
    .replace(/^(.{3,})y$/, "$1i")
    .replace(/([^aeiou])\1$/, "$1");
}

/**
 * The words among `known` that begin with `word`, or are one typing error away from it (two from
 * eight letters on, none below four), with their likeness, 0 to 1; the likeliest come first. Nothing
 * is guessed for words with digits, nor for one or two Latin letters.
 *
 * @param known Words with the same first letter.
 */
export function closeWords(word: string, known: Iterable<string>): [string, number][] {
  if (/\p{N}|^[a-z]{1,2}$/u.test(word)) return [];
  const limit = word.length < 4 ? 0 : word.length < 8 ? 1 : 2;
  const letters = letterMask(word);
  const second = word.charCodeAt(1);
  const found: [string, number][] = [];
  for (const other of known) {
    const longer = other.length - word.length;
    // The second letter says no to most words, sooner than "startsWith" does.
    if (longer >= 0 && (limit === 0 || other.charCodeAt(1) === second) && other.startsWith(word)) {
      found.push([other, 0.5 + word.length / other.length / 2]);
    } else if (
      longer <= limit && longer >= -limit &&
      bitCount(letters ^ letterMask(other)) <= 2 * limit &&
      isWithinEdits(word, other, limit)
    ) {
      found.push([other, isWithinEdits(word, other, 1) ? 1 : 0.5]);
    }
  }
  return found.sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

/** A bit per letter. One typing error changes two at most, so one comparison rules most words out. */
function letterMask(word: string): number {
  let mask = 0;
  for (let index = 0; index < word.length; index++) mask |= 1 << word.charCodeAt(index);
  return mask;
}

function bitCount(bits: number): number {
  let count = 0;
  for (; bits !== 0; count++) bits &= bits - 1;
  return count;
}

/** Words that say nothing about a tool. */
const STOP_WORDS =
  "a about all am an and any are as be by can could do does for from had has have how i if in into is it its like me my need of on or our please so some that the their them there these they this those to tool use via was we what when where which who will with would you your";

/** Abbreviations with what they stand for, and groups of words that are used for one another. */
const WORDS =
  "pr=pull request|repo=repository|dir=directory|org=organization|config=configuration|db=database|doc=document|env=environment|whoami=current user profile|delete remove drop erase discard|create make new add open|list show get fetch view read|open read view|update edit change modify set|write save put|rename title|search find lookup query grep|comment reply answer|ci workflow pipeline build job|directory folder|run execute trigger start|stop cancel abort|copy duplicate clone fork|issue ticket bug|user person account member|latest newest last recent|version release|notification inbox alert|terminal shell command|send post submit|access permission|log history";

/** The lexicon, every word as its stem. */
export interface Lexicon {
  readonly stopWords: ReadonlySet<string>;
  readonly abbreviations: ReadonlyMap<string, readonly string[]>;
  readonly synonyms: ReadonlyMap<string, readonly string[]>;
  /** What abbreviations and synonyms begin with. */
  readonly beginnings: ReadonlySet<string>;
}

let known: Lexicon | undefined;

/**
 * The lexicon, with lines of a user's besides. Without such lines it is made once, on first use: a
 * program that never searches does not pay for it.
 */
export function lexicon(lines: readonly string[] = []): Lexicon {
  if (lines.length === 0 && known !== undefined) return known;
  const abbreviations = new Map<string, readonly string[]>();
  const synonyms = new Map<string, readonly string[]>();
  for (const line of [...WORDS.split("|"), ...lines]) {
    const [group = [], long] = line.split("=").map(stems);
    for (const word of group) {
      if (long !== undefined) abbreviations.set(word, long);
      else synonyms.set(word, [...new Set([...synonyms.get(word) ?? [], ...group])]);
    }
  }
  const beginnings = new Set<string>();
  for (const word of [...abbreviations.keys(), ...synonyms.keys()]) {
    for (let end = 1; end < word.length; end++) beginnings.add(word.slice(0, end));
  }
  const made = { stopWords: new Set(stems(STOP_WORDS)), abbreviations, synonyms, beginnings };
  if (lines.length === 0) known = made;
  return made;
}

/** More words than a line of a lexicon has. */
const MAX_LINE = 1_024;

function stems(words: string): string[] {
  return splitWords(words, MAX_LINE).map(stem);
}

/** Checks a user's lines of the lexicon. */
export const checkLines: Check<readonly string[]> = (action, value, place) => {
  const isLine = (line: unknown): boolean =>
    typeof line === "string" && stems(line).length > 1 && line.split("=").length < 3 &&
    line.split("=").every((part) => stems(part).length > 0);
  if (Array.isArray(value) && value.every(isLine)) return value;
  refuse(action, `${place} must be a list of texts like "bill invoice" or "so = sales order"`);
};
