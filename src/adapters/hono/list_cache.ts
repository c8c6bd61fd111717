/**
 * What was made of lists of tools, kept while there is room for it. Clients choose what is made, by
 * their queries: so what is kept is weighed, all lists together, and not only counted.
 *
 * @module
 */

import type { Tool } from "../../tool/mod.ts";

interface Kept<Value> {
  readonly key: string;
  readonly value: Value;
  readonly weight: number;
  /** Those of the same list, by key. Not the list: who is not kept by others must not be by this. */
  readonly siblings: Map<string, Kept<Value>>;
}

/** Remembers values by list of tools and key. What was unused for longest gives way. */
export class ListCache<Value> {
  readonly #lists = new WeakMap<readonly Tool[], Map<string, Kept<Value>>>();
  /** What was unused for longest comes first. */
  readonly #byUse = new Set<Kept<Value>>();
  readonly #room: number;
  readonly #weigh: (value: Value) => number;
  #latest: Kept<Value> | undefined;
  #weight = 0;

  /**
   * @param room How much is kept at most.
   * @param weigh What a value weighs besides its key, in the unit of `room`: about bytes.
   */
  constructor(room: number, weigh: (value: Value) => number) {
    this.#room = room;
    this.#weigh = weigh;
  }

  /** What is kept now weighs this, and never more than there is room. */
  get weight(): number {
    return this.#weight;
  }

  /**
   * The value of a key.
   *
   * @param tools A list that does not change.
   * @param make Makes the value where it is not kept. What it throws goes on.
   */
  of(tools: readonly Tool[], key: string, make: () => Value): Value {
    const kept = this.#lists.get(tools)?.get(key);
    if (kept === undefined) return this.#keep(tools, key, make());
    if (kept !== this.#latest) {
      this.#byUse.delete(kept);
      this.#byUse.add(this.#latest = kept);
    }
    return kept.value;
  }

  #keep(tools: readonly Tool[], key: string, value: Value): Value {
    const weight = OVERHEAD + key.length + this.#weigh(value);
    if (weight > this.#room) return value;
    let siblings = this.#lists.get(tools);
    if (siblings === undefined) this.#lists.set(tools, siblings = new Map());
    const kept = { key, value, weight, siblings };
    siblings.set(key, kept);
    this.#byUse.add(this.#latest = kept);
    this.#weight += weight;
    for (const oldest of this.#byUse) {
      if (this.#weight <= this.#room) break;
      this.#byUse.delete(oldest);
      oldest.siblings.delete(oldest.key);
      this.#weight -= oldest.weight;
    }
    return value;
  }
}

/** What it takes to keep anything at all, however small. */
const OVERHEAD = 512;
