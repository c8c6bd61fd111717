/**
 * The frames of the protocol between libplue and the tools: the constants of the protocol, and
 * functions that read frames from bytes, join their pieces, and write them. See `ffi/PROTOCOL.md`.
 */

export const PROTOCOL_VERSION = 2;

/** The contents of a yield frame, in its flags. */
export const YIELD = { result: 0, failure: 1, metadata: 2, output: 3, progress: 4 } as const;

/** The bytes before the text of a yield frame: two numbers. */
export const YIELD_BYTES = 16;

const HEADER_BYTES = 16;

/** The size of the length field at the beginning of a frame. The length excludes this field. */
const LENGTH_BYTES = 4;

/** The maximum size of a frame, with its header. */
const MAX_FRAME_BYTES = 256 * 1024 * 1024;

/** The length that represents NULL in a block of strings. */
const NULL_STRING = 0xffff_ffff;

export const REQUEST = {
  execute: 1,
  abort: 2,
  shutdown: 3,
  configure: 4,
  ping: 5,
  register: 6,
  unregister: 7,
  yield: 8,
} as const;

export const REPLY = {
  result: 16,
  metadata: 17,
  tools: 18,
  hello: 19,
  failed: 20,
  pong: 21,
  invoke: 22,
  cancel: 23,
  log: 24,
} as const;

export type ReplyType = typeof REPLY[keyof typeof REPLY];

export const FLAG = {
  /** Flag of an execute frame: the caller receives metadata. */
  sendsMetadata: 1,
  /** Flag of an execute frame: the host answers questions. */
  answersQuestions: 2,
  /** Flag of an abort frame: the id belongs to an abort signal, and not to a call. */
  abortsSignal: 1,
  /** Flag of a register frame: the host expects a result frame. */
  needsResult: 1,
  /** Flag of a result frame: the call failed. */
  callFailed: 1,
  /** Flag of a failed frame: the host's configuration is invalid. */
  badConfiguration: 1,
} as const;

/** The flags of an execute frame from this bit on are the operation. */
export const OPERATION_SHIFT = 2;

/** The flags of a result frame from this bit on are a status of `plue.h`, or the result's flags. */
export const STATUS_SHIFT = 1;

/** The bytes before the strings of an execute or register frame: an id. */
export const SIGNAL_BYTES = 8;

/** Thrown if libplue violates the protocol, so that the rest of its bytes cannot be read. */
export class FrameError extends Error {
  override readonly name = "FrameError";
}

/** A frame, as a view of the bytes it was read from. Valid until the handler returns. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly id: number;
  readonly payload: Uint8Array;
}

// A byte order mark at the beginning of a string is part of the host's text, so it stays.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Reads the whole frames at the beginning of `bytes`, and returns their size.
 *
 * @throws {FrameError} If the bytes cannot be a frame.
 */
export function readFrames(bytes: Uint8Array, handle: (frame: Frame) => void): number {
  let at = 0;
  while (bytes.length - at >= LENGTH_BYTES) {
    const size = readU32(bytes, at) + LENGTH_BYTES;
    if (size < HEADER_BYTES || size > MAX_FRAME_BYTES) {
      throw new FrameError(`Cannot read a frame: it cannot have ${size} bytes`);
    }
    if (bytes.length - at < size) break;
    handle({
      type: byteAt(bytes, at + 4),
      flags: byteAt(bytes, at + 5),
      id: readU64(bytes, at + 8),
      payload: bytes.subarray(at + HEADER_BYTES, at + size),
    });
    at += size;
  }
  return at;
}

/** The id of a call or an abort signal at the beginning of bytes. */
export function readId(bytes: Uint8Array): number {
  if (bytes.length < SIGNAL_BYTES) throw new FrameError("Cannot read an id: it is cut off");
  return readU64(bytes, 0);
}

