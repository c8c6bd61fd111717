/**
 * Checks strings against patterns, in time that is linear in the length of the string.
 *
 * A runtime's `RegExp` tries every way through a pattern: `^(a+)+$` takes 2, 4, 8… times as long
 * with each letter. Most patterns have only one way through, and `RegExp` runs them. An automaton,
 * which is in several states simultaneously and caches its transitions, runs the others. It accepts
 * the same strings, but does not support back-references to a group.
 */

import type { CheckedPattern, PatternBudget } from "./engine.ts";
import { MAX_STEPS } from "./issues.ts";
import { type PatternPart, readPattern } from "./pattern_syntax.ts";

const MAX_LENGTH = 20_000;
const MAX_STATES = 10_000;
/** The maximum number of lookaheads and lookbehinds. Each uses one bit of a position's context. */
const MAX_LOOKAROUNDS = 24;
/** The maximum number of states to visit in the test whether `RegExp` takes linear time. */
const MAX_VISITS = 50_000;
/** The maximum number of characters that `RegExp` may read again at each position. */
const MAX_REREADS = 32;
/** The maximum number of states on all ways through an anchored pattern. */
const MAX_WAYS = 100;
/** The maximum number of cached states and characters of an automaton. */
const MAX_MEMORY = 10_000;
/** The number of characters that a runtime's `RegExp` reads in the time of one step. */
export const READS_PER_STEP = 16;

let steps = MAX_STEPS;

/** Resets the steps for a new check. Checks do not run concurrently. */
export function resetSteps(): void {
  steps = MAX_STEPS;
}

function spend(count: number): void {
  steps -= count;
  if (steps < 0) throw new RangeError("Too many steps");
}

/**
 * Compiles a pattern. Only `test` may be called. It throws a `RangeError` if the match takes more
 * steps than the check has left. The pattern's cost is subtracted from `budget`. Throws a
 * `SyntaxError` for a text that is not a regular expression with the "u" flag, has no test in
 * linear time, or exceeds the budget.
 */
export function compilePattern(
  source: string,
  budget: PatternBudget = { left: Infinity },
): CheckedPattern {
  const known = PLAIN.get(source);
  if (known !== undefined) return known;
  if (source.length > MAX_LENGTH) refuse(`at most ${MAX_LENGTH} characters long`);
  let pattern: RegExp;
  try {
    pattern = new RegExp(source, "u");
  } catch {
    refuse('a regular expression that works with the "u" flag');
  }
  const part = readPattern(source);
  if (typeof part === "string") refuse(part);
  // A pattern that is linear with unlimited repetitions is linear with limited ones.
  let automaton = new Automaton(part, true, budget);
  let reads = countReads(automaton);
  if (reads === undefined) {
    automaton = new Automaton(part, false, budget);
    if (automaton.start === undefined) {
      refuse("a regular expression with fewer parts and repetitions");
    }
    reads = countReads(automaton);
  }
  // A schema may have thousands of linear patterns, so their steps are counted, too.
  const native = pattern.test.bind(pattern);
  const test = reads === undefined ? automaton.finds.bind(automaton) : (text: string) => {
    spend(1 + reads * text.length / READS_PER_STEP);
    return native(text);
  };
  const checked = Object.assign(pattern, { reads: reads ?? Infinity, test });
  if (reads !== undefined && source.length < MAX_SHORT) {
    if (PLAIN.size === MAX_PLAIN) PLAIN.clear();
    PLAIN.set(source, checked);
  }
  return checked;
}

/** The patterns that `RegExp` runs: a cache, because the tools of a registry share many of them. */
const PLAIN = new Map<string, CheckedPattern>();
const MAX_PLAIN = 1_000;
const MAX_SHORT = 200;

function refuse(rule: string): never {
  throw new SyntaxError(`The pattern must be ${rule}`);
}

/** The first bits of a context: the assertions that hold at a position of a text. */
const AT_START = 1;
const AT_END = 2;
const AT_WORD = 4;

/** A bit of a position's context, and the expected value of that bit. */
interface Assertion {
  readonly bit: number;
  readonly negated: boolean;
}

