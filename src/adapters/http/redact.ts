/** Removes secrets from JSON and from errors. */

import { isObject, isText } from "../../tool/mod.ts";

/** Shorter secrets are not removed: they would occur in other words. */
const MIN_LENGTH = 6;
/** A search for a longer text is slow if its characters repeat. */
const MAX_SEARCHED = 512;
const MAX_CAUSES = 5;
const MARK = "[credential]";
const escaped = (text: string): string => JSON.stringify(text).slice(1, -1);

/**
 * Returns a copy of JSON, or of an error, in which `[credential]` replaces the secrets, also within a
 * URL and within JSON in a text. The copy of an error has only its name, message, stack, code and
 * causes. Other fields, such as a request, could show a secret in a log.
 */
export function withoutSecrets(value: unknown, secrets: readonly string[]): unknown {
  const all = secrets.filter(({ length }) => length >= MIN_LENGTH).flatMap(formsOf);
  // A secret may contain a shorter one.
  const forms = [...new Set(all)].sort((one, other) => other.length - one.length);
  const clean = (text: string): string => forms.reduce(withoutForm, text);
  const cleanPart = (part: unknown): unknown => {
    if (isText(part)) return clean(part);
    if (Array.isArray(part)) return part.map(cleanPart);
    if (!isObject(part)) return part;
    const members = Object.entries(part).map(([key, one]) => [clean(key), cleanPart(one)]);
    return Object.fromEntries(members);
  };
  if (value instanceof Error) return cleanError(value, clean, MAX_CAUSES);
  const text: string | undefined = JSON.stringify(value);
  // Searching the JSON is faster than visiting each member, and most values have no secrets.
  const copy: unknown = text && JSON.parse(text);
  const isFound = forms.some((form) => text?.includes(escaped(form.slice(0, MIN_LENGTH))));
  return isFound ? cleanPart(copy) : copy;
}

/** Returns a text as it can be within a URL and within JSON. */
function formsOf(text: string): readonly string[] {
  // Most tokens have one form, and the others take time.
  if (/^[\w.-]+$/.test(text)) return [text];
  const inUrl = [encodeURIComponent(text), `${new URLSearchParams({ "": text })}`.slice(1)];
  const lower = inUrl.map((form) => form.replace(/%../g, (code) => code.toLowerCase()));
  return [text, ...inUrl, ...lower, escaped(text), escaped(text).replaceAll("/", "\\/")];
}

/**
 * Removes a secret, and its beginning in a text that plue has cut. Of a word that is cut, only the
 * first characters are compared. Otherwise, a caller whose tool repeats its arguments could find out
 * the secret, one character after the other.
 */
function withoutForm(text: string, form: string): string {
  const start = form.slice(0, MIN_LENGTH);
  // The beginning of a long secret may have been removed with another one.
  if (!text.includes(start) && !text.includes(MARK)) return text;
  const rest = text.replaceAll(form.slice(0, MAX_SEARCHED), MARK)
    .replaceAll(MARK + form.slice(MAX_SEARCHED), MARK);
  return rest.split("…").map((part, index, { length }) => {
    const word = index < length - 1 && part.split(/\s/).pop() || "";
    const at = word.replace(start, MARK).indexOf(MARK);
    return at < 0 ? part : part.slice(0, part.length - word.length + at) + MARK;
  }).join("…");
}

function cleanError(error: Error, clean: (text: string) => string, maxCauses: number): Error {
  const { name, message, stack, code, cause }: Error & { readonly code?: unknown } = error;
  const copy = new Error(clean(String(message)));
  const hasCause = cause instanceof Error && maxCauses > 0;
  return Object.assign(copy, {
    ...{ name: clean(String(name)), stack: clean(String(stack)) },
    ...(isText(code) && { code: clean(code) }),
    ...(hasCause && { cause: cleanError(cause, clean, maxCauses - 1) }),
  });
}
