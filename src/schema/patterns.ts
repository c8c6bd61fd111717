/**
 * Bounds the time that patterns take, with the verdicts of the runtime's `RegExp`.
 *
 * `RegExp` tries every way through a pattern: `^(a+)+$` takes 2, 4, 8… times as long with each
 * letter. It tests the patterns that leave one way only, as most do. The others have an automaton that is
 * in all of its states at once. Where a pattern looks ahead, behind, or at the end of a word, the
 * automaton only counts the ways that a text leaves, and `RegExp` tests the text if they are not too
 * many.
 *
 * @module
 */

import { once } from "../tool/mod.ts";
import type { CheckedPattern, PatternBudget } from "./engine.ts";
import { MAX_STEPS } from "./issues.ts";

/** The maximum number of states of a pattern. */
const MAX_STATES = 2_000;
/** The maximum number of states of a repeated part that is copied. A larger one gets a loop. */
const MAX_COPIES = 256;
/** The maximum number of ways through a pattern without repetitions that no automaton reads first. */
const MAX_TRIED = 1_000;
/** The number of characters that a runtime's `RegExp` reads in the time of one step. */
export const LOOKS_PER_STEP = 16;

let steps = MAX_STEPS;

/** Restores the steps, at the beginning of a check. Checks never overlap. */
export function resetSteps(): void {
  steps = MAX_STEPS;
}

function spend(count: number): void {
  steps -= count;
  if (steps < 0) throw new RangeError("Too many steps");
}

/**
 * Compiles the source of `pattern`, or a name in `patternProperties`. Only `test` may be used; it
 * throws a `RangeError` where it takes more steps than the check has left.
 *
 * @param budget The states that it may cost; its cost is taken off.
 * @throws {SyntaxError} If it is not a regular expression with the "u" flag, if its ways cannot be
 * counted, or if it costs more than is left.
 */
export function compilePattern(
  source: string,
  budget: PatternBudget = { left: Infinity },
): CheckedPattern {
  const known = CACHE.get(source);
  if (known !== undefined) return known;
  let pattern: RegExp;
  try {
    // A search for ".*a" finds what a search for "a" finds.
    pattern = new RegExp(source.replace(/^(?:\.\*\??)+/, ""), "u");
  } catch {
    refuse('that works with the "u" flag');
  }
  const automaton = new Automaton(pattern.source, budget);
  const { looks } = automaton;
  const native = pattern.test.bind(pattern);
  const test = (text: string): boolean => {
    if (looks === Infinity) return automaton.finds(text) ?? native(text);
    spend(looks * (1 + text.length / LOOKS_PER_STEP));
    return native(text);
  };
  const checked = Object.assign(pattern, { looks, test });
  if (looks < Infinity && source.length < MAX_CACHED_LENGTH) {
    if (CACHE.size === MAX_CACHED) CACHE.clear();
    CACHE.set(source, checked);
  }
  return checked;
}

/** The last simple patterns: the tools of a registry have many in common. */
const CACHE = new Map<string, CheckedPattern>();
const MAX_CACHED = 1_000;
const MAX_CACHED_LENGTH = 200;

function refuse(rule: string): never {
  throw new SyntaxError(`The pattern must be a regular expression ${rule}`);
}

