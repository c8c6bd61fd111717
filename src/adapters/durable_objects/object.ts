/** The class of the objects, each of which has the entries of the owners of one shard. */

import {
  type CallStore,
  ENTRY_BYTES,
  entryWeight,
  ownerOf,
  type StoredEntry,
} from "../../execute/durable/mod.ts";
import { checkFunction, fail, readFields } from "../../tool/mod.ts";

/**
 * A request, or its answer. They are plain arrays, because old and new code run side by side during
 * a deploy: elements are only appended, and a missing one has a default.
 */
export type Wire = readonly unknown[];

/** The methods of the objects. */
export interface CallStoreMethods {
  /**
   * Is called by {@linkcode durableObjectStore}.
   *
   * @param request The operation, and its arguments.
   * @returns The object's time, and the result.
   */
  callStore(request: Wire): Promise<Wire>;
  /** Is called by the platform. */
  alarm(): Promise<void>;
}

/** `DurableObject` of `cloudflare:workers`, or a class that extends it. */
export type DurableObjectBase = abstract new (...args: never[]) => object;

/** The class that {@linkcode callStoreObject} returns. */
export type CallStoreObjectClass<Base extends DurableObjectBase> = new (
  ...args: ConstructorParameters<Base>
) => InstanceType<Base> & CallStoreMethods;

/** Options for {@linkcode callStoreObject}. `Env` are the bindings of the Worker. */
export interface CallStoreObjectOptions<Env> {
  /** Returns the store, as `durableObjectStore` made it. `recover` needs it. */
  store?(env: Env): CallStore;
  /**
   * Runs tasks. An alarm calls it when tasks of the object are due: their delays are over; or their
   * leases, because their isolates have ended. By default, only calls of `tasks.recover` run them.
   *
   * @param store The store, which returns only due entries of this object.
   * @returns A promise. The object stays in memory until it settles.
   */
  recover?(store: CallStore, env: Env): unknown;
}

/** The used part of the platform's `DurableObjectState`. */
interface ObjectState {
  readonly storage: {
    readonly sql: { exec(query: string, ...values: readonly unknown[]): Iterable<unknown> };
    transactionSync<T>(work: () => T): T;
    setAlarm(at: number): Promise<void>;
  };
  waitUntil(promise: Promise<unknown>): void;
}

type Recover = (due: CallStore["due"]) => Promise<unknown>;

/** A request to write. The key must have the expected revision; `null` is no value. */
export type Put = readonly [
  key: string,
  value: ArrayBuffer,
  expected?: number | null,
  expires?: number | null,
  due?: number | null,
  maxOwnerBytes?: number,
];

type WireEntry = readonly [
  key: string,
  value: ArrayBuffer,
  revision: number,
  expires?: number | null,
  due?: number | null,
];

interface Row {
  readonly revision: number;
  readonly key: string;
  readonly value: ArrayBuffer;
  readonly expires: number | null;
  readonly due: number | null;
}

/** Later versions may only add to it. AUTOINCREMENT never reuses a revision. */
const SCHEMA = `
  create table if not exists entries(
    revision integer primary key autoincrement,
    key text not null unique,
    kind text not null,
    owner text not null,
    value blob not null,
    expires real,
    due real
  ) strict;
  create index if not exists expiring on entries(expires) where expires is not null;
  create index if not exists due on entries(kind, due, key) where due is not null;
  create table if not exists owners(owner text primary key, bytes integer not null) strict;
  create trigger if not exists kept after insert on entries begin
    insert into owners values(new.owner, ${ENTRY_BYTES} + length(new.key) + length(new.value))
      on conflict do update set bytes = bytes + excluded.bytes;
  end;
  create trigger if not exists gone after delete on entries begin
    update owners set bytes = bytes - ${ENTRY_BYTES} - length(old.key) - length(old.value)
      where owner = old.owner;
    delete from owners where owner = old.owner and bytes = 0;
  end;
`;

/** The time from the expiry of an entry to its deletion, in milliseconds: one alarm deletes many. */
const SWEEP_MS = 10_000;
/** The time between attempts to resume tasks, in milliseconds. */
const RECOVER_MS = 10_000;
/** The maximum time to an alarm, in milliseconds: a date has a limit. */
const MAX_ALARM_MS = 2 ** 31;
const SWEPT_ROWS = 1_000;
const PAGE_ROWS = 128;
/** The bytes after which an answer ends: the limit of RPC is 32 MiB. The next alarm has the rest. */
const PAGE_BYTES = 1_048_576;

const ACTION = "make the class of the store's objects";