/** The two numbers of a yield frame, which are doubles for progress. */
export function readNumbers(
  payload: Uint8Array,
  isProgress: boolean,
): readonly [first: number, second: number] {
  if (payload.length < YIELD_BYTES) throw new FrameError("Cannot read numbers: they are cut off");
  if (!isProgress) return [readU64(payload, 0), readU64(payload, 8)];
  const view = new DataView(payload.buffer, payload.byteOffset, YIELD_BYTES);
  return [view.getFloat64(0, true), view.getFloat64(8, true)];
}

export function readText(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/**
 * Reads a block of strings, of which NULL is `undefined`.
 *
 * @throws {FrameError} If the lengths do not add up to the payload.
 */
export function readStrings(payload: Uint8Array, count: number): (string | undefined)[] {
  let at = 4 * count;
  if (payload.length < at) throw new FrameError("Cannot read strings: they are cut off");
  const strings: (string | undefined)[] = [];
  for (let index = 0; index < count; index++) {
    const length = readU32(payload, 4 * index);
    if (length === NULL_STRING) {
      strings.push(undefined);
      continue;
    }
    if (length > payload.length - at) {
      throw new FrameError("Cannot read strings: a string is longer than its frame");
    }
    strings.push(readText(payload.subarray(at, at + length)));
    at += length;
  }
  if (at !== payload.length) throw new FrameError("Cannot read strings: bytes are left over");
  return strings;
}

function readU64(bytes: Uint8Array, at: number): number {
  return readU32(bytes, at) + readU32(bytes, at + 4) * 2 ** 32;
}

function readU32(bytes: Uint8Array, at: number): number {
  return (byteAt(bytes, at) | byteAt(bytes, at + 1) << 8 | byteAt(bytes, at + 2) << 16 |
    byteAt(bytes, at + 3) << 24) >>> 0;
}

/** The callers have checked that the byte exists. */
function byteAt(bytes: Uint8Array, at: number): number {
  return bytes[at] as number;
}

const START_BYTES = 64 * 1024;
/** The maximum size of a reused block: a larger one was allocated for a large frame. */
const KEPT_BYTES = 1024 * 1024;
/** Longer text is encoded separately: in place, it would take three bytes per UTF-16 unit. */
const SHORT_TEXT = 16 * 1024;

const encoder = new TextEncoder();

/** Writes frames, one after the other, into one block of bytes, until they are taken. */
export class FrameWriter {
  readonly #maxBytes: number;
  #bytes: Uint8Array = new Uint8Array(START_BYTES);
  #used = 0;

  /** @param maxBytes The maximum size of a frame. */
  constructor(maxBytes: number = MAX_FRAME_BYTES) {
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#used;
  }

  /** Adds a frame with a text. Returns `false` and adds nothing if the frame would be too large. */
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

  /** Adds a frame whose payload is two numbers and a block of strings. */
  addStrings(
    type: ReplyType,
    id: number,
    numbers: readonly [number, number],
    strings: readonly (string | undefined)[],
  ): boolean {
    const start = this.#begin(type, 0, id);
    const lengths = this.#used + 16;
    this.#bytes = withRoom(this.#bytes, this.#used, 16 + 4 * strings.length);
    numbers.forEach((number, index) => this.#writeU64(this.#used + 8 * index, number));
    this.#used = lengths + 4 * strings.length;
    for (const [index, text] of strings.entries()) {
      const from = this.#used;
      if (text !== undefined && !this.#text(text, start)) return false;
      this.#writeU32(lengths + 4 * index, text === undefined ? NULL_STRING : this.#used - from);
    }
    return this.#end(start);
  }

  /** Passes the frames to `take`, and removes them when `take` returns. They are valid until then. */
  flush(take: (frames: Uint8Array) => void): void {
    if (this.#used === 0) return;
    const frames = this.#bytes.subarray(0, this.#used);
    this.#used = 0;
    if (this.#bytes.length > KEPT_BYTES) this.#bytes = new Uint8Array(START_BYTES);
    take(frames);
  }

  #begin(type: ReplyType, flags: number, id: number): number {
    this.#bytes = withRoom(this.#bytes, this.#used, HEADER_BYTES + LENGTH_BYTES);
    const start = this.#used;
    this.#writeU32(start + 4, type | flags << 8);
    this.#writeU64(start + 8, id);
    this.#used += HEADER_BYTES;
    return start;
  }

  /** Adds text; removes the frame that began at `start` if it would become too large. */
  #text(text: string, start: number): boolean {
    if (text.length <= SHORT_TEXT) {
      this.#bytes = withRoom(this.#bytes, this.#used, 3 * text.length);
      this.#used += encoder.encodeInto(text, this.#bytes.subarray(this.#used)).written;
    } else {
      const bytes = text.length > this.#maxBytes ? undefined : encoder.encode(text);
      if (bytes === undefined || this.#used - start + bytes.length > this.#maxBytes) {
        this.#used = start;
        return false;
      }
      this.#bytes = withRoom(this.#bytes, this.#used, bytes.length);
      this.#bytes.set(bytes, this.#used);
      this.#used += bytes.length;
    }
    return true;
  }

  #end(start: number): boolean {
    const size = this.#used - start;
    if (size > this.#maxBytes) {
      this.#used = start;
      return false;
    }
    this.#writeU32(start, size - LENGTH_BYTES);
    return true;
  }

  #writeU64(at: number, value: number): void {
    this.#writeU32(at, value >>> 0);
    this.#writeU32(at + 4, Math.floor(value / 2 ** 32));
  }

  #writeU32(at: number, value: number): void {
    const bytes = this.#bytes;
    bytes[at] = value;
    bytes[at + 1] = value >>> 8;
    bytes[at + 2] = value >>> 16;
    bytes[at + 3] = value >>> 24;
  }
}

