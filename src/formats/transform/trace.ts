/**
 * Records the origins of the parts of a rewritten schema, the changes to undo in its values, and the
 * amount of work.
 *
 * @module
 */

import { canonicalJson, jsonEqual, type JsonValue, pointerStep } from "../../tool/mod.ts";

/** The changes to undo in a value of a node. */
export interface Mark {
  readonly values?: ReadonlyMap<string, JsonValue>;
  readonly nulls?: ReadonlySet<string>;
  readonly keys?: ReadonlyMap<string, string>;
}

/** A keyword of a node, or a member of its value. */
export interface Slot {
  readonly node: object;
  readonly keyword: string;
  readonly step?: string | number;
}

interface Origin {
  readonly node: object;
  /** Keywords that had another name, or were taken from another node. */
  readonly moved?: ReadonlyMap<string, Slot>;
  /** The slot of the boolean schema that the node replaces. */
  readonly whole?: Slot;
}

/**
 * The maximum number of steps of one trace, because references can double the work at each level.
 * The largest schema that can be registered needs a tenth of this.
 */
const MAX_STEPS = 2_000_000;

/**
 * The record of one chain of rewrites. A loss is reported at its place in the schema that the author
 * wrote, and arguments are decoded by the marks. Plain maps: weak ones would cost the garbage
 * collector more than the rewrites themselves.
 */
export class Trace {
  readonly #origins: Map<object, Origin>;
  readonly #marks: Map<object, Mark>;
  /** This trace, and the earlier ones. */
  readonly #chain: readonly Trace[];
  readonly #countOne: () => void;
  #steps: number;
  /** True if values of a node have changes to undo. */
  hasMarks: boolean;

  /** @param before The trace of the chain that made the schema with which this one begins. */
  constructor(before?: Trace) {
    this.#chain = before === undefined ? [this] : [this, ...before.#chain];
    this.#origins = new Map();
    this.#marks = new Map();
    this.#steps = 0;
    this.hasMarks = false;
    this.#countOne = () => this.count(1);
  }

  /**
   * Counts parts of schemas that are visited, made or compared, which bounds the time for one schema.
   */
  count(steps: number): void {
    this.#steps += steps;
    if (this.#steps > MAX_STEPS) {
      throw new RangeError(`Cannot rewrite the schema: it takes more than ${MAX_STEPS} steps`);
    }
  }

  /** Records that `made` replaces `node`. */
  cameFrom(made: object, node: object, moved?: ReadonlyMap<string, Slot>): void {
    this.#origins.set(made, moved === undefined ? { node } : { node, moved });
  }

  /** Records that `made` replaces a boolean schema. */
  replacesBoolean(made: object, whole: Slot): void {
    this.#origins.set(made, { node: whole.node, whole });
  }

  /** Records the changes to undo in values of `node`. */
  mark(node: object, more: Mark): void {
    this.hasMarks = true;
    this.#marks.set(node, { ...this.markOf(node), ...more });
  }

  /** Returns the changes to undo in values of `node` or the nodes that it replaces. */
  markOf(node: object): Mark | undefined {
    for (let at: object | undefined = node; at !== undefined; at = this.#originOf(at)?.node) {
      for (const trace of this.#chain) {
        const found = trace.#marks.get(at);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  }

  /** Returns the slot of the first schema that a keyword of `node` came from. */
  originOf(node: object, keyword: string): Slot {
    let at: Slot = { node, keyword };
    for (;;) {
      const origin = this.#originOf(at.node);
      if (origin === undefined) return at;
      const { step } = at;
      at = origin.whole ?? origin.moved?.get(at.keyword) ??
        { node: origin.node, keyword: at.keyword };
      if (step !== undefined && at.step === undefined) at = { ...at, step };
    }
  }

  #originOf(node: object): Origin | undefined {
    for (const trace of this.#chain) {
      const origin = trace.#origins.get(node);
      if (origin !== undefined) return origin;
    }
    return undefined;
  }

  isEqual(a: unknown, b: unknown): boolean {
    return jsonEqual(a, b, this.#countOne);
  }

  /** A text for a JSON value, the same for equal values only. */
  keyOf(value: unknown): string {
    return canonicalJson(value, this.#countOne);
  }

  distinct<T>(values: readonly T[]): T[] {
    return distinctBy(values, (value) => this.keyOf(value));
  }
}

export function distinct<T>(values: readonly T[]): T[] {
  return distinctBy(values, (value) => canonicalJson(value));
}

function distinctBy<T>(values: readonly T[], keyOf: (value: T) => string): T[] {
  const seen = new Set<string>();
  return values.filter((value) => seen.size < seen.add(keyOf(value)).size);
}

/** The position of an object in a document: its number in document order, its parent, its key. */
export interface Location {
  readonly at: number;
  readonly parent: object | undefined;
  readonly key: string | number;
}

/** The location of every object in `root`, by identity. */
export function locate(root: unknown): ReadonlyMap<object, Location> {
  const locations = new Map<object, Location>();
  function visit(part: unknown, parent: object | undefined, key: string | number): void {
    if (typeof part !== "object" || part === null || locations.has(part)) return;
    locations.set(part, { at: locations.size, parent, key });
    if (Array.isArray(part)) part.forEach((item, index) => visit(item, part, index));
    else for (const [name, item] of Object.entries(part)) visit(item, part, name);
  }
  visit(root, undefined, "");
  return locations;
}

export function pathOf(node: object, locations: ReadonlyMap<object, Location>): string {
  const location = locations.get(node);
  if (location?.parent === undefined) return "";
  return pathOf(location.parent, locations) + pointerStep(location.key);
}