/** A state of an automaton: it reads a character, splits in two, asserts a condition, or ends. */
interface State {
  readonly id: number;
  readonly reads?: CharacterSet;
  readonly assertion?: Assertion;
  next?: State;
  readonly other?: State;
}

class Automaton {
  /** The first state; `undefined` if the automaton would have too many states. */
  readonly start: State | undefined;
  /** True if a state can reach itself. */
  hasLoops = false;
  readonly #loosely: boolean;
  /** The lookaheads and lookbehinds, the inner ones first. */
  readonly #lookarounds: Search[] = [];
  readonly #budget: PatternBudget;
  #size = 0;
  #usesWordBoundaries = false;

  #search: Search | undefined;

  /** @param loosely True if the bounds of repetitions are ignored. */
  constructor(part: PatternPart, loosely: boolean, budget: PatternBudget) {
    this.#loosely = loosely;
    this.#budget = budget;
    try {
      this.start = this.#add(part, this.#state({}), false);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
  }

  /** Searches for the lookaheads and lookbehinds, then for the pattern that uses them. */
  finds(text: string): boolean {
    if (this.start === undefined) return false;
    this.#search ??= new Search(this.start, false);
    const contexts = this.#lookarounds.length === 0 ? undefined : new Uint32Array(text.length + 1);
    for (const [index, look] of this.#lookarounds.entries()) {
      look.run(text, this.#usesWordBoundaries, contexts, AT_WORD << index + 1);
    }
    return this.#search.run(text, this.#usesWordBoundaries, contexts, 0);
  }

  #state(state: Omit<State, "id">): State {
    if (++this.#size > MAX_STATES || --this.#budget.left < 0) {
      throw new RangeError("Too many states");
    }
    return { id: this.#size, ...state };
  }

  /** Adds states for `part` before `next`. If `reversed`, they read a text from its end. */
  #add(part: PatternPart, next: State, reversed: boolean): State {
    const before = (after: State, one: PatternPart): State => this.#add(one, after, reversed);
    switch (part.kind) {
      case "character":
        return this.#state({ reads: characterSet(part.source), next });
      case "assertion":
        return this.#state({ assertion: this.#assertion(part.source), next });
      case "look":
        return this.#state({ assertion: this.#look(part), next });
      case "sequence":
        return reversed ? part.parts.reduce(before, next) : part.parts.reduceRight(before, next);
      case "choice":
        return part.parts.map((one) => before(next, one))
          .reduceRight((other, first) => this.#state({ next: first, other }));
      case "repeat":
        return this.#repeat(part, next, before);
    }
  }

  #repeat(
    { part, min, max }: PatternPart & { readonly kind: "repeat" },
    next: State,
    before: (after: State, one: PatternPart) => State,
  ): State {
    const loosely = this.#loosely && max > 1;
    let state = next;
    if (loosely || max === Infinity) {
      this.hasLoops = true;
      state = this.#state({ other: next });
      state.next = before(state, part);
    } else {
      for (let count = min; count < max; count++) {
        state = this.#state({ next: before(state, part), other: next });
      }
    }
    for (let count = loosely ? Math.min(min, 1) : min; count > 0; count--) {
      state = before(state, part);
    }
    return state;
  }

  #assertion(source: string): Assertion {
    if (source === "^" || source === "$") {
      return { bit: source === "^" ? AT_START : AT_END, negated: false };
    }
    this.#usesWordBoundaries = true;
    return { bit: AT_WORD, negated: source === "\\B" };
  }

  #look({ open, part }: PatternPart & { readonly kind: "look" }): Assertion {
    const ahead = !open.includes("<");
    // The search for a lookahead runs backwards, so that it ends where the lookahead begins.
    const search = new Search(this.#add(part, this.#state({}), ahead), ahead);
    const count = this.#lookarounds.push(search);
    if (count > MAX_LOOKAROUNDS) throw new RangeError("Too many states");
    return { bit: AT_WORD << count, negated: open.endsWith("!") };
  }
}

/** The states of an automaton after a character. */
interface StateSet {
  readonly states: readonly State[];
  /** The states that `states` reach without reading a character, by context. */
  readonly closures: Map<number, Closure>;
}

