/** A map of bounded size, which evicts the least recently used entry. */

interface BoundedMapOptions<K, V> {
  readonly maxEntries?: number;
  /** The maximum total weight of the entries, in the unit of `weigh`. */
  readonly maxWeight?: number;
  /** Returns the weight of an entry. It is called once, when the entry is set. */
  readonly weigh?: (value: V, key: K) => number;
}

interface Entry<V> {
  readonly value: V;
  readonly weight: number;
}

/**
 * A map with a bound by count, by weight or by both. `get` and `set` count as a use of the entry.
 * `peek` does not, so a map that is read with `peek` alone evicts the oldest entry. An entry
 * heavier than the whole map is not stored.
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

  get size(): number {
    return this.#entries.size;
  }

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

  /** Returns the value of a key, or stores and returns the value of `make`. */
  getOrMake(key: K, make: () => V): V {
    const known = this.get(key);
    // `undefined` may be a value.
    if (known !== undefined || this.#entries.has(key)) return known as V;
    const value = make();
    this.set(key, value);
    return value;
  }

  /** Removes an entry. Returns true if it existed. */
  delete(key: K): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    this.#weight -= entry.weight;
    return this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
    this.#weight = 0;
  }
}
