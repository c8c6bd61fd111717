import { describe } from "bun:test";
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import type pg from "pg";
import type { CallStore } from "@plue/tools/calls";
import {
  migratePostgresCallStore,
  postgresCallStore,
  type PostgresCallStoreOptions,
  type PostgresClient,
} from "@plue/tools/postgres";
import {
  describeCallStore,
  describeOutages,
  itCountsExactly,
} from "../../contract/call_store_contract.ts";
import { isAll } from "../../support/laws.ts";
import { maybe } from "../../support/skip.ts";
import { missing, missingBouncer, useServer } from "./server.ts";
import { poll } from "../../support/waiting.ts";

const it = maybe(missing === undefined, missing ?? "");
const withBouncer = maybe(missingBouncer === undefined, missingBouncer ?? "");
const value = new Uint8Array(1_000);
let schemas = 0;
const schemaOf = new WeakMap<object, string>();

/** Opens a store in a schema of its own, or in a given one. */
async function open(
  client: PostgresClient,
  options: PostgresCallStoreOptions = {},
): Promise<CallStore> {
  const schema = options.schema ?? `s${++schemas}`;
  if (options.schema === undefined) await migratePostgresCallStore(client, { schema });
  const store = await postgresCallStore(client, { ...options, schema });
  schemaOf.set(store, schema);
  return store;
}

/** Opens the store again, as another process would. */
function openAgain(
  client: PostgresClient,
  store: CallStore,
  options: PostgresCallStoreOptions = {},
): Promise<CallStore> {
  return open(client, { ...options, schema: schemaOf.get(store) ?? "" });
}

