/**
 * The words of issues: one plain style, written for a model to act on. Values are clipped, so that
 * a message never echoes a whole input.
 *
 * @module
 */

import { clip, type Issue } from "../tool/mod.ts";

/** How many names or values a message lists. */
const MAX_LISTED = 10;
/** Names that differ in more letters are not taken for a slip of the pen. */
const MAX_SLIPS = 2;
/** Longer names are not compared: comparing costs the product of their lengths. */
const MAX_COMPARED = 40;

const TYPE_WORDS: { readonly [type: string]: string } = {
  array: "an array",
  boolean: "a boolean",
  integer: "an integer",
  null: "null",
  number: "a number",
  object: "an object",
  string: "a string",
};

/**
 * Makes an issue whose message reads "/city must be a string".
 *
 * @param path Where in the value, as a JSON Pointer.
 * @param keyword The keyword that failed.
 * @param expected What would be right, such as `a string`.
 * @param verb What joins them: `be`, `have`, `not have`.
 * @param remark What follows the sentence, such as `, not a number`.
 */
export function issue(
  path: string,
  keyword: string,
  expected: string,
  verb: string = "be",
  remark: string = "",
): Issue {
  const subject = path === "" ? "The value" : path;
  return {
    path,
    keyword,
    expected: verb === "be" ? expected : `${verb} ${expected}`,
    message: `${subject} must ${verb} ${expected}${remark}`,
  };
}

/** What is said of a value when nothing better is known. */
export function vagueIssue(): Issue {
  return issue("", "schema", "a value that its schema accepts");
}

/** `a string`, or for a list `a string or null`. */
export function typeWords(types: readonly string[]): string {
  return orList(types.map((type) => TYPE_WORDS[type] ?? type));
}

/** The JSON type of a value, for "…, not a number". */
export function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value;
}

/** `"a"`, or for several `one of "a", "b"`. */
export function valueWords(values: readonly unknown[]): string {
  const words = values.slice(0, MAX_LISTED).map(quote).join(", ");
  const more = values.length - MAX_LISTED;
  if (values.length === 1) return words;
  return more > 0 ? `one of ${words} or ${more} more` : `one of ${words}`;
}

/** A value in JSON, clipped. */
export function quote(value: unknown): string {
  // Clipped first, so that a huge string is not copied in whole.
  if (typeof value === "string") return JSON.stringify(clip(value));
  return clip(JSON.stringify(value) ?? typeof value);
}

/** `a`, `a or b`, `a, b or c`. */
export function orList(words: readonly string[]): string {
  const different = [...new Set(words)];
  return different.length < 2
    ? different.join("")
    : `${different.slice(0, -1).join(", ")} or ${different.at(-1)}`;
}

/** `1 item`, `2 properties`. */
export function counted(count: number, noun: "character" | "item" | "property"): string {
  if (count === 1) return `1 ${noun}`;
  return `${count} ${noun === "property" ? "properties" : `${noun}s`}`;
}

/** What to do about an unknown property: the name that was meant, or the names there are. */
export function nameHint(name: string, known: readonly string[]): string {
  const meant = known.find((candidate) => bare(candidate) === bare(name)) ??
    known.slice(0, 100).find((candidate) => slips(name, candidate) <= MAX_SLIPS);
  if (meant !== undefined) return `: did you mean ${quote(meant)}?`;
  return known.length === 0
    ? ": it has no properties"
    : `: it may have ${known.slice(0, MAX_LISTED).map(quote).join(", ")}${
      known.length > MAX_LISTED ? " and others" : ""
    }`;
}

/** A name without what spellings differ in: `filePath` and `file_path` are the same. */
function bare(name: string): string {
  return clip(name, MAX_COMPARED).toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}

/** How many letters were added, dropped, changed or swapped with a neighbour. */
function slips(a: string, b: string): number {
  const longest = Math.max(a.length, b.length);
  // In a short name two slips make a different word.
  if (longest > MAX_COMPARED || Math.abs(a.length - b.length) > MAX_SLIPS || longest < 3) {
    return Infinity;
  }
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let least = Math.min(at(above, j) + 1, at(row, j - 1) + 1, at(above, j - 1) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, at(before, j - 2) + 1);
      }
      row.push(least);
    }
    before = above;
    above = row;
  }
  const found = at(above, b.length);
  return longest < 6 && found > 1 ? Infinity : found;
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Infinity;
}
