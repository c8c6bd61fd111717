/**
 * A map that cannot grow without end: the entry that was unused for longest gives way to a new one.
 *
 * @module
 */

/** How much a {@linkcode BoundedMap} holds. */
export interface BoundedMapOptions<K, V> {
  /**
   * How many entries it holds.
   *
   * @default {Infinity}
   */
  readonly maxEntries?: number;
  /**
   * How much its entries may weigh together, in the unit of `weigh`.
   *
   * @default {Infinity}
   */
  readonly maxWeight?: number;
  /**
   * What an entry weighs. It is asked once, when the entry is set.
   *
   * @default {() => 0}
   */
  readonly weigh?: (value: V, key: K) => number;
}

interface Entry<V> {
  readonly value: V;
  readonly weight: number;
}

/**
 * A map with a bound by count, by weight or by both. `get` and `set` count as a use of the entry;
 * `peek` does not, so a map that is read with `peek` alone drops the entry that was set first. An
 * entry that is heavier than the whole map is not kept.
 */
export class BoundedMap<K, V> {
  /** The entry that was unused for longest comes first. */
  readonly #entries: Map<K, Entry<V>> = new Map();
  readonly #maxEntries: number;
  readonly #maxWeight: number;
  readonly #weigh: (value: V, key: K) => number;
  #weight = 0;

  constructor(options: BoundedMapOptions<K, V>) {
    const { maxEntries = Infinity, maxWeight = Infinity, weigh = () => 0 } = options;
    this.#maxEntries = maxEntries;
    this.#maxWeight = maxWeight;
    this.#weigh = weigh;
  }

  /** How many entries it holds. */
  get size(): number {
    return this.#entries.size;
  }

  /** What its entries weigh together. */
  get weight(): number {
    return this.#weight;
  }

  /** The value of a key, which counts as a use. */
  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** The value of a key, without counting as a use. */
  peek(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  /** Sets a value, and drops what was unused for longest until the rest is within the bounds. */
  set(key: K, value: V): void {
    this.delete(key);
    const weight = this.#weigh(value, key);
    if (weight > this.#maxWeight) return;
    this.#entries.set(key, { value, weight });
    this.#weight += weight;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#maxEntries && this.#weight <= this.#maxWeight) return;
      this.delete(oldest);
    }
  }

  /** The value of a key; `make` is asked for it where there is none. */
  getOrMake(key: K, make: () => V): V {
    const known = this.get(key);
    // `undefined` may be a value.
    if (known !== undefined || this.#entries.has(key)) return known as V;
    const value = make();
    this.set(key, value);
    return value;
  }

  /** Removes an entry, and says whether there was one. */
  delete(key: K): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    this.#weight -= entry.weight;
    return this.#entries.delete(key);
  }

  /** Removes every entry. */
  clear(): void {
    this.#entries.clear();
    this.#weight = 0;
  }
}
