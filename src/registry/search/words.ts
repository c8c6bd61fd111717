/**
 * Splits text into words. Identifiers are split where people see words in them (`file-write`,
 * `fileWrite`, `HTTPServer2`); case, accents and punctuation do not matter, and letters are those
 * of any script.
 *
 * @module
 */

/** Longer words are cut: nobody types them, and keys of a map should be short. */
const MAX_WORD = 48;

const CHUNK = /[\p{L}\p{M}\p{N}]+/gu;
// "PRs" is one word; "HTTPServer2" is three.
const PART = /\p{Lu}{2,}s(?!\p{L})|\p{Lu}+(?![^\p{Lu}\p{N}])|\p{Lu}?[^\p{Lu}\p{N}]+|\p{N}+/gu;
/** Scripts that do not put spaces between words: pairs of letters stand for words there. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}]/u;
/** Most words: nothing to split. */
const PLAIN = /^[a-z]+$/;
const ASCII = /^[\0-\x7f]*$/;

/**
 * The words of a text in lower case, in order, at most `limit`.
 *
 * An identifier gives its parts and then itself in one: `GitHub` is `git`, `hub`, `github`.
 */
export function splitWords(text: string, limit: number): string[] {
  const words: string[] = [];
  for (const chunk of fold(text).match(CHUNK) ?? []) {
    if (words.length >= limit) break;
    const parts = PLAIN.test(chunk) ? [chunk] : chunk.match(PART) ?? [];
    for (const part of parts) {
      const letters = UNSPACED.test(part) ? Array.from(part) : [];
      if (letters.length < 2) words.push(lower(part));
      for (let end = 2; end <= letters.length && words.length < limit; end++) {
        words.push(letters.slice(end - 2, end).join(""));
      }
    }
    if (parts.length > 1) words.push(lower(chunk));
  }
  return words.slice(0, limit);
}

/** The whole text as one word: `file-write`, `fileWrite` and "file write" are the same here. */
export function joinWords(text: string): string {
  return (fold(text).match(CHUNK) ?? []).join("").toLowerCase();
}

function lower(word: string): string {
  return word.slice(0, MAX_WORD).toLowerCase();
}

/** Compatibility forms as usual letters (full width, ligatures), and letters without accents. */
function fold(text: string): string {
  return ASCII.test(text) ? text : text.normalize("NFKD").replace(/[̀-ͯ]+/g, "").normalize("NFC");
}
