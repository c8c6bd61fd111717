/**
 * Sets of characters, as sorted ranges of code points.
 *
 * @module
 */

/** `[first, last, first, last, …]`, sorted and apart. */
export type CharacterSet = readonly number[];

const LAST = 0x10ffff;

export const DIGITS: CharacterSet = [0x30, 0x39];
export const WORD: CharacterSet = [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a];
/** What JavaScript's `\s` takes. */
export const SPACE: CharacterSet = [
  ...[0x09, 0x0d, 0x20, 0x20, 0xa0, 0xa0, 0x1680, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029],
  ...[0x202f, 0x202f, 0x205f, 0x205f, 0x3000, 0x3000, 0xfeff, 0xfeff],
];
/** What JavaScript's `.` takes. */
export const ANY: CharacterSet = invert([0x0a, 0x0a, 0x0d, 0x0d, 0x2028, 0x2029]);

/** Whether a code point is in the set. */
export function contains(set: CharacterSet, point: number): boolean {
  for (let index = 0; index < set.length; index += 2) {
    if (point < (set[index] ?? 0)) return false;
    if (point <= (set[index + 1] ?? 0)) return true;
  }
  return false;
}

/** Whether a code unit is one of `\w`; `NaN`, beyond the text, is not. */
export function isWord(unit: number): boolean {
  return contains(WORD, unit);
}

/** Sorts ranges and joins those that touch. */
export function normalise(ranges: readonly number[]): CharacterSet {
  const pairs: [number, number][] = [];
  for (let index = 0; index < ranges.length; index += 2) {
    pairs.push([ranges[index] ?? 0, ranges[index + 1] ?? 0]);
  }
  pairs.sort((a, b) => a[0] - b[0]);
  const result: number[] = [];
  for (const [first, last] of pairs) {
    const end = result.length - 1;
    const previous = result[end];
    if (previous !== undefined && first <= previous + 1) result[end] = Math.max(previous, last);
    else result.push(first, last);
  }
  return result;
}

/** Every code point that is not in the set, which is normalised. */
export function invert(set: CharacterSet): CharacterSet {
  const result: number[] = [];
  let next = 0;
  for (let index = 0; index < set.length; index += 2) {
    const first = set[index] ?? 0;
    if (first > next) result.push(next, first - 1);
    next = (set[index + 1] ?? 0) + 1;
  }
  if (next <= LAST) result.push(next, LAST);
  return result;
}

/** Adds the other case of each letter. Large ranges stand for more than letters, and stay. */
export function foldCase(set: CharacterSet): CharacterSet {
  const ranges = [...set];
  for (let index = 0; index < set.length; index += 2) {
    const first = set[index] ?? 0;
    const last = Math.min(set[index + 1] ?? 0, first + 1024);
    for (let point = first; point <= last; point++) {
      const letter = String.fromCodePoint(point);
      for (const other of [letter.toLowerCase(), letter.toUpperCase()]) {
        const folded = other.codePointAt(0);
        // "ß" becomes "SS": two letters are no other case of one.
        if (folded !== undefined && other.length === String.fromCodePoint(folded).length) {
          ranges.push(folded, folded);
        }
      }
    }
  }
  return normalise(ranges);
}
