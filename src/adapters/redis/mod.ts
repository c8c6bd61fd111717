/**
 * A call store in Redis or Valkey (`@plue/tools/redis`), over a client or cluster of the package
 * `redis`, which you pass in.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import {
  type CallStore,
  checkStored,
  checkStoreKey,
  checkStorePrefix,
  type DueEntry,
  earliestOf,
  ownerOf,
  quotaExhausted,
  shardOf,
  STORE_LIMITS,
  type StoredEntry,
  storeFailure,
  type StoreLimits,
  type StoreOptions,
} from "../../execute/durable/mod.ts";
import {
  checkFlag,
  checkPort,
  createCheck,
  describeThrown,
  fail,
  isObject,
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
export interface RedisCallStoreOptions extends Pick<StoreLimits, "maxOwnerBytes"> {
  /**
   * The beginning of the store's keys in Redis.
   *
   * @default {"plue"}
   */
  readonly prefix?: string;
  /**
   * The time after which an operation rejects, in milliseconds. A write that the server receives
   * later is not made.
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
   * If false, the store does not read the server's settings, for a user who may not call `INFO`.
   * Make sure yourself that the server is a primary that evicts nothing and writes an append-only
   * file.
   *
   * @default {true}
   */
  readonly checksServer?: boolean;
}

const ACTION = "open the store";
/** The type of texts in the protocol, `$`. */
const BLOB_STRING = 36;
/** The number of hash tags. With another number, the entries of most owners would not be found. */
const SHARDS = 16;
/** The bytes of a stored value before the value itself. */
const HEAD_BYTES = 16;
const DIGEST = createHash("sha1").update(SCRIPT).digest("hex");

const DEFAULTS = {
  prefix: "plue",
  maxOwnerBytes: 134_217_728,
  timeoutMs: 2_000,
  allowsLostWrites: false,
  checksServer: true,
};
const CHECKS = {
  prefix: createCheck(
    'at most 64 letters, digits, ".", "_", ":" and "-"',
    (value): value is string => typeof value === "string" && /^[\w.:-]{1,64}$/.test(value),
  ),
  maxOwnerBytes: STORE_LIMITS.maxOwnerBytes,
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
 * the store adds one, because a lost connection would end the process. Its time is the server's.
 * The default of `maxOwnerBytes` is 134,217,728; give all processes the same. `maxmemory` of the
 * server limits the whole store.
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
  if (!isObject(client)) fail(ACTION, "client must be a client or a cluster of redis");
  checkPort<RedisClient>(ACTION, "client", client, ["withCommandOptions", "on", "listenerCount"]);
  if (!(client.options ?? client._options?.defaults)?.disableOfflineQueue) {
    fail(
      ACTION,
      "its client makes writes later while it is offline; set disableOfflineQueue: true",
    );
  }
  if (client.listenerCount("error") === 0) client.on("error", noop);
  const store = new RedisCallStore(client, settings);
  try {
    await store.check();
  } catch (cause) {
    const problem = describeThrown(cause).replace(/^Cannot .*?: /, "");
    throw new Error(`Cannot ${ACTION}: ${problem}`, { cause });
  }
  return store;
}

class RedisCallStore implements CallStore {
  readonly #scripts: RedisScripts;
  readonly #settings: Settings;
  /** What the time of each shard's server is ahead of this process's monotonic clock. */
  readonly #offsets: number[] = [];
  /** The offset of the last answer. */
  #offset = 0;

