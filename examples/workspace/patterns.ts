/**
 * Patterns of a model. Regular expressions are matched by a library that does not backtrack: with
 * JavaScript's own `RegExp` one pattern could stop the server. The text is bounded too, because
 * linear time is the size of the pattern times the length of the text.
 */

import { RE2JS, RE2JSSyntaxException } from "re2js";

/** The beginning and the end of a match, in code units. */
export interface Match {
  readonly start: number;
  readonly end: number;
}

/** Finds text. */
export interface Finder {
  /** The maximum number of steps for one character of text. */
  readonly size: number;
  /** The maximum length of a text. */
  readonly maxLength: number;
  /** Returns the first match in `text`, which has at most `maxLength` characters. */
  find(text: string): Match | undefined;
}

/** The number of characters of a line that are searched with a small pattern. */
export const MAX_LINE_LENGTH = 10_000;
/** The maximum number of steps of one search. A step takes up to 400 nanoseconds. */
const MAX_STEPS = 100_000;
/** With a larger program only the beginnings of lines could be searched. */
const MAX_PROGRAM = 1_000;
/** A larger estimate is rejected before compilation, which could take a second. */
const MAX_ESTIMATE = 200_000;
const MAX_PATTERN = 1_000;

/**
 * Compiles a regular expression in the syntax of RE2, which is JavaScript's without look-around and
 * back references.
 *
 * @throws {SyntaxError} If it is malformed, too large, or uses what RE2 does not support.
 */
export function regexFinder(pattern: string, ignoreCase: boolean): Finder {
  if (pattern.length > MAX_PATTERN) {
    throw new SyntaxError(
      `Cannot compile the pattern: it must be at most ${MAX_PATTERN} characters long`,
    );
  }
  const repeatsTooMuch = "Cannot compile the pattern: it repeats too much; use smaller numbers";
  if (pattern.length * repetitions(pattern) > MAX_ESTIMATE) throw new SyntaxError(repeatsTooMuch);
  let regex: RE2JS;
  try {
    regex = RE2JS.compile(RE2JS.translateRegExp(pattern), ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
  } catch (cause) {
    if (!(cause instanceof RE2JSSyntaxException)) throw cause;
    const reason = cause.message.replace("error parsing regexp: ", "").replaceAll("`", '"');
    throw new SyntaxError(`Cannot compile the pattern: ${reason}`, { cause });
  }
  const size = regex.programSize();
  if (size > MAX_PROGRAM) throw new SyntaxError(repeatsTooMuch);
  return {
    size,
    maxLength: Math.min(MAX_LINE_LENGTH, Math.floor(MAX_STEPS / size)),
    find(text) {
      // `test` is faster than `find`, and most lines do not match.
      if (!regex.test(text)) return undefined;
      const matcher = regex.matcher(text);
      return matcher.find() ? { start: matcher.start(), end: matcher.end() } : undefined;
    },
  };
}

/** Returns the maximum number of copies of a part. RE2 allows 1,000. */
function repetitions(pattern: string): number {
  const counts = pattern.match(/\d+(?=\})/g) ?? [];
  return Math.min(
    1_000,
    counts.reduce((product, count) => product * Math.max(1, Number(count)), 1),
  );
}

/** Finds plain text. Without operators JavaScript's matching takes few steps per character. */
export function textFinder(pattern: string, ignoreCase: boolean): Finder {
  const literal = new RegExp(
    pattern.replace(/[.*+?^${}()|[\]\\/-]/g, (one) => one === "-" ? "\\x2d" : `\\${one}`),
    ignoreCase ? "iu" : "u",
  );
  return {
    size: Math.ceil(pattern.length / 100),
    maxLength: MAX_LINE_LENGTH,
    find(text) {
      const match = literal.exec(text);
      return match === null
        ? undefined
        : { start: match.index, end: match.index + match[0].length };
    },
  };
}
