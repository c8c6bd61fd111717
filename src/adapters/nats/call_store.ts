/**
 * A call store in a bucket of NATS. All processes that use the server share it.
 *
 * @module
 */

import {
  DeliverPolicy,
  jetstream,
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  type JsMsg,
} from "@nats-io/jetstream";
import { type KV, type KvEntry, Kvm } from "@nats-io/kv";
import { headers, type NatsConnection, nuid } from "@nats-io/nats-core";
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
import { MAC_BYTES, Seal } from "./message.ts";
import { OwnerShares } from "./owner_shares.ts";
import { checkServer, isConflict, isFull, problemOf, STORAGE, storageProblemOf } from "./server.ts";
import { followStatus } from "./status.ts";
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
   * How many bytes the entries of one owner may have, who is the second word of their keys; each
   * counts 128 for itself. A process may let an owner go over that by a hundredth.
   *
   * @default {an eighth of what the bucket may have}
   */
  readonly maxOwnerBytes?: number;
  /**
   * How many servers of a cluster keep a new bucket.
   *
   * @default {1}
   */
  readonly replicas?: number;
  /**
   * What the processes share that use the bucket, at least 16 characters. Values are signed with it,
   * so that who may write to the bucket and has no secret can forge none. Of a list, the first one
   * signs and all are accepted.
   */
  readonly secret?: string | readonly string[];
  /** Tells the time. */
  readonly clock?: Pick<RegistryClock, "timestamp">;
}

const ACTION = "open the store";
/** What an entry weighs besides its key and its value. */
const ENTRY_BYTES = 128;
/** A value has its end in front, and a byte that says whether the rest is elsewhere. */
const HEAD_BYTES = 9;
const IN_PARTS = 1;
const SIGNED = 2;
/** Servers refuse messages above `max_payload`, which is 1 MiB unless they are told otherwise. */
const MAX_PART_BYTES = 524_288;
/** What a message may have besides its part. */
const ROOM_BYTES = 1_024;
/** Parts have keys that no store has. */
const PARTS = "=part.";
/** After so many writes of a process, entries that have expired are deleted. */
const WRITES_TO_SWEEP = 1_024;
/** All processes together do that at most so often, in milliseconds. */
const SWEEP_EVERY_MS = 600_000;
/** One whose write finds no room, in milliseconds. */
const SWEEP_FULL_EVERY_MS = 10_000;
/** Says when entries were deleted last. */
const SWEPT = "=swept";
/** What a deletion needs to know, where it can be read without the value. */
const END = "Plue-End";
const OWN_PARTS = "Plue-Parts";
/** What a measurement needs to know. */
const WEIGHT = "Plue-Weight";
/** Parts and marks of deletion that are so old belong to nothing, in milliseconds. */
const OLD_MS = 3_600_000;
/** The server may count an entry too many, which then never comes: when to stop waiting, in milliseconds. */
const QUIET_MS = 1_000;
/** How many deletions a sweep has under way. */
const AT_ONCE = 64;
/** How often a creation is tried that meets what has expired or was deleted. */
/** A value that is replaced by one so short is, also where its owner's share is full. */
const SHORT_BYTES = 1_024;
const MAX_TRIES = 8;