/**
 * Returns the class of the objects of a `durableObjectStore`. Your Worker exports a class that
 * extends it, and its configuration names that class in `new_sqlite_classes`.
 *
 * @example Usage
 * ```ts ignore
 * import { DurableObject } from "cloudflare:workers";
 * import { callTasks } from "@plue/tools/calls";
 * import { callStoreObject, durableObjectStore } from "@plue/tools/durable-objects";
 *
 * export class Calls extends callStoreObject(DurableObject, {
 *   store: (env: Env) => durableObjectStore(env.CALLS),
 *   async recover(store) {
 *     const tasks = callTasks({ store });
 *     await tasks.recover(dispatcher);
 *     await tasks.idle();
 *   },
 * }) {}
 * ```
 *
 * @param base `DurableObject` of `cloudflare:workers`, which only Workers can import.
 * @throws {TypeError} If an option is invalid.
 */
export function callStoreObject<Base extends DurableObjectBase, Env = unknown>(
  base: Base,
  options: CallStoreObjectOptions<Env> = {},
): CallStoreObjectClass<Base> {
  const { store, recover } = readFields(ACTION, options, {
    store: checkFunction,
    recover: checkFunction,
  }) as CallStoreObjectOptions<Env>;
  if (typeof base !== "function") fail(ACTION, "its base must be DurableObject");
  if (recover !== undefined && store === undefined) fail(ACTION, "recover needs the option store");

  // The platform accepts methods of any class that extends its own.
  class CallStoreObject extends (base as unknown as new (state: ObjectState, env: Env) => object)
    implements CallStoreMethods {
    readonly #entries: Entries;

    constructor(state: ObjectState, env: Env) {
      super(state, env);
      this.#entries = new Entries(
        state,
        recover && store && (async (due) => await recover({ ...store(env), due }, env)),
      );
    }

    async callStore(request: Wire): Promise<Wire> {
      return await this.#entries.answer(request);
    }

    async alarm(): Promise<void> {
      await this.#entries.alarm();
    }
  }
  return CallStoreObject as unknown as CallStoreObjectClass<Base>;
}

/** The entries of an object. SQL is synchronous, so a method without `await` is atomic. */
class Entries {
  readonly #state: ObjectState;
  readonly #recover: Recover | undefined;
  /** The next alarm that this instance has set. */
  #alarm = Infinity;
  /** The time of the last call of `recover`. */
  #recoveredAt = 0;

  constructor(state: ObjectState, recover: Recover | undefined) {
    this.#state = state;
    this.#recover = recover;
    this.#rows(SCHEMA);
  }

