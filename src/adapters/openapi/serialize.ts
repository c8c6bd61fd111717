/** Serialization of values in URLs, headers and forms: OpenAPI's styles. */

import { flagIn, type JsonRecord } from "../../formats/provider_kit.ts";
import { isObject } from "../../tool/mod.ts";

/** The styles of each location; the first is the default. */
export const STYLES = {
  path: ["simple", "label", "matrix"],
  query: ["form", "spaceDelimited", "pipeDelimited", "deepObject"],
  header: ["simple"],
  cookie: ["form"],
} as const;

/** The location of a parameter. */
export type ParameterPlace = keyof typeof STYLES;

/** The style of lists and objects. */
export type ParameterStyle = typeof STYLES[ParameterPlace][number];

/** The serialization of a value in a URL, a header or a form. */
export interface ValueStyle {
  readonly style: ParameterStyle;
  readonly explode: boolean;
  /** True to leave reserved characters of URLs unescaped, if they cannot end the value. */
  readonly allowReserved?: boolean;
  /** Serializes the value as JSON. */
  readonly json?: boolean;
}

export function styleOf(definition: JsonRecord, place: ParameterPlace, json: boolean): ValueStyle {
  const styles: readonly ParameterStyle[] = STYLES[place];
  const style = styles.find((one) => one === definition["style"]) ?? STYLES[place][0];
  const allowReserved = place === "query" && flagIn(definition, "allowReserved") === true;
  return {
    style,
    explode: flagIn(definition, "explode") ?? (style === "form"),
    ...(allowReserved ? { allowReserved } : {}),
    ...(json ? { json } : {}),
  };
}

export class UnsendableArgument extends Error {
  /** The property of the arguments. */
  readonly key: string;
  readonly expected: string;

  constructor(key: string, expected: string) {
    super(`"/${key.slice(0, 100)}" must be ${expected}`);
    this.key = key;
    this.expected = expected;
  }
}

export type Pair = readonly [name: string, value: string];

/** Returns a member of an object, or an item, as text. Nested objects and lists are JSON. */
export function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Returns true if a value is omitted: OpenAPI's styles cannot express `null`. */
export function isNothing(value: unknown): boolean {
  return value === undefined || value === null;
}

/** Percent-encodes a text, so that it stays one component of a URL. */
export function encode(text: string, key: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    throw new UnsendableArgument(key, "Unicode text without lone surrogates");
  }
}

/** Encodes, but keeps reserved characters that cannot end the value. */
function encodeReserved(text: string, key: string): string {
  return encode(text, key).replace(/%(3A|2F|3F|40|24|2C|3B)/g, (code) => decodeURIComponent(code));
}

export function membersOf(value: object): [string, unknown][] {
  return Object.entries(value).filter(([, member]) => !isNothing(member));
}

type Piece = readonly [member: string | undefined, part: string];

function piecesOf(
  value: unknown,
  { json }: ValueStyle,
  write: (text: string) => string,
  writeName = write,
): readonly Piece[] {
  if (json === true) return [[undefined, write(JSON.stringify(value))]];
  if (Array.isArray(value)) return value.map((item): Piece => [undefined, write(textOf(item))]);
  return isObject(value)
    ? membersOf(value).map(([member, part]) => [writeName(member), write(textOf(part))])
    : [[undefined, write(textOf(value))]];
}

function join(pieces: readonly Piece[], afterName: string, separator: string): string {
  return pieces.map(([member, part]) => member === undefined ? part : member + afterName + part)
    .join(separator);
}

export function writePairs(name: string, value: unknown, style: ValueStyle, key: string): Pair[] {
  if (isNothing(value)) return [];
  const code = style.allowReserved === true ? encodeReserved : encode;
  const write = (text: string): string => code(text, key);
  const isDeep = style.style === "deepObject";
  if (isDeep && style.json !== true && isObject(value)) return deepPairs(name, value, write, key);
  const encodedName = encode(name, key);
  const pieces = piecesOf(value, style, write, (member) => encode(member, key));
  if (pieces.length === 0) return [];
  if (style.explode || isDeep) {
    return pieces.map(([member = encodedName, part]): Pair => [member, part]);
  }
  const separator = style.style === "spaceDelimited"
    ? "%20"
    : style.style === "pipeDelimited"
    ? "%7C"
    : ",";
  return [[encodedName, join(pieces, separator, separator)]];
}

/** Writes `name[member]=value`, with more brackets for deeper members. Lists repeat the name. */
function deepPairs(
  name: string,
  value: object,
  write: (text: string) => string,
  key: string,
): Pair[] {
  return membersOf(value).flatMap(([member, part]): Pair[] => {
    const inner = `${name}[${member}]`;
    return isObject(part)
      ? deepPairs(inner, part, write, key)
      : (Array.isArray(part) ? part : [part]).map((item) => [
        encode(inner, key),
        write(textOf(item)),
      ]);
  });
}

/** Writes a value in a path. Rejects empty values, which could give the path of another operation. */
export function writePath(name: string, value: unknown, style: ValueStyle, key: string): string {
  if (isNothing(value) || textOf(value) === "") throw new UnsendableArgument(key, "not empty");
  const pieces = piecesOf(value, style, (text) => encode(text, key));
  if (pieces.length === 0) throw new UnsendableArgument(key, "not empty");
  const { explode } = style;
  // An exploded member is `name=value`; otherwise names and values alternate.
  const afterName = explode ? "=" : ",";
  if (style.style === "label") return `.${join(pieces, afterName, explode ? "." : ",")}`;
  if (style.style !== "matrix") return join(pieces, afterName, ",");
  const label = encode(name, key);
  return explode
    ? pieces.map(([member = label, part]) => `;${member}=${part}`).join("")
    : `;${label}=${join(pieces, ",", ",")}`;
}

const HEADER_TEXT = /^[\t\x20-\x7e]*$/;

/** Writes a value in a header. A line end is an error: it would begin another header. */
export function writeHeader(value: unknown, style: ValueStyle, key: string): string {
  const text = join(piecesOf(value, style, (part) => part), style.explode ? "=" : ",", ",");
  if (!HEADER_TEXT.test(text)) {
    throw new UnsendableArgument(
      key,
      "printable ASCII text in one line, because it is sent in a header",
    );
  }
  return text.trim();
}
