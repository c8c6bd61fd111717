/**
 * Patterns that come from a model: regular expressions and globs. Both are matched by libraries that
 * never backtrack, because with JavaScript's own `RegExp` one bad pattern could stop the server.
 * What they match at once is bounded too: linear time is the size of the pattern times the length of
 * the text.
 *
 * @module
 */

import { braceExpand, Minimatch, type MinimatchOptions } from "minimatch";
import { RE2JS, RE2JSSyntaxException } from "re2js";
import { Refusal } from "./refusal.ts";

/** Where a match begins and ends, in code units. */
export interface Match {
  readonly start: number;
  readonly end: number;
}

/** Finds text. */
export interface Finder {
  /** How many steps one character of text can cost. */
  readonly size: number;
  /** How much text can be searched at once. */
  readonly maxLength: number;
  /** The first match in `text`, which has at most `maxLength` characters. */
  find(text: string): Match | undefined;
}

/** How many characters of a line are searched, with a small pattern. */
export const MAX_LINE_LENGTH = 10_000;
/** How many steps one search takes at most. In the worst case a step takes up to 400 nanoseconds. */
const MAX_STEPS = 100_000;
/** With a larger program only the beginnings of lines could be searched. */
const MAX_PROGRAM = 1_000;
/** A larger estimate of the program is refused before it is compiled, which could take a second. */
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
  if (pattern.length * repetitions(pattern) > MAX_ESTIMATE) throw repeatsTooMuch();
  let regex: RE2JS;
  try {
    regex = RE2JS.compile(RE2JS.translateRegExp(pattern), ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
  } catch (cause) {
    if (!(cause instanceof RE2JSSyntaxException)) throw cause;
    const reason = cause.message.replace("error parsing regexp: ", "").replaceAll("`", '"');
    throw new SyntaxError(`Cannot compile the pattern: ${reason}`, { cause });
  }
  const size = regex.programSize();
  if (size > MAX_PROGRAM) throw repeatsTooMuch();
  return {
    size,
    maxLength: Math.min(MAX_LINE_LENGTH, Math.floor(MAX_STEPS / size)),
    find(text) {
      // `test` is faster than a search for the place, and most lines do not match.
      if (!regex.test(text)) return undefined;
      const matcher = regex.matcher(text);
      return matcher.find() ? { start: matcher.start(), end: matcher.end() } : undefined;
    },
  };
}

/** How often a part of the pattern can be copied at most. RE2 refuses products above 1,000. */
function repetitions(pattern: string): number {
  const counts = pattern.match(/\d+(?=\})/g) ?? [];
  return Math.min(
    1_000,
    counts.reduce((product, count) => product * Math.max(1, Number(count)), 1),
  );
}

function repeatsTooMuch(): SyntaxError {
  return new SyntaxError("Cannot compile the pattern: it repeats too much; use smaller numbers");
}

/** Finds plain text. Without operators, JavaScript's matching takes few steps for each character. */
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

/** Says whether a path, relative and with `/`, fits. */
export type PathMatcher = (path: string) => boolean;

const GLOB: MinimatchOptions = {
  dot: true,
  matchBase: true,
  nocomment: true,
  noext: true,
  nonegate: true,
  // Paths of the workspace have "/" on every system.
  platform: "linux",
};
/** Each alternative in braces becomes a pattern of its own, and takes time to compile. */
const MAX_ALTERNATIVES = 100;
const MAX_ALTERNATIVES_LENGTH = 4_000;

/**
 * Makes a matcher of paths. A pattern without `/` is matched against the last part of the path, at
 * any depth: `*.ts` finds `src/a.ts`.
 *
 * @throws {SyntaxError} If its braces stand for too many patterns.
 */
export function globMatcher(pattern: string): PathMatcher {
  const wanted = pattern.replace(/^\.?\//, "");
  const alternatives = braceExpand(wanted, { braceExpandMax: MAX_ALTERNATIVES + 1 });
  const length = alternatives.reduce((sum, one) => sum + one.length, 0);
  if (
    alternatives.length > MAX_ALTERNATIVES ||
    (alternatives.length > 1 && length > MAX_ALTERNATIVES_LENGTH)
  ) {
    throw new SyntaxError("Cannot compile the pattern: its braces stand for too many patterns");
  }
  const glob = new Minimatch(wanted, GLOB);
  return (path) => glob.match(path);
}

/** Compiles a caller's pattern. One that cannot be compiled is refused, with the argument's place. */
export function compiled<T>(pointer: string, compile: () => T): T {
  try {
    return compile();
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new Refusal("invalid_arguments", error.message, { pointer, cause: error });
  }
}
