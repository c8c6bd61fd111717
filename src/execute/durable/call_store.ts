/** Storage for data that outlives a call: used tickets, tasks, idempotency keys, counts. */

import * as check from "../../tool/mod.ts";
import { fail, isObject, type RegistryClock } from "../../tool/mod.ts";

/** A value in a store. */
export interface StoredValue {
  readonly value: Uint8Array;
  /** Identifies this write of the key. Later writes have higher revisions, even after deletions. */
  readonly revision: number;
  /** The expiry time, in milliseconds since 1970. By default, the value does not expire. */
  readonly expiresAt?: number;
}

/** A value in a store, with its key. */
export interface StoredEntry extends StoredValue {
  readonly key: string;
}

/** An entry that is due. */
export interface DueEntry extends StoredEntry {
  /** The time from which the entry is due, in milliseconds since 1970. */
  readonly dueAt: number;
}

/** A position in the order of the entries that are due. */
export type DuePosition = Pick<DueEntry, "dueAt" | "key">;

/** Options of a write. */
export interface StoreOptions {
  /** The expiry time, in milliseconds since 1970. By default, the value does not expire. */
  readonly expiresAt?: number;
  /** The time from which `due` returns the entry, in milliseconds since 1970. By default, never. */
  readonly dueAt?: number;
}

/**
 * Stores bytes by key, for every process that shares the store.
 *
 * Contract (`test/contract/call_store_contract.ts` checks it):
 * - A key has words of letters, digits, `_` and `-`, joined by `.`, and at most
 *   {@linkcode MAX_STORE_KEY} characters: `ticket.bob.17`. The second word names the owner.
 * - A value has at most {@linkcode MAX_STORED_BYTES} bytes. Arrays are not shared: later changes on
 *   one side do not affect the other.
 * - `create`, `update` and `delete` are atomic: if several run concurrently for the same revision,
 *   exactly one succeeds.
 * - The revisions of a key only rise, even if the key is deleted and created again. So a revision
 *   can be used as a fencing token.
 * - An expired value does not exist.
 * - An operation rejects if the store is full or unreachable. A rejected write may have been made,
 *   or may still be made. A resolved write was made, and is as durable as the store.
 */
export interface CallStore {
  /** Returns the value of a key, or `undefined`. */
  get(key: string): Promise<StoredValue | undefined>;
  /** Stores a value under a new key. Returns its revision, or `undefined` if the key is taken. */
  create(key: string, value: Uint8Array, options?: StoreOptions): Promise<number | undefined>;
  /**
   * Replaces the value with this revision, and sets its options. Returns the new revision, or
   * `undefined` if the key has another value or no value.
   */
  update(
    key: string,
    value: Uint8Array,
    revision: number,
    options?: StoreOptions,
  ): Promise<number | undefined>;
  /** Deletes the value with this revision. Returns true if this value existed. */
  delete(key: string, revision: number): Promise<boolean>;
  /**
   * Yields the entries of an owner whose keys begin with a prefix of two or more whole words:
   * `ticket.bob` matches `ticket.bob.17` but not `ticket.bobby.1`. The order is by key, compared by
   * character codes. Entries are read when they are yielded; concurrent changes may be visible or
   * not.
   *
   * @param after Skips this key and the keys before it.
   */
  list(prefix: string, after?: string): AsyncIterable<StoredEntry>;
  /**
   * Returns the due entries of all owners, ordered by `dueAt` and then by key. May return fewer
   * than `limit` entries if they are large. The list is empty only if no entry is due.
   *
   * @param kind The first word of the keys.
   * @param before The latest `dueAt`, in milliseconds since 1970.
   * @param limit The maximum number of entries.
   * @param after Skips this entry, which may have been deleted, and all earlier entries.
   */
  due(
    kind: string,
    before: number,
    limit: number,
    after?: DuePosition,
  ): Promise<readonly DueEntry[]>;
  /**
   * Returns the store's time in milliseconds since 1970, estimated from its last response. Leases
   * use this time, because the clocks of processes differ. Without this function, leases use the
   * process's clock.
   */
  now?(): number;
}

/** The maximum length of a key, in characters. */
export const MAX_STORE_KEY = 256;
/** The maximum size of a value, in bytes. With headers, it fits into a NATS message (1 MiB). */
export const MAX_STORED_BYTES = 1_047_552;

const KEY = /^[\w-]+(?:\.[\w-]+)*$/;

const METHODS = ["get", "create", "update", "delete", "list", "due"] as const;

/** Rejects an invalid store. @throws {TypeError} */
export function checkStore(action: string, store: CallStore): void {
  if (!isObject(store)) fail(action, "store must be a CallStore");
  check.checkPort(action, "store", store as CallStore, METHODS);
}

/** Rejects an invalid key. @throws {TypeError} */
export function checkStoreKey(key: string): void {
  if (typeof key !== "string" || key.length > MAX_STORE_KEY || !KEY.test(key)) {
    fail(
      "use a key of a store",
      `it must be words of letters, digits, "_" and "-", joined by ".", of at most ${MAX_STORE_KEY} characters`,
    );
  }
}

/** Rejects a prefix of a list that is not a key of two or more words. @throws {TypeError} */
export function checkStorePrefix(prefix: string): void {
  checkStoreKey(prefix);
  if (prefix.includes(".")) return;
  fail("list entries of a store", 'the prefix must be a word and an owner, such as "task.bob"');
}

/** Rejects an invalid key or value. @throws {TypeError | RangeError} */
export function checkStored(key: string, value: Uint8Array): void {
  checkStoreKey(key);
  if (value.byteLength > MAX_STORED_BYTES) {
    throw new RangeError(
      `Cannot store a value: it has ${value.byteLength} bytes, and ${MAX_STORED_BYTES} are allowed`,
    );
  }
}

/** The limits of a store, and its clock. */
export interface StoreLimits {
  /**
   * The maximum size of the store, in bytes. Further writes are rejected. No entry is evicted,
   * because an evicted record of a used ticket would make that ticket valid again.
   *
   * @default {1_073_741_824, and 67_108_864 in memory}
   */
  readonly maxBytes?: number;
  /**
   * The quota of one principal, in bytes. The second word of a key names the principal. Each entry
   * adds 128 bytes.
   *
   * @default {maxBytes / 8}
   */
  readonly maxOwnerBytes?: number;
  readonly clock?: Pick<RegistryClock, "timestamp">;
}

export const STORE_LIMITS: {
  readonly [Name in keyof StoreLimits]-?: check.Check<Required<StoreLimits>[Name]>;
} = {
  maxBytes: check.numberFrom(1),
  maxOwnerBytes: check.numberFrom(1),
  clock: check.anyValue as check.Check<Pick<RegistryClock, "timestamp">>,
};

/** The quota of a principal in stores without a limit of their own, in bytes. */
export const MAX_OWNER_BYTES = 134_217_728;
/** The size of an entry in addition to its key and value, in bytes. */
export const ENTRY_BYTES = 128;

/** Returns the size of an entry that counts for the quota of its principal. */
export function entryWeight(key: string, bytes: number): number {
  return ENTRY_BYTES + key.length + bytes;
}

export function ownerOf(key: string): string {
  return key.split(".", 2)[1] ?? "";
}

export function quotaExhausted(): RangeError {
  return new RangeError("Cannot store a value: the quota of its principal is exhausted");
}
