/**
 * A cache of what is made of lists of tools.
 *
 * @module
 */

import type { Tool } from "../../tool/mod.ts";
import { BoundedMap } from "./bounded_map.ts";
import type { Page } from "./page.ts";

/** How many characters of pages one handler keeps: a byte each, or two. */
const MAX_PAGES = 8 * 1_024 * 1_024;

/** Makes the cache for the pages of one handler, for all its callers and their queries. */
export function createPageCache(): ListCache<Page> {
  return new ListCache(MAX_PAGES, ({ body }) => body.length);
}

/** What it costs to keep anything, however small. */
const OVERHEAD = 512;

/**
 * Keeps values that were made of lists of tools. Clients choose what is made, by their queries: so
 * what is kept is weighed, over all lists, and not only counted.
 */
export class ListCache<Value> {
  /** A number for each list: a strong reference would keep the list alive. */
  readonly #numbers = new WeakMap<readonly Tool[], number>();
  readonly #values: BoundedMap<string, Value>;
  #count = 0;

  /**
   * @param room How much the values may weigh together.
   * @param weigh What a value weighs besides its key, in bytes or so.
   */
  constructor(room: number, weigh: (value: Value) => number) {
    this.#values = new BoundedMap({
      maxWeight: room,
      weigh: (value, key) => OVERHEAD + key.length + weigh(value),
    });
  }

  /** What is kept weighs this, and never more than there is room. */
  get weight(): number {
    return this.#values.weight;
  }

  /**
   * The value of a key, made if it is not kept. One that is made later is kept when it is there, and
   * not if it fails.
   *
   * @param tools A list that does not change.
   */
  of(tools: readonly Tool[], key: string, make: () => Value): Value;
  of(
    tools: readonly Tool[],
    key: string,
    make: () => Value | Promise<Value>,
  ): Value | Promise<Value>;
  of(
    tools: readonly Tool[],
    key: string,
    make: () => Value | Promise<Value>,
  ): Value | Promise<Value> {
    let number = this.#numbers.get(tools);
    if (number === undefined) this.#numbers.set(tools, number = this.#count++);
    const name = `${number} ${key}`;
    const known = this.#values.get(name);
    if (known !== undefined) return known;
    const made = make();
    const keep = (value: Value): Value => {
      this.#values.set(name, value);
      return value;
    };
    return made instanceof Promise ? made.then(keep) : keep(made);
  }
}
