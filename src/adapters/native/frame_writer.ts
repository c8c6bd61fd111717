/**
 * Writes frames, one after the other, into one block of bytes.
 *
 * @module
 */

import { HEADER_BYTES, LENGTH_BYTES, MAX_FRAME_BYTES, type ReplyType } from "./protocol.ts";

const START_BYTES = 64 * 1024;
/** A block that grew beyond this for a large result is not kept. */
const KEPT_BYTES = 1024 * 1024;
/** Longer text is encoded apart: to encode in place takes room for three bytes a unit. */
const SHORT_TEXT = 16 * 1024;

const encoder = new TextEncoder();

/** Collects frames until somebody takes them. */
export class FrameWriter {
  #bytes: Uint8Array = new Uint8Array(START_BYTES);
  #used = 0;

  /** How many bytes are waiting. */
  get size(): number {
    return this.#used;
  }

  /**
   * Adds a frame whose payload is text.
   *
   * @returns `false` if the frame would be too large: then it is not there.
   */
  add(type: ReplyType, flags: number, id: number, text: string): boolean {
    const start = this.#begin(type, flags, id);
    return this.#text(text, start) && this.#end(start);
  }

  /** Adds a frame whose payload is a length, a text of that length, and another text. */
  addPair(type: ReplyType, flags: number, id: number, first: string, second: string): boolean {
    const start = this.#begin(type, flags, id);
    this.#used += 4;
    const from = this.#used;
    if (!this.#text(first, start)) return false;
    this.#writeU32(from - 4, this.#used - from);
    return this.#text(second, start) && this.#end(start);
  }

  /**
   * Gives the frames away and begins anew.
   *
   * @param take Gets the bytes. They are valid until it returns.
   */
  flush(take: (frames: Uint8Array) => void): void {
    if (this.#used === 0) return;
    const frames = this.#bytes.subarray(0, this.#used);
    this.#used = 0;
    if (this.#bytes.length > KEPT_BYTES) this.#bytes = new Uint8Array(START_BYTES);
    take(frames);
  }

  #begin(type: ReplyType, flags: number, id: number): number {
    this.#reserve(HEADER_BYTES + LENGTH_BYTES);
    const start = this.#used;
    this.#writeU32(start + 4, type | flags << 8);
    this.#writeU32(start + 8, id >>> 0);
    this.#writeU32(start + 12, Math.floor(id / 2 ** 32));
    this.#used += HEADER_BYTES;
    return start;
  }

  /** Adds text; takes the frame that began at `start` back if there is no room for it in one. */
  #text(text: string, start: number): boolean {
    if (text.length <= SHORT_TEXT) {
      this.#reserve(3 * text.length);
      this.#used += encoder.encodeInto(text, this.#bytes.subarray(this.#used)).written;
    } else {
      const bytes = text.length > MAX_FRAME_BYTES ? undefined : encoder.encode(text);
      if (bytes === undefined || this.#used - start + bytes.length > MAX_FRAME_BYTES) {
        this.#used = start;
        return false;
      }
      this.#reserve(bytes.length);
      this.#bytes.set(bytes, this.#used);
      this.#used += bytes.length;
    }
    return true;
  }

  #end(start: number): boolean {
    const size = this.#used - start;
    if (size > MAX_FRAME_BYTES) {
      this.#used = start;
      return false;
    }
    this.#writeU32(start, size - LENGTH_BYTES);
    return true;
  }

  #reserve(bytes: number): void {
    const needed = this.#used + bytes;
    if (needed <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(needed, 2 * this.#bytes.length));
    larger.set(this.#bytes.subarray(0, this.#used));
    this.#bytes = larger;
  }

  #writeU32(at: number, value: number): void {
    const bytes = this.#bytes;
    bytes[at] = value;
    bytes[at + 1] = value >>> 8;
    bytes[at + 2] = value >>> 16;
    bytes[at + 3] = value >>> 24;
  }
}
