/**
 * A call store in Redis or Valkey (`@plue/tools/redis`), over a client or cluster of the package
 * `redis`, which you pass in.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import * as durable from "../../execute/durable/mod.ts";
import { type CallStore, ownerOf, type StoreRow } from "../../execute/durable/mod.ts";
import {
  checkFlag,
  checkPort,
  describeThrown,
  fail,
  isObject,
  matching,
  MAX_TIMEOUT_MS,
  noop,
  numberFrom,
  readFields,
  systemClock,
  TIME_OVER,
  within,
} from "../../tool/mod.ts";
import { KEYS, SCRIPT } from "./script.ts";

/** The functions of a client of the package `redis` that run scripts. */
export interface RedisScripts {
  /** @param input The `keys` and the `arguments` of the script. */
  evalSha(digest: string, input: object): Promise<unknown>;
  eval(script: string, input: object): Promise<unknown>;
}

/** The functions of a client or a cluster of the package `redis` that the store uses. */
export interface RedisClient {
  /** The options of a client. */
  readonly options?: { readonly disableOfflineQueue?: boolean };
  /** The options of a cluster. */
  readonly _options?: { readonly defaults?: { readonly disableOfflineQueue?: boolean } };
  withCommandOptions(options: object): RedisScripts;
  on(event: "error", listener: (error: Error) => void): unknown;
  listenerCount(event: "error"): number;
}

/** Options for {@linkcode redisCallStore}. */
export interface RedisCallStoreOptions extends Pick<durable.StoreLimits, "maxOwnerBytes"> {
  /** The beginning of the store's keys in Redis. @default {"plue"} */
  readonly prefix?: string;
  /**
   * The time after which an operation rejects, in milliseconds. The server skips a write that it
   * receives later.
   *
   * @default {2_000}
   */
  readonly timeoutMs?: number;
  /**
   * If true, opens a server without an append-only file, which loses confirmed writes when it ends.
   * Calls can then run twice.
   *
   * @default {false}
   */
  readonly allowsLostWrites?: boolean;
  /**
   * If false, the store does not check the server's settings: for a user who may not call `INFO`.
   * You must then make sure that the server is a primary, evicts nothing and writes an append-only
   * file.
   *
   * @default {true}
   */
  readonly checksServer?: boolean;
}

const ACTION = "open the store";
/** The type of strings in the protocol: the character `$`. */
const BLOB_STRING = 36;
/** The number of hash tags. With another number, the entries of most owners would not be found. */
const SHARDS = 16;
/** The size of the revision and the expiry at the beginning of a stored value, in bytes. */
const HEAD_BYTES = 16;
const DIGEST = createHash("sha1").update(SCRIPT).digest("hex");

const DEFAULTS = {
  prefix: "plue",
  maxOwnerBytes: durable.MAX_OWNER_BYTES,
  timeoutMs: 2_000,
  allowsLostWrites: false,
  checksServer: true,
};
const CHECKS = {
  prefix: matching('at most 64 letters, digits, ".", "_", ":" and "-"', /^[\w.:-]{1,64}$/),
  maxOwnerBytes: durable.STORE_LIMITS.maxOwnerBytes,
  timeoutMs: numberFrom(1, MAX_TIMEOUT_MS),
  allowsLostWrites: checkFlag,
  checksServer: checkFlag,
};

type Settings = Required<RedisCallStoreOptions>;

/**
 * Opens a {@linkcode CallStore} in Redis 6.2 or later, so that all processes of the server or
 * cluster share tickets, tasks, idempotency keys and rate limits.
 *
 * The client must be connected, with `disableOfflineQueue: true`. If it has no listener for errors,
 * the store adds one, because a lost connection would end the process. The store uses the server's
 * clock. The default of `maxOwnerBytes` is 134,217,728; use the same value in all processes.
 * `maxmemory` of the server limits the whole store.
 *
 * @example Usage
 * ```ts ignore
 * import { storedKeys } from "@plue/tools/calls";
 * import { redisCallStore } from "@plue/tools/redis";
 * import { createClient } from "redis";
 *
 * const client = createClient({ url: "redis://localhost", disableOfflineQueue: true });
 * client.on("error", console.error);
 * await client.connect();
 * const kept = storedKeys(await redisCallStore(client));
 * ```
 *
 * @throws {TypeError | RangeError} If an option is invalid, or the client queues commands.
 * @throws {Error} If the server cannot be reached, is a replica, evicts entries, or has no
 * append-only file.
 */
export async function redisCallStore(
  client: RedisClient,
  options: RedisCallStoreOptions = {},
): Promise<CallStore> {
  const settings: Settings = { ...DEFAULTS, ...readFields(ACTION, options, CHECKS) };
  if (!isObject(client)) {
    fail(
      ACTION,
      'client must be made with createClient() or createCluster() of the package "redis"',
    );
  }
  checkPort<RedisClient>(ACTION, "client", client, ["withCommandOptions", "on", "listenerCount"]);
  if (!(client.options ?? client._options?.defaults)?.disableOfflineQueue) {
    fail(ACTION, "the client queues writes while it is offline; set disableOfflineQueue: true");
  }
  if (client.listenerCount("error") === 0) client.on("error", noop);
  return await durable.openCallStore(ACTION, new RedisDriver(client, settings));
}

class RedisDriver implements durable.StoreDriver {
  readonly #scripts: RedisScripts;
  readonly #settings: Settings;
  /** The time of each shard's server, minus this process's monotonic clock, in milliseconds. */
  readonly #offsets: number[] = [];
  #offset = 0;

