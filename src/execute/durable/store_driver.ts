/** Call stores over drivers for several kinds of storage; shards, and tables in SQLite. */

import { fnv1a } from "../../tool/mod.ts";
import * as stores from "./call_store.ts";
import type { DueEntry } from "./call_store.ts";

/** An entry of a driver. A time is `null` if it is not set. */
export interface StoreRow {
  readonly key: string;
  /** Copied, except for an `ArrayBuffer`. */
  readonly value: Uint8Array | ArrayBuffer;
  readonly revision: number;
  readonly expires: number | null;
  readonly due?: number | null;
}

/** A write. A time is `null` if it is not set. */
export interface StoreWrite extends Pick<StoreRow, "key" | "expires"> {
  /** The driver may retain the buffer. */
  readonly value: Uint8Array<ArrayBuffer>;
  /** The revision to replace; `null` to create the key. */
  readonly expected: number | null;
  readonly due: number | null;
}

export interface DueQuery {
  readonly kind: string;
  readonly before: number;
  readonly limit: number;
  readonly after: stores.DuePosition;
}

/** Reads and writes a storage, with valid arguments. A `RangeError` means an exceeded limit. */
export interface StoreDriver {
  get(key: string): Promise<StoreRow | undefined>;
  /** Returns the new revision; `undefined` if the key has another revision. */
  put(write: StoreWrite): Promise<number | undefined>;
  remove(key: string, revision: number): Promise<boolean>;
  /** Yields the entries of `CallStore.list`. Entries may have expired if the driver has `now`. */
  list(prefix: string, after: string): AsyncIterable<StoreRow>;
  due(query: DueQuery): Promise<readonly DueEntry[]>;
  explain(error: unknown): string;
  now?(): number;
}

export function createCallStore(driver: StoreDriver): stores.CallStore {
  const failed = (cause: unknown): never => {
    if (cause instanceof RangeError) throw cause;
    throw new Error(`Cannot use the store of calls: ${driver.explain(cause)}`, { cause });
  };
  async function put(
    key: string,
    bytes: Uint8Array,
    expected: number | null,
    { expiresAt = Infinity, dueAt = Infinity }: stores.StoreOptions = {},
  ): Promise<number | undefined> {
    stores.checkStored(key, bytes);
    const [expires = null, due = null] = [expiresAt, dueAt].map((at) =>
      at === Infinity ? null : at
    );
    // A copy, because the value may be sent after the caller has changed the array.
    const value = bytes.slice();
    return await driver.put({ key, value, expected, expires, due }).catch(failed);
  }
  return {
    async get(key) {
      stores.checkStoreKey(key);
      const row = await driver.get(key).catch(failed);
      return row && entryOf(row);
    },
    create: (key, value, options) => put(key, value, null, options),
    update: (key, value, revision, options) => put(key, value, revision, options),
    async delete(key, revision) {
      stores.checkStoreKey(key);
      return await driver.remove(key, revision).catch(failed);
    },
    async *list(prefix, after = "") {
      stores.checkStorePrefix(prefix);
      try {
        for await (const row of driver.list(prefix, after)) {
          // The entry may have expired since it was read.
          if ((row.expires ?? Infinity) > (driver.now?.() ?? -Infinity)) yield entryOf(row);
        }
      } catch (error) {
        failed(error);
      }
    },
    due: (kind, before, limit, after = { dueAt: -Infinity, key: "" }) =>
      driver.due({ kind, before, limit, after }).catch(failed),
    ...(driver.now && { now: () => driver.now?.() ?? NaN }),
  };
}

export async function openCallStore(
  action: string,
  driver: StoreDriver & { check(): Promise<void> },
): Promise<stores.CallStore> {
  await driver.check().catch((cause) => {
    throw new Error(`Cannot ${action}: ${driver.explain(cause)}`, { cause });
  });
  return createCallStore(driver);
}