const OPTIONS = {
  bucket: must(
    'letters, digits, "_" and "-"',
    (value): value is string => typeof value === "string" && /^[\w-]{1,64}$/.test(value),
  ),
  maxBytes: numberFrom(1_048_576),
  maxOwnerBytes: numberFrom(1),
  replicas: numberFrom(1, 5),
  secret: (_action: string, value: unknown): string | readonly string[] => value as string,
  clock: must("a clock", (value): value is Pick<RegistryClock, "timestamp"> => isObject(value)),
};

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * Opens a {@linkcode CallStore} in a bucket of JetStream: tickets, tasks, idempotency keys and rate
 * limits are then those of all processes that use the server. It survives what the server survives.
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
  const { bucket = CALLS_BUCKET, ...given } = readFields(
    ACTION,
    { ...options },
    OPTIONS,
  );
  const { maxBytes, replicas, secret } = { ...STORAGE, ...given };
  const seal = secret === undefined ? undefined : new Seal(ACTION, secret);
  await checkServer(ACTION, connection);
  try {
    const kv = await new Kvm(connection).create(bucket, {
      ...{ history: 1, max_bytes: maxBytes, replicas },
      // What is read is compared and written: it must not come from a server that lags behind.
      allow_direct: false,
    });
    const manager = await jetstreamManager(connection);
    const { config: { max_bytes: most } } = await manager.streams.info(`KV_${bucket}`);
    const { maxOwnerBytes = (most > 0 ? most : maxBytes) / 8, clock = systemClock } = options;
    return new NatsCallStore(bucket, kv, manager, connection, maxOwnerBytes, clock, seal);
  } catch (cause) {
    const problem = storageProblemOf(cause, connection, bucket, { maxBytes, replicas });
    throw new Error(`Cannot ${ACTION} "${bucket}": ${problem}`, { cause });
  }
}

/** A value as the bucket has it. Of a large one, that are the keys of its parts. */
interface Written {
  readonly message: Uint8Array;
  /** When it is gone. */
  readonly end: number;
  readonly weight: number;
  readonly parts: readonly string[];
}

class NatsCallStore implements CallStore {
  readonly #bucket: string;
  readonly #kv: KV;
  readonly #manager: JetStreamManager;
  readonly #connection: NatsConnection;
  readonly #clock: Pick<RegistryClock, "timestamp">;
  readonly #shares: OwnerShares;
  readonly #maxOwnerBytes: number;
  readonly #seal: Seal | undefined;
  /** Why nothing can be read or written now. */
  #down: string | undefined;
  #writes = 0;
  #sweeping: Promise<void> | undefined;
  #sweptFullAt = -Infinity;

