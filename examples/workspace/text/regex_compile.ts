/**
 * From a pattern to a program: one pass, no tree. A repeated part is copied, so the size of the
 * program is what bounds a pattern such as `((a{99}){99}){99}`.
 *
 * @module
 */

import {
  ANY,
  type CharacterSet,
  DIGITS,
  foldCase,
  invert,
  normalise,
  SPACE,
  WORD,
} from "./regex_class.ts";

/** One step of a program. `jump` and `split` name places in it. */
export type Instruction =
  | { readonly kind: "class"; readonly set: CharacterSet }
  | { readonly kind: "assert"; readonly what: "^" | "$" | "b" | "B" }
  | { readonly kind: "split"; readonly preferred: number; readonly other: number }
  | { readonly kind: "jump"; readonly to: number }
  | { readonly kind: "match" };

const MAX_PROGRAM = 1_000;
const MAX_PATTERN = 1_000;
const MAX_DEPTH = 50;

/** A part of a program, with places relative to its own beginning. */
type Part = readonly Instruction[];

/** Compiles a pattern; see `linear_regex.ts` for the syntax. */
export function compile(pattern: string, ignoreCase: boolean): readonly Instruction[] {
  if (pattern.length > MAX_PATTERN) {
    throw new SyntaxError(
      `Cannot compile the pattern: it must be at most ${MAX_PATTERN} characters long`,
    );
  }
  return [...new Compiler(pattern, ignoreCase).all(), { kind: "match" }];
}

class Compiler {
  readonly #pattern: string;
  readonly #ignoreCase: boolean;
  #at = 0;
  #depth = 0;

  constructor(pattern: string, ignoreCase: boolean) {
    this.#pattern = pattern;
    this.#ignoreCase = ignoreCase;
  }

  all(): Part {
    const part = this.#alternatives();
    if (this.#at < this.#pattern.length) throw this.#wrong('there is a ")" without its "("');
    return part;
  }

  #alternatives(): Part {
    let part = this.#sequence();
    while (this.#takes("|")) {
      const other = this.#sequence();
      part = bounded([
        { kind: "split", preferred: 1, other: part.length + 2 },
        ...moved(part, 1),
        { kind: "jump", to: part.length + 2 + other.length },
        ...moved(other, part.length + 2),
      ]);
    }
    return part;
  }

