/**
 * Finds the words that a mistyped or unfinished word may mean.
 *
 * @module
 */

/** Damerau-Levenshtein distance (adjacent letters swapped count once), or `limit + 1` if above. */
export function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let before: number[] = [];
  let previous: number[] = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    let least = i;
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min(
        at(previous, j) + 1,
        at(row, j - 1) + 1,
        at(previous, j - 1) + (same ? 0 : 1),
      );
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, at(before, j - 2) + 1);
      }
      row.push(cost);
      least = Math.min(least, cost);
    }
    if (least > limit) return limit + 1;
    before = previous;
    previous = row;
  }
  return at(previous, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Infinity;
}

/** One bit per letter that occurs, so that most words are ruled out by one comparison. */
export function letterMask(word: string): number {
  let mask = 0;
  for (let index = 0; index < word.length; index++) mask |= 1 << (word.charCodeAt(index) & 31);
  return mask;
}

/** How many bits two masks differ in. One edit changes two at most. */
export function maskDifference(a: number, b: number): number {
  let bits = a ^ b;
  let count = 0;
  for (; bits !== 0; count++) bits &= bits - 1;
  return count;
}

/** How many typing errors a word of that length may have. */
export function allowedEdits(length: number): number {
  return length < 4 ? 0 : length < 8 ? 1 : 2;
}
