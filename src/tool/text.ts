/**
 * Text: how messages show values that others made, what is left out of a foreign text, how near two
 * words are, and a hash.
 *
 * @module
 */

/** How much of a foreign text a message repeats, in characters. */
const MAX_QUOTED = 60;
/** How much of a thrown message is repeated, in characters. */
const MAX_THROWN = 500;

/** Cuts a text to `length` characters, between code points. */
export function clip(text: string, length: number = MAX_QUOTED): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 2);
  const end = last >= 0xd800 && last < 0xdc00 ? length - 2 : length - 1;
  return `${text.slice(0, end)}…`;
}

/** Controls but for tabs and line feeds, halves of characters, and other ends of lines. */
const CONTROLS = /(?![\t\n])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\ufff9-\ufffb]/gu;
/** What shows as nothing: directions, tags, characters without width. */
const INVISIBLE = /(?![\u200c\u200d\ufe0e\ufe0f])\p{Default_Ignorable_Code_Point}/gu;
/** Joiners and selectors, except one behind a character beyond ASCII: scripts and emoji need it. */
const STRAY =
  /(?<![^\p{ASCII}\p{Default_Ignorable_Code_Point}]\ufe0f?)[\u200c\u200d\ufe0e\ufe0f]/gu;

/**
 * A foreign text without its hidden characters, but for tabs and line feeds, cut to `length`
 * characters. People and models read it, so what it shows is what it says.
 */
export function cleanText(text: string, length: number): string {
  // Looking through more would take time and add nothing.
  const part = clip(text, 4 * length);
  return clip(part.replace(CONTROLS, "").replace(INVISIBLE, "").replace(STRAY, ""), length);
}

/**
 * The arguments of a call as JSON for the person who approves it. Invisible characters are written as
 * `\\u{202e}`: the person sees exactly what runs.
 *
 * @returns The text; `undefined` if it has more than `length` characters: no part of it is left out.
 */
export function argumentsText(args: unknown, length: number, indent?: number): string | undefined {
  const escape = (hidden: string): string => `\\u{${hidden.codePointAt(0)?.toString(16)}}`;
  // A stray joiner is one also where it follows a character that is escaped.
  const text = (JSON.stringify(args, null, indent) ?? "").replace(STRAY, escape)
    .replace(CONTROLS, escape).replace(INVISIBLE, escape);
  return text.length <= length ? text : undefined;
}

/** A value in a few words: text in quotes; of a list, an object or a function only what it is. */
export function describe(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(clip(value, 100));
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "an object";
  return typeof value === "function" ? "a function" : clip(String(value), 100);
}

/** The message of what was thrown, clipped; never a stack. Anything can be thrown. */
export function describeThrown(thrown: unknown, length: number = MAX_THROWN): string {
  try {
    if (thrown === undefined) return "nothing";
    if (typeof thrown !== "object" || thrown === null) {
      return clip(String(thrown), length) || "no message";
    }
    const { message, name } = thrown as { readonly message?: unknown; readonly name?: unknown };
    const words = [message, name].find((text) => typeof text === "string" && text !== "");
    return typeof words === "string" ? clip(words, length) : "an object without a message";
  } catch {
    return "something that cannot be read";
  }
}

/**
 * Whether `a` is at most so many typing errors from `b`: letters wrong, missing, too many, or
 * swapped.
 */
export function isWithinEdits(a: string, b: string, errors: number): boolean {
  if (Math.abs(a.length - b.length) > errors) return false;
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  const restOfA = a.slice(start);
  const restOfB = b.slice(start);
  if (restOfA === restOfB) return true;
  if (errors === 0) return false;
  const skip = (inA: number, inB: number): boolean =>
    isWithinEdits(restOfA.slice(inA), restOfB.slice(inB), errors - 1);
  return skip(1, 1) || skip(1, 0) || skip(0, 1) ||
    restOfA[0] === restOfB[1] && restOfA[1] === restOfB[0] && skip(2, 2);
}

/**
 * A hash that is quick and the same on every runtime: FNV-1a over UTF-16 units, in 32 bits. It keeps
 * no secret. Another seed and factor make another hash.
 */
export function fnv1a(
  text: string,
  seed: number = 0x811c9dc5,
  factor: number = 0x01000193,
): number {
  let value = seed;
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), factor);
  }
  return value >>> 0;
}
