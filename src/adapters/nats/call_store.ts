/**
 * A call store in a bucket of NATS. All processes that use the server share it.
 *
 * @module
 */

import { type Bucket, type KV, type KvEntry, Kvm } from "@nats-io/kv";
import { type NatsConnection, nuid } from "@nats-io/nats-core";
import {
  type CallStore,
  checkStored,
  checkStoreKey,
  type StoredEntry,
  type StoreOptions,
} from "../../execute/durable/mod.ts";
import {
  isObject,
  must,
  numberFrom,
  readFields,
  type RegistryClock,
  systemClock,
} from "../../tool/mod.ts";
import { checkServer, isConflict, problemOf } from "./server.ts";
import { CALLS_BUCKET } from "./subjects.ts";

/** Options for {@linkcode natsCallStore}. */
export interface NatsCallStoreOptions {
  /**
   * The name of the bucket, which is made if it is not there.
   *
   * @default {"plue_calls"}
   */
  readonly bucket?: string;
  /**
   * How many bytes a new bucket may have. Further writes reject.
   *
   * @default {1_073_741_824}
   */
  readonly maxBytes?: number;
  /**
   * How many servers of a cluster keep a new bucket.
   *
   * @default {1}
   */
  readonly replicas?: number;
  /** Tells the time. */
  readonly clock?: Pick<RegistryClock, "timestamp">;
}

const ACTION = "open the store";
/** A value has its end in front, and a byte that says whether the rest is elsewhere. */
const HEAD_BYTES = 9;
const IN_PARTS = 1;
/** Servers refuse messages above 1 MiB, with what stands in front of the value. */
const PART_BYTES = 524_288;
/** Parts have keys that no store has. */
const PARTS = "=part.";
/** After so many writes, entries that have expired are deleted. */
const WRITES_TO_SWEEP = 1_024;
/** Parts and marks of deletion that are so old belong to nothing, in milliseconds. */
const OLD_MS = 3_600_000;
/** How often a creation is tried that meets what has expired or was deleted. */
const MAX_TRIES = 8;

const OPTIONS = {
  bucket: must(
    'letters, digits, "_" and "-"',
    (value): value is string => typeof value === "string" && /^[\w-]{1,64}$/.test(value),
  ),
  maxBytes: numberFrom(1_048_576),
  replicas: numberFrom(1, 5),
  clock: must("a clock", (value): value is Pick<RegistryClock, "timestamp"> => isObject(value)),
};

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * Opens a {@linkcode CallStore} in a bucket of JetStream: tickets, tasks, idempotency keys and rate
 * limits are then those of all processes that use the server. It survives what the server survives.
 *
 * The bucket bounds what all callers keep together; it has no share for each.
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
 * @throws {TypeError | RangeError} If an option is wrong.
 * @throws {Error} If the server cannot keep it.
 */
export async function natsCallStore(
  connection: NatsConnection,
  options: NatsCallStoreOptions = {},
): Promise<CallStore> {
  const { bucket = CALLS_BUCKET, maxBytes = 2 ** 30, replicas = 1 } = readFields(
    ACTION,
    { ...options },
    OPTIONS,
  );
  await checkServer(ACTION, connection);
  try {
    const kv = await new Kvm(connection).create(bucket, {
      ...{ history: 1, max_bytes: maxBytes, replicas },
      // What is read is compared and written: it must not come from a server that lags behind.
      allow_direct: false,
    });
    return new NatsCallStore(kv, connection, options);
  } catch (cause) {
    throw new Error(`Cannot ${ACTION} "${bucket}": ${problemOf(cause, connection)}`, { cause });
  }
}

class NatsCallStore implements CallStore {
  readonly #kv: KV;
  readonly #connection: NatsConnection;
  readonly #clock: Pick<RegistryClock, "timestamp">;
  #writes = 0;

  constructor(kv: KV, connection: NatsConnection, options: NatsCallStoreOptions) {
    this.#kv = kv;
    this.#connection = connection;
    this.#clock = options.clock ?? systemClock;
  }

