/**
 * Finds the words that a mistyped or unfinished word may mean.
 *
 * @module
 */

/** How many words one word may mean. */
const MAX_GUESSES = 8;

/**
 * The words among `known` that begin with `word`, or are one typing error away (two from eight
 * letters on), with their likeness, 0 to 1; the likeliest eight.
 */
export function closeWords(word: string, known: Iterable<string>): [string, number][] {
  const limit = word.length < 4 ? 0 : word.length < 8 ? 1 : 2;
  const letters = letterMask(word);
  const found: [string, number][] = [];
  for (const other of known) {
    if (other.startsWith(word)) found.push([other, 0.5 + word.length / other.length / 2]);
    else if (
      Math.abs(other.length - word.length) <= limit &&
      differentBits(letters ^ letterMask(other)) <= 2 * limit
    ) {
      const distance = editDistance(word, other, limit);
      if (distance <= limit) found.push([other, 1 / distance]);
    }
  }
  return found.sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, MAX_GUESSES);
}

/** One bit per letter that occurs. One typing error changes two at most, so most words are ruled out. */
function letterMask(word: string): number {
  let mask = 0;
  for (let index = 0; index < word.length; index++) mask |= 1 << word.charCodeAt(index);
  return mask;
}

function differentBits(bits: number): number {
  let count = 0;
  for (; bits !== 0; count++) bits &= bits - 1;
  return count;
}

/** Edits from `a` to `b`; two letters in the wrong order are one. Stops early above `limit`. */
function editDistance(a: string, b: string, limit: number): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let edits = Math.min(at(row, j) + 1, at(next, j - 1) + 1, at(row, j - 1) + (same ? 0 : 1));
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        edits = Math.min(edits, at(before, j - 2) + 1);
      }
      next.push(edits);
    }
    if (Math.min(...next) > limit) return Infinity;
    before = row;
    row = next;
  }
  return at(row, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Infinity;
}
