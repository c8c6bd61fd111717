/**
 * What a thrown value says, whatever it is: tools throw strings, `undefined`, frozen objects, and
 * proxies that throw again when they are looked at.
 *
 * @module
 */

/** How much of a thrown message a model is shown, in characters. */
const MAX_MESSAGE = 500;

/** The message of what was thrown, clipped; never a stack. */
export function describeThrown(thrown: unknown): string {
  try {
    if (typeof thrown === "string") return clipText(thrown, MAX_MESSAGE) || "no message";
    if (typeof thrown === "object" && thrown !== null) {
      const { message, name } = thrown as { readonly message?: unknown; readonly name?: unknown };
      if (typeof message === "string" && message !== "") return clipText(message, MAX_MESSAGE);
      if (typeof name === "string" && name !== "") return clipText(name, MAX_MESSAGE);
      return "an object without a message";
    }
    return thrown === undefined ? "nothing" : clipText(String(thrown), MAX_MESSAGE);
  } catch {
    return "something that cannot be read";
  }
}

/** Cuts a text to `length` characters, between code points. */
export function clipText(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 2);
  const end = last >= 0xd800 && last < 0xdc00 ? length - 2 : length - 1;
  return `${text.slice(0, end)}…`;
}
