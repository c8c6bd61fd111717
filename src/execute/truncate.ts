/**
 * Cuts a result to a limit: what remains is a string, valid JSON, that says it was cut.
 *
 * @module
 */

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
  let bytes = 2;
  let end = 0;
  for (const point of text) {
    const cost = costOf(point);
    if (bytes + cost > room) break;
    bytes += cost;
    end += point.length;
  }
  const whole = typeof value === "string" ? jsonLength(value) : `more than ${limit}`;
  return `${text.slice(0, end)}… [truncated: ${bytes} of ${whole} bytes]`;
}

function jsonLength(text: string): number {
  let bytes = 2;
  for (const point of text) bytes += costOf(point);
  return bytes;
}

/** How many bytes one code point takes inside a JSON string. */
function costOf(point: string): number {
  const code = point.codePointAt(0) ?? 0;
  if (code < 0x20) return "\b\f\n\r\t".includes(point) ? 2 : 6;
  if (code === 0x22 || code === 0x5c) return 2;
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  // A surrogate without its other half is written as an escape.
  if (code >= 0xd800 && code < 0xe000) return 6;
  return code < 0x10000 ? 3 : 4;
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
