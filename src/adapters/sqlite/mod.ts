/**
 * A call store in a SQLite file (`@plue/tools/sqlite`), based on `node:sqlite` of Node, Bun and
 * Deno. Several processes on one machine may share the file.
 *
 * @module
 */

import type { DatabaseSync, StatementSync } from "node:sqlite";
import {
  type CallStore,
  checkStored,
  checkStoreKey,
  checkStorePrefix,
  type DueEntry,
  ENTRY_BYTES,
  ownerOf,
  quotaExhausted,
  STORE_LIMITS,
  type StoredEntry,
  storeFailure,
  type StoreLimits,
  type StoreOptions,
} from "../../execute/durable/mod.ts";
import {
  checkFlag,
  checkWord,
  describeThrown,
  fail,
  numberFrom,
  readFields,
  systemClock,
} from "../../tool/mod.ts";

/** Options for {@linkcode sqliteCallStore}. */
export interface SqliteCallStoreOptions extends StoreLimits {
  /**
   * If true, a write resolves only after it is on the disk. If false, writes survive a crash of the
   * process, but the last moments before a power failure may be lost.
   *
   * @default {false}
   */
  readonly syncsEachWrite?: boolean;
}

/** A {@linkcode CallStore} in a file. */
export interface SqliteCallStore extends CallStore, Disposable {
  /** Closes the file. Calls reject from then on. */
  close(): void;
}

const ACTION = "open the store";
const VERSION = 2;
/** The maximum time to wait for another process's lock, in milliseconds. */
const LOCK_MS = 5_000;
/** The interval between attempts on a file that another process has locked, in milliseconds. */
const RETRY_MS = 5;
/** The number of writes after which expired entries are deleted. */
const WRITES_TO_SWEEP = 256;
const ROWS_TO_SWEEP = 1_024;
/** The size of a value that takes long to read, in bytes. */
const LARGE_BYTES = 65_536;

// The row's id is the revision: AUTOINCREMENT never reuses an id.
const SCHEMA = `
  create table entries(
    revision integer primary key autoincrement,
    key text not null unique,
    owner text not null,
    value blob not null,
    expires integer,
    due real
  ) strict;
  create index expiring on entries(expires) where expires is not null;
  create index due on entries(due) where due is not null;
  create table owners(owner text primary key, bytes integer not null) strict;
  create trigger kept after insert on entries begin
    insert into owners values(new.owner, ${ENTRY_BYTES} + length(new.key) + length(new.value))
      on conflict do update set bytes = bytes + excluded.bytes;
  end;
  create trigger gone after delete on entries begin
    update owners set bytes = bytes - ${ENTRY_BYTES} - length(old.key) - length(old.value)
      where owner = old.owner;
    delete from owners where owner = old.owner and bytes = 0;
  end;
  pragma user_version = ${VERSION};
`;

const CHECKS = { ...STORE_LIMITS, maxBytes: numberFrom(65_536), syncsEachWrite: checkFlag };

interface Row {
  readonly revision: number;
  readonly key: string;
  readonly value: Uint8Array;
  readonly expires: number | null;
  readonly due: number | null;
}

/**
 * Opens a {@linkcode CallStore} in a file. The file is created if it does not exist; its folder
 * must exist. Only the user of the process may read a new file; an existing file keeps its mode.
 * The contents are not encrypted.
 *
 * @example Usage
 * ```ts ignore
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { storedTickets } from "@plue/tools/calls";
 * import { sqliteCallStore } from "@plue/tools/sqlite";
 *
 * using store = await sqliteCallStore("calls.db");
 * const dispatcher = new ToolDispatcher(registry, { tickets: storedTickets(store) });
 * ```
 *
 * @throws {TypeError | RangeError} If an option is invalid.
 * @throws {Error} If the file cannot be opened, is damaged or is not a store.
 */
export async function sqliteCallStore(
  path: string,
  options: SqliteCallStoreOptions = {},
): Promise<SqliteCallStore> {
  const read = readFields(ACTION, options, CHECKS);
  const { maxBytes = 2 ** 30, maxOwnerBytes = maxBytes / 8, clock = systemClock } = read;
  checkWord(ACTION, path, "its path");
  const sqlite = await import("node:sqlite").catch((cause) =>
    fail(ACTION, "this runtime has no node:sqlite; Node has it from version 22.13 on", cause)
  );
  const { open } = await import("node:fs/promises");
  const { resolve } = await import("node:path");

  let db: DatabaseSync | undefined;
  try {
    // The path is absolute, because SQLite interprets ":memory:" and "file:" at its beginning.
    const file = resolve(path);
    await (await open(file, "a", 0o600)).close();
    const opened = db = new sqlite.DatabaseSync(file);
    const lock = new FileLock();
    await lock.whenFree(() => prepare(opened, read.syncsEachWrite));
    const pageSize = numberIn(opened, "page_size");
    opened.exec(`pragma max_page_count = ${Math.floor(maxBytes / pageSize)}`);
    return new SqliteStore(opened, { maxOwnerBytes, lock, clock });
  } catch (cause) {
    db?.close();
    throw new Error(`Cannot ${ACTION} "${path}": ${problemOf(cause)}`, { cause });
  }
}