/** Yields the entries of all pages, until a page is empty. */
export async function* readPages(
  after: string,
  read: (after: string) => Promise<readonly StoreRow[]>,
): AsyncGenerator<StoreRow, void> {
  for (let from: string | undefined = after; from !== undefined;) {
    const rows: readonly StoreRow[] = await read(from);
    yield* rows;
    from = rows.at(-1)?.key;
  }
}

/** Explains an error by the first pattern that its message matches. */
export function explainBy(known: readonly (readonly [RegExp, string])[], message: string): string {
  const [, words] = known.find(([pattern]) => pattern.test(message)) ?? [];
  return words === undefined ? message : `${words} (${message})`;
}

function entryOf({ key, value, revision, expires }: StoreRow): stores.StoredEntry {
  const entry = { key, value: new Uint8Array(value), revision };
  return expires === null ? entry : { ...entry, expiresAt: expires };
}

export function dueEntryOf(row: StoreRow): DueEntry {
  return { ...entryOf(row), dueAt: row.due ?? Infinity };
}

/** Returns the shard with the entries of a principal. Every process computes the same number. */
export function shardOf(owner: string, shards: number): number {
  return fnv1a(owner) % shards;
}

export function compareDue(a: stores.DuePosition, b: stores.DuePosition): number {
  return a.dueAt - b.dueAt || (a.key < b.key ? -1 : Number(a.key > b.key));
}

/** Returns the entries that are due first in all shards together. */
export function earliestOf(
  shards: readonly { readonly entries: readonly DueEntry[]; readonly isCut: boolean }[],
  limit: number,
): readonly DueEntry[] {
  const all = shards.flatMap(({ entries }) => entries).sort(compareDue).slice(0, limit);
  const ends = shards.flatMap(({ entries, isCut }) => isCut ? entries.slice(-1) : []);
  // A shard whose page has ended early may have more entries, due before entries of other shards.
  return all.filter((entry) => ends.every((end) => compareDue(entry, end) <= 0));
}

type SqlValue = string | number | null | Uint8Array | ArrayBuffer;

/** Runs a statement. The rows can be read once. */
export type RunSql = (statement: string, ...values: readonly SqlValue[]) => Iterable<unknown>;

/**
 * Returns the statements that create the tables. Later versions of plue may only add statements,
 * because objects of old and new versions run side by side. AUTOINCREMENT never reuses a revision.
 */
export function sqlSchema(): string {
  return `
  create table if not exists entries(
    revision integer primary key autoincrement,
    key text not null unique,
    kind text generated always as (substr(key, 1, instr(key || '.', '.') - 1)) virtual,
    owner text not null,
    value blob not null,
    expires real,
    due real
  ) strict;
  create index if not exists expiring on entries(expires) where expires is not null;
  create index if not exists due on entries(kind, due, key) where due is not null;
  create table if not exists owners(owner text primary key, bytes integer not null) strict;
  create trigger if not exists kept after insert on entries begin
    insert into owners values(new.owner, ${stores.ENTRY_BYTES} + length(new.key) + length(new.value))
      on conflict do update set bytes = bytes + excluded.bytes;
  end;
  create trigger if not exists gone after delete on entries begin
    update owners set bytes = bytes - ${stores.ENTRY_BYTES} - length(old.key) - length(old.value)
      where owner = old.owner;
    delete from owners where owner = old.owner and bytes = 0;
  end;
`;
}

const IS_LIVE = "(expires is null or expires > ?1)";
const PAGE_ROWS = 128;
/** The number of expired entries that one sweep deletes: more would block the process. */
const SWEPT_ROWS = 1_024;

export interface SqlWrite extends Omit<StoreWrite, "value"> {
  readonly value: Uint8Array | ArrayBuffer;
}

interface SqlPage {
  readonly rows: readonly StoreRow[];
  /** True if the page has ended before the limit, because its entries are large. */
  readonly isCut: boolean;
}

