/**
 * A call store in a bucket of NATS, which all processes of the server share.
 *
 * @module
 */

import {
  type Consumer,
  DeliverPolicy,
  jetstream,
  type JetStreamManager,
  jetstreamManager,
  JsHeaders,
  type JsMsg,
} from "@nats-io/jetstream";
import type { KV, KvEntry } from "@nats-io/kv";
import { headers, type NatsConnection } from "@nats-io/nats-core";
import {
  type CallStore,
  checkStored,
  checkStoreKey,
  MAX_STORED_BYTES,
  MeasuredQuotas,
  quotaExhausted,
  type StoredEntry,
  type StoreOptions,
} from "../../execute/durable/mod.ts";
import {
  isObject,
  must,
  NO_LOG,
  numberFrom,
  readFields,
  type RegistryClock,
  systemClock,
} from "../../tool/mod.ts";
import { type NatsKeys, type Role, roleOf, Seal } from "./seal.ts";
import { NATS_OPTIONS } from "./link.ts";
import {
  checkServer,
  checkSkew,
  followStatus,
  isConflict,
  isFull,
  isMissing,
  MARKER_MS,
  openBucket,
  problemOf,
  purgeKey,
  skewOf,
  STORAGE,
  STORAGE_OPTIONS,
  storageProblemOf,
  type StorageSettings,
} from "./server.ts";
import { CALLS_BUCKET } from "./protocol.ts";

/** Options for {@linkcode natsCallStore}. */
export interface NatsCallStoreOptions {
  /**
   * The name of the bucket, which is created if it is missing.
   *
   * @default {"plue_calls"}
   */
  readonly bucket?: string;
  /**
   * The maximum size of a new bucket, in bytes. Further writes reject.
   *
   * @default {1_073_741_824}
   */
  readonly maxBytes?: number;
  /**
   * The quota of each principal in bytes; the second word of a key names the principal. An entry counts
   * 128 bytes besides its key and value. A process may exceed a quota by a hundredth.
   *
   * @default {an eighth of the size of the bucket}
   */
  readonly maxOwnerBytes?: number;
  /**
   * The number of servers in a cluster that store a new bucket.
   *
   * @default {1}
   */
  readonly replicas?: number;
  /**
   * The secret of all processes that use the bucket, at least 16 characters. Values are signed with it,
   * so that a process without it cannot forge them. The first of a list signs, and all are accepted.
   */
  readonly secret?: string | readonly string[];
  /**
   * Keys, besides the secret. Only values of processes of the same role are then accepted, so that a worker
   * cannot forge the tasks of a caller.
   */
  readonly keys?: NatsKeys;
  /** @default {systemClock} */
  readonly clock?: Pick<RegistryClock, "timestamp">;
}

const ACTION = "open the store";
/** The bytes that an entry counts besides its key and its value. */
const ENTRY_BYTES = 128;
/** A value is stored behind its end, a float, and a byte that is 1 if it is signed. */
const HEAD_BYTES = 9;
/** The bytes of a message that its headers, the head and the signature may take. */
const OVERHEAD_BYTES = 1_024;
/** The number of writes after which a process sweeps the bucket. */
const WRITES_TO_SWEEP = 1_024;
/** The minimum time between two sweeps of all processes, in milliseconds. */
const SWEEP_EVERY_MS = 600_000;
/** The minimum time between two sweeps because the bucket is full, in milliseconds. */
const SWEEP_FULL_EVERY_MS = 10_000;
/** The key whose message has the time of the last sweep. */
const SWEPT = "=swept";
/** The header with the end of an entry, which a sweep reads without the value. */
const END = "Plue-End";
/** The server may announce one entry too many: the wait for the next one, in milliseconds. */
const QUIET_MS = 1_000;
/** The number of deletions that a sweep has in flight. */
const AT_ONCE = 64;
/** A shorter value may replace another one even if the quota of its owner is used up. */
const SHORT_BYTES = 1_024;
/** The number of attempts to create a key that has expired or was deleted. */
const MAX_TRIES = 8;