interface Closure {
  readonly accepts: boolean;
  readonly readers: readonly State[];
  /** The next states by character. */
  readonly transitions: Map<number, StateSet>;
}

class Search {
  readonly #start: State;
  readonly #backwards: boolean;
  #sets = new Map<string, StateSet>();
  #memory = 0;

  constructor(start: State, backwards: boolean) {
    this.#start = start;
    this.#backwards = backwards;
  }

  /** Searches a text. With a `bit`, marks every match; without it, ends at the first match. */
  run(
    text: string,
    usesWordBoundaries: boolean,
    contexts: Uint32Array | undefined,
    bit: number,
  ): boolean {
    const last = text.length;
    const step = this.#backwards ? -1 : 1;
    spend(last + 1);
    let set = this.#setOf([]);
    for (let at = this.#backwards ? last : 0;;) {
      let context = contexts?.[at] ?? 0;
      if (at === 0) context |= AT_START;
      if (at === last) context |= AT_END;
      if (usesWordBoundaries && isWord(text, at - 1) !== isWord(text, at)) context |= AT_WORD;
      const closure = set.closures.get(context) ?? this.#closureOf(set, context);
      if (closure.accepts) {
        if (contexts === undefined || bit === 0) return true;
        contexts[at] = context | bit;
      }
      const code = this.#backwards ? codeBefore(text, at) : text.codePointAt(at);
      if (code === undefined) return false;
      at += code > 0xffff ? 2 * step : step;
      set = closure.transitions.get(code) ?? this.#advance(closure, code);
    }
  }

  #closureOf(set: StateSet, context: number): Closure {
    const readers: State[] = [];
    const entered = new Set<State>();
    const pending = [this.#start, ...set.states];
    let accepts = false;
    for (let state; (state = pending.pop()) !== undefined;) {
      if (entered.has(state)) continue;
      entered.add(state);
      const { reads, assertion, next, other } = state;
      if (reads !== undefined) readers.push(state);
      else if (next === undefined) accepts = true;
      else if (assertion === undefined || (context & assertion.bit) > 0 !== assertion.negated) {
        pending.push(next);
        if (other !== undefined) pending.push(other);
      }
    }
    const closure = { accepts, readers, transitions: new Map() };
    this.#remember(entered.size);
    set.closures.set(context, closure);
    return closure;
  }

  #advance({ readers, transitions }: Closure, code: number): StateSet {
    const states: State[] = [];
    for (const { reads, next } of readers) {
      if (reads !== undefined && next !== undefined && has(reads, code)) states.push(next);
    }
    this.#remember(readers.length);
    const set = this.#setOf(states);
    transitions.set(code, set);
    return set;
  }

  #setOf(states: readonly State[]): StateSet {
    const key = states.map(({ id }) => id).sort((a, b) => a - b).join();
    let set = this.#sets.get(key);
    if (set === undefined) this.#sets.set(key, set = { states, closures: new Map() });
    return set;
  }

  /** Counts cached transitions, and clears the cache when it is full. */
  #remember(count: number): void {
    spend(4 * count);
    this.#memory += count + 1;
    if (this.#memory < MAX_MEMORY) return;
    this.#memory = 0;
    this.#sets = new Map();
  }
}

function isWord(text: string, at: number): boolean {
  return /\w/.test(text.charAt(at));
}

function codeBefore(text: string, at: number): number | undefined {
  const pair = at > 1 ? text.codePointAt(at - 2) ?? 0 : 0;
  return pair > 0xffff ? pair : at > 0 ? text.charCodeAt(at - 1) : undefined;
}

interface CharacterSet {
  readonly pattern: RegExp;
  /** A bit for each ASCII character of the class, and one bit for all non-ASCII characters. */
  readonly bits: bigint;
}

const BEYOND = 128;
/** Letters, escapes and classes that match ASCII characters only. */
const ASCII_ONLY = /^(?:\[(?!\^)(?:\\[dwtnrfv\W]|[^\\\u0080-\u{10ffff}])*\]|\\[dwtnrfv\W]|[^.])$/u;
const COMMON = new Map<string, CharacterSet>();

