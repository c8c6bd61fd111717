/**
 * Finds the words that a mistyped or unfinished word may mean.
 *
 * @module
 */

import { isWithin } from "../../tool/mod.ts";

/** How many words one word may mean. */
const MAX_GUESSES = 8;

/**
 * The words among `known` that begin with `word`, or are one typing error away from it (two from
 * eight letters on, none below four), with their likeness, 0 to 1; the likeliest eight.
 */
export function closeWords(word: string, known: Iterable<string>): [string, number][] {
  const limit = word.length < 4 ? 0 : word.length < 8 ? 1 : 2;
  const letters = letterMask(word);
  const found: [string, number][] = [];
  for (const other of known) {
    if (other.startsWith(word)) {
      found.push([other, 0.5 + word.length / other.length / 2]);
    } else if (
      Math.abs(other.length - word.length) <= limit &&
      bitCount(letters ^ letterMask(other)) <= 2 * limit &&
      isWithin(word, other, limit)
    ) {
      found.push([other, isWithin(word, other, 1) ? 1 : 0.5]);
    }
  }
  return found.sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, MAX_GUESSES);
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
