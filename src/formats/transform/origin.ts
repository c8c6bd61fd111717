/**
 * Remembers where the parts of a transformed schema came from, so that a loss names a place in the
 * schema that its author wrote, and which changes must be undone in values.
 *
 * @module
 */

import { type JsonValue, pointerStep } from "../../tool/mod.ts";

/** What must be undone in a value that was written for a node. */
export interface Mark {
  readonly values?: ReadonlyMap<string, JsonValue>;
  readonly nulls?: ReadonlySet<string>;
  readonly keys?: ReadonlyMap<string, string>;
}

/** A keyword of a node, or what it holds under a name or at an index. */
export interface Place {
  readonly node: object;
  readonly keyword: string;
  readonly step?: string | number;
}

interface Origin {
  readonly node: object;
  /** Keywords that had another name, or were taken from another node. */
  readonly moved?: ReadonlyMap<string, Place>;
  /** Where all of it stood as a boolean, which has no keywords. */
  readonly whole?: Place;
}

/**
 * The origins of the parts that one chain of transforms made. It lives as long as
 * the chain. Weak maps would cost the garbage collector more than the transforms themselves.
 */
export interface Trace {
  readonly origins: Map<object, Origin>;
  readonly marks: Map<object, Mark>;
  /** The trace of the chain that made the schema with which this one begins. */
  readonly before: Trace | undefined;
  /** How many steps the chain took: what it visited, made and compared. */
  steps: number;
}

/**
 * How many steps a chain may take, because references can double the work at each level. The
 * largest schema that can be registered needs a tenth of this.
 */
const MAX_STEPS = 2_000_000;

/** The trace of the chain that runs. Transforms are synchronous, so only one runs at a time. */
let current: Trace | undefined;

/** Runs a chain of transforms, and returns its result and its trace. */
export function traced<T>(
  run: () => T,
  before?: Trace,
): { readonly result: T; readonly trace: Trace } {
  const trace: Trace = { origins: new Map(), marks: new Map(), before, steps: 0 };
  const outer = current;
  current = trace;
  try {
    return { result: run(), trace };
  } finally {
    current = outer;
  }
}

/**
 * Counts the parts of schemas that are walked, made or compared, so that no schema can make a chain
 * of transforms run for long.
 *
 * @throws {RangeError} If the chain took too many steps.
 */
export function countSteps(steps: number): void {
  if (current === undefined) return;
  current.steps += steps;
  if (current.steps > MAX_STEPS) {
    throw new RangeError(`Cannot rewrite the schema: it takes more than ${MAX_STEPS} steps`);
  }
}

function find<T>(from: (trace: Trace) => Map<object, T>, node: object): T | undefined {
  for (let trace = current; trace !== undefined; trace = trace.before) {
    const found = from(trace).get(node);
    if (found !== undefined) return found;
  }
  return undefined;
}

const originsOf = (trace: Trace): Map<object, Origin> => trace.origins;
const marksOf = (trace: Trace): Map<object, Mark> => trace.marks;

/** Notes that `made` stands where `node` stood. */
export function cameFrom(made: object, node: object, moved?: ReadonlyMap<string, Place>): void {
  current?.origins.set(made, moved === undefined ? { node } : { node, moved });
}

/** Notes that `made` stands where a boolean stood. */
export function stoodAt(made: object, whole: Place): void {
  current?.origins.set(made, { node: whole.node, whole });
}

/** Notes what must be undone in values of `node`. */
export function mark(node: object, more: Mark): void {
  current?.marks.set(node, { ...markOf(node), ...more });
}

/** What must be undone in values of `node`, also if it was noted on what `node` came from. */
export function markOf(node: object): Mark | undefined {
  for (let at: object | undefined = node; at !== undefined; at = find(originsOf, at)?.node) {
    const found = find(marksOf, at);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Where a keyword of `node` stood in the first schema. */
export function originOf(node: object, keyword: string): Place {
  let at: Place = { node, keyword };
  for (;;) {
    const origin: Origin | undefined = find(originsOf, at.node);
    if (origin === undefined) return at;
    const { step } = at;
    at = origin.whole ?? origin.moved?.get(at.keyword) ??
      { node: origin.node, keyword: at.keyword };
    if (step !== undefined && at.step === undefined) at = { ...at, step };
  }
}

/** Where an object stands: its place in the order of the whole, and the way to it. */
export interface Location {
  readonly at: number;
  readonly parent: object | undefined;
  readonly key: string | number;
}

/** Where every object in `root` stands, by identity. */
export function locate(root: unknown): ReadonlyMap<object, Location> {
  const places = new Map<object, Location>();
  function step(part: unknown, parent: object | undefined, key: string | number): void {
    if (typeof part !== "object" || part === null || places.has(part)) return;
    places.set(part, { at: places.size, parent, key });
    if (Array.isArray(part)) {
      for (let index = 0; index < part.length; index++) step(part[index], part, index);
    } else {
      for (const name of Object.keys(part)) {
        step((part as Record<string, unknown>)[name], part, name);
      }
    }
  }
  step(root, undefined, "");
  return places;
}

/** The JSON Pointer of an object that was located. */
export function pathOf(node: object, places: ReadonlyMap<object, Location>): string {
  const place = places.get(node);
  if (place?.parent === undefined) return "";
  return pathOf(place.parent, places) + pointerStep(place.key);
}
