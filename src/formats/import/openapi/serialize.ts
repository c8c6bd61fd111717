/**
 * Values in URLs, headers and forms: OpenAPI's styles.
 *
 * @module
 */

import type { ValueStyle } from "./operation.ts";

/** An argument that cannot be sent where it has to go. */
export class UnsendableArgument extends Error {
  /** The property of the arguments. */
  readonly key: string;
  /** What it should be. */
  readonly expected: string;

  constructor(key: string, expected: string) {
    super(`"/${key.slice(0, 100)}" must be ${expected}`);
    this.key = key;
    this.expected = expected;
  }
}

/** One `name=value`, both encoded. */
export type Pair = readonly [name: string, value: string];

/** A member of an object, or an item, as text. What is nested deeper is written as JSON. */
export function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Whether there is nothing to send. */
export function isNothing(value: unknown): boolean {
  return value === undefined || value === null;
}

/** Encodes a text so that it stays one piece of a URL. */
export function encode(text: string, key: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    throw new UnsendableArgument(key, "text in Unicode, without half characters");
  }
}

/** Encodes, but leaves what may be reserved and still cannot end the value. */
function encodeReserved(text: string, key: string): string {
  return encode(text, key).replace(/%(3A|2F|3F|40|24|2C|3B)/g, (code) => decodeURIComponent(code));
}

function membersOf(value: object): [string, unknown][] {
  return Object.entries(value).filter(([, member]) => !isNothing(member));
}

/** A value in a query, in a cookie or in a form. */
export function writePairs(name: string, value: unknown, style: ValueStyle, key: string): Pair[] {
  if (isNothing(value)) return [];
  const code = style.allowReserved === true ? encodeReserved : encode;
  const write = (part: unknown): string => code(textOf(part), key);
  const encodedName = encode(name, key);
  if (style.json === true) return [[encodedName, code(JSON.stringify(value), key)]];
  if (typeof value !== "object" || value === null) return [[encodedName, write(value)]];
  const separator = style.style === "spaceDelimited"
    ? "%20"
    : style.style === "pipeDelimited"
    ? "%7C"
    : ",";
  if (Array.isArray(value)) {
    if (value.length === 0) return [];
    if (style.explode || style.style === "deepObject") {
      return value.map((item): Pair => [encodedName, write(item)]);
    }
    return [[encodedName, value.map(write).join(separator)]];
  }
  const members = membersOf(value);
  if (members.length === 0) return [];
  if (style.style === "deepObject") return deepPairs(name, value, write, key);
  if (style.explode) {
    return members.map(([member, part]): Pair => [encode(member, key), write(part)]);
  }
  const flat = members.map(([member, part]) => `${encode(member, key)}${separator}${write(part)}`);
  return [[encodedName, flat.join(separator)]];
}

/** `name[member]=value`, deeper members in more brackets, lists by repeating. */
function deepPairs(
  name: string,
  value: object,
  write: (part: unknown) => string,
  key: string,
): Pair[] {
  return membersOf(value).flatMap(([member, part]): Pair[] => {
    const inner = `${name}[${member}]`;
    if (Array.isArray(part)) {
      return part.map((item): Pair => [encode(inner, key), write(item)]);
    }
    return typeof part === "object" && part !== null
      ? deepPairs(inner, part, write, key)
      : [[encode(inner, key), write(part)]];
  });
}

/** A value in a path. It must not be empty: the path would be that of another operation. */
export function writePath(name: string, value: unknown, style: ValueStyle, key: string): string {
  if (isNothing(value) || textOf(value) === "") throw new UnsendableArgument(key, "not empty");
  const { explode } = style;
  const write = (part: unknown): string => encode(textOf(part), key);
  const pieces: [string | undefined, string][] = style.json === true
    ? [[undefined, encode(JSON.stringify(value), key)]]
    : Array.isArray(value)
    ? value.map((item): [undefined, string] => [undefined, write(item)])
    : typeof value === "object" && value !== null
    ? membersOf(value).map(([member, part]) => [encode(member, key), write(part)])
    : [[undefined, write(value)]];
  if (pieces.length === 0) throw new UnsendableArgument(key, "not empty");
  // An exploded member is `name=value`; otherwise names and values alternate.
  const flat = pieces.map(([member, part]) =>
    member === undefined ? part : explode ? `${member}=${part}` : `${member},${part}`
  );
  switch (style.style) {
    case "label":
      return `.${flat.join(explode ? "." : ",")}`;
    case "matrix": {
      const label = encode(name, key);
      if (!explode) return `;${label}=${flat.join(",")}`;
      return pieces.map(([member, part]) => `;${member ?? label}=${part}`).join("");
    }
    default:
      return flat.join(",");
  }
}

const HEADER_TEXT = /^[\t\x20-\x7e]*$/;

/** A value in a header. A line end would begin another header, so there is none. */
export function writeHeader(value: unknown, style: ValueStyle, key: string): string {
  const text = style.json === true
    ? JSON.stringify(value)
    : Array.isArray(value)
    ? value.map(textOf).join(",")
    : typeof value === "object" && value !== null
    ? membersOf(value).map(([member, part]) =>
      `${member}${style.explode ? "=" : ","}${textOf(part)}`
    ).join(",")
    : textOf(value);
  if (!HEADER_TEXT.test(text)) {
    throw new UnsendableArgument(
      key,
      "printable ASCII text in one line, for it is sent in a header",
    );
  }
  return text.trim();
}
