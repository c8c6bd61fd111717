/** The stored state of a server: waiting calls, tasks, idempotency keys, counts of rules. */

import { lstat, mkdir, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import {
  type CallStore,
  memoryCallStore,
  storedKeys,
  storedTickets,
} from "../../adapters/calls/mod.ts";
import type { StoredEntry } from "../../execute/durable/mod.ts";
import { type TaskQueue, taskQueue } from "../../adapters/queue/mod.ts";
import { type RateLimitStore, storedRateLimits } from "../../adapters/hono/mod.ts";
import { readRules, rules } from "../../adapters/rules/mod.ts";
import { sqliteCallStore } from "../../adapters/sqlite/mod.ts";
import type { ToolDispatcher, ToolDispatcherOptions } from "../../execute/mod.ts";
import { cleanText, describeThrown } from "../../tool/mod.ts";
import type { LoadedTools } from "../sources/mod.ts";
import {
  CommandError,
  type CommandIo,
  EXIT,
  readInput,
  type Terminal,
  usageError,
} from "../terminal.ts";

export interface ServiceState {
  readonly store: CallStore;
  readonly dispatch: Pick<ToolDispatcherOptions, "tickets" | "idempotency">;
  readonly tasks: TaskQueue;
  readonly logins: RateLimitStore;
  /** Resumes the tasks of an earlier run, now and while the server runs. */
  recover(dispatcher: () => ToolDispatcher, signal: AbortSignal): void;
}

export interface ServeState extends ServiceState, Disposable {
  /** True if the state ends with the process. */
  readonly isInMemory: boolean;
}

export interface SharedState {
  readonly store: CallStore;
  readonly logins?: RateLimitStore;
}

/** The interval between searches for tasks of dead processes, in milliseconds. */
const RECOVER_MS = 30_000;
const DATABASE = "calls.db";
/** The database, and the files that SQLite writes next to it. */
const DATABASE_FILES = [DATABASE, `${DATABASE}-wal`, `${DATABASE}-shm`, `${DATABASE}-journal`];

/**
 * Opens the state in a folder, and creates the folder if it is missing.
 *
 * @param folder The user's folder. Without `folder` and `shared`, the state ends with the process.
 * @param shared The state that is shared with other servers.
 */
export async function openState(
  folder: string | undefined,
  shared: SharedState | undefined,
  terminal: Terminal,
): Promise<ServeState> {
  const kept = folder !== undefined ? await storeIn(folder) : shared?.store;
  const store: CallStore & Partial<Disposable> = kept ?? memoryCallStore();
  const state = { ...stateIn(store, terminal, shared?.logins), isInMemory: kept === undefined };
  return { ...state, [Symbol.dispose]: () => store[Symbol.dispose]?.() };
}

export function stateIn(
  store: CallStore,
  terminal: Terminal,
  logins: RateLimitStore = storedRateLimits(store),
): ServiceState {
  const log = (error: unknown): void => terminal.note(cleanText(describeThrown(error), 1_000));
  const tasks = taskQueue({ store, onError: log, name: `${hostname()}:${process.pid}` });
  return {
    store,
    dispatch: { tickets: storedTickets(store), idempotency: { kept: storedKeys(store) } },
    tasks,
    logins,
    recover(dispatcher, signal) {
      const look = (): void => void tasks.recover(dispatcher()).catch(log);
      look();
      const timer = setInterval(look, RECOVER_MS);
      signal.addEventListener("abort", () => clearInterval(timer), { once: true });
    },
  };
}

/**
 * Returns a store whose keys begin with a word of the tenant. Two tenants cannot reach each other's
 * entries, and a service runs only the tasks of its tenant.
 *
 * @param tenant Letters, digits and `-`.
 */
export function tenantStore(store: CallStore, tenant: string): CallStore {
  // The first word of a key is its kind, without "_".
  const prefix = `t_${tenant}_`;
  const inside = <Entry extends Pick<StoredEntry, "key">>(entry: Entry): Entry => ({
    ...entry,
    key: entry.key.slice(prefix.length),
  });
  const { now } = store;
  return {
    get: (key) => store.get(prefix + key),
    create: (key, value, options) => store.create(prefix + key, value, options),
    update: (key, value, revision, options) => store.update(prefix + key, value, revision, options),
    delete: (key, revision) => store.delete(prefix + key, revision),
    async *list(start, after) {
      for await (const entry of store.list(prefix + start, after && prefix + after)) {
        yield inside(entry);
      }
    },
    async due(kind, before, limit, after) {
      const place = after && { ...after, key: prefix + after.key };
      return (await store.due(prefix + kind, before, limit, place)).map(inside);
    },
    ...(now && { now: () => now.call(store) }),
  };
}

async function storeIn(folder: string): Promise<CallStore & Disposable> {
  try {
    await makeFolder(folder);
    return await sqliteCallStore(join(folder, DATABASE));
  } catch (cause) {
    throw new CommandError(describeThrown(cause, 1_000), EXIT.failed, { cause });
  }
}

/** Creates the folder, or checks that only this user can write there: it contains approvals. */
async function makeFolder(path: string): Promise<void> {
  const action = `Cannot keep the state in "${path}"`;
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const why = `it must be a folder, or one that can be made (${describeThrown(cause)})`;
    throw new Error(`${action}: ${why}`, { cause });
  }
  const own = process.getuid?.();
  // Windows has no file modes.
  if (own === undefined) return;
  const { uid, mode } = await stat(path);
  if (uid !== own && own !== 0) throw new Error(`${action}: another user owns it`);
  if ((mode & 0o022) !== 0) {
    throw new Error(`${action}: other users can write to it; "chmod 700" it`);
  }
  for (const name of DATABASE_FILES) {
    const file = await lstat(join(path, name)).catch(() => undefined);
    if (file !== undefined && !file.isFile()) {
      throw new Error(`${action}: ${name} in it must be a file, and not a link`);
    }
  }
}

/** Adds the rules of `--rules` to the options of calls, and their file to the watched files. */
export async function withRules(
  { dispatch, files }: Pick<LoadedTools, "dispatch" | "files">,
  file: string | undefined,
  { store }: ServeState,
  io: CommandIo,
): Promise<Pick<LoadedTools, "dispatch" | "files">> {
  if (file === undefined) return { dispatch, files };
  if (dispatch.rules !== undefined) {
    throw usageError(
      "Cannot serve: the module has rules, and so has --rules; leave out one of them",
    );
  }
  try {
    const documents = JSON.parse(await readInput(file, io));
    return {
      dispatch: { approve: "ask", ...dispatch, rules: rules(readRules(documents), { store }) },
      files: [...files, resolve(file)],
    };
  } catch (cause) {
    throw usageError(`Cannot use the rules in "${file}": ${describeThrown(cause)}`, { cause });
  }
}

const REFRESH_MS = 2_000;

export function refreshing(refresh: () => void): Disposable {
  const timer = setInterval(refresh, REFRESH_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
