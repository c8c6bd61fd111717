/** Bytes in JSON: texts that begin with `b:`, with a character for each byte. */

/** Returns a value of a list in JSON, where an undefined one is `null`. */
export function toBytes(value: unknown): unknown {
  if (value === null) return undefined;
  return typeof value === "string" && value.startsWith("b:")
    ? Uint8Array.from(value.slice(2), (character) => character.charCodeAt(0))
    : value;
}

/** Replaces bytes in `JSON.stringify`. */
export function fromBytes(_: string, value: unknown): unknown {
  return value instanceof Uint8Array ? `b:${String.fromCharCode(...value)}` : value;
}