  #sequence(): Part {
    let part: Part = [];
    while (this.#at < this.#pattern.length && this.#peek() !== "|" && this.#peek() !== ")") {
      const next = this.#repeated(this.#atom());
      part = bounded([...part, ...moved(next, part.length)]);
    }
    return part;
  }

  #repeated(part: Part): Part {
    for (;;) {
      const bounds = this.#quantifier();
      if (bounds === undefined) return part;
      const isLazy = this.#takes("?");
      part = repeat(part, bounds[0], bounds[1], isLazy);
      if (this.#quantifier() !== undefined) throw this.#wrong("a quantifier follows a quantifier");
    }
  }

  #quantifier(): readonly [number, number] | undefined {
    if (this.#takes("*")) return [0, Infinity];
    if (this.#takes("+")) return [1, Infinity];
    if (this.#takes("?")) return [0, 1];
    const braces = /^\{(\d{1,4})(,?)(\d{0,4})\}/.exec(this.#pattern.slice(this.#at, this.#at + 12));
    if (braces === null) return undefined;
    const [all, least, comma, most] = braces;
    if (comma === "" && most !== "") return undefined;
    this.#at += all.length;
    const from = Number(least);
    const to = comma === "" ? from : most === "" ? Infinity : Number(most);
    if (to < from) throw this.#wrong("the numbers in the braces are in the wrong order");
    return [from, to];
  }

  #atom(): Part {
    const character = this.#next();
    switch (character) {
      case "(":
        return this.#group();
      case "[":
        return this.#set(this.#class());
      case ".":
        return this.#set(ANY);
      case "^":
      case "$":
        return [{ kind: "assert", what: character }];
      case "*":
      case "+":
      case "?":
        throw this.#wrong(`nothing stands before "${character}"`);
      case "\\": {
        if (this.#peek() === "b" || this.#peek() === "B") {
          return [{ kind: "assert", what: this.#next() === "b" ? "b" : "B" }];
        }
        return this.#set(this.#escape());
      }
      default:
        return this.#set(single(character));
    }
  }

  #group(): Part {
    if (this.#takes("?") && !this.#takes(":")) {
      throw this.#wrong("look-around and named groups are not supported");
    }
    if (++this.#depth > MAX_DEPTH) throw this.#wrong("its groups are nested too deeply");
    const part = this.#alternatives();
    if (!this.#takes(")")) throw this.#wrong('there is a "(" without its ")"');
    this.#depth--;
    return part;
  }

  #class(): CharacterSet {
    const isInverted = this.#takes("^");
    const ranges: number[] = [];
    while (!this.#takes("]")) {
      if (this.#at >= this.#pattern.length) throw this.#wrong('there is a "[" without its "]"');
      const first = this.#classMember();
      if (this.#peek() === "-" && this.#pattern[this.#at + 1] !== "]" && first.length === 2) {
        this.#at++;
        const last = this.#at < this.#pattern.length ? this.#classMember() : [];
        const [from, to] = [first[0] ?? 0, last[0] ?? 0];
        if (last.length !== 2 || last[0] !== last[1] || to < from) {
          throw this.#wrong("a range of characters is in the wrong order");
        }
        ranges.push(from, to);
      } else ranges.push(...first);
    }
    const set = normalise(ranges);
    // The case is folded before the inversion: [^a] must refuse "A" too.
    return isInverted ? invert(this.#ignoreCase ? foldCase(set) : set) : set;
  }

  #classMember(): CharacterSet {
    const character = this.#next();
    if (character !== "\\") return single(character);
    if (this.#takes("b")) return [8, 8];
    return this.#escape();
  }

  #escape(): CharacterSet {
    const character = this.#next();
    switch (character) {
      case "d":
        return DIGITS;
      case "D":
        return invert(DIGITS);
      case "w":
        return WORD;
      case "W":
        return invert(WORD);
      case "s":
        return SPACE;
      case "S":
        return invert(SPACE);
      case "t":
        return single("\t");
      case "n":
        return single("\n");
      case "r":
        return single("\r");
      case "f":
        return single("\f");
      case "v":
        return single("\v");
      case "x":
        return this.#hex(/^[0-9A-Fa-f]{2}/);
      case "u":
        return this.#hex(/^(?:[0-9A-Fa-f]{4}|\{[0-9A-Fa-f]{1,6}\})/);
    }
    if (/[0-9A-Za-z]/.test(character)) throw this.#wrong(`"\\${character}" is not supported`);
    return single(character);
  }

  #hex(form: RegExp): CharacterSet {
    const found = form.exec(this.#pattern.slice(this.#at, this.#at + 8))?.[0];
    const point = found === undefined ? NaN : parseInt(found.replace(/[{}]/g, ""), 16);
    if (found === undefined || point > 0x10ffff) throw this.#wrong("a code point is malformed");
    this.#at += found.length;
    return [point, point];
  }

  #set(set: CharacterSet): Part {
    return [{ kind: "class", set: this.#ignoreCase ? foldCase(set) : set }];
  }

  #peek(): string | undefined {
    return this.#pattern[this.#at];
  }

  #next(): string {
    const point = this.#pattern.codePointAt(this.#at);
    if (point === undefined) throw this.#wrong("it ends in the middle");
    const character = String.fromCodePoint(point);
    this.#at += character.length;
    return character;
  }

  #takes(character: string): boolean {
    if (this.#peek() !== character) return false;
    this.#at++;
    return true;
  }

  #wrong(why: string): SyntaxError {
    return new SyntaxError(`Cannot compile the pattern: at character ${this.#at + 1}, ${why}`);
  }
}

function single(character: string): CharacterSet {
  const point = character.codePointAt(0) ?? 0;
  return [point, point];
}

function moved(part: Part, by: number): Part {
  return by === 0 ? part : part.map((step) => {
    if (step.kind === "jump") return { ...step, to: step.to + by };
    if (step.kind === "split") {
      return { ...step, preferred: step.preferred + by, other: step.other + by };
    }
    return step;
  });
}

function repeat(part: Part, least: number, most: number, isLazy: boolean): Part {
  const split = (into: number, past: number): Instruction => ({
    kind: "split",
    preferred: isLazy ? past : into,
    other: isLazy ? into : past,
  });
  const copies = most === Infinity ? Math.max(least, 1) : most;
  if (copies * (part.length + 1) > MAX_PROGRAM) throw tooLarge();
  const result: Instruction[] = [];
  for (let copy = 0; copy < least; copy++) result.push(...moved(part, result.length));
  if (most === Infinity) {
    // L: split M, end;  M: part;  jump L
    const loop = result.length;
    result.push(split(loop + 1, loop + part.length + 2));
    result.push(...moved(part, loop + 1), { kind: "jump", to: loop });
    return bounded(result);
  }
  const end = result.length + (most - least) * (part.length + 1);
  for (let copy = least; copy < most; copy++) {
    const at = result.length;
    result.push(split(at + 1, end), ...moved(part, at + 1));
  }
  return bounded(result);
}

function bounded(part: Part): Part {
  if (part.length > MAX_PROGRAM) throw tooLarge();
  return part;
}

function tooLarge(): SyntaxError {
  return new SyntaxError("Cannot compile the pattern: it repeats too much; use smaller numbers");
}
