/** Values that are created once per key, a map of bounded size, and a mutex. */

/** Returns the value of a key, and creates it if the map has none. */
export function once<Key, Value>(
  map: { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown },
  key: Key,
  make: () => Value,
): Value {
  let value = map.get(key);
  if (value === undefined) map.set(key, value = make());
  return value;
}

/** Groups values by key, like `Map.groupBy`, which Node 20 does not have. */
export function groupBy<Key, Value>(
  values: readonly Value[],
  keyOf: (value: Value, index: number) => Key,
): Map<Key, Value[]> {
  const groups = new Map<Key, Value[]>();
  values.forEach((value, index) => once(groups, keyOf(value, index), () => []).push(value));
  return groups;
}

const numbers = new WeakMap<object, number>();
let count = 0;

/** Returns a number that identifies an object in a key of text. */
export function numberOf(object: object): number {
  return once(numbers, object, () => ++count);
}

interface BoundedMapOptions<K, V> {
  readonly maxEntries?: number;
  /** The maximum total weight of the entries, in the unit of `weigh`. */
  readonly maxWeight?: number;
  /** Returns the weight of an entry. It is called once, when the entry is set. */
  readonly weigh?: (value: V, key: K) => number;
}

/** A map that evicts the least recently used entries. An entry above `maxWeight` is not stored. */
export class BoundedMap<K, V> {
  /** The least recently used entry comes first. */
  readonly #entries: Map<K, { readonly value: V; readonly weight: number }> = new Map();
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

  get weight(): number {
    return this.#weight;
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

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

  delete(key: K): boolean {
    this.#weight -= this.#entries.get(key)?.weight ?? 0;
    return this.#entries.delete(key);
  }
}

/**
 * Runs asynchronous functions one after the other, even if an earlier one failed. On Workers, the
 * promise of an ended request rejects in other requests, and its callbacks do not run.
 */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  run<Result>(work: () => Promise<Result>): Promise<Result> {
    return (this.#last = this.#last.then(work, work)) as Promise<Result>;
  }
}