  async get(key: string): Promise<StoredEntry | undefined> {
    checkStoreKey(key);
    return await this.#attempt(async () => {
      // A value in parts may be replaced while they are read.
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const entry = await this.#kv.get(key);
        const stored = await this.#read(entry);
        if (stored !== "gone") return stored;
      }
      throw new Error("a part of a value is missing");
    });
  }

  async create(
    key: string,
    value: Uint8Array,
    options: StoreOptions = {},
  ): Promise<number | undefined> {
    checkStored(key, value);
    return await this.#attempt(async () => {
      const message = await this.#written(value, options);
      let before = 0;
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const revision = await this.#put(key, message, before);
        if (revision !== undefined) return revision;
        const entry = await this.#kv.get(key);
        if (this.#isThere(entry)) return undefined;
        // It has expired, or was deleted.
        before = revisionOf(entry);
      }
      return undefined;
    });
  }

  async update(
    key: string,
    value: Uint8Array,
    revision: number,
    options: StoreOptions = {},
  ): Promise<number | undefined> {
    checkStored(key, value);
    return await this.#attempt(async () => {
      const entry = await this.#kv.get(key);
      if (!this.#isThere(entry) || entry.revision !== revision) return undefined;
      const written = await this.#put(key, await this.#written(value, options), revision);
      if (written !== undefined) await this.#forgetParts(entry);
      return written;
    });
  }

  async delete(key: string, revision: number): Promise<boolean> {
    checkStoreKey(key);
    return await this.#attempt(async () => {
      const entry = await this.#kv.get(key);
      if (!this.#isThere(entry) || entry.revision !== revision) return false;
      try {
        await this.#kv.delete(key, { previousSeq: revision });
      } catch (error) {
        if (isConflict(error)) return false;
        throw error;
      }
      await this.#forgetParts(entry);
      return true;
    });
  }

  async *list(prefix: string, after = ""): AsyncIterable<StoredEntry> {
    if (prefix !== "") checkStoreKey(prefix);
    const keys = await this.#attempt(async () => {
      const found: string[] = [];
      for await (const key of await this.#kv.keys(prefix === "" ? ">" : `${prefix}.>`)) {
        if (!key.startsWith(PARTS)) found.push(key);
      }
      return prefix === "" ? found : [prefix, ...found];
    });
    // A bucket has no order, so all keys are read at once, and values as they are taken.
    for (const key of keys.filter((key) => key > after).sort()) {
      const entry = await this.get(key);
      if (entry !== undefined) yield entry;
    }
  }

  /** Writes a value in the place of the one with that revision; 0 for none. */
  async #put(key: string, message: Uint8Array, previousSeq: number): Promise<number | undefined> {
    try {
      const revision = await this.#kv.put(key, message, { previousSeq });
      if (++this.#writes % WRITES_TO_SWEEP === 0) void this.#sweep();
      return revision;
    } catch (error) {
      if (isConflict(error)) return undefined;
      throw error;
    }
  }

  #isThere(entry: KvEntry | null): entry is KvEntry {
    return entry?.operation === "PUT" && endOf(entry.value) > this.#clock.timestamp();
  }

  /** What is stored; `gone` if a part of it is not there any more. */
  async #read(entry: KvEntry | null): Promise<StoredEntry | undefined | "gone"> {
    if (!this.#isThere(entry)) return undefined;
    const { key, revision } = entry;
    const expiresAt = endOf(entry.value);
    const parts = partsOf(entry);
    let value = entry.value.slice(HEAD_BYTES);
    if (parts.length > 0) {
      const read = await Promise.all(parts.map((part) => this.#kv.get(part)));
      const bytes = read.map((part) => part?.operation === "PUT" ? part.value : undefined);
      if (bytes.includes(undefined)) return "gone";
      value = joined(bytes as Uint8Array[]);
    }
    return { key, value, revision, ...(expiresAt < Infinity && { expiresAt }) };
  }

  /** A value as the bucket has it. A large one is written in parts, and its keys take its place. */
  async #written(value: Uint8Array, { expiresAt = Infinity }: StoreOptions): Promise<Uint8Array> {
    let body = value;
    const isLarge = value.byteLength > PART_BYTES;
    if (isLarge) {
      const keys: string[] = [];
      for (let at = 0; at < value.byteLength; at += PART_BYTES) {
        const key = `${PARTS}${nuid.next()}`;
        await this.#kv.put(key, value.slice(at, at + PART_BYTES));
        keys.push(key);
      }
      body = encoder.encode(JSON.stringify(keys));
    }
    const message = new Uint8Array(HEAD_BYTES + body.byteLength);
    const view = new DataView(message.buffer);
    view.setFloat64(0, expiresAt);
    view.setUint8(8, isLarge ? IN_PARTS : 0);
    message.set(body, HEAD_BYTES);
    return message;
  }

  async #forgetParts(entry: KvEntry): Promise<void> {
    for (const part of partsOf(entry)) await this.#kv.purge(part).catch(leaveToSweep);
  }

  /** Deletes what has expired, and what belongs to nothing. */
  async #sweep(): Promise<void> {
    try {
      const used = new Set<string>();
      const parts: KvEntry[] = [];
      for await (const key of await this.#kv.keys()) {
        const entry = await this.#kv.get(key);
        if (entry === null || entry.operation !== "PUT") continue;
        if (key.startsWith(PARTS)) parts.push(entry);
        else if (this.#isThere(entry)) { for (const part of partsOf(entry)) used.add(part); }
        else if (await this.#purge(entry)) await this.#forgetParts(entry);
      }
      for (const part of parts) {
        const isOld = part.created.getTime() < this.#clock.timestamp() - OLD_MS;
        if (isOld && !used.has(part.key)) await this.#kv.purge(part.key);
      }
      // Marks of deletion stay in a bucket until they are purged. The interface lacks the method.
      await (this.#kv as Bucket).purgeDeletes(OLD_MS);
    } catch {
      // The next sweep deletes the rest.
    }
  }

  async #purge({ key, revision }: KvEntry): Promise<boolean> {
    try {
      await this.#kv.delete(key, { previousSeq: revision });
      return true;
    } catch (error) {
      if (isConflict(error)) return false;
      throw error;
    }
  }

  async #attempt<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      const problem = problemOf(cause, this.#connection);
      throw new Error(`Cannot use the store of calls: ${problem}`, { cause });
    }
  }
}

function leaveToSweep(): void {}

function revisionOf(entry: KvEntry | null): number {
  return entry?.revision ?? 0;
}

function endOf(value: Uint8Array): number {
  if (value.byteLength < HEAD_BYTES) return -Infinity;
  return new DataView(value.buffer, value.byteOffset, HEAD_BYTES).getFloat64(0);
}

/** The keys of the parts of a value. */
function partsOf({ value }: KvEntry): readonly string[] {
  return value[8] === IN_PARTS ? JSON.parse(decoder.decode(value.subarray(HEAD_BYTES))) : [];
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.byteLength, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.byteLength;
  }
  return whole;
}
