/**
 * Reads the beginning of a JSON text whose rest has not arrived.
 *
 * @module
 */

import { type JsonValue, setOwn } from "../tool/mod.ts";

/** The maximum depth. Deeper values are omitted. */
const MAX_DEPTH = 64;

const WHITE = /[ \t\n\r]*/y;
const SCALAR = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)(?=[ \t\n\r,\]}])/y;
/** Whole characters of a text. Of escapes a bounded number, since engines stack them up. */
const CHARACTERS = /[^"\\]+|(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})){1,1000}/y;

/**
 * Reads the beginning of a JSON text. Parts that may still change are omitted: numbers and words at
 * the end, and members whose value has not begun. Texts, lists and objects may grow, so a value
 * that is returned is always the beginning of the values that are returned for more of the text.
 */
export function readPartialJson(text: string): JsonValue | undefined {
  let at = 0;

  /** The text that `pattern` finds here, which is stepped over. */
  function take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found !== null) at = pattern.lastIndex;
    return found;
  }

  function is(character: string): boolean {
    take(WHITE);
    if (text[at] !== character) return false;
    at++;
    return true;
  }

  /** `ended` is false if more of the value may follow, or the text is invalid. */
  function read(depth: number): { readonly value: JsonValue; readonly ended: boolean } | undefined {
    take(WHITE);
    if (depth > MAX_DEPTH) return undefined;
    if (text[at] === '"') {
      const { value, ended } = readText();
      return { value, ended };
    }
    if (is("[")) return readList(depth);
    if (is("{")) return readObject(depth);
    const scalar = take(SCALAR);
    return scalar === null ? undefined : { value: JSON.parse(scalar[0]), ended: true };
  }

  function readText(): { readonly value: string; readonly ended: boolean } {
    at++;
    let inside = "";
    for (let found; (found = take(CHARACTERS)) !== null;) inside += found[0];
    // Half of a surrogate pair may come alone, and some models do not escape control characters.
    const escaped = inside.replace(/\p{Cc}/gu, (one) => JSON.stringify(one).slice(1, -1));
    const value: string = JSON.parse(`"${escaped}"`);
    const ended = text[at] === '"';
    if (ended) at++;
    return { value: ended ? value : value.replace(/[\ud800-\udbff]$/, ""), ended };
  }

  function readList(depth: number): { readonly value: JsonValue[]; readonly ended: boolean } {
    const value: JsonValue[] = [];
    if (is("]")) return { value, ended: true };
    for (;;) {
      const item = read(depth + 1);
      if (item !== undefined) value.push(item.value);
      if (item?.ended !== true) return { value, ended: false };
      if (!is(",")) return { value, ended: is("]") };
    }
  }

  function readObject(
    depth: number,
  ): { readonly value: { [name: string]: JsonValue }; readonly ended: boolean } {
    const value: { [name: string]: JsonValue } = {};
    if (is("}")) return { value, ended: true };
    for (;;) {
      take(WHITE);
      const name = text[at] === '"' ? readText() : undefined;
      if (name?.ended !== true || !is(":")) return { value, ended: false };
      const member = read(depth + 1);
      if (member !== undefined) setOwn(value, name.value, member.value);
      if (member?.ended !== true) return { value, ended: false };
      if (!is(",")) return { value, ended: is("}") };
    }
  }

  return read(0)?.value;
}