const OPTIONS = {
  bucket: must(
    'letters, digits, "_" and "-"',
    (value): value is string => typeof value === "string" && /^[\w-]{1,64}$/.test(value),
  ),
  ...STORAGE_OPTIONS,
  maxOwnerBytes: numberFrom(1),
  secret: NATS_OPTIONS.secret,
  keys: NATS_OPTIONS.keys,
  clock: must("a clock", (value): value is Pick<RegistryClock, "timestamp"> => isObject(value)),
};

/**
 * Opens a {@linkcode CallStore} in a bucket of JetStream, so that all processes of the server share
 * tickets, tasks, idempotency keys and rate limits.
 *
 * @example Usage
 * ```ts ignore
 * import { connect } from "@nats-io/transport-node";
 * import { callTasks } from "@plue/tools/calls";
 * import { natsCallStore } from "@plue/tools/nats";
 *
 * const connection = await connect({ servers: "nats://localhost" });
 * const tasks = callTasks({ store: await natsCallStore(connection) });
 * ```
 *
 * @throws {TypeError | RangeError} If an option is invalid.
 * @throws {Error} If the bucket cannot be opened or created.
 */
export async function natsCallStore(
  connection: NatsConnection,
  options: NatsCallStoreOptions = {},
): Promise<CallStore> {
  const { bucket = CALLS_BUCKET, ...given } = readFields(
    ACTION,
    { ...options },
    OPTIONS,
  );
  const { maxBytes, replicas, secret, keys } = { ...STORAGE, ...given };
  const role = roleOf(ACTION, keys);
  const seal = secret === undefined ? undefined : new Seal(ACTION, secret, role, keys);
  await checkServer(ACTION, connection);
  try {
    const kv = await openBucket(connection, bucket, { maxBytes, replicas });
    const manager = await jetstreamManager(connection);
    const { config: { max_bytes: most } } = await manager.streams.info(`KV_${bucket}`);
    const { maxOwnerBytes = (most > 0 ? most : maxBytes) / 8, clock = systemClock } = options;
    const storage = { maxBytes, replicas };
    const settings = { bucket, kv, manager, connection, maxOwnerBytes, clock, seal, role, storage };
    const store = new NatsCallStore(settings);
    await store.checkClock();
    return store;
  } catch (cause) {
    const problem = storageProblemOf(cause, connection, bucket, { maxBytes, replicas });
    throw new Error(`Cannot ${ACTION} "${bucket}": ${problem}`, { cause });
  }
}

interface Settings {
  readonly bucket: string;
  readonly kv: KV;
  readonly manager: JetStreamManager;
  readonly connection: NatsConnection;
  readonly maxOwnerBytes: number;
  readonly clock: Pick<RegistryClock, "timestamp">;
  readonly seal: Seal | undefined;
  readonly role: Role;
  readonly storage: StorageSettings;
}

class NatsCallStore implements CallStore {
  readonly #settings: Settings;
  readonly #quotas: MeasuredQuotas;
  /** The reason why the store cannot be used; `undefined` while the connection is up. */
  #down: string | undefined;
  #writes = 0;
  #sweeping: Promise<void> | undefined;
  #sweptFullAt = -Infinity;

  constructor(settings: Settings) {
    this.#settings = settings;
    const { connection, maxOwnerBytes: maxBytes, clock } = settings;
    followStatus(connection, {
      down: (why) => void (this.#down = why),
      up: () => void (this.#down = undefined),
    });
    const measure = (owner: string, bytes: number) => this.#weightOf(owner, bytes);
    this.#quotas = new MeasuredQuotas({ maxBytes, clock, measure });
  }

  async get(key: string): Promise<StoredEntry | undefined> {
    checkStoreKey(key);
    return await this.#read(key, true);
  }

  /** @param isStrict False to skip a value that others have signed. */
  async #read(key: string, isStrict: boolean): Promise<StoredEntry | undefined> {
    return await this.#attempt(async () => {
      const entry = await this.#settings.kv.get(key);
      if (!this.#isThere(entry)) return undefined;
      const { revision } = entry;
      const expiresAt = endOf(entry.value);
      const value = this.#valueOf(key, entry.value);
      if (value === undefined) {
        if (isStrict) throw new Error("a value is damaged, or has a wrong signature");
        return undefined;
      }
      return { ...{ key, revision, value }, ...(expiresAt < Infinity && { expiresAt }) };
    });
  }

