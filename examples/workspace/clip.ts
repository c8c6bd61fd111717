/**
 * Text of a bounded size, cut where a character ends.
 *
 * @module
 */

/** Cuts `text` to at most `length` code units, never within a surrogate pair. */
export function clip(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}

/**
 * Keeps the beginning and the end of a long text, up to a number of code units in all. The first
 * lines of a command's output say what it did, the last ones why it failed.
 */
export class HeadAndTail {
  readonly #half: number;
  #head = "";
  #tail = "";
  #length = 0;

  constructor(maxLength: number) {
    this.#half = Math.floor(maxLength / 2);
  }

  add(text: string): void {
    this.#length += text.length;
    if (this.#head.length < this.#half) {
      const taken = clip(text, this.#half - this.#head.length);
      this.#head += taken;
      text = text.slice(taken.length);
      // Fill the head where a surrogate pair did not fit: later text must not be put before the
      // pair.
      if (text !== "" && this.#head.length < this.#half) this.#head = this.#head.padEnd(this.#half);
    }
    this.#tail += text;
    if (this.#tail.length > 4 * this.#half) this.#tail = this.#tail.slice(-this.#half);
  }

  /** Whether text was left out. */
  get isCut(): boolean {
    return this.#length > 2 * this.#half;
  }

  /**
   * The whole text, or its beginning and end with a line between them that says how much is
   * missing.
   */
  toString(): string {
    if (!this.isCut) return this.#head + this.#tail;
    let tail = this.#tail.slice(-this.#half);
    const first = tail.charCodeAt(0);
    if (first >= 0xdc00 && first <= 0xdfff) tail = tail.slice(1);
    const missing = this.#length - this.#head.length - tail.length;
    return `${this.#head}\n… [${missing} characters left out] …\n${tail}`;
  }
}
