/**
 * Regular expressions whose time is at most pattern size times text length, whatever the pattern:
 * all alternatives are followed side by side (Thompson's construction, Pike's machine), never one
 * after the other. JavaScript's own `RegExp` backtracks, and one bad pattern would stop the server.
 *
 * The syntax is JavaScript's without back references and look-around: literals, `.`, classes,
 * `\d \w \s \b` and their opposites, groups, `|`, `^ $`, and `* + ? {n,m}`, greedy or lazy.
 *
 * @module
 */

import { compile, type Instruction } from "./regex_compile.ts";
import { contains, isWord } from "./regex_class.ts";

/** Where a match begins and ends, in code units. */
export interface Match {
  readonly start: number;
  readonly end: number;
}

/** A compiled pattern. */
export interface LinearRegex {
  /** How many steps one character can cost. */
  readonly size: number;
  /** The first match in `text`, as JavaScript's `RegExp` would find it. */
  find(text: string): Match | undefined;
}

/**
 * Compiles a pattern.
 *
 * @throws {SyntaxError} If it is malformed, too large or uses what is not supported.
 */
export function linearRegex(
  pattern: string,
  options: { readonly ignoreCase?: boolean } = {},
): LinearRegex {
  const program = compile(pattern, options.ignoreCase ?? false);
  const machine = new Machine(program);
  return { size: program.length, find: (text) => machine.find(text) };
}

/** Places in the program, in order of preference, each with where its match began. */
class ThreadList {
  readonly at: Int32Array;
  readonly start: Int32Array;
  /** `mark[place] === generation`: the place is in the list already. */
  readonly mark: Int32Array;
  generation = 0;
  count = 0;

  constructor(size: number) {
    this.at = new Int32Array(size);
    this.start = new Int32Array(size);
    this.mark = new Int32Array(size);
  }

  clear(): void {
    this.count = 0;
    this.generation++;
  }
}

class Machine {
  readonly #program: readonly Instruction[];
  #now: ThreadList;
  #next: ThreadList;
  readonly #stack: number[] = [];

  constructor(program: readonly Instruction[]) {
    this.#program = program;
    this.#now = new ThreadList(program.length);
    this.#next = new ThreadList(program.length);
  }

  find(text: string): Match | undefined {
    let found: Match | undefined;
    this.#now.clear();
    for (let index = 0;;) {
      // A later beginning is only of interest while there is no match and it comes last in order.
      if (found === undefined) this.#add(this.#now, 0, index, text, index);
      if (this.#now.count === 0 && found !== undefined) return found;
      const isEnd = index >= text.length;
      const point = isEnd ? -1 : text.codePointAt(index) ?? -1;
      const after = index + (point > 0xffff ? 2 : 1);
      this.#next.clear();
      for (let thread = 0; thread < this.#now.count; thread++) {
        const place = this.#now.at[thread] ?? 0;
        const start = this.#now.start[thread] ?? 0;
        const instruction = this.#program[place];
        if (instruction?.kind === "match") {
          // Threads after this one are less preferred, or began later.
          found = { start, end: index };
          break;
        }
        if (instruction?.kind === "class" && !isEnd && contains(instruction.set, point)) {
          this.#add(this.#next, place + 1, start, text, after);
        }
      }
      if (isEnd) return found;
      [this.#now, this.#next] = [this.#next, this.#now];
      index = after;
    }
  }

  /** Follows jumps and assertions to the places that wait for a character. */
  #add(list: ThreadList, first: number, start: number, text: string, index: number): void {
    const stack = this.#stack;
    stack.push(first);
    for (let place = stack.pop(); place !== undefined; place = stack.pop()) {
      if (list.mark[place] === list.generation) continue;
      list.mark[place] = list.generation;
      const instruction = this.#program[place];
      switch (instruction?.kind) {
        case "jump":
          stack.push(instruction.to);
          break;
        case "split":
          stack.push(instruction.other, instruction.preferred);
          break;
        case "assert":
          if (holds(instruction.what, text, index)) stack.push(place + 1);
          break;
        default:
          list.at[list.count] = place;
          list.start[list.count++] = start;
      }
    }
  }
}

function holds(what: "^" | "$" | "b" | "B", text: string, index: number): boolean {
  if (what === "^") return index === 0;
  if (what === "$") return index === text.length;
  const isBoundary = isWord(text.charCodeAt(index - 1)) !== isWord(text.charCodeAt(index));
  return isBoundary === (what === "b");
}