/** Reads and writes the tables. SQL is synchronous, so each method is atomic in its process. */
export class SqlEntries {
  readonly #run: RunSql;
  readonly #pageBytes: number;

  /** @param pageBytes The bytes after which a page ends. */
  constructor(run: RunSql, pageBytes: number) {
    this.#run = run;
    this.#pageBytes = pageBytes;
  }

  get(key: string, now: number): StoreRow | undefined {
    return this.rows<StoreRow>(`select * from entries where key = ?2 and ${IS_LIVE}`, now, key)[0];
  }

  /** @throws {RangeError} If the quota of the owner is exhausted. */
  put(write: SqlWrite, most: number, now: number): number | undefined {
    const { key, value, expected, expires, due } = write;
    const before = this.#find(key, now);
    if ((before?.revision ?? null) !== expected) return undefined;
    const owner = stores.ownerOf(key);
    const more = value.byteLength - (before?.bytes ?? -stores.entryWeight(key, 0));
    const isExceeded = () => more > 0 && this.#bytesOf(owner) + more > most;
    if (isExceeded()) this.sweep(now);
    if (isExceeded()) throw stores.quotaExhausted();
    this.rows("delete from entries where key = ?", key);
    const [row] = this.rows<StoreRow>(
      "insert into entries(key, owner, value, expires, due) values(?, ?, ?, ?, ?) " +
        "returning revision",
      ...[key, owner, value, expires, due],
    );
    return row?.revision;
  }

  remove(key: string, revision: number, now: number): boolean {
    if (this.#find(key, now)?.revision !== revision) return false;
    this.rows("delete from entries where revision = ?", revision);
    return true;
  }

  list(prefix: string, after: string): readonly StoreRow[] {
    // A range, because Durable Objects limit a LIKE pattern to 50 bytes. "/" follows "." in ASCII.
    return this.#page(
      "key >= ?1 and key < ?2 || '/' and key <> ?3 and " +
        "(key = ?2 or key > ?2 || '.') order by key limit ?4",
      ...[after > prefix ? after : prefix, prefix, after, PAGE_ROWS],
    ).rows;
  }

  due({ kind, before, limit, after }: DueQuery, now: number): SqlPage {
    return this.#page(
      "kind = ?2 and due <= ?3 and (due, key) > (?4, ?5) " +
        `and ${IS_LIVE} order by due, key limit ?6`,
      ...[now, kind, before, after.dueAt, after.key, limit],
    );
  }

  sweep(now: number): void {
    this.rows(
      "delete from entries where revision in " +
        "(select revision from entries where expires <= ? limit ?)",
      ...[now, SWEPT_ROWS],
    );
  }

  rows<Row>(statement: string, ...values: readonly SqlValue[]): readonly Row[] {
    return [...this.#run(statement, ...values)] as readonly Row[];
  }

  /** Reads the rows one by one, up to the size of a page. */
  #page(condition: string, ...values: readonly SqlValue[]): SqlPage {
    const found = this.rows<{ readonly revision: number; readonly bytes: number }>(
      `select revision, length(value) as bytes from entries where ${condition}`,
      ...values,
    );
    let bytes = 0;
    const last = found.findIndex((row) => (bytes += row.bytes) >= this.#pageBytes);
    const read = last < 0 ? found : found.slice(0, last + 1);
    const rows = read.flatMap(({ revision }) =>
      this.rows<StoreRow>("select * from entries where revision = ?", revision)
    );
    return { rows, isCut: last >= 0 };
  }

  #find(key: string, now: number) {
    return this.rows<{ readonly revision: number; readonly bytes: number }>(
      `select revision, length(value) as bytes from entries where key = ?2 and ${IS_LIVE}`,
      ...[now, key],
    )[0];
  }

  #bytesOf(owner: string): number {
    const query = "select bytes from owners where owner = ?";
    return this.rows<{ readonly bytes: number }>(query, owner)[0]?.bytes ?? 0;
  }
}
