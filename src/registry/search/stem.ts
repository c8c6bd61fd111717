/**
 * Cuts English endings, so that "deletes", "deleted", "deleting" and "deletion" are one word. What
 * is left need not be a word; it only has to be the same for all forms of one.
 *
 * @module
 */

/** The stem of one lower-case word. Words of other alphabets, and with digits, stay as they are. */
export function stem(word: string): string {
  if (!/^[a-z]{3,}$/.test(word)) return word;
  return word
    .replace(/(ss|sh|ch|x|zz)es$|([^sui])s$/, "$1$2")
    // Not "string": what is left must have a vowel.
    .replace(/^(?=.{5})([^aeiouy]*[aeiouy].*)(ing|ed)$/, "$1")
    .replace(/^(.{5,})ment$|^(.{3,}[st])ion$/, "$1$2")
    .replace(/^(.{4,})er$/, "$1")
    .replace(/^(.{3,})e$/, "$1")
    .replace(/^(.{3,})y$/, "$1i")
    .replace(/([^aeiou])\1$/, "$1");
}