  constructor(client: RedisClient, settings: Settings) {
    this.#settings = settings;
    this.#scripts = client.withCommandOptions({
      timeout: settings.timeoutMs,
      typeMapping: { [BLOB_STRING]: Buffer },
    });
  }

  /** Checks the servers of all shards, and reads their clocks. */
  async check(): Promise<void> {
    const { checksServer, allowsLostWrites } = this.#settings;
    const answers = await this.#askAll(checksServer ? "info" : "time");
    for (const answer of checksServer ? answers as unknown[][] : []) {
      const [role, policy, appends] = answer.map(String);
      if (role !== "master") throw new Error("the server is a replica; connect to its primary");
      if (policy !== "noeviction") {
        throw new Error(`its maxmemory-policy is "${policy}"; set it to "noeviction"`);
      }
      if (appends === "1" || allowsLostWrites) continue;
      throw new Error(
        "the server would lose confirmed writes when it ends; " +
          'set "appendonly yes", or pass allowsLostWrites',
      );
    }
  }

  async get(key: string): Promise<StoredEntry | undefined> {
    checkStoreKey(key);
    const found = await this.#ask(ownerOf(key), "get", key);
    return found === null ? undefined : entryOf(key, found);
  }

  async create(
    key: string,
    value: Uint8Array,
    options?: StoreOptions,
  ): Promise<number | undefined> {
    return await this.#put(key, value, "", options);
  }

  async update(
    key: string,
    value: Uint8Array,
    revision: number,
    options?: StoreOptions,
  ): Promise<number | undefined> {
    return await this.#put(key, value, String(revision), options);
  }

  async #put(
    key: string,
    value: Uint8Array,
    expected: string,
    { expiresAt, dueAt }: StoreOptions = {},
  ): Promise<number | undefined> {
    checkStored(key, value);
    const about = [expected, textOf(expiresAt), textOf(dueAt), `${this.#settings.maxOwnerBytes}`];
    // Copies the value, because the client sends it later.
    const answer = await this.#ask(ownerOf(key), "put", key, ...about, Buffer.from(value));
    if (typeof answer === "number") return answer;
    if (answer === null) return undefined;
    throw quotaExhausted();
  }

  async delete(key: string, revision: number): Promise<boolean> {
    checkStoreKey(key);
    return await this.#ask(ownerOf(key), "delete", key, `${revision}`) === 1;
  }

  async *list(prefix: string, after = ""): AsyncGenerator<StoredEntry, void> {
    checkStorePrefix(prefix);
    const own = after < prefix ? await this.get(prefix) : undefined;
    if (own !== undefined) yield own;
    // All keys that begin with `<prefix>.`, because "/" is the next character after ".".
    let from = after > `${prefix}.` ? `(${after}` : `[${prefix}.`;
    for (;;) {
      const page = await this.#ask(ownerOf(prefix), "list", from, `(${prefix}/`) as Buffer[];
      if (page.length === 0) return;
      for (let at = 0; at < page.length; at += 2) {
        const entry = entryOf(String(page[at]), page[at + 1]);
        from = `(${entry.key}`;
        if ((entry.expiresAt ?? Infinity) > this.now()) yield entry;
      }
    }
  }

  async due(
    ...[kind, before, limit, after]: Parameters<CallStore["due"]>
  ): Promise<readonly DueEntry[]> {
    const from = [`${after?.dueAt ?? "-inf"}`, after?.key ?? ""];
    const shards = await this.#askAll("due", kind, `${before}`, `${limit}`, ...from) as Buffer[][];
    const due = shards.map((found) => ({
      entries: Array.from({ length: found.length / 3 }, (_, index) => ({
        ...entryOf(String(found[3 * index]), found[3 * index + 2]),
        dueAt: Number(String(found[3 * index + 1])),
      })),
    }));
    return earliestOf(due, limit);
  }

  now(): number {
    return this.#offset + systemClock.now();
  }

  async #ask(owner: string, ...args: readonly (string | Buffer)[]): Promise<unknown> {
    return await this.#run(shardOf(owner, SHARDS), args);
  }

  async #askAll(...args: readonly string[]): Promise<readonly unknown[]> {
    return await Promise.all(Array.from({ length: SHARDS }, (_, shard) => this.#run(shard, args)));
  }

  /** Runs an action of the script on a shard. */
  async #run(
    shard: number,
    [action = "", ...args]: readonly (string | Buffer)[],
  ): Promise<unknown> {
    const { prefix, timeoutMs } = this.#settings;
    const offset = this.#offsets[shard];
    // After a timeout, the server may still receive a write. It is then too late.
    const deadline = offset === undefined ? "" : `${offset + systemClock.now() + timeoutMs}`;
    const input = {
      keys: KEYS.map((name) => `${prefix}:{${prefix}-${shard}}:${name}`),
      arguments: [action, deadline, ...args],
    };
    // `timeout` of the client does not end the wait for a command that was sent.
    const answer = await within(systemClock, timeoutMs, this.#evaluate(input)).catch(rethrow);
    if (answer === TIME_OVER) throw storeFailure(`the server has not answered for ${timeoutMs} ms`);
    const [micros, result, isLate] = answer as readonly [number, unknown, unknown?];
    this.#offset = this.#offsets[shard] = micros / 1_000 - systemClock.now();
    if (isLate) throw storeFailure("the server received the write too late, and did not make it");
    return result;
  }

  async #evaluate(input: object): Promise<unknown> {
    try {
      return await this.#scripts.evalSha(DIGEST, input);
    } catch (error) {
      // A server that was started again does not have the script, and has run nothing.
      if (!/^NOSCRIPT/.test(describeThrown(error))) throw error;
      return await this.#scripts.eval(SCRIPT, input);
    }
  }
}

/** Throws the error of the client with a reason for readers without knowledge of Redis. */
function rethrow(cause: unknown): never {
  const said = describeThrown(cause);
  if (/\bOOM\b/.test(said)) {
    throw new RangeError("Cannot store a value: maxmemory of the server is used up", { cause });
  }
  const isForbidden = /NOPERM|can't run this command/.test(said);
  const advice = "its user may not run INFO, or another command; see checksServer";
  throw storeFailure(isForbidden ? `${advice} (${said})` : said, cause);
}

/** Returns a time for the script; empty if there is none. */
function textOf(time = Infinity): string {
  return time === Infinity ? "" : `${time}`;
}

/** Reads a stored value, behind its revision and its expiry. */
function entryOf(key: string, stored: unknown): StoredEntry {
  const bytes = stored as Buffer;
  const [revision, expiresAt] = [bytes.readDoubleLE(0), bytes.readDoubleLE(8)];
  // Copies the value, because the client reads several answers into one buffer.
  const entry = { key, value: new Uint8Array(bytes.subarray(HEAD_BYTES)), revision };
  return expiresAt === Infinity ? entry : { ...entry, expiresAt };
}