  constructor(client: RedisClient, settings: Settings) {
    this.#settings = settings;
    this.#scripts = client.withCommandOptions({
      timeout: settings.timeoutMs,
      typeMapping: { [BLOB_STRING]: Buffer },
    });
  }

  async check(): Promise<void> {
    const { checksServer, allowsLostWrites } = this.#settings;
    const answers = await this.#askAll(checksServer ? "info" : "time");
    for (const answer of checksServer ? answers as unknown[][] : []) {
      const [role, policy, appends] = answer.map(String);
      if (role !== "master") throw new Error("the server is a replica; connect to its primary");
      if (policy !== "noeviction") {
        throw new Error(`maxmemory-policy is "${policy}"; set it to "noeviction"`);
      }
      if (appends === "1" || allowsLostWrites) continue;
      throw new Error(
        "the server would lose confirmed writes when it ends; " +
          'set "appendonly yes", or pass allowsLostWrites',
      );
    }
  }

  async get(key: string): Promise<StoreRow | undefined> {
    const found = await this.#ask(ownerOf(key), "get", key);
    return found === null ? undefined : rowOf(key, found);
  }

  async put(
    { key, value, expected, expires, due }: durable.StoreWrite,
  ): Promise<number | undefined> {
    const about = [expected, expires, due, this.#settings.maxOwnerBytes].map((one) =>
      `${one ?? ""}`
    );
    const answer = await this.#ask(ownerOf(key), "put", key, ...about, Buffer.from(value.buffer));
    if (answer === null) return undefined;
    if (typeof answer === "number") return answer;
    throw durable.quotaExhausted();
  }

  async remove(key: string, revision: number): Promise<boolean> {
    return await this.#ask(ownerOf(key), "delete", key, `${revision}`) === 1;
  }

  async *list(prefix: string, after: string): AsyncGenerator<StoreRow, void> {
    const own = after < prefix ? await this.get(prefix) : undefined;
    if (own !== undefined) yield own;
    // All keys that begin with `<prefix>.`: "/" follows "." in ASCII.
    const first = `${prefix}.`;
    yield* durable.readPages(after > first ? after : first, async (last) => {
      const range = [last === first ? `[${first}` : `(${last}`, `(${prefix}/`];
      return rowsOf(await this.#ask(ownerOf(prefix), "list", ...range));
    });
  }

  async due(
    { kind, before, limit, after }: durable.DueQuery,
  ): Promise<readonly durable.DueEntry[]> {
    const query = [kind, before, limit, after.dueAt, after.key].map(String);
    const shards = await this.#askAll("due", ...query);
    const found = shards.map((rows) => ({
      entries: rowsOf(rows).map(durable.dueEntryOf),
      isCut: false,
    }));
    return durable.earliestOf(found, limit);
  }

  now(): number {
    return this.#offset + systemClock.now();
  }

  async #ask(owner: string, ...args: readonly (string | Buffer)[]): Promise<unknown> {
    return await this.#run(durable.shardOf(owner, SHARDS), args);
  }

  async #askAll(...args: readonly string[]): Promise<readonly unknown[]> {
    return await Promise.all(Array.from({ length: SHARDS }, (_, shard) => this.#run(shard, args)));
  }

  async #run(
    shard: number,
    [action = "", ...args]: readonly (string | Buffer)[],
  ): Promise<unknown> {
    const { prefix, timeoutMs } = this.#settings;
    const offset = this.#offsets[shard];
    // After a timeout, the server may still receive a write. The deadline makes the server skip it.
    const deadline = offset === undefined ? "" : `${offset + systemClock.now() + timeoutMs}`;
    const input = {
      keys: KEYS.map((name) => `${prefix}:{${prefix}-${shard}}:${name}`),
      arguments: [action, deadline, ...args],
    };
    // `timeout` of the client does not end the wait for a command that was sent.
    const answer = await within(systemClock, timeoutMs, this.#evaluate(input));
    if (answer === TIME_OVER) throw new Error(`the server has not answered for ${timeoutMs} ms`);
    const [micros, result, isLate] = answer as readonly [number, unknown, unknown?];
    this.#offset = this.#offsets[shard] = micros / 1_000 - systemClock.now();
    if (isLate) throw new Error("the server received the write too late, and did not make it");
    return result;
  }

  async #evaluate(input: object): Promise<unknown> {
    return await this.#scripts.evalSha(DIGEST, input).catch((error) => {
      // After a restart, the server does not have the script, and has run nothing.
      if (!/^NOSCRIPT/.test(describeThrown(error))) throw error;
      return this.#scripts.eval(SCRIPT, input);
    }).catch((cause) => {
      if (!/\bOOM\b/.test(describeThrown(cause))) throw cause;
      throw new RangeError("Cannot store a value: maxmemory of the server is used up", { cause });
    });
  }

  explain(error: unknown): string {
    const advice = "the user may not run INFO, or another command; see checksServer";
    return durable.explainBy([[/NOPERM|can't run this command/, advice]], describeThrown(error));
  }
}

/** Reads the entries of an answer: keys, values, and in a list of due entries the due times. */
function rowsOf(answer: unknown): readonly StoreRow[] {
  const found = answer as readonly Buffer[];
  return Array.from({ length: found.length / 3 }, (_, index) => {
    const [key, due, stored] = found.slice(3 * index, 3 * index + 3);
    return { ...rowOf(String(key), stored), due: Number(String(due)) };
  });
}

function rowOf(key: string, stored: unknown): StoreRow {
  const bytes = stored as Buffer;
  const [revision, expires] = [bytes.readDoubleLE(0), bytes.readDoubleLE(8)];
  const value = bytes.subarray(HEAD_BYTES);
  return { key, value, revision, expires: expires === Infinity ? null : expires };
}
