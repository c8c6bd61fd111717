/**
 * How messages speak of values that somebody else made: in a few words, and never a whole input.
 *
 * @module
 */

/** How much of somebody's text a message repeats, in characters. */
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

/** A value in a few words: text in quotes, of anything large what it is. */
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
