/**
 * Cuts a result to a limit: what remains is a string, valid JSON, that says it was cut.
 *
 * @module
 */

import { jsonBytes } from "./json_value.ts";

/** Room for the marker: two numbers and the words. */
const MARKER_BYTES = 96;

/**
 * Cuts `value` to `limit` bytes of JSON. A string stays a string; of anything else, the beginning of
 * its JSON text remains. The cut is between code points, and ends with
 * `… [truncated: 900 of 20000 bytes]`.
 *
 * @param value JSON, as far as the limit reaches.
 * @param limit At least 128.
 */
export function truncate(value: unknown, limit: number): string {
  const text = typeof value === "string" ? value : beginningOf(value, limit);
  const room = limit - MARKER_BYTES;
  // Halves the range of ends that may fit: a character takes one byte at least.
  let end = 0;
  for (let most = Math.min(text.length, room); end < most;) {
    const middle = Math.ceil((end + most) / 2);
    if (jsonBytes(text.slice(0, middle)) <= room) end = middle;
    else most = middle - 1;
  }
  // Not between the halves of a pair.
  if ((text.codePointAt(end - 1) ?? 0) > 0xffff) end--;
  const kept = text.slice(0, end);
  const whole = typeof value === "string" ? jsonBytes(value) : `more than ${limit}`;
  return `${kept}… [truncated: ${jsonBytes(kept)} of ${whole} bytes]`;
}

/** The first characters of a value's JSON text, without writing all of it. */
function beginningOf(value: unknown, length: number): string {
  let text = "";

  function write(part: unknown): void {
    if (text.length >= length) return;
    if (typeof part !== "object" || part === null) {
      text += JSON.stringify(typeof part === "string" ? part.slice(0, length) : part);
      return;
    }
    const { toJSON } = part as { readonly toJSON?: unknown };
    if (typeof toJSON === "function") return write(toJSON.call(part));
    let separator = "";
    const list = Array.isArray(part);
    text += list ? "[" : "{";
    for (const key of Object.keys(part)) {
      const member = (part as Record<string, unknown>)[key];
      if (member === undefined) continue;
      if (text.length >= length) return;
      text += list ? separator : `${separator}${JSON.stringify(key)}:`;
      separator = ",";
      write(member);
    }
    text += list ? "]" : "}";
  }

  write(value);
  return text;
}
