/**
 * Where a text stops being JSON. The runtimes' own messages differ, and some repeat the text.
 *
 * @module
 */

const LITERALS = ["true", "false", "null"] as const;
// JSON's own number, anchored where the scan stands. Every character has one place in it.
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;

/**
 * Says what is wrong with a text that `JSON.parse` refused, and where.
 *
 * @param text The text. Nothing of it is repeated.
 * @returns Such as `at character 14 (line 1, column 14) it wants "," or "}"`.
 */
export function describeJsonError(text: string): string {
  const { index, wanted } = new Scan(text).run();
  const before = text.slice(0, index);
  const line = before.split("\n").length;
  const column = index - before.lastIndexOf("\n");
  const where = index >= text.length
    ? `it ends too early, after ${text.length} characters: it`
    : `at character ${index + 1} (line ${line}, column ${column}) it`;
  return `${where} wants ${wanted}`;
}

interface Fault {
  readonly index: number;
  readonly wanted: string;
}

/** Reads JSON without building it, and without recursion: the text may be nested at any depth. */
class Scan {
  readonly #text: string;
  #index = 0;

  constructor(text: string) {
    this.#text = text;
  }

  run(): Fault {
    /** The brackets that are open, as the ones that close them. */
    const open: ("}" | "]")[] = [];
    for (;;) {
      // Here a value begins.
      this.#space();
      const start = this.#text[this.#index];
      if (start === "{" || start === "[") {
        this.#index++;
        const close = start === "{" ? "}" : "]";
        this.#space();
        if (!this.#take(close)) {
          open.push(close);
          if (close === "}" && !this.#key()) return this.#fault('a property name in quotes or "}"');
          continue;
        }
      } else {
        const fault = this.#scalar();
        if (fault !== undefined) return fault;
      }
      // Here a value has ended.
      for (;;) {
        this.#space();
        const close = open.at(-1);
        if (close === undefined) return this.#fault("nothing after the value");
        if (this.#take(close)) {
          open.pop();
          continue;
        }
        if (!this.#take(",")) return this.#fault(`"," or "${close}"`);
        this.#space();
        if (close === "}" && !this.#key()) return this.#fault("a property name in quotes");
        break;
      }
    }
  }

  /** A property name and its colon; where it is not one, the scan stands where it stops being one. */
  #key(): boolean {
    if (this.#text[this.#index] !== '"' || this.#string() !== undefined) return false;
    this.#space();
    return this.#take(":");
  }

  #scalar(): Fault | undefined {
    if (this.#text[this.#index] === '"') return this.#string();
    for (const literal of LITERALS) {
      if (this.#text.startsWith(literal, this.#index)) {
        this.#index += literal.length;
        return undefined;
      }
    }
    NUMBER.lastIndex = this.#index;
    const number = NUMBER.exec(this.#text);
    if (number === null) return this.#fault("a value");
    this.#index += number[0].length;
    return undefined;
  }

  #string(): Fault | undefined {
    for (this.#index++; this.#index < this.#text.length; this.#index++) {
      const unit = this.#text.charCodeAt(this.#index);
      if (unit === 0x22) {
        this.#index++;
        return undefined;
      }
      if (unit < 0x20) {
        return this.#fault('control characters in strings as escapes, such as "\\n"');
      }
      if (unit === 0x5c) {
        const escape = this.#text[this.#index + 1] ?? "";
        const hex = escape === "u" ? 4 : 0;
        const digits = this.#text.slice(this.#index + 2, this.#index + 2 + hex);
        if (escape === "" || !'"\\/bfnrtu'.includes(escape) || !isHex(digits, hex)) {
          return this.#fault('"\\" in strings as "\\\\"');
        }
        this.#index += 1 + hex;
      }
    }
    return this.#fault("the closing quote of a string");
  }

  #space(): void {
    while (" \t\n\r".includes(this.#text[this.#index] ?? "x")) this.#index++;
  }

  #take(wanted: string): boolean {
    if (this.#text[this.#index] !== wanted) return false;
    this.#index++;
    return true;
  }

  #fault(wanted: string): Fault {
    return { index: this.#index, wanted };
  }
}

function isHex(text: string, length: number): boolean {
  if (text.length !== length) return false;
  for (const digit of text) if (!"0123456789abcdefABCDEF".includes(digit)) return false;
  return true;
}
