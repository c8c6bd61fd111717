/**
 * Where what must outlive a call is kept: used tickets, tasks, idempotency keys, counts.
 *
 * @module
 */

import { checkPort, isObject, refuse } from "../../tool/mod.ts";

/** A value in a store. */
export interface StoredValue {
  readonly value: Uint8Array;
  /** Names this write of the key. A later write has a higher one, also if the key was deleted. */
  readonly revision: number;
  /** When the value is gone, in milliseconds since 1970. Absent: it stays. */
  readonly expiresAt?: number;
}

/** A value in a store, with its key. */
export interface StoredEntry extends StoredValue {
  readonly key: string;
}

/** How a value is kept. */
export interface StoreOptions {
  /** When the value is gone, in milliseconds since 1970. Absent: it stays. */
  readonly expiresAt?: number;
}

/**
 * Keeps bytes by key, for every process that shares the store.
 *
 * Contract (`test/contract/call_store_contract.ts` checks it):
 * - A key is words of letters, digits, `_` and `-`, joined by `.`, of at most
 *   {@linkcode MAX_STORE_KEY} characters: `ticket.bob.17`. The second word says whose it is.
 * - A value has at most {@linkcode MAX_STORED_BYTES} bytes. Neither side sees changes that the other
 *   makes to the array later.
 * - `create`, `update` and `delete` are atomic: of several at once for one revision, one succeeds.
 * - The revisions of a key only rise, also when it is deleted and created again, so that a revision
 *   is a fencing token.
 * - What has expired is as if it were not there.
 * - What cannot be done, because the store is full or out of reach, rejects. A write that rejects may
 *   have been made; one that answers was made, and survives whatever the store survives.
 */
export interface CallStore {
  /** The value of a key; `undefined` if there is none. */
  get(key: string): Promise<StoredValue | undefined>;
  /** Keeps a value under a new key. Answers its revision; `undefined` if the key is taken. */
  create(key: string, value: Uint8Array, options?: StoreOptions): Promise<number | undefined>;
  /**
   * Puts a value in the place of the one with that revision; its options are taken anew. Answers the
   * new revision; `undefined` if another value or none is there.
   */
  update(
    key: string,
    value: Uint8Array,
    revision: number,
    options?: StoreOptions,
  ): Promise<number | undefined>;
  /** Deletes the value with that revision. Answers whether it was there. */
  delete(key: string, revision: number): Promise<boolean>;
  /**
   * The entries whose keys begin with these whole words: `ticket.bob` has `ticket.bob.17` and not
   * `ticket.bobby.1`; `""` has all. They come in the order of their keys, by their characters' codes,
   * and are read as they are taken. What changes meanwhile may be seen or not.
   *
   * @param after Leaves out this key and those before it.
   */
  list(prefix: string, after?: string): AsyncIterable<StoredEntry>;
}

/** How long a key may be, in characters. */
export const MAX_STORE_KEY = 256;
/** The maximum size of a value in bytes: with its headers, it fits into a message of NATS (1 MiB). */
export const MAX_STORED_BYTES = 1_047_552;

const KEY = /^[\w-]+(?:\.[\w-]+)*$/;

/** Refuses what is no store. @throws {TypeError} */
export function checkStore(action: string, store: CallStore): void {
  if (!isObject(store)) refuse(action, "store must be a CallStore");
  checkPort(action, "store", store as CallStore, ["get", "create", "update", "delete", "list"]);
}

/** Refuses what is no key. @throws {TypeError} */
export function checkStoreKey(key: string): void {
  if (typeof key !== "string" || key.length > MAX_STORE_KEY || !KEY.test(key)) {
    refuse(
      "use a key of a store",
      `it must be words of letters, digits, "_" and "-", joined by ".", of at most ${MAX_STORE_KEY} characters`,
    );
  }
}

/** Refuses a key or a value that no store takes. @throws {TypeError | RangeError} */
export function checkStored(key: string, value: Uint8Array): void {
  checkStoreKey(key);
  if (value.byteLength > MAX_STORED_BYTES) {
    throw new RangeError(
      `Cannot store a value: it has ${value.byteLength} bytes, and ${MAX_STORED_BYTES} are allowed`,
    );
  }
}