const TOKEN = new RegExp(
  [
    String.raw`\[(?:\\.|[^\]\\])*\]`,
    String.raw`\\(?:u\{[^}]*\}|ud[89ab]..\\ud[c-f]..|u....|x..|c.|p\{[^}]*\}|k<[^>]*>|[1-9]\d*|.)`,
    String.raw`\((?:\?(?:[-a-z]*:|<?[=!]|<[^>]*>))?`,
    String.raw`[*+?]\??|\{\d+(?:,\d*)?\}\??`,
    ".",
  ].join("|"),
  "gisu",
);
const ASSERTION = /^(?:[$^]|\\b|\(\?<?[=!])$/i;

/** A character of a pattern. */
interface State {
  readonly characters: CharacterSet;
  /** The states that may follow it. */
  readonly next: Ways;
  /** True for a state in a loop. */
  isRepeated: boolean;
  /** True if the pattern has been found after this state, whatever follows. */
  isEnd: boolean;
  /** The number of ways to this state, if nothing is repeated. */
  ways: number;
  /** The maximum number of ways that `RegExp` tries after this state. */
  tries: number;
}

/** States, each with the number of ways to it. */
type Ways = (readonly [state: State, ways: number])[];

/** A part of a pattern: the ways through it without a character, into it, and out of it. */
interface Part {
  readonly empty: number;
  readonly first: Ways;
  readonly last: Ways;
}

const EMPTY: Part = { empty: 1, first: [], last: [] };

/** The characters of a pattern, and in how many ways they may follow each other (Glushkov). */
class Automaton {
  /** The maximum number of times that `RegExp` reads each character; `Infinity` if it depends on the text. */
  readonly looks: number;
  readonly #tokens: readonly string[];
  readonly #budget: PatternBudget;
  readonly #states: State[] = [];
  readonly #start: State;
  /** The states after which the pattern has been found. */
  readonly #ends: ReadonlySet<State>;
  /** True if the pattern can only be found at the beginning of a text. */
  #isAnchored = true;
  /** True if the pattern can only be found at the end of a text. */
  readonly #isClosed: boolean;
  /** True if the automaton gives the same verdicts as `RegExp`. */
  #isExact: boolean;
  #at = 0;

  constructor(source: string, budget: PatternBudget) {
    this.#tokens = source.match(TOKEN) ?? [];
    this.#budget = budget;
    this.#isClosed = this.#tokens.at(-1) === "$";
    const inner = this.#tokens.slice(
      this.#tokens[0] === "^" ? 1 : 0,
      this.#isClosed ? -1 : undefined,
    );
    const canFail = this.#isClosed || inner.some((token) => ASSERTION.test(token));
    this.#isExact = !inner.some((token) => ASSERTION.test(token));
    this.#start = this.#newState(".");
    const whole = this.#readChoice(true);
    this.#connect({ ...EMPTY, last: [[this.#start, 1]] }, whole);
    if (whole.empty > 0) whole.last.push([this.#start, whole.empty]);
    this.#ends = new Set(whole.last.map(([state]) => state));
    for (const [state, ways] of whole.last) {
      state.isEnd = !canFail;
      state.tries += ways;
    }
    for (const state of this.#states) {
      for (const [, ways] of state.next) state.tries += ways;
    }
    this.looks = this.#countLooks();
  }

  /**
   * Returns true if the pattern is found in a text; `undefined` if `RegExp` must test the text, whose
   * steps are then spent.
   */
  finds(text: string): boolean | undefined {
    const restart: Ways = [[this.#start, 1]];
    let active = new Map(restart);
    const isFound = (): boolean => [...active.keys()].some((state) => this.#ends.has(state));
    for (const character of text) {
      if (this.#isExact && !this.#isClosed && isFound()) return true;
      if (active.size === 0) break;
      const following = new Map(this.#isAnchored ? [] : restart);
      this.#spendOn(active);
      for (const [state, count] of active) {
        for (const [next, ways] of state.next) {
          if (!has(next.characters, character)) continue;
          // At its first end a search is over.
          const isOne = next.isEnd || this.#isExact;
          following.set(next, isOne ? 1 : (following.get(next) ?? 0) + count * ways);
        }
      }
      active = following;
    }
    this.#spendOn(active);
    return this.#isExact ? isFound() : undefined;
  }

  #spendOn(active: ReadonlyMap<State, number>): void {
    for (const [{ next, tries }, count] of active) {
      spend(2 * next.length + (this.#isExact ? 1 : count * tries / 4));
    }
  }

  #countLooks(): number {
    let most = 0;
    let isLinear = true;
    /** The number of ways through the whole pattern, if nothing is repeated. */
    let tried = 0;
    this.#start.ways = 1;
    for (const state of this.#states) {
      const { next, tries, isRepeated, isEnd } = state;
      tried += isRepeated || !this.#isAnchored ? Infinity : state.ways * tries;
      most = Math.max(most, tries);
      isLinear &&= this.#isAnchored || !isRepeated || isEnd;
      let read = 0n;
      for (const [following, ways] of next) {
        const { characters: { bits } } = following;
        isLinear &&= ways === 1 && (read & bits) === 0n;
        read |= bits;
        following.ways += state.ways * ways;
      }
    }
    if (isLinear) return this.#isAnchored ? most : most * this.#states.length;
    return tried < MAX_TRIED ? tried : Infinity;
  }

  #spend(count: number): void {
    this.#budget.left -= count;
    if (this.#budget.left < 0 || this.#states.length > MAX_STATES) {
      refuse("with fewer parts and repetitions");
    }
  }

  #newState(source: string): State {
    this.#spend(1);
    const characters = characterSet(source);
    const state = { characters, next: [], isRepeated: false, isEnd: false, ways: 0, tries: 1 };
    this.#states.push(state);
    return state;
  }

  /** Lets `after` follow `before`. */
  #connect(before: Part, after: Part): Part {
    const times = (ways: Ways, count: number): Ways =>
      count === 1 ? ways : count === 0 ? [] : ways.map(([state, one]) => [state, one * count]);
    for (const [state, ways] of before.last) {
      this.#spend(after.first.length);
      state.next.push(...times(after.first, ways));
    }
    return {
      empty: before.empty * after.empty,
      first: [...before.first, ...times(after.first, before.empty)],
      last: [...times(before.last, after.empty), ...after.last],
    };
  }

  #readChoice(isWhole = false): Part {
    const parts: Part[] = [];
    do {
      if (isWhole) {
        this.#isAnchored &&= this.#tokens[this.#at] === "^";
        // Its anchors belong to some of the choices only.
        if (parts.length > 0) this.#isExact &&= this.#tokens[0] !== "^" && !this.#isClosed;
      }
      let part = EMPTY;
      while (this.#at < this.#tokens.length && !/^[|)]$/.test(this.#tokens[this.#at] ?? "")) {
        part = this.#connect(part, this.#readRepeated());
      }
      parts.push(part);
    } while (this.#tokens[this.#at++] === "|");
    return {
      empty: parts.reduce((sum, { empty }) => sum + empty, 0),
      first: parts.flatMap(({ first }) => first),
      last: parts.flatMap(({ last }) => last),
    };
  }

  #readRepeated(): Part {
    const begin = this.#at;
    const size = this.#states.length;
    let part = this.#readOne();
    const token = this.#tokens[this.#at] ?? "";
    if (!/^[*+?{]/.test(token)) return part;
    const end = this.#at + 1;
    const [min = 0, max = token.includes(",") ? Infinity : min] = token.startsWith("{")
      ? token.match(/\d+/g)?.map(Number) ?? []
      : [token.startsWith("+") ? 1 : 0, token.startsWith("?") ? 1 : Infinity];
    const added = this.#states.slice(size);
    let { last } = part;
    if (max <= 1 || Math.max(1, added.length) * max <= MAX_COPIES) {
      for (let copy = 2; copy <= max; copy++) {
        this.#at = begin;
        const isNullable = part.empty > 0;
        part = this.#connect(part, this.#readOne());
        last = copy > min && !isNullable ? [...last, ...part.last] : part.last;
      }
    } else {
      if (part.empty > 0 && min > 1) refuse("with fewer parts and repetitions");
      this.#isExact &&= min < 2 && max === Infinity;
      this.#connect(part, part);
      // After each round, `RegExp` also tries the ways that read nothing.
      for (const [state, ways] of part.last) state.tries += ways * part.empty;
      for (const state of added) state.isRepeated = true;
    }
    this.#at = end;
    return max === 0 ? EMPTY : { ...part, empty: min === 0 ? part.empty + 1 : part.empty, last };
  }

  #readOne(): Part {
    const token = this.#tokens[this.#at++] ?? "";
    if (/^\\(?:[1-9]|k<)/.test(token)) {
      refuse(`without references back to groups ("${token.slice(0, 20)}")`);
    }
    if (/^\(\?[-a-z]+:/i.test(token)) refuse(`without "${token}"`);
    if (ASSERTION.test(token) && !token.startsWith("(")) return EMPTY;
    if (!token.startsWith("(")) {
      const ways: Ways = [[this.#newState(token), 1]];
      return { empty: 0, first: ways, last: ways };
    }
    const begin = this.#at;
    const part = this.#readChoice();
    if (!ASSERTION.test(token)) return part;
    if (token.includes("<")) {
      // It reads the text backwards.
      const isOneWay = this.#tokens.slice(begin, this.#at).every((one) => !/^[*+?{|]/.test(one));
      return isOneWay ? EMPTY : refuse("without choices and repetitions that look behind");
    }
    return { ...part, empty: Math.max(1, part.empty), last: [] };
  }
}

/** The characters of a class, an escape or a letter. */
interface CharacterSet {
  readonly pattern: RegExp;
  /** A bit for each ASCII character that is in it, and then one for all others, if any may be. */
  readonly bits: bigint;
}

const BEYOND = 128;
/** Letters, escapes and classes with ASCII characters only. */
const ASCII_ONLY = /^(?:\[(?!\^)(?:\\[dwtnrfv\W]|[^\\\u0080-\u{10ffff}])*\]|\\[dwtnrfv\W]|[^.])$/u;
/** Patterns have a few classes in common. */
const COMMON = new Map<string, CharacterSet>();

function characterSet(source: string): CharacterSet {
  if (COMMON.size > MAX_CACHED) COMMON.clear();
  return once(COMMON, source, () => {
    const pattern = new RegExp(`^${source}$`, "u");
    let bits = 0n;
    for (let code = 0; code <= BEYOND; code++) {
      const isIn = code < BEYOND
        ? pattern.test(String.fromCharCode(code))
        : source.charCodeAt(0) >= BEYOND || !ASCII_ONLY.test(source);
      if (isIn) bits |= 1n << BigInt(code);
    }
    return { pattern, bits };
  });
}

function has({ pattern, bits }: CharacterSet, character: string): boolean {
  const code = character.charCodeAt(0);
  return code < BEYOND ? (bits >> BigInt(code) & 1n) === 1n : pattern.test(character);
}
