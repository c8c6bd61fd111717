/**
 * Puts frames together that arrive over a socket in pieces.
 *
 * @module
 */

const START_BYTES = 64 * 1024;
/** A block that grew beyond this for a large frame is not kept. */
const KEPT_BYTES = 1024 * 1024;

/** Hands on what arrives, and keeps what is not a whole frame yet. */
export class FrameStream {
  readonly #receive: (bytes: Uint8Array) => number;
  #kept: Uint8Array = new Uint8Array(0);
  #used = 0;

  /** @param receive Takes the whole frames at the beginning; says how many bytes those were. */
  constructor(receive: (bytes: Uint8Array) => number) {
    this.#receive = receive;
  }

  /** How many bytes are kept. */
  get waiting(): number {
    return this.#used;
  }

  /** Takes what has arrived. It is not kept: what is needed later is copied. */
  push(bytes: Uint8Array): void {
    if (this.#used === 0) {
      const taken = this.#receive(bytes);
      if (taken < bytes.length) this.#keep(bytes.subarray(taken));
      return;
    }
    this.#keep(bytes);
    const taken = this.#receive(this.#kept.subarray(0, this.#used));
    if (taken === 0) return;
    this.#kept.copyWithin(0, taken, this.#used);
    this.#used -= taken;
    if (this.#used === 0 && this.#kept.length > KEPT_BYTES) this.#kept = new Uint8Array(0);
  }

  #keep(bytes: Uint8Array): void {
    const needed = this.#used + bytes.length;
    if (needed > this.#kept.length) {
      const larger = new Uint8Array(Math.max(START_BYTES, needed, 2 * this.#kept.length));
      larger.set(this.#kept.subarray(0, this.#used));
      this.#kept = larger;
    }
    this.#kept.set(bytes, this.#used);
    this.#used = needed;
  }
}