/** Passes the bytes of a socket to `receive`, and stores the beginning of an unfinished frame. */
export class FrameStream {
  readonly #receive: (bytes: Uint8Array) => number;
  #kept: Uint8Array = new Uint8Array(0);
  #used = 0;

  /** @param receive Reads the whole frames at the beginning, and returns their size. */
  constructor(receive: (bytes: Uint8Array) => number) {
    this.#receive = receive;
  }

  get waiting(): number {
    return this.#used;
  }

  /** Receives bytes. They are only read during this call: bytes that are needed later are copied. */
  push(bytes: Uint8Array): void {
    if (this.#used === 0) {
      const taken = this.#receive(bytes);
      if (taken < bytes.length) this.#keep(bytes.subarray(taken));
      return;
    }
    this.#keep(bytes);
    if (this.#used < this.#frameSize()) return;
    const block = this.#kept;
    const taken = this.#receive(block.subarray(0, this.#used));
    const rest = block.subarray(taken, this.#used);
    this.#used = 0;
    if (block.length <= KEPT_BYTES) {
      block.copyWithin(0, taken, taken + rest.length);
      this.#used = rest.length;
      return;
    }
    this.#kept = new Uint8Array(0);
    this.#keep(rest);
    // Frees a large frame before the next garbage collection. Node 20 has no `transfer`.
    (block.buffer as ArrayBuffer).transfer?.(0);
  }

  #keep(bytes: Uint8Array): void {
    const missing = this.#frameSize() - this.#used;
    // A large frame gets a block of its size, because doubling a block would take twice the memory.
    const room = missing > KEPT_BYTES ? Math.max(missing, bytes.length) : bytes.length;
    this.#kept = withRoom(this.#kept, this.#used, room, missing > KEPT_BYTES);
    this.#kept.set(bytes, this.#used);
    this.#used += bytes.length;
  }

  /** The size of the frame that has begun to arrive; 0 until its length is known. */
  #frameSize(): number {
    if (this.#used < LENGTH_BYTES) return 0;
    return Math.min(readU32(this.#kept, 0) + LENGTH_BYTES, MAX_FRAME_BYTES);
  }
}

/** The block, or a larger one with its first `used` bytes, with space for `more` bytes. */
function withRoom(block: Uint8Array, used: number, more: number, isExact = false): Uint8Array {
  if (used + more <= block.length) return block;
  const size = isExact ? used + more : Math.max(START_BYTES, used + more, 2 * block.length);
  const larger = new Uint8Array(size);
  larger.set(block.subarray(0, used));
  return larger;
}
