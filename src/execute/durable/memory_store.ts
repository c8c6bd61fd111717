/** A call store in memory. */

import { defined, readFields, type RegistryClock, systemClock } from "../../tool/mod.ts";
import * as stores from "./call_store.ts";
import type { CallStore, StoredValue } from "./call_store.ts";
import { Quotas } from "./quotas.ts";
import { compareDue } from "./store_driver.ts";

interface Entry extends StoredValue, stores.StoreOptions {
  readonly owner: string;
  readonly weight: number;
}

/** The minimum time between two scans of all entries, in milliseconds. */
const SWEEP_MS = 1_000;

/**
 * Creates a {@linkcode CallStore} in the memory of this process.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { memoryCallStore } from "@plue/tools/calls";
 *
 * const store = memoryCallStore();
 * const revision = await store.create("note.ann.1", new TextEncoder().encode("hello"));
 *
 * assert.equal(await store.create("note.ann.1", new Uint8Array()), undefined);
 * assert.equal(revision !== undefined && await store.delete("note.ann.1", revision), true);
 * ```
 *
 * @throws {TypeError} If an option is unknown.
 * @throws {RangeError} If a number is out of range.
 */
export function memoryCallStore(options: stores.StoreLimits = {}): CallStore {
  const entries = openEntries(options);
  return {
    ...memoryValues(entries),
    delete: (key, revision) =>
      settled(() => {
        const entry = entries.find(key);
        if (entry?.revision !== revision) return false;
        entries.remove(key, entry);
        return true;
      }),
    async *list(prefix, after = "") {
      stores.checkStorePrefix(prefix);
      const keys = entries.living().map(([key]) => key);
      const isListed = (key: string): boolean =>
        key > after && (key === prefix || key.startsWith(`${prefix}.`));
      for (const key of keys.filter(isListed).sort()) {
        const entry = shown(entries.find(key));
        if (entry !== undefined) yield await Promise.resolve({ key, ...entry });
      }
    },
    due: (kind, before, limit, after) =>
      settled(() =>
        entries.living()
          .map(([key, entry]) => ({ key, dueAt: entry.dueAt ?? Infinity, entry }))
          .filter((due) => due.dueAt <= before && due.key.startsWith(`${kind}.`))
          .filter((due) => !after || compareDue(due, after) > 0)
          .sort(compareDue).slice(0, limit)
          .map(({ entry, ...place }) => ({ ...place, ...shown(entry) }))
      ),
  };
}

/** Creates a store that only reads and writes, so that bundles omit the other functions. */
export function openMemoryValues(): MemoryValues {
  return memoryValues(openEntries({}));
}

type MemoryValues = Pick<CallStore, "get" | "create" | "update">;

function openEntries(options: stores.StoreLimits): Entries {
  const read = readFields("make a store in memory", options, stores.STORE_LIMITS);
  const { maxBytes = 67_108_864, maxOwnerBytes = maxBytes / 8, clock = systemClock } = read;
  return new Entries(new Quotas(maxBytes, maxOwnerBytes), clock);
}

function memoryValues(entries: Entries): MemoryValues {
  const put = (
    key: string,
    value: Uint8Array,
    revision: number | undefined,
    options: stores.StoreOptions = {},
  ): Promise<number | undefined> =>
    settled(() => {
      stores.checkStored(key, value);
      const entry = entries.find(key);
      return entry?.revision === revision ? entries.put(key, value, options, entry) : undefined;
    });
  return {
    get: (key) => settled(() => shown(entries.find(key))),
    create: (key, value, options) => put(key, value, undefined, options),
    update: put,
  };
}

class Entries {
  readonly #entries: Map<string, Entry> = new Map();
  readonly #quotas: Quotas<string>;
  readonly #clock: Pick<RegistryClock, "timestamp">;
  #revisions = 0;
  /** The time of the next scan of all entries. */
  #nextExpiry = Infinity;

  constructor(quotas: Quotas<string>, clock: Pick<RegistryClock, "timestamp">) {
    this.#quotas = quotas;
    this.#clock = clock;
  }

  remove(key: string, { owner, weight }: Entry): void {
    this.#entries.delete(key);
    this.#quotas.add(owner, -weight);
  }

  #forgetExpired(): void {
    const now = this.#clock.timestamp();
    if (now < this.#nextExpiry) return;
    this.#nextExpiry = Infinity;
    for (const [key, entry] of this.#entries) {
      const { expiresAt = Infinity } = entry;
      if (expiresAt <= now) this.remove(key, entry);
      // At least `SWEEP_MS` later, because entries may expire one after the other.
      else if (expiresAt < this.#nextExpiry) this.#nextExpiry = Math.max(expiresAt, now + SWEEP_MS);
    }
  }

  find(key: string): Entry | undefined {
    stores.checkStoreKey(key);
    this.#forgetExpired();
    const entry = this.#entries.get(key);
    if (entry === undefined || this.#clock.timestamp() < (entry.expiresAt ?? Infinity)) {
      return entry;
    }
    return void this.remove(key, entry);
  }

  /** Stores a value, which replaces the entry `before`, and returns the revision of the value. */
  put(key: string, value: Uint8Array, options: stores.StoreOptions, before?: Entry): number {
    const { expiresAt, dueAt } = options;
    const owner = stores.ownerOf(key);
    const weight = stores.entryWeight(key, value.byteLength);
    const more = weight - (before?.weight ?? 0);
    const exceeded = this.#quotas.exceeded(owner, more);
    if (exceeded === "total") throw new RangeError("Cannot store a value: the store is full");
    if (exceeded === "quota") throw stores.quotaExhausted();
    if (before !== undefined) this.remove(key, before);
    const revision = ++this.#revisions;
    const entry = { value: value.slice(), revision, owner, weight };
    this.#entries.set(key, { ...entry, ...defined({ expiresAt, dueAt }) });
    this.#quotas.add(owner, weight);
    if (expiresAt !== undefined && expiresAt < this.#nextExpiry) this.#nextExpiry = expiresAt;
    return revision;
  }

  living(): readonly (readonly [string, Entry])[] {
    const now = this.#clock.timestamp();
    return [...this.#entries].filter(([, { expiresAt = Infinity }]) => expiresAt > now);
  }
}

/** Returns a promise of the result or error of `work`. */
function settled<T>(work: () => T): Promise<T> {
  return new Promise((resolve) => resolve(work()));
}

/** Returns a copy, because the caller may change the value. */
function shown(entry: Entry): StoredValue;
function shown(entry: Entry | undefined): StoredValue | undefined;
function shown(entry: Entry | undefined): StoredValue | undefined {
  if (entry === undefined) return undefined;
  const { value, revision, expiresAt } = entry;
  const copy = { value: value.slice(), revision };
  return expiresAt === undefined ? copy : { ...copy, expiresAt };
}