function prepare(db: DatabaseSync, syncsEachWrite = false): void {
  db.exec(`
    pragma busy_timeout = 0;
    pragma journal_mode = wal;
    pragma synchronous = ${syncsEachWrite ? "full" : "normal"};
  `);
  if (numberIn(db, "user_version") === VERSION) return;
  db.exec("begin immediate");
  try {
    // Checks again, because another process may have created the tables meanwhile.
    const version = numberIn(db, "user_version");
    if (version === 0) db.exec(SCHEMA);
    else if (version !== VERSION) throw new Error("another version of plue has made it");
    db.exec("commit");
  } catch (error) {
    rollBack(db);
    throw error;
  }
}

function numberIn(db: DatabaseSync, pragma: string): number {
  return Number(Object.values(db.prepare(`pragma ${pragma}`).get() ?? {})[0]);
}

interface Settings extends Required<Pick<StoreLimits, "maxOwnerBytes" | "clock">> {
  readonly lock: FileLock;
}

class SqliteStore implements SqliteCallStore {
  readonly #db: DatabaseSync;
  readonly #settings: Settings;
  readonly #statements: ReturnType<typeof prepareStatements>;
  #writes = 0;

  constructor(db: DatabaseSync, settings: Settings) {
    this.#db = db;
    this.#settings = settings;
    this.#statements = prepareStatements(db);
  }

  async get(key: string): Promise<StoredEntry | undefined> {
    checkStoreKey(key);
    const row = await this.#attempt(() => this.#find(key, this.#settings.clock.timestamp()));
    return row && entryOf(row);
  }

  async create(
    key: string,
    value: Uint8Array,
    settings: StoreOptions = {},
  ): Promise<number | undefined> {
    checkStored(key, value);
    return await this.#write((now) => {
      this.#statements.expire.run(key, now);
      return this.#insert(key, value, settings);
    });
  }

  async update(
    key: string,
    value: Uint8Array,
    revision: number,
    settings: StoreOptions = {},
  ): Promise<number | undefined> {
    checkStored(key, value);
    return await this.#write((now) => {
      if (this.#find(key, now)?.revision !== revision) return undefined;
      this.#statements.remove.run(revision);
      return this.#insert(key, value, settings);
    });
  }

  async delete(key: string, revision: number): Promise<boolean> {
    checkStoreKey(key);
    return await this.#write((now) => {
      if (this.#find(key, now)?.revision !== revision) return false;
      this.#statements.remove.run(revision);
      return true;
    });
  }

  async *list(prefix: string, after = ""): AsyncGenerator<StoredEntry, void> {
    checkStorePrefix(prefix);
    for (let last = after;;) {
      const row = await this.#attempt(() => this.#next(last, prefix));
      if (row === undefined) return;
      last = row.key;
      if ((row.expires ?? Infinity) > this.#settings.clock.timestamp()) yield entryOf(row);
    }
  }

  async due(
    ...[kind, before, limit, after]: Parameters<CallStore["due"]>
  ): Promise<readonly DueEntry[]> {
    const now = this.#settings.clock.timestamp();
    const { at, due } = this.#statements;
    const from = [after?.dueAt ?? -Infinity, after?.key ?? ""] as const;
    const rows = await this.#attempt(() => due.all(before, kind, now, limit, ...from));
    const entries: DueEntry[] = [];
    for (const { revision } of rows as unknown as readonly Pick<Row, "revision">[]) {
      const row = await this.#attempt(() => at.get(revision)) as Row | undefined;
      if (row !== undefined) entries.push({ ...entryOf(row), dueAt: row.due ?? Infinity });
      // Large values at once would block the process.
      if ((row?.value.byteLength ?? 0) >= LARGE_BYTES) await pause(0);
    }
    return entries;
  }

  /** Continues after the last key, so that deletions in between do no harm. */
  #next(last: string, prefix: string): Row | undefined {
    const { get, next } = this.#statements;
    const own = last < prefix ? get.get(prefix) as Row | undefined : undefined;
    // The keys with the prefix `<key>.`: "/" is the next character after ".".
    const from = last > `${prefix}.` ? last : `${prefix}.`;
    return own ?? next.get(from, `${prefix}/`) as Row | undefined;
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Runs a function in a transaction, when no other process writes. */
  async #write<T>(work: (now: number) => T): Promise<T> {
    return await this.#attempt(() => {
      const now = this.#settings.clock.timestamp();
      this.#db.exec("begin immediate");
      try {
        if (++this.#writes % WRITES_TO_SWEEP === 0) this.#statements.sweep.run(now);
        const done = work(now);
        this.#db.exec("commit");
        return done;
      } catch (error) {
        rollBack(this.#db);
        throw error;
      }
    });
  }

  async #attempt<T>(work: () => T): Promise<T> {
    try {
      return await this.#settings.lock.whenFree(work);
    } catch (cause) {
      throw storeFailure(problemOf(cause), cause);
    }
  }

  #insert(key: string, value: Uint8Array, options: StoreOptions): number | undefined {
    const { expiresAt, dueAt = null } = options;
    const owner = ownerOf(key);
    const ends = expiresAt === undefined
      ? null
      : Math.min(Math.ceil(expiresAt), Number.MAX_SAFE_INTEGER);
    const row = this.#statements.insert.get(key, owner, value, ends, dueAt) as Row | undefined;
    if (row === undefined) return undefined;
    const { bytes } = this.#statements.owner.get(owner) as { readonly bytes: number };
    if (bytes > this.#settings.maxOwnerBytes) throw quotaExhausted();
    return row.revision;
  }

  #find(key: string, now: number): Row | undefined {
    const row = this.#statements.get.get(key) as Row | undefined;
    return row !== undefined && (row.expires ?? Infinity) <= now ? undefined : row;
  }
}