  async create(
    key: string,
    value: Uint8Array,
    options: StoreOptions = {},
  ): Promise<number | undefined> {
    this.#check(key, value);
    return await this.#attempt(() =>
      this.#quotas.write(
        ownerOf(key),
        weightOf(key, value.byteLength),
        () => this.#create(key, value, options),
        async () => {
          if (this.#isThere(await this.#settings.kv.get(key))) return undefined;
          throw quotaExhausted();
        },
      )
    );
  }

  async #create(
    key: string,
    value: Uint8Array,
    options: StoreOptions,
  ): Promise<number | undefined> {
    let before = 0;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const revision = await this.#put(key, value, options, before);
      if (revision !== undefined) return revision;
      const entry = await this.#settings.kv.get(key);
      if (this.#isThere(entry)) return undefined;
      // The entry has expired, or was deleted.
      before = revisionOf(entry);
    }
    return undefined;
  }

  async update(
    key: string,
    value: Uint8Array,
    revision: number,
    options: StoreOptions = {},
  ): Promise<number | undefined> {
    this.#check(key, value);
    return await this.#attempt(async () => {
      const entry = await this.#settings.kv.get(key);
      if (!this.#isThere(entry) || entry.revision !== revision) return undefined;
      return await this.#quotas.write(
        ownerOf(key),
        // The key was counted when it was created: the end of a call can always be written.
        value.byteLength <= SHORT_BYTES ? 0 : value.byteLength - this.#lengthOf(entry),
        () => this.#put(key, value, options, revision),
        () => Promise.reject(quotaExhausted()),
      );
    });
  }

  async delete(key: string, revision: number): Promise<boolean> {
    checkStoreKey(key);
    return await this.#attempt(async () => {
      const entry = await this.#settings.kv.get(key);
      if (!this.#isThere(entry) || entry.revision !== revision) return false;
      try {
        await this.#inRoom(() => this.#settings.kv.delete(key, { previousSeq: revision }));
      } catch (error) {
        if (isConflict(error)) return false;
        throw error;
      }
      this.#quotas.give(ownerOf(key), weightOf(key, this.#lengthOf(entry)));
      return true;
    });
  }

  async *list(prefix: string, after = ""): AsyncIterable<StoredEntry> {
    if (prefix !== "") checkStoreKey(prefix);
    const keys = await this.#attempt(async () => {
      const subjects_filter = `$KV.${this.#settings.bucket}.${prefix === "" ? ">" : `${prefix}.>`}`;
      const { state } = await this.#settings.manager.streams.info(`KV_${this.#settings.bucket}`, {
        subjects_filter,
      });
      const found = Object.keys(state.subjects ?? {}).map((subject) => this.#keyOf(subject));
      return prefix === "" ? found.filter((key) => !key.startsWith("=")) : [prefix, ...found];
    });
    // A bucket has no order, so all keys are read first, and each value when it is requested.
    for (const key of keys.filter((key) => key > after).sort()) {
      const entry = await this.#read(key, false);
      if (entry !== undefined) yield entry;
    }
  }

  /**
   * Checks that one message of the server has room for a value.
   *
   * @throws {TypeError | RangeError} If the key is not valid, or the value is too large.
   */
  #check(key: string, value: Uint8Array): void {
    checkStored(key, value);
    const { max_payload: limit = MAX_STORED_BYTES + OVERHEAD_BYTES } =
      this.#settings.connection.info ?? {};
    if (value.byteLength <= limit - OVERHEAD_BYTES) return;
    throw new RangeError(
      `Cannot store a value: it has ${value.byteLength} bytes, and max_payload of the server allows ` +
        `${limit - OVERHEAD_BYTES}`,
    );
  }

  /** Writes a value if the key has that revision; 0 means no value. Returns the new revision. */
  async #put(
    key: string,
    value: Uint8Array,
    { expiresAt = Infinity }: StoreOptions,
    revision: number,
  ): Promise<number | undefined> {
    const about = headers();
    about.set(END, String(expiresAt));
    const message = new Uint8Array(this.#valueAt + value.byteLength);
    message.set(value, this.#valueAt);
    // The seal signs the bytes behind the head, with the key and the end.
    this.#settings.seal?.sign(
      message.subarray(HEAD_BYTES),
      `$KV.${this.#settings.bucket}.${key}`,
      `${expiresAt}`,
    );
    const head = new DataView(message.buffer);
    head.setFloat64(0, expiresAt);
    head.setUint8(8, this.#settings.seal === undefined ? 0 : 1);
    try {
      const { seq } = await this.#inRoom(() =>
        jetstream(this.#settings.connection).publish(
          `$KV.${this.#settings.bucket}.${key}`,
          message,
          {
            headers: about,
            expect: { lastSubjectSequence: revision },
          },
        )
      );
      if (++this.#writes % WRITES_TO_SWEEP === 0) void this.#sweepInTurn();
      return seq;
    } catch (error) {
      if (isConflict(error)) return undefined;
      throw error;
    }
  }

  /** Returns the usage of a principal in bytes; `undefined` if the bucket is nearly empty. */
  async #weightOf(owner: string, more: number): Promise<number | undefined> {
    const { state: { bytes } } = await this.#settings.manager.streams.info(
      `KV_${this.#settings.bucket}`,
    );
    if (bytes + more <= this.#settings.maxOwnerBytes) return undefined;
    const now = this.#settings.clock.timestamp();
    let sum = 0;
    for (const filter of owner === "" ? ["*"] : [`*.${owner}`, `*.${owner}.>`]) {
      for await (const { subject, headers } of this.#heads(filter)) {
        if (Number(headers?.get(END) || 0) <= now) continue;
        // The server adds its header behind the sender's headers.
        const size = Number(headers?.last(JsHeaders.MessageSizeHdr)) - this.#valueAt;
        sum += weightOf(this.#keyOf(subject), size);
      }
    }
    return sum;
  }

  /** Writes. If the bucket is full, sweeps it and writes again. */
  async #inRoom<T>(write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (!isFull(error)) throw error;
      const now = this.#settings.clock.timestamp();
      if (this.#sweeping === undefined) {
        if (now - this.#sweptFullAt < SWEEP_FULL_EVERY_MS) throw error;
        this.#sweptFullAt = now;
      }
      await this.#sweep();
      return await write();
    }
  }

  #keyOf(subject: string): string {
    return subject.slice(`$KV.${this.#settings.bucket}.`.length);
  }

  #isThere(entry: KvEntry | null): entry is KvEntry {
    return entry?.operation === "PUT" && endOf(entry.value) > this.#settings.clock.timestamp();
  }

  /** The position of the value in a message. */
  get #valueAt(): number {
    return HEAD_BYTES + (this.#settings.seal?.bytes ?? 0);
  }

  #lengthOf({ value }: KvEntry): number {
    return value.byteLength - this.#valueAt;
  }

  /** Returns `undefined` for a value with another signature or without one. */
  #valueOf(key: string, message: Uint8Array): Uint8Array | undefined {
    const isSigned = message[8] === 1;
    if (this.#settings.seal === undefined) {
      if (!isSigned) return message.slice(HEAD_BYTES);
      throw new Error("a value is signed; give natsCallStore the secret");
    }
    const signed = message.subarray(HEAD_BYTES);
    const place = [
      `$KV.${this.#settings.bucket}.${key}`,
      `${endOf(message)}`,
      this.#settings.role,
    ] as const;
    return isSigned && this.#settings.seal.accepts(signed, ...place)
      ? message.slice(this.#valueAt)
      : undefined;
  }

  /** @throws {Error} If the clock of this machine is off: values would seem to have expired. */
  async checkClock(): Promise<void> {
    const { consumer } = await this.#openHeads(SWEPT);
    consumer.delete().catch(NO_LOG);
  }

  /** Sweeps, unless another process has just done it. */
  async #sweepInTurn(): Promise<void> {
    try {
      const last = await this.#settings.kv.get(SWEPT);
      const lastAt = last?.created.getTime() ?? -Infinity;
      if (Math.abs(this.#settings.clock.timestamp() - lastAt) < SWEEP_EVERY_MS) return;
      await this.#settings.kv.put(SWEPT, "", { previousSeq: revisionOf(last) });
      await this.#sweep();
    } catch {
      // Another process has started, or the server is down: the next sweep comes later.
    }
  }

  #sweep(): Promise<void> {
    return this.#sweeping ??= this.#eraseOld()
      // The next sweep deletes the rest.
      .catch(NO_LOG)
      .finally(() => this.#sweeping = undefined);
  }

  /** Purges expired entries and old deletion markers. Reads each entry once, without its value. */
  async #eraseOld(): Promise<void> {
    const erased: Promise<void>[] = [];
    const now = this.#settings.clock.timestamp();
    for await (const { subject, seq, time, headers } of this.#heads()) {
      const end = headers?.get(END) ?? "";
      const isOver = headers?.has("KV-Operation")
        ? time.getTime() < now - MARKER_MS
        : end !== "" && Number(end) <= now;
      if (isOver) {
        erased.push(
          purgeKey(this.#settings.connection, this.#settings.bucket, this.#keyOf(subject), seq),
        );
      }
      if (erased.length >= AT_ONCE) await Promise.all(erased.splice(0));
    }
    await Promise.all(erased);
  }

  /** Opens a consumer of the last message of each key, without its value. */
  async #openHeads(keys: string): Promise<{ readonly consumer: Consumer; readonly count: number }> {
    const before = systemClock.timestamp();
    const consumer = await jetstream(this.#settings.connection).consumers.get(
      `KV_${this.#settings.bucket}`,
      {
        filter_subjects: `$KV.${this.#settings.bucket}.${keys}`,
        deliver_policy: DeliverPolicy.LastPerSubject,
        headers_only: true,
      },
    );
    const { num_pending: count, created } = await consumer.info(true);
    checkSkew(skewOf(before, created));
    return { consumer, count };
  }

  /** Yields the last message of each key, without its value. */
  async *#heads(keys = ">"): AsyncGenerator<JsMsg, void, void> {
    const { consumer, count } = await this.#openHeads(keys);
    if (count === 0) return;
    const messages = await consumer.consume();
    const stopWhenQuiet = (): () => void => systemClock.setTimeout(() => messages.stop(), QUIET_MS);
    let disarm = stopWhenQuiet();
    let seen = 0;
    try {
      for await (const message of messages) {
        disarm();
        yield message;
        // Other processes may continue to write, so the count ends the loop.
        if (message.info.pending === 0 || ++seen >= count) return;
        disarm = stopWhenQuiet();
      }
    } finally {
      disarm();
    }
  }

  async #attempt<T>(work: () => Promise<T>): Promise<T> {
    // The client would buffer the request and wait.
    if (this.#down !== undefined) throw new Error(`Cannot use the store of calls: ${this.#down}`);
    try {
      try {
        return await work();
      } catch (error) {
        if (!isMissing(error)) throw error;
        // The server has lost the bucket.
        await openBucket(this.#settings.connection, this.#settings.bucket, this.#settings.storage);
        return await work();
      }
    } catch (cause) {
      if (cause instanceof RangeError) throw cause;
      const problem = problemOf(cause, this.#settings.connection);
      throw new Error(`Cannot use the store of calls: ${problem}`, { cause });
    }
  }
}

function revisionOf(entry: KvEntry | null): number {
  return entry?.revision ?? 0;
}

function endOf(value: Uint8Array): number {
  if (value.byteLength < HEAD_BYTES) return -Infinity;
  return new DataView(value.buffer, value.byteOffset, HEAD_BYTES).getFloat64(0);
}

function weightOf(key: string, bytes: number): number {
  return ENTRY_BYTES + key.length + bytes;
}

function ownerOf(key: string): string {
  return key.split(".", 2)[1] ?? "";
}
