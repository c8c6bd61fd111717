/** Writes bytes in JSON as a text that begins with `b:` and has a character for each byte. */

/** Restores a value that was parsed from JSON: bytes, and `undefined` for `null`. */
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
