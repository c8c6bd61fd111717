/**
 * Says what is wrong with a text that is not JSON, and where. Runtimes word it each in their own way,
 * and repeat pieces of the text; this does not.
 *
 * @module
 */

// The parts of JSON, anchored where the scan stands. Every character has one place in each.
const SPACE = /[ \t\n\r]*/y;
// All but the quote, the backslash and the control characters.
const PLAIN_LETTERS = /[ !#-[\]-\uffff]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const LITERAL = /true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;

/**
 * Describes the first fault of a text that `JSON.parse` refused: its place, and what JSON wants
 * there.
 *
 * @param text What is not JSON.
 * @returns A sentence without a subject: `at character 5 (line 1, column 5) it wants ":"`.
 */
export function describeJsonError(text: string): string {
  const scan = new Scan(text);
  const wanted = scan.run();
  const { index } = scan;
  const before = text.slice(0, index);
  const line = before.split("\n").length;
  const column = index - before.lastIndexOf("\n");
  const where = index >= text.length
    ? `it ends too early, after ${text.length} characters: it`
    : `at character ${index + 1} (line ${line}, column ${column}) it`;
  return `${where} wants ${wanted}`;
}

/** Reads JSON without building it, and without recursion: the text may be nested at any depth. */
class Scan {
  /** Where it stands. */
  index = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** Stops at the first fault, and answers what is wanted there. */
  run(): string {
    /** The brackets that are open, as the ones that close them. */
    const open: ("}" | "]")[] = [];
    for (;;) {
      // Here a value begins.
      const close = this.#take("{") ? "}" : this.#take("[") ? "]" : undefined;
      if (close === undefined) {
        const wanted = this.#next === '"' ? this.#string() : this.#match(LITERAL) ? "" : "a value";
        if (wanted !== "") return wanted;
      } else if (!this.#take(close)) {
        open.push(close);
        if (close === "}" && !this.#key()) return 'a property name in quotes or "}"';
        continue;
      }
      // Here a value has ended.
      while (open.length > 0 && this.#take(open.at(-1) ?? "")) open.pop();
      const around = open.at(-1);
      if (around === undefined) {
        this.#match(SPACE);
        return "nothing after the value";
      }
      if (!this.#take(",")) return `"," or "${around}"`;
      if (around === "}" && !this.#key()) return "a property name in quotes";
    }
  }

  get #next(): string | undefined {
    return this.#text[this.index];
  }

  /** A property name and its colon; where it is not one, the scan stands where it stops being one. */
  #key(): boolean {
    this.#match(SPACE);
    return this.#next === '"' && this.#string() === "" && this.#take(":");
  }

  /** What a string wants where it stops being one; `""` if it does not. */
  #string(): string {
    this.index++;
    do this.#match(PLAIN_LETTERS); while (this.#match(ESCAPE));
    switch (this.#next) {
      case '"':
        this.index++;
        return "";
      case "\\":
        return '"\\" in strings as "\\\\"';
      case undefined:
        return "the closing quote of a string";
      default:
        return 'control characters in strings as escapes, such as "\\n"';
    }
  }

  /** Goes past a mark, and the white space around it. */
  #take(mark: string): boolean {
    this.#match(SPACE);
    if (this.#next !== mark) return false;
    this.index++;
    this.#match(SPACE);
    return true;
  }

  /** Goes past what `part` matches here, if it does. */
  #match(part: RegExp): boolean {
    part.lastIndex = this.index;
    if (!part.test(this.#text)) return false;
    this.index = part.lastIndex;
    return true;
  }
}
