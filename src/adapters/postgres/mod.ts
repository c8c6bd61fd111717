/**
 * A call store in PostgreSQL (`@plue/tools/postgres`), over a pool of the package `pg`, which you
 * pass in.
 *
 * @module
 */

import * as durable from "../../execute/durable/mod.ts";
import type { CallStore, StoreRow } from "../../execute/durable/mod.ts";
import * as check from "../../tool/mod.ts";
import { describeThrown, fail, isObject, noop, systemClock } from "../../tool/mod.ts";
import { migrationOf, statementsOf, VERSION } from "./schema.ts";

/** A statement for a {@linkcode PostgresClient}. */
export interface PostgresStatement {
  readonly text: string;
  readonly values?: unknown[];
  /** The name of the prepared statement. */
  readonly name?: string;
  /** The time after which the client stops waiting for the answer, in milliseconds. */
  readonly query_timeout?: number;
}

/** The functions of a `Pool` or `Client` of the package `pg` that the store uses. */
export interface PostgresClient {
  query(statement: PostgresStatement): Promise<{ readonly rows: readonly object[] }>;
  on?(event: "error", listener: (error: Error) => void): unknown;
  listenerCount?(event: "error"): number;
}

/** Options for {@linkcode migratePostgresCallStore}. */
export interface PostgresSchemaOptions {
  /** The schema of the tables. @default {"plue"} */
  readonly schema?: string;
}

/** Options for {@linkcode postgresCallStore}. */
export interface PostgresCallStoreOptions
  extends PostgresSchemaOptions, Pick<durable.StoreLimits, "maxOwnerBytes"> {
  /**
   * The time after which an operation rejects, in milliseconds. The database skips a write that it
   * receives or can begin only after this time.
   *
   * @default {10_000}
   */
  readonly timeoutMs?: number;
  /**
   * If true, connections keep prepared statements, which makes reads faster. PgBouncer in
   * transaction mode supports this only from version 1.21 on, with `max_prepared_statements`.
   *
   * @default {false}
   */
  readonly preparesStatements?: boolean;
  /**
   * If true, opens a database that may lose confirmed writes when it crashes (`synchronous_commit`
   * or `fsync` is off). Calls can then run twice.
   *
   * @default {false}
   */
  readonly allowsLostWrites?: boolean;
}

const ACTION = "open the store";
const MIGRATION = "create the tables of the store";
const CALL_MIGRATION = 'call migratePostgresCallStore(), or run "plue store init"';

const SCHEMA = {
  schema: check.matching(
    'at most 40 small letters, digits and "_", and must not begin with a digit or "pg_"',
    /^(?!pg_)[a-z_][a-z0-9_]{0,39}$/,
  ),
};
const DEFAULTS = {
  schema: "plue",
  maxOwnerBytes: durable.MAX_OWNER_BYTES,
  timeoutMs: 10_000,
  preparesStatements: false,
  allowsLostWrites: false,
};
const CHECKS = {
  ...SCHEMA,
  maxOwnerBytes: durable.STORE_LIMITS.maxOwnerBytes,
  timeoutMs: check.numberFrom(1, check.MAX_TIMEOUT_MS),
  preparesStatements: check.checkFlag,
  allowsLostWrites: check.checkFlag,
};

type Settings = Required<PostgresCallStoreOptions>;

/** A row of the tables. All columns are `null` if there is no entry. */
type Row = { readonly [Name in keyof StoreRow]: StoreRow[Name] | null };

/**
 * Creates or updates the tables and functions of {@linkcode postgresCallStore}. Changes nothing if
 * they are current. Several processes may call this function at the same time.
 *
 * @throws {TypeError} If an option is invalid.
 * @throws {Error} If the database rejects a statement, or a later version of plue has made the tables.
 */
export async function migratePostgresCallStore(
  client: PostgresClient,
  options: PostgresSchemaOptions = {},
): Promise<void> {
  const { schema = "plue" } = check.readFields(MIGRATION, options, SCHEMA);
  checkClient(MIGRATION, client);
  try {
    // One transaction, because statements without values are sent together.
    await client.query({ text: migrationOf(schema) });
  } catch (cause) {
    throw new Error(`Cannot ${MIGRATION}: ${explain(cause)}`, { cause });
  }
}

/**
 * Opens a {@linkcode CallStore} in tables that {@linkcode migratePostgresCallStore} has created, so
 * that all processes of the database share tickets, tasks, idempotency keys and rate limits.
 *
 * The store uses the database's clock. The default of `maxOwnerBytes` is 134,217,728; use the same
 * value in all processes. The size of the whole store is not limited.
 *
 * @example Usage
 * ```ts ignore
 * import pg from "pg";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { storedTickets } from "@plue/tools/calls";
 * import { migratePostgresCallStore, postgresCallStore } from "@plue/tools/postgres";
 *
 * const pool = new pg.Pool({ connectionString, connectionTimeoutMillis: 5_000 });
 * await migratePostgresCallStore(pool);
 * const store = await postgresCallStore(pool);
 * const dispatcher = new ToolDispatcher(registry, { tickets: storedTickets(store) });
 * ```
 *
 * @throws {TypeError | RangeError} If an option is invalid, or the pool has no `connectionTimeoutMillis`.
 * @throws {Error} If the database cannot be reached, has other tables, or can break the contract.
 */
export async function postgresCallStore(
  client: PostgresClient,
  options: PostgresCallStoreOptions = {},
): Promise<CallStore> {
  const settings = { ...DEFAULTS, ...check.readFields(ACTION, options, CHECKS) };
  checkClient(ACTION, client);
  const { options: pool } = client as { readonly options?: unknown };
  if (isObject(pool) && "max" in pool && !pool["connectionTimeoutMillis"]) {
    fail(ACTION, "the pool would wait for a connection without end; set connectionTimeoutMillis");
  }
  return await durable.openCallStore(ACTION, new PostgresDriver(client, settings));
}