describe("postgresCallStore()", () => {
  const server = useServer();
  let shared: pg.Pool | undefined;
  const pool = (): pg.Pool => shared ??= server().pool();

  if (missing === undefined) {
    describeCallStore("postgresCallStore()", {
      create: () => open(pool()),
      open: (store) => openAgain(pool(), store, { preparesStatements: true }),
      hasClock: true,
    });
    itCountsExactly((options) => open(pool(), options));
  } else it("is a CallStore", () => {});

  // Tested on Bun only, because the driver sends PgBouncer the same statements on all runtimes.
  if (missingBouncer === undefined && isAll) {
    let bounced: Promise<pg.Pool> | undefined;
    const behind = () =>
      bounced ??= server().bounce().then((url) => server().pool({ connectionString: url }));
    describeCallStore("postgresCallStore() behind PgBouncer in transaction mode", {
      create: async () => open(await behind()),
      open: async (store) => openAgain(await behind(), store),
      hasClock: true,
    });
    withBouncer("names the reason if PgBouncer loses prepared statements", async () => {
      const schema = schemaOf.get(await open(pool())) ?? "";
      const problem = /prepared statement|pooler keeps no prepared statements/;
      const store = await open(await behind(), { schema, preparesStatements: true })
        .catch((error) => assertMatch(error.message, problem));
      const tries = Array.from({ length: 64 }, (_, at) => store?.get(`a.b.${at % 2}`));
      const failed = (await Promise.allSettled(tries)).filter(({ status }) =>
        status !== "fulfilled"
      );
      for (const one of failed) assertMatch(String((one as PromiseRejectedResult).reason), problem);
      assert(store === undefined || failed.length > 0);
    });
  } else if (isAll) withBouncer("works behind PgBouncer in transaction mode", () => {});

  it("creates its tables once, even from two processes", async () => {
    const schema = `s${++schemas}`;
    await Promise.all(
      Array.from({ length: 8 }, () => migratePostgresCallStore(pool(), { schema })),
    );
    const store = await open(pool(), { schema });
    const revision = await store.create("t.a.1", value);
    await migratePostgresCallStore(pool(), { schema });
    assertEquals((await store.get("t.a.1"))?.revision, revision);
  });

  it("rejects tables that do not exist or have another version", async () => {
    const schema = `s${++schemas}`;
    const opened = () => open(pool(), { schema });
    await assertRejects(opened, Error, "Cannot open the store: the tables do not exist; call ");
    await migratePostgresCallStore(pool(), { schema });
    for (const [version, advice] of [[0, "call migrate"], [2, "update plue"]] as const) {
      await pool().query(`update ${schema}.about set version = ${version}`);
      await assertRejects(opened, Error, `have version ${version}, and not 1; ${advice}`);
    }
    await assertRejects(
      () => migratePostgresCallStore(pool(), { schema }),
      Error,
      "Cannot create the tables of the store: a later version of plue has made them; update plue",
    );
  });

  it("rejects a database that breaks the contract", async () => {
    const store = await open(pool());
    const withSetting = (setting: string, options = {}) =>
      openAgain(server().pool({ options: `-c ${setting}` }), store, options);
    for (
      const [setting, message] of [
        ["default_transaction_isolation=serializable", 'are "serializable"; set default_'],
        ["default_transaction_isolation=repeatable\\ read", 'are "repeatable read"; set default_'],
        ["default_transaction_read_only=on", "the server is read-only; connect to the primary"],
        ["synchronous_commit=off", "synchronous_commit is off, so confirmed writes can be lost"],
      ] as const
    ) await assertRejects(() => withSetting(setting), Error, message);
    const lossy = await withSetting("synchronous_commit=off", { allowsLostWrites: true });
    assertEquals(typeof await lossy.create("t.a.1", value), "number");
    assertEquals(typeof await (await withSetting("synchronous_commit=local")).now?.(), "number");
  });

  it("rejects invalid options, and a pool that waits without end", async () => {
    for (
      const [options, message] of [
        [{ schema: 'a"; drop' }, "at most 40 small letters"],
        [{ schema: "pg_x" }, "at most 40 small letters"],
        [{ timeoutMs: 0 }, '"/timeoutMs" must be a number from 1'],
        [{ clock: { timestamp: Date.now } }, "is not one of its fields"],
      ] as const
    ) await assertRejects(() => postgresCallStore(pool(), options as never), Error, message);
    await assertRejects(
      () => postgresCallStore({} as never),
      TypeError,
      "Cannot open the store: client must have a query function",
    );
    await assertRejects(
      () => open(server().pool({ connectionTimeoutMillis: 0 })),
      TypeError,
      "the pool would wait for a connection without end; set connectionTimeoutMillis",
    );
  });

  it("works for a role that can only use the tables", async () => {
    const store = await open(pool());
    const schema = schemaOf.get(store) ?? "";
    const app = server().pool({ connectionString: server().url.replace("plue", "app") });
    await pool().query("create role app login");
    await assertRejects(() => openAgain(app, store), Error, "the role lacks a permission");
    // These statements are copied from docs/stores.md.
    await pool().query(`
      grant usage on schema ${schema} to app;
      grant select, insert, update, delete on all tables in schema ${schema} to app;
      grant usage on sequence ${schema}.revisions to app`);
    const limited = await openAgain(app, store);
    const revision = await limited.create("t.a.1", value) ?? 0;
    assertEquals(await limited.update("t.a.1", value, revision, { dueAt: 1 }), revision + 1);
    assertEquals((await limited.due("t", 1, 9)).length, 1);
    assertEquals(await limited.delete("t.a.1", revision + 1), true);
  });

  it("deletes expired entries after some writes, without a cron job", async () => {
    const store = await open(pool());
    const schema = schemaOf.get(store) ?? "";
    const expiresAt = (store.now?.() ?? 0) + 1;
    for (let at = 0; at < 20; at++) await store.create(`t.o${at % 3}.${at}`, value, { expiresAt });
    await store.create("t.o0.stays", value);
    await pool().query(`select setval('${schema}.revisions', 255)`);
    await store.create("t.o9.1", value);
    assertEquals((await pool().query(`select key from ${schema}.entries order by key`)).rows, [
      { key: "t.o0.stays" },
      { key: "t.o9.1" },
    ]);
    assertEquals((await pool().query(`select owner from ${schema}.owners order by 1`)).rows, [
      { owner: "o0" },
      { owner: "o9" },
    ]);
  });

  it("does not count expired entries for the quota", async () => {
    const store = await open(pool(), { maxOwnerBytes: 3_000 });
    const expiresAt = (store.now?.() ?? 0) + 1;
    await store.create("t.a.1", value, { expiresAt });
    await store.create("t.a.2", value, { expiresAt });
    assertEquals(typeof await store.create("t.a.2", new Uint8Array(2_500)), "number");
    await assertRejects(() => store.create("t.b.1", new Uint8Array(3_000)), RangeError);
    const schema = schemaOf.get(store);
    const { rows } = await pool().query(`select owner, bytes::int from ${schema}.owners`);
    assertEquals(rows, [{ owner: "a", bytes: 128 + 5 + 2_500 }]);
  });

  it("counts exactly, and without deadlocks, during concurrent writes and sweeps", async () => {
    const store = await open(pool());
    const schema = schemaOf.get(store);
    await Promise.all(Array.from({ length: 16 }, async (_, lane) => {
      for (let turn = 0; turn < 40; turn++) {
        const key = `t.o${turn % 3}.${turn % 4}`;
        const stored = await store.get(key);
        const expiresAt = (store.now?.() ?? 0) + 5;
        if (stored === undefined) await store.create(key, value, turn % 2 ? {} : { expiresAt });
        else if (turn % 3 > 0) await store.update(key, value, stored.revision, { expiresAt });
        else await store.delete(key, stored.revision);
        if (lane < 2) await pool().query(`select ${schema}.sweep()`);
      }
    }));
    const { rows } = await pool().query(`
      select owner, bytes, (select sum(128 + length(key) + octet_length(value))
        from ${schema}.entries e where e.owner = o.owner) as counted from ${schema}.owners o`);
    assertEquals(rows.filter(({ bytes, counted }) => bytes !== counted), []);
  });

  it("finds due and expired entries, and lists, by indexes", async () => {
    const schema = schemaOf.get(await open(pool()));
    const lone = server().pool({ max: 1 }).on("error", () => {});
    await lone.query("set enable_seqscan = off; set enable_bitmapscan = off");
    for (
      const [condition, index] of [
        ["split_part(key, '.', 1) = 'task' and due <= 5 order by due limit 9", "due"],
        ["expires <= 5 order by expires limit 9", "expiring"],
        ["owner = 'a' and expires <= 5 order by expires limit 9", "expiring_of_owner"],
        ["key > 'a' and key >= 't.a' and key < 't.a/' order by key limit 9", "entries_pkey"],
      ] as const
    ) {
      const { rows } = await lone.query(
        `explain select * from ${schema}.entries where ${condition}`,
      );
      assertMatch(JSON.stringify(rows), new RegExp(`using ${index} on`));
      assertEquals(JSON.stringify(rows).includes("Sort"), false);
    }
  });

  it("reads a long list in pages, of rows and of bytes", async () => {
    const store = await open(pool());
    const large = new Uint8Array(400_000);
    const add = (at: number) => store.create(`t.a.${1_000 + at}`, at % 50 === 0 ? large : value);
    await Promise.all(Array.from({ length: 300 }, (_, at) => add(at)));
    const keys: string[] = [];
    for await (const { key } of store.list("t.a")) keys.push(key);
    assertEquals(keys, Array.from({ length: 300 }, (_, at) => `t.a.${1_000 + at}`));
  });

  it("continues after the loss of an idle connection", async () => {
    const lonely = server().pool({ max: 1 });
    const store = await open(lonely);
    await openAgain(lonely, store);
    assertEquals(lonely.listenerCount("error"), 1);
    const [{ pid }] = (await lonely.query("select pg_backend_pid() as pid")).rows;
    const removed = new Promise((resolve) => lonely.once("remove", resolve));
    await pool().query("select pg_terminate_backend($1)", [pid]);
    await removed;
    assertEquals(await store.get("t.a.1"), undefined);
  });

  it("rejects if no connection is free in time", async () => {
    const full = server().pool({ max: 1 });
    const store = await open(full);
    const connection = await full.connect();
    full.options.connectionTimeoutMillis = 50;
    await assertRejects(
      () => store.get("t.a.1"),
      Error,
      "no connection in time; the server is down",
    );
    connection.release();
    full.options.connectionTimeoutMillis = 5_000;
    assertEquals(await store.get("t.a.1"), undefined);
  });

  it("does not make a write that has already been rejected", async () => {
    const store = await open(pool());
    const schema = schemaOf.get(store);
    await store.create("t.a.1", value);
    const hasty = await openAgain(server().pool({ max: 1 }), store, { timeoutMs: 1_000 });
    const holder = await pool().connect();
    await holder.query(`begin; select from ${schema}.owners where owner = 'a' for update`);
    await assertRejects(
      () => hasty.create("t.a.2", value),
      Error,
      "Cannot use the store of calls: the server does not answer in time",
    );
    const waiting = `select from pg_stat_activity
      where query like '%"${schema}".put%' and state = 'active' and pid <> pg_backend_pid()`;
    assertEquals((await pool().query(waiting)).rowCount, 1);
    await holder.query("commit");
    holder.release();
    await poll(async () => (await pool().query(waiting)).rowCount === 0);
    assertEquals(await store.get("t.a.2"), undefined);
  });

  it("rejects while the server is frozen", async () => {
    const store = await open(server().pool({ max: 1 }), { timeoutMs: 1_000 });
    const frozen = server().freeze();
    try {
      await assertRejects(() => store.get("t.a.1"), Error, "does not answer in time");
    } finally {
      frozen.resume();
    }
  });

  it("uses the database's time, independent of the process's clock", async () => {
    const store = await open(pool());
    const real = Date.now;
    try {
      Date.now = () => real() + 3_600_000;
      await store.get("t.a.1");
      const [{ ms }] =
        (await pool().query("select date_part('epoch', clock_timestamp()) * 1000 ms")).rows;
      assert(Math.abs((store.now?.() ?? 0) - ms) < 60_000);
    } finally {
      Date.now = real;
    }
  });

  it("accepts any client with a query function, and hides passwords", async () => {
    const store = await open(pool());
    const other = await openAgain({ query: (statement) => pool().query(statement) }, store);
    assertEquals(typeof await other.create("t.a.1", value), "number");
    const failing = {
      query: () => Promise.reject(new Error("Bad URL postgres://a:secret@host/b")),
    };
    const { message } = await assertRejects(() => postgresCallStore(failing), Error);
    assertEquals(message, "Cannot open the store: Bad URL postgres://…@host/b");
  });

  if (missing === undefined) {
    describeOutages("postgresCallStore()", {
      open: () => open(pool()),
      kill: () => server().kill(),
      start: () => server().start(),
    });
  }
});
