/** The class of the Durable Objects. Each object stores the entries of the owners in one shard. */

import * as durable from "../../execute/durable/mod.ts";
import type { CallStore } from "../../execute/durable/mod.ts";
import { checkFunction, fail, readFields } from "../../tool/mod.ts";

/**
 * A request, or its answer. Both are plain arrays, because old and new code run side by side during
 * a deploy: later versions only append elements, and a missing element has a default.
 */
export type Wire = readonly unknown[];

/** The methods of the objects. */
export interface CallStoreMethods {
  /** Called by {@linkcode durableObjectStore}. Returns the object's time, and the result. */
  callStore(request: Wire): Promise<Wire>;
  /** Called by the platform. */
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
   * Runs tasks. An alarm calls this when tasks of the object are due: after their delays, or when an
   * isolate has ended and its leases expire. By default, only `tasks.recover` runs such tasks.
   *
   * @param store The store, which returns only due entries of this object.
   * @returns A promise. The object stays in memory until it settles.
   */
  recover?(store: CallStore, env: Env): unknown;
}

interface ObjectState {
  readonly storage: {
    readonly sql: { exec(statement: string, ...values: readonly unknown[]): Iterable<unknown> };
    transactionSync<T>(work: () => T): T;
    setAlarm(at: number): Promise<void>;
  };
  waitUntil(promise: Promise<unknown>): void;
}

/** A stored value, or a request to write it: without a revision, if the key has no value. */
type WireRow = readonly [
  key: string,
  value: ArrayBuffer,
  revision?: number | null,
  expires?: number | null,
  due?: number | null,
  maxOwnerBytes?: number,
];

type Recover = (due: CallStore["due"]) => Promise<unknown>;

/** The time from the expiry of an entry to its deletion, in milliseconds: one alarm deletes many. */
const SWEEP_MS = 10_000;
const RECOVER_MS = 10_000;
/** The maximum time to an alarm, in milliseconds: a date has a limit. */
const MAX_ALARM_MS = 2 ** 31;
/** The size in bytes after which an answer ends. The limit of RPC is 32 MiB. */
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
  if (typeof base !== "function") fail(ACTION, "base must be DurableObject");
  if (recover !== undefined && store === undefined) fail(ACTION, "recover needs the option store");

  // The platform accepts any class that extends DurableObject.
  class CallStoreObject extends (base as unknown as new (state: ObjectState, env: Env) => object)
    implements CallStoreMethods {
    readonly #entries: ObjectEntries;

    constructor(state: ObjectState, env: Env) {
      super(state, env);
      this.#entries = new ObjectEntries(
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

class ObjectEntries {
  readonly #state: ObjectState;
  readonly #recover: Recover | undefined;
  readonly #entries: durable.SqlEntries;
  #alarm = Infinity;
  #recoveredAt = 0;

  constructor(state: ObjectState, recover: Recover | undefined) {
    this.#state = state;
    this.#recover = recover;
    const { sql } = state.storage;
    this.#entries = new durable.SqlEntries((...statement) => sql.exec(...statement), PAGE_BYTES);
    sql.exec(durable.sqlSchema());
  }

  async answer([operation, ...request]: Wire): Promise<Wire> {
    const now = Date.now();
    const answer = this.#answer(`${operation}`, request, now);
    // Without an `await` before this line, the platform stores value and alarm atomically.
    if (operation === "put") await this.#setAlarm(now);
    return [now, ...answer];
  }

  #answer(operation: string, request: Wire, now: number): Wire {
    const entries = this.#entries;
    const [key, second] = request as readonly [string, string & number];
    switch (operation) {
      case "get": {
        const row = entries.get(key, now);
        return row === undefined ? [] : [wireOf(row)];
      }
      case "list":
        return [entries.list(key, second).map(wireOf)];
      case "due": {
        const { rows, isCut } = entries.due(dueQueryOf(request), now);
        return [rows.map(wireOf), isCut];
      }
      case "delete":
        return [entries.remove(key, second, now)];
      case "put":
        return this.#put(request as unknown as WireRow, now);
      default:
        throw new Error(
          `the deployed object has no operation "${operation}"; deploy the version of plue that its callers have`,
        );
    }
  }

  #put(request: WireRow, now: number): Wire {
    const [key, value, expected = null, expires = null, due = null, most = Infinity] = request;
    const write = { key, value, expected, expires, due };
    try {
      return this.#state.storage.transactionSync(() => [this.#entries.put(write, most, now)]);
    } catch (error) {
      // The class of an error is lost in a remote call.
      if (error instanceof RangeError) return [null, "quota"];
      throw error;
    }
  }

  async alarm(): Promise<void> {
    const now = Date.now();
    this.#alarm = Infinity;
    this.#entries.sweep(now);
    const [due] = this.#entries.due(dueQueryOf(["task", now, 1]), now).rows;
    if (due !== undefined && this.#recover !== undefined) {
      this.#recoveredAt = now;
      const own: CallStore["due"] = (kind, before, limit, after) => {
        const query = dueQueryOf([kind, before, limit, after?.dueAt, after?.key]);
        return Promise.resolve(this.#entries.due(query, Date.now()).rows.map(durable.dueEntryOf));
      };
      // Not awaited, because the next alarm must not wait for the end of a task.
      this.#state.waitUntil(this.#recover(own));
    }
    await this.#setAlarm(now);
  }

  async #setAlarm(now: number): Promise<void> {
    const [first] = this.#entries.rows<Readonly<Record<string, number | null>>>(
      "select (select min(expires) from entries where expires is not null) as expires, " +
        "(select min(due) from entries where kind = 'task' and due > ?1) as due, " +
        "(select min(due) from entries where kind = 'task' and due <= ?1) as left",
      this.#recoveredAt,
    );
    const { expires, due, left = null } = first ?? {};
    const sweep = (expires ?? Infinity) + SWEEP_MS;
    const again = left === null ? Infinity : this.#recoveredAt + RECOVER_MS;
    const recover = this.#recover === undefined ? Infinity : Math.min(due ?? Infinity, again);
    const next = Math.min(sweep, recover);
    if (next >= this.#alarm) return;
    this.#alarm = next;
    await this.#state.storage.setAlarm(Math.min(Math.ceil(next), now + MAX_ALARM_MS));
  }
}

function dueQueryOf([kind, before, limit, dueAt = -Infinity, key = ""]: Wire): durable.DueQuery {
  return { kind, before, limit, after: { dueAt, key } } as durable.DueQuery;
}

function wireOf({ key, value, revision, expires, due }: durable.StoreRow): Wire {
  return [key, value, revision, expires, due];
}

export function rowOf(wire: Wire): durable.StoreRow {
  const [key, value, revision, expires = null, due = null] = wire as unknown as WireRow;
  return { key, value, revision: Number(revision), expires, due };
}