function prepareStatements(db: DatabaseSync) {
  return {
    get: db.prepare("select * from entries where key = ?"),
    expire: db.prepare("delete from entries where key = ? and expires <= ?"),
    // More rows at once would block the process.
    sweep: db.prepare(
      "delete from entries where revision in " +
        `(select revision from entries where expires <= ? limit ${ROWS_TO_SWEEP})`,
    ),
    insert: db.prepare(
      "insert into entries(key, owner, value, expires, due) values(?, ?, ?, ?, ?) " +
        "on conflict do nothing returning revision",
    ),
    at: db.prepare("select * from entries where revision = ?"),
    remove: db.prepare("delete from entries where revision = ?"),
    owner: db.prepare("select bytes from owners where owner = ?"),
    next: db.prepare("select * from entries where key > ? and key < ? order by key limit 1"),
    due: db.prepare(
      "select revision from entries where due <= ?1 and key > ?2 || '.' and key < ?2 || '/' and " +
        "(expires is null or expires > ?3) and (due, key) > (?5, ?6) order by due, key limit ?4",
    ),
  } satisfies Readonly<Record<string, StatementSync>>;
}

function entryOf({ key, value, revision, expires }: Row): StoredEntry {
  // Copies the bytes, because some runtimes return an empty or a shared array.
  const entry = { key, value: new Uint8Array(value), revision };
  return expires === null ? entry : { ...entry, expiresAt: expires };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void systemClock.setTimeout(resolve, ms));
}

function rollBack(db: DatabaseSync): void {
  try {
    db.exec("rollback");
  } catch {
    // SQLite has already rolled back, for example because the disk is full.
  }
}

/**
 * Waits while another process has locked the file. SQLite's own wait would block this process, so
 * it is off. Of the calls that wait here only one retries, because each attempt takes time.
 */
class FileLock {
  /** Settles when the retrying call has ended. */
  #trying: Promise<void> | undefined;

  /** Runs a function when no other process has locked the file. Rejects after a timeout. */
  async whenFree<T>(work: () => T): Promise<T> {
    const end = systemClock.now() + LOCK_MS;
    while (this.#trying !== undefined) await this.#trying;
    let ended: (() => void) | undefined;
    try {
      for (;;) {
        try {
          return work();
        } catch (error) {
          const isLocked = /\b(locked|busy)\b/.test(describeThrown(error));
          if (!isLocked || systemClock.now() >= end) throw error;
        }
        if (ended === undefined) this.#trying = new Promise((resolve) => ended = resolve);
        await pause(RETRY_MS);
      }
    } finally {
      if (ended !== undefined) {
        this.#trying = undefined;
        ended();
      }
    }
  }
}

/** Returns an error message for readers without knowledge of SQLite. */
function problemOf(error: unknown): string {
  const said = describeThrown(error);
  const known: readonly (readonly [RegExp, string])[] = [
    [/disk is full|disk I\/O/, "the disk or the store is full"],
    [/not a database|malformed|corrupt/, "the file is damaged, or is not a store"],
    [/\b(locked|busy)\b/, "another process has locked it"],
    [/readonly|read-only/, "the file is not writable"],
    [/\bis not open\b|closed|finalized/, "it is closed"],
  ];
  const [, words] = known.find(([pattern]) => pattern.test(said)) ?? [];
  return words === undefined ? said : `${words} (${said})`;
}
