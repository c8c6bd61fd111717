/** The store of `--store`: its URL, `plue store init`, and the rows of `plue doctor` for it. */

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type CallStore, newId } from "../execute/durable/mod.ts";
import { describeThrown, noop, systemClock } from "../tool/mod.ts";
import {
  broken,
  CommandError,
  type CommandIo,
  type Diagnosis,
  EXIT,
  type Terminal,
  usageError,
  works,
} from "./terminal.ts";

/** An open store, and the function that closes its connection. */
export interface OpenStore extends AsyncDisposable {
  readonly store: CallStore;
  /** The name of the kind: `PostgreSQL`. */
  readonly kind: string;
}

interface StoreFlags {
  readonly store?: string;
}

const INIT = "create the tables of the store";
const CONNECT_MS = 5_000;

export const STORE_FORMS = "sqlite:<path>, postgres://… or redis://…";

export function isStoreAddress(address: string): boolean {
  return /^(sqlite:.|(postgres|postgresql):)/s.test(address) ||
    (/^rediss?:/.test(address) && URL.canParse(address));
}

/** Returns the address of a store from the flag, or from the variable `PLUE_STORE`. */
export function storeAddress({ env }: CommandIo, flag: string | undefined): string | undefined {
  return flag ?? (env["PLUE_STORE"]?.trim() || undefined);
}

/** Opens the store of `plue serve`; `undefined` if no store is set, or if `--state` is set. */
export async function openShared(
  io: CommandIo,
  { state, store }: StoreFlags & { readonly state?: string },
): Promise<OpenStore | undefined> {
  if (state !== undefined && store !== undefined) {
    throw usageError("Cannot serve: --state has no effect with --store; omit one of them");
  }
  const address = state === undefined ? storeAddress(io, store) : undefined;
  return address === undefined ? undefined : await openStore("serve", address, { create: true });
}

/**
 * Opens the store at an address. Creates a missing SQLite file only if `create` is set, so that a
 * command that only reads rejects a mistyped path.
 */
export async function openStore(
  action: string,
  address: string,
  { create = false }: { readonly create?: boolean } = {},
): Promise<OpenStore> {
  if (!isStoreAddress(address)) {
    throw usageError(`Cannot ${action}: --store must be ${STORE_FORMS}`);
  }
  const [, kind = "", path = ""] = /^(\w+):(.*)$/s.exec(address) ?? [];
  try {
    if (kind === "sqlite") {
      if (!create && !existsSync(path)) {
        throw new Error(
          `the file ${path} does not exist; run "plue store init --store sqlite:${path}" to create it`,
        );
      }
      const { sqliteCallStore } = await import("../adapters/sqlite/mod.ts");
      const store = await sqliteCallStore(path);
      return await opened("SQLite", store, () => store.close());
    }
    if (kind.startsWith("postgres")) {
      const { postgresCallStore } = await import("../adapters/postgres/mod.ts");
      const pool = await poolOf(action, address);
      return await opened("PostgreSQL", postgresCallStore(pool), () => pool.end());
    }
    const { redisCallStore } = await import("../adapters/redis/mod.ts");
    const client = await clientOf(action, address);
    return await opened("Redis", redisCallStore(client), () => client.destroy());
  } catch (cause) {
    if (cause instanceof CommandError) throw cause;
    throw new CommandError(`Cannot ${action}: ${describeThrown(cause, 1_000)}`, EXIT.failed, {
      cause,
    });
  }
}

/** Closes the connection if the store cannot be opened. */
async function opened(
  kind: string,
  opening: CallStore | Promise<CallStore>,
  close: () => unknown,
): Promise<OpenStore> {
  try {
    return { kind, store: await opening, [Symbol.asyncDispose]: async () => void await close() };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Loads a package from the command's folder, or from the current folder, as with `npx`. */
async function driverOf<T>(action: string, name: string, load: () => Promise<T>): Promise<T> {
  const here = createRequire(resolve("package.json"));
  return await load()
    .catch(() => import(pathToFileURL(here.resolve(name)).href))
    .catch((cause) => {
      const advice = `the package "${name}" is not installed; run "npm install ${name}" here`;
      throw usageError(`Cannot ${action}: ${advice}`, { cause });
    });
}

async function poolOf(action: string, connectionString: string) {
  const { default: pg } = await driverOf(action, "pg", () => import("pg"));
  return new pg.Pool({ connectionString, connectionTimeoutMillis: CONNECT_MS });
}

async function clientOf(action: string, url: string) {
  const { createClient } = await driverOf(action, "redis", () => import("redis"));
  let hasConnected = false;
  const reconnectStrategy = (tries: number, cause: Error): number | Error =>
    hasConnected ? Math.min(20 * tries, 500) : cause;
  const socket = { connectTimeout: CONNECT_MS, reconnectStrategy };
  const client = createClient({ url, socket, disableOfflineQueue: true });
  client.on("error", noop);
  await client.connect();
  hasConnected = true;
  return client;
}

export async function store(_action: "init", flags: StoreFlags, terminal: Terminal): Promise<void> {
  const address = storeAddress(terminal.io, flags.store);
  if (address === undefined) throw usageError(`Cannot ${INIT}: set --store or PLUE_STORE`);
  if (/^postgres(ql)?:/.test(address)) {
    const { migratePostgresCallStore } = await import("../adapters/postgres/mod.ts");
    const pool = await poolOf(INIT, address);
    try {
      await migratePostgresCallStore(pool);
    } catch (cause) {
      throw new CommandError(describeThrown(cause, 1_000), EXIT.failed, { cause });
    } finally {
      await pool.end();
    }
  }
  await using open = await openStore(INIT, address, { create: true });
  terminal.printResult({ store: open.kind }, () => `The store in ${open.kind} is ready`);
}

/** Writes, reads and deletes an entry. */
export async function diagnoseStore(address: string): Promise<readonly Diagnosis[]> {
  try {
    await using open = await openStore("diagnose the store", address);
    const { store, kind } = open;
    const begun = systemClock.now();
    const key = `doctor.self.${newId()}`;
    const expiresAt = (store.now?.() ?? systemClock.timestamp()) + CONNECT_MS;
    const revision = await store.create(key, new Uint8Array(1), { expiresAt });
    const isThere = await store.get(key) !== undefined;
    if (revision === undefined || !isThere || !await store.delete(key, revision)) {
      return [broken("store", `${kind} does not keep what it has confirmed`)];
    }
    const ms = (systemClock.now() - begun).toFixed(1);
    return [works("store", `${kind}: an entry was written, read and deleted in ${ms} ms`)];
  } catch (error) {
    return [broken("store", describeThrown(error, 1_000))];
  }
}
