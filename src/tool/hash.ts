/**
 * A hash that is quick, the same on every runtime, and keeps no secret.
 *
 * @module
 */

/** FNV-1a over UTF-16 units, in 32 bits. Another seed and factor make another hash. */
export function fnv1a(
  text: string,
  seed: number = 0x811c9dc5,
  factor: number = 0x01000193,
): number {
  let value = seed;
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), factor);
  }
  return value >>> 0;
}
