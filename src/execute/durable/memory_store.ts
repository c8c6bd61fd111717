/** A call store in memory. */

import { defined, readFields, systemClock } from "../../tool/mod.ts";
import {
  type CallStore,
  checkStored,
  checkStoreKey,
  checkStorePrefix,
  entryWeight,
  ownerOf,
  quotaExhausted,
  STORE_LIMITS,
  type StoredValue,
  type StoreLimits,
  type StoreOptions,
} from "./call_store.ts";
import { Quotas } from "./quotas.ts";

interface Entry extends StoredValue, StoreOptions {
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
export function memoryCallStore(options: StoreLimits = {}): CallStore {
  const { maxBytes = 67_108_864, maxOwnerBytes = maxBytes / 8, clock = systemClock } = readFields(
    "make a store in memory",
    options,
    STORE_LIMITS,
  );
  const entries = new Map<string, Entry>();
  const quotas = new Quotas<string>(maxBytes, maxOwnerBytes);
  let revisions = 0;
  /** The time of the next scan of all entries. */
  let nextExpiry = Infinity;

  function forget(key: string, { owner, weight }: Entry): void {
    entries.delete(key);
    quotas.add(owner, -weight);
  }

  function forgetExpired(): void {
    const now = clock.timestamp();
    if (now < nextExpiry) return;
    nextExpiry = Infinity;
    for (const [key, entry] of entries) {
      const { expiresAt = Infinity } = entry;
      if (expiresAt <= now) forget(key, entry);
      // Not earlier, because entries that expire one after the other would cause many scans.
      else if (expiresAt < nextExpiry) nextExpiry = Math.max(expiresAt, now + SWEEP_MS);
    }
  }

  function find(key: string): Entry | undefined {
    checkStoreKey(key);
    forgetExpired();
    const entry = entries.get(key);
    if (entry === undefined || clock.timestamp() < (entry.expiresAt ?? Infinity)) return entry;
    return void forget(key, entry);
  }

  function put(
    key: string,
    value: Uint8Array,
    { expiresAt, dueAt }: StoreOptions,
    before: Entry | undefined,
  ): number {
    const owner = ownerOf(key);
    const weight = entryWeight(key, value.byteLength);
    const more = weight - (before?.weight ?? 0);
    const exceeded = quotas.exceeded(owner, more);
    if (exceeded === "total") throw new RangeError("Cannot store a value: the store is full");
    if (exceeded === "quota") throw quotaExhausted();
    if (before !== undefined) forget(key, before);
    const revision = ++revisions;
    const entry = { value: value.slice(), revision, owner, weight };
    entries.set(key, { ...entry, ...defined({ expiresAt, dueAt }) });
    quotas.add(owner, weight);
    if (expiresAt !== undefined && expiresAt < nextExpiry) nextExpiry = expiresAt;
    return revision;
  }

  return {
    get: (key) => settled(() => shown(find(key))),
    create: (key, value, settings = {}) =>
      settled(() => {
        checkStored(key, value);
        return find(key) === undefined ? put(key, value, settings, undefined) : undefined;
      }),
    update: (key, value, revision, settings = {}) =>
      settled(() => {
        checkStored(key, value);
        const entry = find(key);
        return entry?.revision === revision ? put(key, value, settings, entry) : undefined;
      }),
    delete: (key, revision) =>
      settled(() => {
        const entry = find(key);
        if (entry?.revision !== revision) return false;
        forget(key, entry);
        return true;
      }),
    async *list(prefix, after = "") {
      checkStorePrefix(prefix);
      forgetExpired();
      const isListed = (key: string): boolean =>
        key > after && (key === prefix || key.startsWith(`${prefix}.`));
      for (const key of [...entries.keys()].filter(isListed).sort()) {
        const entry = shown(find(key));
        if (entry !== undefined) yield await Promise.resolve({ key, ...entry });
      }
    },
    due: (kind, before, limit) =>
      settled(() => {
        const now = clock.timestamp();
        const isDue = (
          [key, { dueAt = Infinity, expiresAt = Infinity }]: readonly [string, Entry],
        ) => dueAt <= before && expiresAt > now && key.startsWith(`${kind}.`);
        const due = [...entries].filter(isDue)
          .sort(([, { dueAt: a = 0 }], [, { dueAt: b = 0 }]) => a - b);
        return due.slice(0, limit).map(([key, entry]) => ({ key, ...shown(entry) }));
      }),
  };
}

/** Returns a promise of the result or error of `work`. */
function settled<T>(work: () => T): Promise<T> {
  return new Promise((resolve) => resolve(work()));
}

/** Returns a copy for a caller, who may change it. */
function shown(entry: Entry): StoredValue;
function shown(entry: Entry | undefined): StoredValue | undefined;
function shown(entry: Entry | undefined): StoredValue | undefined {
  if (entry === undefined) return undefined;
  const { value, revision, expiresAt } = entry;
  const copy = { value: value.slice(), revision };
  return expiresAt === undefined ? copy : { ...copy, expiresAt };
}
