/** Writes to a store whose responses may be lost. */

import { assertSync, describeThrown, type RegistryClock, sleep } from "../../tool/mod.ts";
import type { CallStore, DueEntry, StoredEntry, StoredValue, StoreOptions } from "./call_store.ts";

/** The length of the random bytes that follow each value and identify the write. */
const MARK_BYTES = 16;
/** The waits after the failed attempts of an operation, in milliseconds. */
const WAITS_MS: readonly number[] = [20, 80, 320];

/**
 * A view of a store whose connection may break between a write and its response. If a write
 * rejects, the view reads the key: the random bytes of the value show whether the write was made.
 * If not, the view writes again. A write rejects only if the store stays unreachable or rejects the
 * value.
 *
 * Values that were written through such a view must be read through such a view.
 */
export class SettledStore implements CallStore {
  readonly #store: CallStore;

  constructor(store: CallStore) {
    this.#store = store;
  }

  async get(key: string): Promise<StoredValue | undefined> {
    const stored = await this.#store.get(key);
    return stored && withoutMark(stored);
  }

  create(key: string, value: Uint8Array, options?: StoreOptions): Promise<number | undefined> {
    const marked = withMark(value);
    return this.#settle(key, marked, undefined, () => this.#store.create(key, marked, options));
  }

  update(
    key: string,
    value: Uint8Array,
    revision: number,
    options?: StoreOptions,
  ): Promise<number | undefined> {
    const marked = withMark(value);
    const write = () => this.#store.update(key, marked, revision, options);
    return this.#settle(key, marked, revision, write);
  }

  /** After a lost response, returns true even if another process deleted the value. */
  async delete(key: string, revision: number): Promise<boolean> {
    for (let tries = 0;; tries++) {
      try {
        if (await this.#store.delete(key, revision)) return true;
        return tries > 0 && await this.#store.get(key) === undefined;
      } catch (error) {
        await pause(tries, error);
      }
    }
  }

  async *list(prefix: string, after?: string): AsyncIterable<StoredEntry> {
    for await (const entry of assertSync(this.#store.list(prefix, after))) {
      yield withoutMark(entry);
    }
  }

  async due(...query: Parameters<CallStore["due"]>): Promise<readonly DueEntry[]> {
    return (await this.#store.due(...query)).map(withoutMark);
  }

  /** Returns the time of the store; without a clock in the store, the time of `clock`. */
  timeBy(clock: Pick<RegistryClock, "timestamp">): number {
    return assertSync(this.#store.now?.() ?? clock.timestamp());
  }

  async #settle(
    key: string,
    marked: Uint8Array,
    before: number | undefined,
    write: () => Promise<number | undefined>,
  ): Promise<number | undefined> {
    for (let tries = 0;; tries++) {
      try {
        const revision = await write();
        // The key may be taken by an earlier attempt of this write, whose response was lost.
        if (revision !== undefined || tries === 0) return revision;
        return revisionOf(marked, await this.#store.get(key));
      } catch (error) {
        await pause(tries, error);
        // If the key cannot be read, the write is tried again.
        const found = await this.#store.get(key).catch(() => ({ revision: before }));
        if (found?.revision !== before) return revisionOf(marked, found);
      }
    }
  }
}

/** Waits before the next attempt. Throws a permanent error, and the error of the last attempt. */
async function pause(tries: number, error: unknown): Promise<void> {
  const ms = WAITS_MS[tries];
  // Errors about a wrong clock are permanent: a retry would misread the times of leases.
  const isLasting = error instanceof RangeError || error instanceof TypeError ||
    /the clock of this machine/.test(describeThrown(error));
  if (ms === undefined || isLasting) throw error;
  await sleep(ms);
}

/** Returns the revision of the found value if the value has the mark of this write. */
function revisionOf(
  marked: Uint8Array,
  found?: { readonly value?: Uint8Array; readonly revision: number | undefined },
): number | undefined {
  const mark = marked.subarray(-MARK_BYTES);
  const isOwn = found?.value?.byteLength === marked.byteLength &&
    found.value.subarray(-MARK_BYTES).every((byte, at) => byte === mark[at]);
  return isOwn ? found.revision : undefined;
}

function withMark(value: Uint8Array): Uint8Array {
  const marked = new Uint8Array(value.byteLength + MARK_BYTES);
  marked.set(value);
  crypto.getRandomValues(marked.subarray(value.byteLength));
  return marked;
}

function withoutMark<V extends StoredValue>(stored: V): V {
  return { ...stored, value: stored.value.slice(0, -MARK_BYTES) };
}
