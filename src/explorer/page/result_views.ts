/**
 * The views of a result: table, images and text.
 *
 * @module
 */

import { isObject } from "../../tool/mod.ts";

/** A list of objects as a table. */
export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
  /** The total number of rows. */
  readonly total: number;
}

const MAX_ROWS = 200;
const MAX_COLUMNS = 30;

/**
 * Returns a list as a table with a column for each property, or `undefined` if it is not a list of
 * objects.
 */
export function tableOf(value: unknown): Table | undefined {
  // A result is often an object with one list.
  const list = Array.isArray(value) ? value : isObject(value) ? onlyListIn(value) : undefined;
  if (list === undefined || list.length === 0 || !list.every(isObject)) {
    return undefined;
  }
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
const MAX_DEPTH = 5;
const DATA_URL = /^data:image\/(png|jpeg|gif|webp|avif|svg\+xml);base64,[A-Za-z0-9+/=\s]*$/;
const IMAGE_TYPE = /^image\/(png|jpeg|gif|webp|avif|svg\+xml)$/;
const BASE64 = /^[A-Za-z0-9+/=\s]+$/;

/** Returns the images in a result as data URLs, from blocks of MCP content and from strings. */
export function imagesIn(value: unknown): readonly string[] {
  const found: string[] = [];
  look(value, 0);
  return found;

  function look(part: unknown, depth: number): void {
    if (found.length >= MAX_IMAGES || depth > MAX_DEPTH) return;
    if (typeof part === "string") {
      if (part.startsWith("data:image/") && DATA_URL.test(part)) {
        found.push(part);
      }
    } else if (Array.isArray(part)) {
      for (const item of part) look(item, depth + 1);
    } else if (isObject(part)) {
      const { data, mimeType } = part;
      if (
        typeof data === "string" &&
        typeof mimeType === "string" &&
        IMAGE_TYPE.test(mimeType) &&
        BASE64.test(data)
      ) {
        found.push(`data:${mimeType};base64,${data}`);
      } else for (const item of Object.values(part)) look(item, depth + 1);
    }
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