function checkClient(action: string, client: PostgresClient): void {
  check.checkPort(action, "client", client, ["query"]);
  // Without a listener, the loss of an idle connection ends the process.
  if (!client.listenerCount?.("error")) client.on?.("error", noop);
}

class PostgresDriver implements durable.StoreDriver {
  readonly #client: PostgresClient;
  readonly #settings: Settings;
  readonly #statements: ReturnType<typeof statementsOf>;
  /** The database's time at 0 of this process's monotonic clock. */
  #epoch = NaN;

  readonly explain = explain;

  constructor(client: PostgresClient, settings: Settings) {
    this.#client = client;
    this.#settings = settings;
    this.#statements = statementsOf(settings.schema);
  }

  async check(): Promise<void> {
    const [row] = await this.#query<Readonly<Record<string, unknown>>>("check", []);
    const { version, isolation, read_only, ...durability } = row ?? {};
    if (version !== VERSION) {
      const advice = Number(version) > VERSION ? "update plue" : CALL_MIGRATION;
      throw new Error(`the tables have version ${version}, and not ${VERSION}; ${advice}`);
    }
    if (read_only === "on") {
      throw new Error("the server is read-only; connect to the primary server");
    }
    if (isolation !== "read committed") {
      throw new Error(
        `transactions are "${isolation}"; set default_transaction_isolation to "read committed"`,
      );
    }
    const unsafe = ["synchronous_commit", "fsync"].find((name) => durability[name] === "off");
    if (unsafe === undefined || this.#settings.allowsLostWrites) return;
    throw new Error(
      `${unsafe} is off, so confirmed writes can be lost, and calls can run twice; turn it on, or ` +
        "pass allowsLostWrites",
    );
  }

  now(): number {
    return this.#epoch + systemClock.now();
  }

  async get(key: string): Promise<StoreRow | undefined> {
    const [row] = await this.#query<Row>("get", [key]);
    return row === undefined || row.key === null ? undefined : rowOf(row);
  }

  async put(
    { key, value, expected, expires, due }: durable.StoreWrite,
  ): Promise<number | undefined> {
    const most = Math.floor(this.#settings.maxOwnerBytes);
    const values = [key, value, expires, due, expected, most, this.#deadline()];
    const [row] = await this.#query<{ readonly revision: string | null }>("put", values);
    const revision = Number(row?.revision ?? NaN);
    if (revision === 0) throw durable.quotaExhausted();
    return Number.isNaN(revision) ? undefined : revision;
  }

  async remove(key: string, revision: number): Promise<boolean> {
    const values = [key, revision, this.#deadline()];
    const [row] = await this.#query<{ readonly done: boolean }>("remove", values);
    return row?.done === true;
  }

  list(prefix: string, after: string): AsyncIterable<StoreRow> {
    const read = async (from: string) => await this.#query<Row>("list", [from, prefix]);
    return durable.readPages(after, async (from) => (await read(from)).map(rowOf));
  }

  async due(
    { kind, before, limit, after }: durable.DueQuery,
  ): Promise<readonly durable.DueEntry[]> {
    const values = [kind, before, limit, after.dueAt, after.key];
    return (await this.#query<Row>("due", values)).map(rowOf).map(durable.dueEntryOf);
  }

  /** Returns the database's time from which a write that is sent now must be skipped. */
  #deadline(): number {
    return this.now() + this.#settings.timeoutMs;
  }

  async #query<Answer extends object>(
    name: keyof ReturnType<typeof statementsOf>,
    values: unknown[],
  ): Promise<readonly Answer[]> {
    const { schema, timeoutMs, preparesStatements } = this.#settings;
    const statement = { text: this.#statements[name], values, query_timeout: timeoutMs };
    const sentAt = systemClock.now();
    const { rows } = await this.#client.query(
      preparesStatements ? { ...statement, name: `plue_${schema}_${name}` } : statement,
    );
    const [first] = rows as readonly (Answer & { readonly now?: number })[];
    if (first?.now !== undefined) this.#readTime(Number(first.now), sentAt);
    return rows as readonly Answer[];
  }

  /** Corrects the clock if it is wrong: the database read its time after the request was sent. */
  #readTime(time: number, sentAt: number): void {
    const early = time - systemClock.now();
    const late = time - sentAt;
    if (!(this.#epoch >= early && this.#epoch <= late)) this.#epoch = early;
  }
}

function rowOf({ key, revision, ...row }: Row): StoreRow {
  return { ...row, key, revision: Number(revision) } as StoreRow;
}

/** Returns an error message with the reason, and without a password. */
function explain(error: unknown): string {
  const { code } = isObject(error) ? error : {};
  const text = describeThrown(error).replace(/:\/\/\S*@/g, "://…@");
  return durable.explainBy(KNOWN, typeof code === "string" ? `${text}, ${code}` : text);
}

const KNOWN: Parameters<typeof durable.explainBy>[0] = [
  [/3F000|42P01|42883/, `the tables do not exist; ${CALL_MIGRATION}`],
  [/42501/, "the role lacks a permission; grant it as docs/stores.md shows"],
  [/53100|53200/, "the server has no space left"],
  [/55P03/, "another write of the same principal does not end"],
  [/26000|42P05/, "the pooler keeps no prepared statements; omit preparesStatements"],
  [/timeout exceeded when/, "no connection in time; the server is down, or the pool is too small"],
  [/read timeout|57014/, "the server does not answer in time"],
  [/ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|terminated|57P0|08\w{3}/, "the server cannot be reached"],
];