  constructor(
    bucket: string,
    kv: KV,
    manager: JetStreamManager,
    connection: NatsConnection,
    maxOwnerBytes: number,
    clock: Pick<RegistryClock, "timestamp">,
    seal: Seal | undefined,
  ) {
    this.#seal = seal;
    this.#bucket = bucket;
    this.#kv = kv;
    this.#manager = manager;
    this.#connection = connection;
    this.#clock = clock;
    this.#maxOwnerBytes = maxOwnerBytes;
    followStatus(connection, {
      down: (why) => void (this.#down = why),
      up: () => void (this.#down = undefined),
    });
    this.#shares = new OwnerShares({
      ...{ maxBytes: maxOwnerBytes, clock },
      measure: (owner, bytes) => this.#weightOf(owner, bytes),
    });
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
      const isTaken = async (): Promise<boolean> => this.#isThere(await this.#kv.get(key));
      return await this.#shares.write(ownerOf(key), weightOf(key, value.byteLength), async () => {
        // Parts are written first, and not for a key that is taken.
        if (this.#isLarge(value) && await isTaken()) return undefined;
        return await this.#withParts(key, value, options, (written) => this.#create(key, written));
      }, async () => {
        if (await isTaken()) return undefined;
        throw shareIsFull();
      });
    });
  }

  async #create(key: string, written: Written): Promise<number | undefined> {
    let before = 0;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const revision = await this.#put(key, written, before);
      if (revision !== undefined) return revision;
      const entry = await this.#kv.get(key);
      if (this.#isThere(entry)) return undefined;
      // It has expired, or was deleted.
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
    checkStored(key, value);
    return await this.#attempt(async () => {
      const entry = await this.#kv.get(key);
      if (!this.#isThere(entry) || entry.revision !== revision) return undefined;
      const more = value.byteLength - lengthOf(entry);
      const write = (written: Written): Promise<number | undefined> =>
        this.#put(key, written, revision);
      const after = await this.#shares.write(
        ownerOf(key),
        // Its own key was counted: how a call has ended can always be said.
        value.byteLength <= SHORT_BYTES ? 0 : more,
        () => this.#withParts(key, value, options, write),
        () => Promise.reject(shareIsFull()),
      );
      if (after !== undefined) await this.#forget(partsOf(entry));
      return after;
    });
  }

  async delete(key: string, revision: number): Promise<boolean> {
    checkStoreKey(key);
    return await this.#attempt(async () => {
      const entry = await this.#kv.get(key);
      if (!this.#isThere(entry) || entry.revision !== revision) return false;
      try {
        await this.#inRoom(() => this.#kv.delete(key, { previousSeq: revision }));
      } catch (error) {
        if (isConflict(error)) return false;
        throw error;
      }
      this.#shares.give(ownerOf(key), weightOf(key, lengthOf(entry)));
      await this.#forget(partsOf(entry));
      return true;
    });
  }

  async *list(prefix: string, after = ""): AsyncIterable<StoredEntry> {
    if (prefix !== "") checkStoreKey(prefix);
    const keys = await this.#attempt(async () => {
      const subjects_filter = `$KV.${this.#bucket}.${prefix === "" ? ">" : `${prefix}.>`}`;
      const { state } = await this.#manager.streams.info(`KV_${this.#bucket}`, { subjects_filter });
      const found = Object.keys(state.subjects ?? {}).map((subject) => this.#keyOf(subject));
      return prefix === "" ? found.filter((key) => !key.startsWith("=")) : [prefix, ...found];
    });
    // A bucket has no order, so all keys are read at once, and values as they are taken.
    for (const key of keys.filter((key) => key > after).sort()) {
      const entry = await this.get(key);
      if (entry !== undefined) yield entry;
    }
  }

  /** Writes a value in the place of the one with that revision; 0 for none. */
  async #put(
    key: string,
    { message, end, weight, parts }: Written,
    revision: number,
  ): Promise<number | undefined> {
    const about = headers();
    about.set(END, String(end));
    about.set(WEIGHT, String(weight));
    if (parts.length > 0) about.set(OWN_PARTS, parts.join(" "));
    try {
      const { seq } = await this.#inRoom(() =>
        jetstream(this.#connection).publish(`$KV.${this.#bucket}.${key}`, message, {
          headers: about,
          expect: { lastSubjectSequence: revision },
        })
      );
      if (++this.#writes % WRITES_TO_SWEEP === 0) void this.#sweepInTurn();
      return seq;
    } catch (error) {
      if (isConflict(error)) return undefined;
      throw error;
    }
  }

  /** How many bytes an owner keeps; `undefined` if all owners together have room for more. */
  async #weightOf(owner: string, more: number): Promise<number | undefined> {
    const { state: { bytes } } = await this.#manager.streams.info(`KV_${this.#bucket}`);
    if (bytes + more <= this.#maxOwnerBytes) return undefined;
    const now = this.#clock.timestamp();
    let sum = 0;
    for (const filter of owner === "" ? ["*"] : [`*.${owner}`, `*.${owner}.>`]) {
      for await (const { headers } of this.#heads(filter)) {
        const isKept = Number(headers?.get(END) || 0) > now;
        if (isKept) sum += Number(headers?.get(WEIGHT));
      }
    }
    return sum;
  }

  /** Makes a write. If there is no room for it, once more when what has expired is deleted. */
  async #inRoom<T>(write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (!isFull(error)) throw error;
      const now = this.#clock.timestamp();
      if (this.#sweeping === undefined) {
        if (now - this.#sweptFullAt < SWEEP_FULL_EVERY_MS) throw error;
        this.#sweptFullAt = now;
      }
      await this.#sweep();
      return await write();
    }
  }

  #keyOf(subject: string): string {
    return subject.slice(`$KV.${this.#bucket}.`.length);
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
    value = this.#opened(key, value, expiresAt, ((entry.value[8] ?? 0) & SIGNED) !== 0);
    return { key, value, revision, ...(expiresAt < Infinity && { expiresAt }) };
  }

  /** Signs a value for its key and its end. */
  #signed(key: string, value: Uint8Array, expiresAt: number): Uint8Array {
    if (this.#seal === undefined) return value;
    const message = new Uint8Array(MAC_BYTES + value.byteLength);
    message.set(value, MAC_BYTES);
    this.#seal.sign(message, `$KV.${this.#bucket}.${key}`, `${expiresAt}`);
    return message;
  }

  /** @throws {Error} If the value is not signed as it must be. */
  #opened(
    key: string,
    value: Uint8Array<ArrayBuffer>,
    expiresAt: number,
    isSigned: boolean,
  ): Uint8Array<ArrayBuffer> {
    if (this.#seal === undefined) {
      if (!isSigned) return value;
      throw new Error("a value is signed; give natsCallStore the secret");
    }
    if (isSigned && this.#seal.accepts(value, `$KV.${this.#bucket}.${key}`, `${expiresAt}`)) {
      return value.slice(MAC_BYTES);
    }
    throw new Error("a value is damaged, or has a wrong signature");
  }

  /** Writes the parts of a large value, and then what has their keys. */
  async #withParts(
    key: string,
    plain: Uint8Array,
    { expiresAt = Infinity }: StoreOptions,
    write: (written: Written) => Promise<number | undefined>,
  ): Promise<number | undefined> {
    const value = this.#signed(key, plain, expiresAt);
    const parts: string[] = [];
    const isLarge = this.#isLarge(value);
    const most = this.#partBytes;
    try {
      for (let at = 0; isLarge && at < value.byteLength; at += most) {
        const part = `${PARTS}${nuid.next()}`;
        parts.push(part);
        await this.#inRoom(() => this.#kv.put(part, value.slice(at, at + most)));
      }
      const body = isLarge
        ? encoder.encode(JSON.stringify({ bytes: value.byteLength, parts }))
        : value;
      const message = new Uint8Array(HEAD_BYTES + body.byteLength);
      const view = new DataView(message.buffer);
      view.setFloat64(0, expiresAt);
      view.setUint8(8, (isLarge ? IN_PARTS : 0) | (this.#seal === undefined ? 0 : SIGNED));
      message.set(body, HEAD_BYTES);
      const weight = weightOf(key, value.byteLength);
      const revision = await write({ message, end: expiresAt, weight, parts });
      if (revision === undefined) await this.#forget(parts);
      return revision;
    } catch (error) {
      // Without an answer of the server, the value may be there.
      if (error instanceof JetStreamApiError) await this.#forget(parts);
      throw error;
    }
  }

  get #partBytes(): number {
    const { max_payload: most = MAX_PART_BYTES + ROOM_BYTES } = this.#connection.info ?? {};
    return Math.min(MAX_PART_BYTES, most - ROOM_BYTES);
  }

  #isLarge(value: Uint8Array): boolean {
    return value.byteLength > this.#partBytes;
  }

  async #forget(parts: readonly string[]): Promise<void> {
    for (let at = 0; at < parts.length; at += AT_ONCE) {
      const some = parts.slice(at, at + AT_ONCE);
      await Promise.all(some.map((part) => this.#erase(part).catch(leaveToSweep)));
    }
  }

  /** Removes what a key has, up to a revision. Leaves no mark, so that it needs no room. */
  async #erase(key: string, revision?: number): Promise<void> {
    const filter = `$KV.${this.#bucket}.${key}`;
    const upTo = revision === undefined ? {} : { seq: revision + 1 };
    await this.#manager.streams.purge(`KV_${this.#bucket}`, { filter, ...upTo });
  }

  /** Sweeps, unless another process has just done it. */
  async #sweepInTurn(): Promise<void> {
    try {
      const last = await this.#kv.get(SWEPT);
      const lastAt = last?.created.getTime() ?? -Infinity;
      if (Math.abs(this.#clock.timestamp() - lastAt) < SWEEP_EVERY_MS) return;
      await this.#kv.put(SWEPT, "", { previousSeq: revisionOf(last) });
      await this.#sweep();
    } catch {
      // Another process has begun, or the server is away: it is done later.
    }
  }

  #sweep(): Promise<void> {
    return this.#sweeping ??= this.#eraseOld()
      // The next sweep deletes the rest.
      .catch(leaveToSweep)
      .finally(() => this.#sweeping = undefined);
  }

  /** Deletes what has expired, and what belongs to nothing. Reads each entry once, without its value. */
  async #eraseOld(): Promise<void> {
    const used = new Set<string>();
    const parts: string[] = [];
    const erased: Promise<void>[] = [];
    const now = this.#clock.timestamp();
    for await (const { subject, seq, time, headers } of this.#heads()) {
      const key = this.#keyOf(subject);
      const isOld = time.getTime() < now - OLD_MS;
      const own = (headers?.get(OWN_PARTS) ?? "").split(" ").filter((part) => part !== "");
      const end = headers?.get(END) ?? "";
      if (headers?.has("KV-Operation")) {
        // Marks of deletion stay in a bucket until they are purged.
        if (isOld) erased.push(this.#erase(key, seq));
      } else if (key.startsWith(PARTS)) {
        if (isOld) parts.push(key);
      } else if (end !== "" && Number(end) <= now) {
        erased.push(this.#erase(key, seq).then(() => this.#forget(own)));
      } else {
        for (const part of own) used.add(part);
      }
      if (erased.length >= AT_ONCE) await Promise.all(erased.splice(0));
    }
    await Promise.all(erased);
    await this.#forget(parts.filter((part) => !used.has(part)));
  }

  /** The last message of each key, without its value. */
  async *#heads(keys = ">"): AsyncGenerator<JsMsg, void, void> {
    const consumer = await jetstream(this.#connection).consumers.get(`KV_${this.#bucket}`, {
      filter_subjects: `$KV.${this.#bucket}.${keys}`,
      deliver_policy: DeliverPolicy.LastPerSubject,
      headers_only: true,
    });
    const { num_pending: count } = await consumer.info();
    if (count === 0) return;
    const messages = await consumer.consume();
    const stopWhenQuiet = (): () => void => systemClock.setTimeout(() => messages.stop(), QUIET_MS);
    let disarm = stopWhenQuiet();
    let seen = 0;
    try {
      for await (const message of messages) {
        disarm();
        yield message;
        // Others may write meanwhile, so that there is no end.
        if (message.info.pending === 0 || ++seen >= count) return;
        disarm = stopWhenQuiet();
      }
    } finally {
      disarm();
    }
  }

  async #attempt<T>(work: () => Promise<T>): Promise<T> {
    // The client would keep what is asked, and wait.
    if (this.#down !== undefined) throw new Error(`Cannot use the store of calls: ${this.#down}`);
    try {
      return await work();
    } catch (cause) {
      if (cause instanceof RangeError) throw cause;
      const problem = problemOf(cause, this.#connection);
      throw new Error(`Cannot use the store of calls: ${problem}`, { cause });
    }
  }
}

