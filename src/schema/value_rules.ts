/**
 * What the values of JSON Schema's keywords must be, for those that hold no schemas.
 *
 * @module
 */

import { isObject } from "../tool/mod.ts";
import type { KeywordShape } from "./keywords.ts";

const TYPES: ReadonlySet<unknown> = new Set([
  "array",
  "boolean",
  "integer",
  "null",
  "number",
  "object",
  "string",
]);
const ANCHOR = /^[A-Za-z_][-A-Za-z0-9._]*$/;

/** What a value must be: in words, and as a check. */
export const VALUE_RULES: {
  readonly [Shape in KeywordShape]?: readonly [string, (value: unknown) => boolean];
} = {
  text: ["a string", (value) => typeof value === "string"],
  flag: ["true or false", (value) => typeof value === "boolean"],
  number: ["a number", (value) => typeof value === "number"],
  positive: ["a number above 0", (value) => typeof value === "number" && value > 0],
  count: [
    "a whole number of at least 0",
    (value) => Number.isInteger(value) && (value as number) >= 0,
  ],
  list: ["a list", Array.isArray],
  strings: ["a list of different strings", isDifferentStrings],
  types: [
    `one of ${[...TYPES].join(", ")}, or a list of different ones of them`,
    (value) =>
      Array.isArray(value)
        ? value.length > 0 && isDifferentStrings(value) && value.every((type) => TYPES.has(type))
        : TYPES.has(value),
  ],
  id: [
    'a URI reference without "#"',
    (value) => typeof value === "string" && /^[^#]*#?$/.test(value),
  ],
  anchor: [
    'a letter or "_", then letters, digits, "-", "_" or "."',
    (value) => typeof value === "string" && ANCHOR.test(value),
  ],
  vocabulary: [
    "an object with true or false for each URI",
    (value) => isObject(value) && Object.values(value).every((on) => typeof on === "boolean"),
  ],
};

/** Whether `value` is a list of strings, each once. */
export function isDifferentStrings(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string") &&
    new Set(value).size === value.length;
}
