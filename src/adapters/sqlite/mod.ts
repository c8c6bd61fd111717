/**
 * A call store in a SQLite file (`@plue/tools/sqlite`), based on `node:sqlite` of Node, Bun and
 * Deno. Several processes on one machine may share the file.
 *
 * @module
 */

import type { DatabaseSync, StatementSync } from "node:sqlite";
import * as durable from "../../execute/durable/mod.ts";
import type { CallStore } from "../../execute/durable/mod.ts";
import * as check from "../../tool/mod.ts";
import { describeThrown, fail, sleep, systemClock } from "../../tool/mod.ts";

/** Options for {@linkcode sqliteCallStore}. */
export interface SqliteCallStoreOptions extends durable.StoreLimits {
  /**
   * If true, a write resolves only after it is on the disk. If false, writes survive a crash of the
   * process, but a power failure may lose the last writes.
   *
   * @default {false}
   */
  readonly syncsEachWrite?: boolean;
}

/** A {@linkcode CallStore} in a file. */
export interface SqliteCallStore extends CallStore, Disposable {
  /** Closes the file. Later operations of the store reject. */
  close(): void;
}

const ACTION = "open the store";
const VERSION = 3;
const LOCK_MS = 5_000;
/** The interval between attempts on a file that another process has locked, in milliseconds. */
const RETRY_MS = 5;
/** The number of writes after which expired entries are deleted. */
const WRITES_TO_SWEEP = 256;
/** The size in bytes after which a page ends. A larger page would block the process for too long. */
const PAGE_BYTES = 65_536;

const CHECKS = {
  ...durable.STORE_LIMITS,
  maxBytes: check.numberFrom(65_536),
  syncsEachWrite: check.checkFlag,
};

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
  const read = check.readFields(ACTION, options, CHECKS);
  const { maxBytes = 2 ** 30, maxOwnerBytes = maxBytes / 8, clock = systemClock } = read;
  check.checkWord(ACTION, path, "its path");
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
    const driver = new SqliteDriver(opened, { maxOwnerBytes, lock, clock });
    const close = (): void => void (opened.isOpen && opened.close());
    return { ...durable.createCallStore(driver), close, [Symbol.dispose]: close };
  } catch (cause) {
    db?.close();
    throw new Error(`Cannot ${ACTION} "${path}": ${explain(cause)}`, { cause });
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
    if (version === 0) db.exec(`${durable.sqlSchema()} pragma user_version = ${VERSION};`);
    else if (version !== VERSION) throw new Error("another version of plue created it");
    db.exec("commit");
  } catch (error) {
    rollBack(db);
    throw error;
  }
}

function numberIn(db: DatabaseSync, pragma: string): number {
  return Number(Object.values(db.prepare(`pragma ${pragma}`).get() ?? {})[0]);
}

interface Settings extends Required<Pick<durable.StoreLimits, "maxOwnerBytes" | "clock">> {
  readonly lock: FileLock;
}

class SqliteDriver implements durable.StoreDriver {
  readonly #db: DatabaseSync;
  readonly #settings: Settings;
  readonly #entries: durable.SqlEntries;
  #writes = 0;

  readonly explain = explain;

  constructor(db: DatabaseSync, settings: Settings) {
    this.#db = db;
    this.#settings = settings;
    const statements = new Map<string, StatementSync>();
    this.#entries = new durable.SqlEntries((text, ...values) => {
      const statement = statements.get(text) ?? db.prepare(text);
      statements.set(text, statement);
      // Deno's iterate() ends without the error of a statement that fails.
      return statement.all(...values as readonly Exclude<typeof values[number], ArrayBuffer>[]);
    }, PAGE_BYTES);
  }

  async get(key: string): Promise<durable.StoreRow | undefined> {
    return await this.#attempt((now) => this.#entries.get(key, now));
  }

  async put(write: durable.StoreWrite): Promise<number | undefined> {
    const { maxOwnerBytes } = this.#settings;
    return await this.#write((now) => this.#entries.put(write, maxOwnerBytes, now));
  }

  async remove(key: string, revision: number): Promise<boolean> {
    return await this.#write((now) => this.#entries.remove(key, revision, now));
  }

  async *list(prefix: string, after: string): AsyncGenerator<durable.StoreRow, void> {
    const { clock } = this.#settings;
    const read = (from: string) => this.#attempt(() => this.#entries.list(prefix, from));
    for await (const row of durable.readPages(after, read)) {
      if ((row.expires ?? Infinity) > clock.timestamp()) yield row;
    }
  }

  async due(query: durable.DueQuery): Promise<readonly durable.DueEntry[]> {
    const found: durable.DueEntry[] = [];
    for (;;) {
      const [limit, after] = [query.limit - found.length, found.at(-1) ?? query.after];
      const { rows, isCut } = await this.#attempt((now) =>
        this.#entries.due({ ...query, limit, after }, now)
      );
      found.push(...rows.map(durable.dueEntryOf));
      if (!isCut || rows.length === limit) return found;
      // Many large values without a pause would block the process.
      await sleep(0);
    }
  }

  async #write<T>(work: (now: number) => T): Promise<T> {
    return await this.#attempt((now) => {
      this.#db.exec("begin immediate");
      try {
        if (++this.#writes % WRITES_TO_SWEEP === 0) this.#entries.sweep(now);
        const done = work(now);
        this.#db.exec("commit");
        return done;
      } catch (error) {
        rollBack(this.#db);
        throw error;
      }
    });
  }

  async #attempt<T>(work: (now: number) => T): Promise<T> {
    const { lock, clock } = this.#settings;
    return await lock.whenFree(() => work(clock.timestamp()));
  }
}

function rollBack(db: DatabaseSync): void {
  try {
    db.exec("rollback");
  } catch {
    // SQLite has already rolled back, for example because the disk is full.
  }
}

/**
 * Waits while another process has locked the file. SQLite's own wait is off, because it would block
 * this process. Only one of the waiting calls retries, because each attempt takes time.
 */
class FileLock {
  #trying: Promise<void> | undefined;

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
        await sleep(RETRY_MS);
      }
    } finally {
      if (ended !== undefined) {
        this.#trying = undefined;
        ended();
      }
    }
  }
}

function explain(error: unknown): string {
  return durable.explainBy([
    [/disk is full|disk I\/O/, "the disk or the store is full"],
    [/not a database|malformed|corrupt/, "the file is damaged, or is not a store"],
    [/\b(locked|busy)\b/, "another process has locked the file"],
    [/readonly|read-only/, "the file is not writable"],
    [/\bis not open\b|closed|finalized/, "it is closed"],
  ], describeThrown(error));
}