function leaveToSweep(): void {}

function shareIsFull(): RangeError {
  return new RangeError("Cannot store a value: its owner's share is full");
}

function revisionOf(entry: KvEntry | null): number {
  return entry?.revision ?? 0;
}

function endOf(value: Uint8Array): number {
  if (value.byteLength < HEAD_BYTES) return -Infinity;
  return new DataView(value.buffer, value.byteOffset, HEAD_BYTES).getFloat64(0);
}

/** What a value in parts has in its place. */
interface PartList {
  readonly bytes: number;
  readonly parts: readonly string[];
}

function partListOf({ value }: KvEntry): PartList | undefined {
  return (value[8] ?? 0) & IN_PARTS
    ? JSON.parse(decoder.decode(value.subarray(HEAD_BYTES)))
    : undefined;
}

/** The keys of the parts of a value. */
function partsOf(entry: KvEntry): readonly string[] {
  return partListOf(entry)?.parts ?? [];
}

function lengthOf(entry: KvEntry): number {
  return partListOf(entry)?.bytes ?? entry.value.byteLength - HEAD_BYTES;
}

function weightOf(key: string, bytes: number): number {
  return ENTRY_BYTES + key.length + bytes;
}

function ownerOf(key: string): string {
  return key.split(".", 2)[1] ?? "";
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
