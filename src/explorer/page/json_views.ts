/** JSON for display: lines with JSON Pointers, tokens for highlighting, tables, images, text. */

import { escapeInvisible, isObject, pointerStep } from "../../tool/mod.ts";

interface JsonLine {
  readonly text: string;
  /** The JSON Pointer of the value that begins in the line; `undefined` for a closing bracket. */
  readonly pointer?: string;
}

/** Returns the members of an object or the items of a list; an empty list for other values. */
export function membersOf(value: unknown): readonly (readonly [name: string, value: unknown])[] {
  return typeof value === "object" && value !== null ? Object.entries(value) : [];
}

/** Returns the visible name of a member. */
export const nameOf = (name: string): string => escapeInvisible(name) || '""';

/** Writes a value as `JSON.stringify(value, null, 2)` does, line by line. */
export function jsonLines(value: unknown): readonly JsonLine[] {
  const lines: JsonLine[] = [];
  write(value, "", "", "", "");
  return lines;

  function write(
    part: unknown,
    pointer: string,
    indent: string,
    before: string,
    after: string,
  ): void {
    const isList = Array.isArray(part);
    const entries = membersOf(part).filter(([, item]) => isList || item !== undefined);
    if (entries.length === 0) {
      lines.push({ text: `${indent}${before}${JSON.stringify(part)}${after}`, pointer });
      return;
    }
    lines.push({ text: `${indent}${before}${isList ? "[" : "{"}`, pointer });
    entries.forEach(([key, item], index) => {
      write(
        item,
        `${pointer}${pointerStep(key)}`,
        `${indent}  `,
        isList ? "" : `${JSON.stringify(key)}: `,
        index < entries.length - 1 ? "," : "",
      );
    });
    lines.push({ text: `${indent}${isList ? "]" : "}"}${after}` });
  }
}

const WORD_KINDS = ["key", "string", "number", "word", "plain"] as const;

/** A group for each kind. A string may lack its end, because texts are split while the user types. */
const WORDS =
  /("(?:[^"\\\n]|\\.)*")(?=\s*:)|("(?:[^"\\\n]|\\.)*"?)|(-?\d[\d.eE+-]*)|\b(true|false|null)\b|(\w+|[^\w"-]+|.)/g;

/** Splits JSON text into tokens for highlighting. The tokens contain all text, including invalid text. */
export function wordsOf(
  text: string,
): readonly { readonly kind: typeof WORD_KINDS[number]; readonly text: string }[] {
  return [...text.matchAll(WORDS)].map(([text, ...groups]) => ({
    kind: WORD_KINDS[groups.findIndex((group) => group !== undefined)] ?? "plain",
    text,
  }));
}

export type Parsed = { readonly ok: true; readonly value: unknown } | {
  readonly ok: false;
  readonly message: string;
};

/** Parses JSON text. A number that cannot be represented exactly is an error. */
export function parse(text: string): Parsed {
  try {
    const value: unknown = JSON.parse(text);
    const rounded = wordsOf(text).find(({ kind, text }) => kind === "number" && isRounded(text));
    if (rounded === undefined) return { ok: true, value };
    const digits = rounded.text;
    const message = `${digits} has too many digits for a number: it would be ${Number(digits)}`;
    return { ok: false, message };
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) };
  }
}

/** Returns true if an integer has more digits than a JavaScript number can represent. */
export function isRounded(text: string): boolean {
  return /^-?\d{16,}$/.test(text) && BigInt(text) !== BigInt(Number(text));
}

/** Returns a copy of a value with a member set, or removed if `member` is `undefined`. */
export function withMember(
  value: unknown,
  [key, ...rest]: readonly (string | number)[],
  member: unknown,
): unknown {
  if (key === undefined) return member;
  if (typeof key === "number") {
    const list = Array.isArray(value) ? [...value] : [];
    const item = withMember(list[key], rest, member);
    if (item === undefined) list.splice(key, 1);
    else list[key] = item;
    return list;
  }
  const own = isObject(value) ? value : {};
  const item = withMember(own[key], rest, member);
  const entries = Object.entries(own).filter(([name]) => name !== key || item !== undefined);
  // `fromEntries` creates own properties, even for `__proto__`.
  return Object.fromEntries(
    item === undefined
      ? entries
      : Object.hasOwn(own, key)
      ? entries.map(([name, old]) => [name, name === key ? item : old])
      : [...entries, [key, item]],
  );
}

export function pointerOf(path: readonly (string | number)[]): string {
  return path.map(pointerStep).join("");
}

export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
  readonly total: number;
}

const MAX_ROWS = 200;
const MAX_COLUMNS = 30;

/** Returns a list of objects as a table with a column for each property, else `undefined`. */
export function tableOf(value: unknown): Table | undefined {
  // A result is often an object with one list.
  const list = Array.isArray(value) ? value : isObject(value) ? onlyListIn(value) : undefined;
  if (list === undefined || list.length === 0 || !list.every(isObject)) return undefined;
  const shown = list.slice(0, MAX_ROWS) as readonly Record<string, unknown>[];
  const columns = [...new Set(shown.flatMap((row) => Object.keys(row)))].slice(0, MAX_COLUMNS);
  if (columns.length === 0) return undefined;
  return {
    columns,
    rows: shown.map((row) => columns.map((name) => (Object.hasOwn(row, name) ? row[name] : ""))),
    total: list.length,
  };
}

function onlyListIn(value: Record<string, unknown>): readonly unknown[] | undefined {
  const lists = Object.values(value).filter((one) => Array.isArray(one) && one.some(isObject));
  return lists.length === 1 ? (lists[0] as readonly unknown[]) : undefined;
}

const MAX_IMAGES = 20;
const MAX_IMAGE_DEPTH = 5;
const DATA_URL = /^data:image\/(png|jpeg|gif|webp|avif|svg\+xml);base64,[A-Za-z0-9+/=\s]*$/;

/** Returns the images in a result as data URLs, from blocks of MCP content and from strings. */
export function imagesIn(value: unknown): readonly string[] {
  const found: string[] = [];
  collect(value, 0);
  return found;

  function collect(part: unknown, depth: number): void {
    if (found.length >= MAX_IMAGES || depth > MAX_IMAGE_DEPTH) return;
    if (typeof part === "string") {
      if (part.startsWith("data:image/") && DATA_URL.test(part)) found.push(part);
      return;
    }
    const { data, mimeType } = isObject(part) ? part : {};
    const image = `data:${mimeType};base64,${data}`;
    if (typeof data === "string" && DATA_URL.test(image)) found.push(image);
    else for (const [, item] of membersOf(part)) collect(item, depth + 1);
  }
}

/** Returns a result as text: strings and text blocks unchanged, other values as JSON. */
export function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (isObject(value) && Array.isArray(value["content"])) {
    const texts = value["content"].map((block: unknown) =>
      isObject(block) && block["type"] === "text" ? block["text"] : undefined
    );
    if (texts.length > 0 && texts.every((text) => typeof text === "string")) {
      return texts.join("\n");
    }
  }
  return JSON.stringify(value, null, 2) ?? "";
}
