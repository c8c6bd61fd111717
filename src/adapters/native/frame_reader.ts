/**
 * Reads frames out of bytes.
 *
 * @module
 */

import {
  HEADER_BYTES,
  LENGTH_BYTES,
  MAX_FRAME_BYTES,
  NULL_STRING,
  ProtocolError,
} from "./protocol.ts";

/** A frame, as a view of the bytes it was read from. Valid until the handler returns. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly id: number;
  readonly payload: Uint8Array;
}

// A string may begin with a byte order mark, which is the host's to send.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Reads the whole frames at the beginning of `bytes`.
 *
 * @param bytes What has arrived.
 * @param handle Is given one frame after the other.
 * @returns How many bytes those frames had; the rest is the beginning of a frame.
 * @throws {ProtocolError} If what is there cannot be a frame.
 */
export function readFrames(bytes: Uint8Array, handle: (frame: Frame) => void): number {
  let at = 0;
  while (bytes.length - at >= LENGTH_BYTES) {
    const size = readU32(bytes, at) + LENGTH_BYTES;
    if (size < HEADER_BYTES || size > MAX_FRAME_BYTES) {
      throw new ProtocolError(`Cannot read a frame: it cannot have ${size} bytes`);
    }
    if (bytes.length - at < size) break;
    handle({
      type: byteAt(bytes, at + 4),
      flags: byteAt(bytes, at + 5),
      id: readU32(bytes, at + 8) + readU32(bytes, at + 12) * 2 ** 32,
      payload: bytes.subarray(at + HEADER_BYTES, at + size),
    });
    at += size;
  }
  return at;
}

/** Text that is a payload, or a part of one. */
export function readText(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/**
 * Reads a block of strings: their lengths, then their bytes.
 *
 * @returns The strings; `undefined` for NULL.
 * @throws {ProtocolError} If the lengths do not add up to the payload.
 */
export function readStrings(payload: Uint8Array, count: number): (string | undefined)[] {
  let at = 4 * count;
  if (payload.length < at) throw new ProtocolError("Cannot read strings: they are cut off");
  const strings: (string | undefined)[] = [];
  for (let index = 0; index < count; index++) {
    const length = readU32(payload, 4 * index);
    if (length === NULL_STRING) {
      strings.push(undefined);
      continue;
    }
    if (length > payload.length - at) {
      throw new ProtocolError("Cannot read strings: one is longer than its frame");
    }
    strings.push(readText(payload.subarray(at, at + length)));
    at += length;
  }
  if (at !== payload.length) throw new ProtocolError("Cannot read strings: something follows");
  return strings;
}

function readU32(bytes: Uint8Array, at: number): number {
  return (byteAt(bytes, at) | byteAt(bytes, at + 1) << 8 | byteAt(bytes, at + 2) << 16 |
    byteAt(bytes, at + 3) << 24) >>> 0;
}

/** The callers have made sure that the byte is there. */
function byteAt(bytes: Uint8Array, at: number): number {
  return bytes[at] as number;
}