  async answer([operation, ...request]: Wire): Promise<Wire> {
    const now = Date.now();
    switch (operation) {
      case "get":
        return [now, ...this.#get(request, now)];
      case "list":
        return [now, ...this.#list(request, now)];
      case "due":
        return [now, ...this.#due(request, now)];
      case "delete":
        return [now, this.#delete(request, now)];
      case "put": {
        const put = () => this.#put(request as unknown as Put, now);
        const answer = this.#state.storage.transactionSync(put);
        // Nothing awaits before this, so the value and its alarm are stored together.
        await this.#setAlarm(now);
        return [now, ...answer];
      }
      default:
        throw new Error(`the version of the object has no operation "${operation}"`);
    }
  }

  async alarm(): Promise<void> {
    const now = Date.now();
    this.#alarm = Infinity;
    this.#sweep(now);
    const [due] = this.#rows("select 1 from entries where kind = 'task' and due <= ? limit 1", now);
    if (due !== undefined && this.#recover !== undefined) {
      this.#recoveredAt = now;
      const own: CallStore["due"] = (kind, before, limit, after) => {
        const request = [kind, before, limit, after?.dueAt, after?.key];
        const [entries] = this.#due(request, Date.now());
        return Promise.resolve(entries.map(entryOf));
      };
      // Not awaited, because the next alarm must not wait for the end of a task.
      this.#state.waitUntil(this.#recover(own));
    }
    await this.#setAlarm(now);
  }

  #get([key]: Wire, now: number): Wire {
    const where = "key = ? and (expires is null or expires > ?)";
    return this.#rows<Row>(`select * from entries where ${where}`, key, now).map(wireOf);
  }

  #put([key, value, expected = null, expires = null, due = null, most]: Put, now: number): Wire {
    const before = this.#find(key, now);
    if ((before?.revision ?? null) !== expected) return [null];
    const owner = ownerOf(key);
    const more = value.byteLength - (before?.bytes ?? -entryWeight(key, 0));
    const isExceeded = () => more > 0 && this.#bytesOf(owner) + more > (most ?? Infinity);
    if (isExceeded()) this.#sweep(now);
    if (isExceeded()) return [null, "quota"];
    this.#rows("delete from entries where key = ?", key);
    const [row] = this.#rows<Row>(
      "insert into entries(key, kind, owner, value, expires, due) values(?, ?, ?, ?, ?, ?) " +
        "returning revision",
      ...[key, key.split(".", 1)[0], owner, value, expires, due],
    );
    return [row?.revision];
  }

  #delete([key, revision]: Wire, now: number): boolean {
    if (this.#find(key, now)?.revision !== revision) return false;
    this.#rows("delete from entries where revision = ?", revision);
    return true;
  }

  #list([prefix, after]: Wire, now: number): Wire {
    // A range, because LIKE takes 50 bytes at most. "/" is the next character after ".".
    const rows = this.#page(
      "select * from entries where key > ?1 and " +
        "(key = ?2 or (key > ?2 || '.' and key < ?2 || '/')) order by key limit ?3",
      ...[after, prefix, PAGE_ROWS],
    );
    const entries = rows.filter(({ expires }) => (expires ?? Infinity) > now);
    return [rows.at(-1)?.key ?? null, entries.map(wireOf)];
  }

  #due(
    [kind, before, limit, afterDue = -Infinity, afterKey = ""]: Wire,
    now: number,
  ): readonly [entries: readonly Wire[], isCut: boolean] {
    const rows = this.#page(
      "select * from entries where kind = ? and due <= ? and (expires is null or expires > ?) " +
        "and (due, key) > (?, ?) order by due, key limit ?",
      ...[kind, before, now, afterDue, afterKey, limit],
    );
    const bytes = rows.reduce((sum, { value }) => sum + value.byteLength, 0);
    return [rows.map(wireOf), bytes >= PAGE_BYTES];
  }

  /** Reads rows one by one, up to the size of a page. */
  #page(query: string, ...values: Wire): readonly Row[] {
    const rows: Row[] = [];
    let bytes = 0;
    for (const row of this.#state.storage.sql.exec(query, ...values) as Iterable<Row>) {
      rows.push(row);
      if ((bytes += row.value.byteLength) >= PAGE_BYTES) break;
    }
    return rows;
  }

  #find(
    key: unknown,
    now: number,
  ): { readonly revision: number; readonly bytes: number } | undefined {
    const where = "key = ? and (expires is null or expires > ?)";
    return this.#rows<{ readonly revision: number; readonly bytes: number }>(
      `select revision, length(value) as bytes from entries where ${where}`,
      ...[key, now],
    )[0];
  }

  #bytesOf(owner: string): number {
    const query = "select bytes from owners where owner = ?";
    return this.#rows<{ readonly bytes: number }>(query, owner)[0]?.bytes ?? 0;
  }

  /** Deletes entries that have expired. */
  #sweep(now: number): void {
    this.#rows(
      "delete from entries where revision in " +
        "(select revision from entries where expires <= ? limit ?)",
      ...[now, SWEPT_ROWS],
    );
  }

  /** Sets the alarm for the first entry that expires or is due, if it is earlier than the last one. */
  async #setAlarm(now: number): Promise<void> {
    const [first] = this.#rows<{ readonly [name in "expires" | "due" | "left"]: number | null }>(
      "select (select min(expires) from entries where expires is not null) as expires, " +
        "(select min(due) from entries where kind = 'task' and due > ?1) as due, " +
        "(select min(due) from entries where kind = 'task' and due <= ?1) as left",
      this.#recoveredAt,
    );
    const { expires, due, left } = first ?? {};
    const sweep = (expires ?? Infinity) + SWEEP_MS;
    const again = left === null ? Infinity : this.#recoveredAt + RECOVER_MS;
    const recover = this.#recover === undefined ? Infinity : Math.min(due ?? Infinity, again);
    const next = Math.min(sweep, recover);
    if (next >= this.#alarm) return;
    this.#alarm = next;
    await this.#state.storage.setAlarm(Math.min(Math.ceil(next), now + MAX_ALARM_MS));
  }

  #rows<R>(query: string, ...values: Wire): readonly R[] {
    return [...this.#state.storage.sql.exec(query, ...values)] as readonly R[];
  }
}

function wireOf({ key, value, revision, expires, due }: Row): Wire {
  return [key, value, revision, expires, due];
}

/** Returns an entry of an answer. */
export function entryOf(wire: Wire): StoredEntry & { readonly dueAt: number } {
  const [key, bytes, revision, expires, due] = wire as WireEntry;
  const entry = { key, value: new Uint8Array(bytes), revision, dueAt: due ?? Infinity };
  return typeof expires === "number" ? { ...entry, expiresAt: expires } : entry;
}
