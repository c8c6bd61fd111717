/**
 * Cuts English endings, so that "deleting", "deleted", "deletion" and "deletes" are one word. What
 * is left need not be a word; it only has to be the same for the forms of one.
 *
 * @module
 */

const PLAIN = /^[a-z]+$/;
const VOWEL = /[aeiouy]/;

/**
 * The stem of one lower-case word. Words of other alphabets, and with digits, are left as they are.
 */
export function stem(word: string): string {
  if (word.length < 4 || !PLAIN.test(word)) {
    // Short plurals of abbreviations: "prs", "ids".
    return word.length === 3 && word.endsWith("s") && !VOWEL.test(word.slice(1)) &&
        PLAIN.test(word)
      ? word.slice(0, 2)
      : word;
  }
  let base = singular(word);
  base = verb(base);
  if (base.endsWith("ment") && base.length > 8) base = base.slice(0, -4);
  else if (/[st]ion$/.test(base) && base.length > 6) base = base.slice(0, -3);
  else if (base.endsWith("er") && base.length > 5) base = undouble(base.slice(0, -2));
  if (base.endsWith("e") && base.length > 3) return base.slice(0, -1);
  return base.endsWith("y") && base.length > 3 ? `${base.slice(0, -1)}i` : base;
}

function singular(word: string): string {
  if (!word.endsWith("s") || /(?:ss|us|is)$/.test(word)) return word;
  if (word.endsWith("ies") && word.length > 4) return `${word.slice(0, -3)}y`;
  return /(?:ss|sh|ch|x|zz)es$/.test(word) ? word.slice(0, -2) : word.slice(0, -1);
}

function verb(word: string): string {
  const cut = word.endsWith("ing") ? 3 : word.endsWith("ed") ? 2 : 0;
  const base = word.slice(0, word.length - cut);
  // "string", "need", "embed": what is left must itself look like a word.
  return cut === 0 || base.length < 3 || !VOWEL.test(base) ? word : undouble(base);
}

function undouble(word: string): string {
  return /([bdgmnprt])\1$/.test(word) ? word.slice(0, -1) : word;
}