function characterSet(source: string): CharacterSet {
  const known = COMMON.get(source);
  if (known !== undefined) return known;
  const pattern = new RegExp(`^${source}$`, "u");
  let bits = 0n;
  for (let code = 0; code <= BEYOND; code++) {
    const isIn = code < BEYOND
      ? pattern.test(String.fromCharCode(code))
      : source.charCodeAt(0) >= BEYOND || !ASCII_ONLY.test(source);
    if (isIn) bits |= 1n << BigInt(code);
  }
  const set = { pattern, bits };
  if (COMMON.size < 256 && source.length < 32) COMMON.set(source, set);
  return set;
}

function has({ pattern, bits }: CharacterSet, code: number): boolean {
  const isIn = (bits >> BigInt(Math.min(code, BEYOND)) & 1n) === 1n;
  return isIn && (code < BEYOND || pattern.test(String.fromCodePoint(code)));
}

interface Ways {
  /** The states that take a character; no two of them take the same character. */
  readonly readers: readonly State[];
  /** True if the pattern has matched, whatever follows. */
  readonly ends: boolean;
}

/**
 * Returns how many times `RegExp` reads a character, or `undefined` if its time may not be linear.
 * The time is linear if there are few ways through the pattern, or if each character has one way to
 * continue. A search that may begin anywhere must also give up after a few characters.
 */
function countReads({ start, hasLoops }: Automaton): number | undefined {
  if (start === undefined) return undefined;
  let visits = 0;
  const elsewhere = waysFrom(start, AT_START);
  const isAnchored = elsewhere?.readers.length === 0 && !elsewhere.ends;
  const count = hasLoops ? undefined : fewStates(isAnchored ? MAX_WAYS : MAX_REREADS);
  if (count !== undefined) {
    return isAnchored ? 1 : count;
  }
  const first = waysFrom(start);
  const known = new Map<State, Ways>();
  const all = new Set(first?.readers);
  for (const state of all) {
    const ways = state.next && waysFrom(state.next);
    if (ways === undefined) return undefined;
    known.set(state, ways);
    for (const reader of ways.readers) all.add(reader);
  }
  if (first === undefined) return undefined;
  if (isAnchored) return 1;
  let readers = new Set(first.ends ? [] : first.readers);
  let rereads = 0;
  for (; readers.size > 0; rereads++) {
    if (rereads === MAX_REREADS) return undefined;
    const after = [...readers].map((reader) => known.get(reader));
    readers = new Set(after.flatMap((ways) => ways === undefined || ways.ends ? [] : ways.readers));
  }
  return rereads + 1;

  /** Returns the number of states on all ways through the automaton, if it is at most `limit`. */
  function fewStates(limit: number): number | undefined {
    const pending = [start];
    let count = 0;
    for (; pending.length > 0; count++) {
      const { next, other, assertion } = pending.pop() ?? {};
      if (count > limit || (assertion?.bit ?? 0) > AT_WORD) return undefined;
      if (next !== undefined) pending.push(next);
      if (other !== undefined) pending.push(other);
    }
    return count;
  }

  /** Returns `undefined` if a character has two ways to continue. `stop` always fails. */
  function waysFrom(from: State, stop = 0): Ways | undefined {
    const entered = new Set<State>();
    let taken = 0n;
    const readers: State[] = [];
    let ends = false;
    const pending: (readonly [state: State, asserted: boolean])[] = [[from, false]];
    for (let entry; (entry = pending.pop()) !== undefined;) {
      const [state, asserted] = entry;
      const { reads, assertion, next, other } = state;
      if (reads === undefined && next === undefined) {
        ends ||= !asserted;
        continue;
      }
      // `RegExp` tries a state twice if two paths reach it.
      if (entered.has(state) || ++visits > MAX_VISITS) return undefined;
      entered.add(state);
      if (reads !== undefined) {
        if ((taken & reads.bits) > 0n) return undefined;
        taken |= reads.bits;
        readers.push(state);
      } else if (assertion === undefined || assertion.bit <= AT_WORD && assertion.bit !== stop) {
        for (const one of [next, other]) {
          if (one !== undefined) pending.push([one, asserted || assertion !== undefined]);
        }
      } else if (assertion.bit > AT_WORD) return undefined;
    }
    return { readers, ends };
  }
}
