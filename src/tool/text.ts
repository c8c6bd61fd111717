/** Text: foreign values in messages, cleaning of foreign texts, similarity of words, and a hash. */

const MAX_QUOTED = 60;
const MAX_THROWN = 500;

/** Cuts a text to `length` characters, between code points. */
export function clip(text: string, length: number = MAX_QUOTED): string {
  if (text.length <= length) return text;
  return `${text.slice(0, length - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

/**
 * Runs of combining marks. Two Japanese marks are letters until they are decomposed, and a search
 * removes the Arabic stretch (tatweel) from between marks, so both count as marks.
 */
const MARKS = /[\p{M}\uff9e\uff9f\u0640]+/gu;
const MAX_MARKS = 30;

/** Cuts runs of combining marks to 30 (UAX #15): `normalize` is quadratic in longer runs. */
export function cutMarks(text: string): string {
  return text.replace(MARKS, (run) => run.slice(0, MAX_MARKS));
}

/** Control characters except tabs and line feeds, lone surrogates, other line separators. */
const CONTROLS = /(?![\t\n])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\ufff9-\ufffb]/gu;
/** Invisible characters: marks of direction, tags, characters without width. */
const INVISIBLE = /(?![\u200c\u200d\ufe0e\ufe0f])\p{Default_Ignorable_Code_Point}/gu;
/** Joiners and selectors, except after a non-ASCII character: scripts and emoji need them there. */
const STRAY =
  /(?<![^\p{ASCII}\p{Default_Ignorable_Code_Point}]\ufe0f?)[\u200c\u200d\ufe0e\ufe0f]/gu;

/**
 * Returns a foreign text without hidden characters, except tabs and line feeds, truncated to
 * `length` characters, so that people and models see the same text.
 */
export function cleanText(text: string, length: number): string {
  // Cleans only a part, to save time: the result is cut anyway.
  const part = clip(text, 4 * length);
  return clip(part.replace(CONTROLS, "").replace(INVISIBLE, "").replace(STRAY, ""), length);
}

/** Returns a text with escapes for its invisible characters. */
export function escapeInvisible(text: string): string {
  const escape = (hidden: string): string => `\\u{${hidden.codePointAt(0)?.toString(16)}}`;
  // A joiner after an escaped character is invisible too.
  return text.replace(STRAY, escape).replace(CONTROLS, escape).replace(INVISIBLE, escape);
}

/** Returns arguments as JSON, with escaped invisible characters; `undefined` if it is too long. */
export function argumentsText(args: unknown, length: number, indent?: number): string | undefined {
  const text = escapeInvisible(JSON.stringify(args, null, indent) ?? "");
  return text.length <= length ? text : undefined;
}

/** Describes a value briefly: text in quotes; a list, an object or a function by its kind. */
export function describe(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(clip(value, 100));
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "an object";
  return typeof value === "function" ? "a function" : clip(String(value), 100);
}

/** Returns the truncated message of a thrown value, never a stack. */
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

/** Returns true if at most `errors` letters are changed, missing, additional or swapped. */
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

/** The maximum length of an id: two parts of 128, and the colon. */
const MAX_ID = 257;

/** A model's turn may contain several unknown names, so the search for each is bounded. */
const MAX_COMPARED = 1_000;

/**
 * Returns ids that are similar to `wanted`, the most similar first. Compares the first 1,000 ids.
 * Similar ids differ only in case, separators or namespace, or in at most two letters and one
 * letter of three. Pass only ids that the reader may see.
 */
export function nearIds(wanted: string, ids: Iterable<string>, limit = 3): readonly string[] {
  if (wanted.length > MAX_ID) return [];
  const plain = simplify(wanted);
  const plainName = simplify(nameOf(wanted));
  if (plain === "") return [];
  return [...ids].slice(0, MAX_COMPARED)
    .flatMap((id) => {
      const simple = simplify(id);
      const errors = [0, 1, 2].find((errors) =>
        // More than one wrong letter in three is not a typing error.
        errors * 3 <= plain.length && isWithinEdits(plain, simple, errors) ||
        // The same name in another namespace counts as one typing error.
        errors === 1 && simplify(nameOf(id)) === plainName
      );
      return errors === undefined ? [] : [{ id, errors }];
    })
    .sort((a, b) => a.errors - b.errors || (a.id < b.id ? -1 : 1))
    .slice(0, limit)
    .map(({ id }) => id);
}

/** Returns similar ids as a part of a sentence: `"a" or "b"`; an empty text if there are none. */
export function nearText(wanted: string, ids: Iterable<string>): string {
  return nearIds(wanted, ids).map((id) => `"${id}"`).join(" or ");
}

function nameOf(id: string): string {
  return id.slice(id.indexOf(":") + 1);
}

function simplify(id: string): string {
  return id.toLowerCase().replace(/[^a-z0-9]/g, "");
}

/** FNV-1a over UTF-16 units, in 32 bits: quick, the same on every runtime, and not for secrets. */
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

/** Returns a hash for the comparison of texts, the same in every process. Not for secrets. */
export function fingerprint(text: string): string {
  return `${text.length}.${fnv1a(text)}.${fnv1a(text, 0x9e3779b9, 0x85ebca6b)}`;
}
