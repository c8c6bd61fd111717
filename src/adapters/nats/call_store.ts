/** A call store in a bucket of NATS, which all processes of the server share. */

import { JsHeaders, type StoredMsg } from "@nats-io/jetstream";
import { headers, type NatsConnection } from "@nats-io/nats-core";
import * as durable from "../../execute/durable/mod.ts";
import type { CallStore, StoreWrite } from "../../execute/durable/mod.ts";
import { matching, noop, readFields, type RegistryClock, systemClock } from "../../tool/mod.ts";
import { checkServer, followStatus, NATS_OPTIONS, type NatsOptions } from "./link.ts";
import { CALLS_BUCKET } from "./protocol.ts";
import { roleOf, Seal } from "./seal.ts";
import * as streams from "./streams.ts";

/**
 * Options for {@linkcode natsCallStore}. `maxBytes` is the size of a new bucket, by default 1 GiB.
 *
 * With a `secret`, values are signed, so that a process without the secret cannot forge them. With
 * `keys` too, a process accepts only values of its own role: a worker cannot forge a caller's tasks.
 */
export interface NatsCallStoreOptions
  extends durable.StoreLimits, Partial<Pick<NatsOptions, "secret" | "keys">> {
  /** The name of the bucket, which is created if it is missing. @default {"plue_calls"} */
  readonly bucket?: string;
}

const ACTION = "open the store";
/** The space in a message for headers and signature, in bytes. */
const OVERHEAD_BYTES = 1_024;
const WRITES_TO_SWEEP = 1_024;
/** The minimum time between two sweeps of all processes, in milliseconds. */
const SWEEP_EVERY_MS = 600_000;
/** The minimum time between two sweeps because the bucket is full, in milliseconds. */
const SWEEP_FULL_EVERY_MS = 10_000;
/** The key whose message has the time of the last sweep. */
const SWEPT = "=swept";
/** If a clock was set by more than this, it is compared with the server's again, in milliseconds. */
const CLOCK_SET_MS = 1_000;
const SIGNED = "Plue-Signed";
/** A shorter value may replace another value even if the quota of the owner is used up. */
const SHORT_BYTES = 1_024;
/** The number of attempts to create a key that has expired or was deleted. */
const MAX_TRIES = 8;

const OPTIONS = {
  ...durable.STORE_LIMITS,
  maxBytes: streams.STORAGE_OPTIONS.maxBytes,
  bucket: matching('letters, digits, "_" and "-"', /^[\w-]{1,64}$/),
  secret: NATS_OPTIONS.secret,
  keys: NATS_OPTIONS.keys,
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
  return await openCallStore(connection, options, false);
}

/** @param countsKeys True if quotas count keys instead of bytes: a caller may not fetch messages. */
export async function openCallStore(
  connection: NatsConnection,
  options: NatsCallStoreOptions,
  countsKeys: boolean,
): Promise<CallStore> {
  const read = readFields(ACTION, { ...options }, OPTIONS);
  const { bucket: name = CALLS_BUCKET, secret, keys, clock = systemClock } = read;
  const { maxBytes = streams.STORAGE.maxBytes } = read;
  const role = roleOf(ACTION, keys);
  const seal = secret === undefined ? undefined : new Seal(ACTION, secret, role, keys);
  await checkServer(ACTION, connection);
  const storage = { ...streams.STORAGE, maxBytes };
  try {
    const bucket = await streams.Bucket.open({ connection, name, storage });
    await bucket.checkClock();
    const { config: { max_bytes: most } } = await bucket.info();
    const { maxOwnerBytes = (most > 0 ? most : maxBytes) / 8 } = read;
    const settings = { seal, maxOwnerBytes, clock, countsKeys };
    return durable.createCallStore(new NatsDriver(connection, bucket, settings));
  } catch (cause) {
    const problem = streams.storageProblemOf(cause, connection, name, storage);
    throw new Error(`Cannot ${ACTION} "${name}": ${problem}`, { cause });
  }
}

function clockOffset(): number {
  return systemClock.timestamp() - systemClock.now();
}

interface Settings {
  readonly seal: Seal | undefined;
  readonly maxOwnerBytes: number;
  readonly countsKeys: boolean;
  readonly clock: Pick<RegistryClock, "timestamp">;
}

class NatsDriver implements durable.StoreDriver {
  readonly #connection: NatsConnection;
  readonly #bucket: streams.Bucket;
  readonly #settings: Settings;
  readonly #quotas: durable.MeasuredQuotas;
  /** The reason why the store cannot be used; `undefined` while the connection is up. */
  #down: string | undefined;
  #writes = 0;
  #sweeping: Promise<void> | undefined;
  #sweptFullAt = -Infinity;
  /** The offset of this clock when it was last compared with the server's clock. */
  #clockOffset = clockOffset();

  constructor(connection: NatsConnection, bucket: streams.Bucket, settings: Settings) {
    this.#connection = connection;
    this.#bucket = bucket;
    this.#settings = settings;
    followStatus(connection, {
      down: (why) => void (this.#down = why),
      up: () => void (this.#down = undefined),
    });
    const { maxOwnerBytes: maxBytes, clock } = settings;
    const measure = (owner: string, bytes: number) => this.#weightOf(owner, bytes);
    this.#quotas = new durable.MeasuredQuotas({ maxBytes, clock, measure });
  }

  async get(key: string): Promise<durable.StoreRow | undefined> {
    return await this.#attempt(() => this.#read(key, true));
  }

  /** @param isStrict False to skip a value with another signature instead of throwing. */
  async #read(key: string, isStrict: boolean): Promise<durable.StoreRow | undefined> {
    const message = await this.#find(key);
    if (message === undefined) return undefined;
    const value = this.#valueOf(key, message);
    if (value !== undefined) {
      const expires = streams.expiryOf(message.header);
      return { key, revision: message.seq, value, expires: expires < Infinity ? expires : null };
    }
    if (isStrict) throw new Error("a value is damaged, or has a wrong signature");
    return undefined;
  }

  /** Returns the message with the current value of a key. */
  async #find(key: string): Promise<StoredMsg | undefined> {
    const message = await this.#bucket.last(key);
    return message !== undefined && this.#isThere(message) ? message : undefined;
  }

  #isThere({ header }: StoredMsg): boolean {
    return streams.expiryOf(header) > this.#settings.clock.timestamp();
  }

  async put(write: StoreWrite): Promise<number | undefined> {
    this.#checkSize(write.value);
    return await this.#attempt(() =>
      write.expected === null ? this.#create(write) : this.#update(write, write.expected)
    );
  }

  async #create(write: StoreWrite): Promise<number | undefined> {
    const { key, value } = write;
    await this.#checkClock();
    const weight = durable.entryWeight(key, value.byteLength);
    return await this.#quotas.write(
      durable.ownerOf(key),
      weight,
      () => this.#createNow(write),
      async () => {
        if (await this.#find(key) !== undefined) return undefined;
        throw durable.quotaExhausted();
      },
    );
  }

  /** Compares the clocks: with a wrong clock, a key could expire for one process only. */
  async #checkClock(): Promise<void> {
    const offset = clockOffset();
    if (Math.abs(offset - this.#clockOffset) < CLOCK_SET_MS) return;
    await this.#bucket.checkClock();
    this.#clockOffset = offset;
  }

  async #createNow(write: StoreWrite): Promise<number | undefined> {
    const { key } = write;
    let before = 0;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const revision = await this.#send(write, before);
      if (revision !== undefined) return revision;
      const message = await this.#bucket.last(key);
      if (message !== undefined && this.#isThere(message)) return undefined;
      // The entry has expired or was deleted, so a new value may replace it.
      before = message?.seq ?? 0;
    }
    return undefined;
  }

  async #update(write: StoreWrite, revision: number): Promise<number | undefined> {
    const { key, value } = write;
    const message = await this.#find(key);
    if (message?.seq !== revision) return undefined;
    // Short values are exempt from the quota, because the end of a call must always be writable.
    const more = value.byteLength <= SHORT_BYTES
      ? 0
      : value.byteLength - this.#lengthOf(message.data.byteLength);
    const send = () => this.#send(write, revision);
    const full = () => Promise.reject(durable.quotaExhausted());
    return await this.#quotas.write(durable.ownerOf(key), more, send, full);
  }

  async remove(key: string, revision: number): Promise<boolean> {
    return await this.#attempt(async () => {
      const message = await this.#find(key);
      if (message?.seq !== revision) return false;
      if (!await this.#write(() => this.#bucket.remove(key, revision))) return false;
      const bytes = this.#lengthOf(message.data.byteLength);
      this.#quotas.give(durable.ownerOf(key), durable.entryWeight(key, bytes));
      return true;
    });
  }

  async *list(prefix: string, after: string): AsyncGenerator<durable.StoreRow, void> {
    const { state } = await this.#attempt(() => this.#bucket.info(`${prefix}.>`));
    const { length } = this.#bucket.subject("");
    const found = Object.keys(state.subjects ?? {}).map((subject) => subject.slice(length));
    // The bucket has no order, so this reads and sorts all keys first, and each value on demand.
    for (const key of [prefix, ...found].filter((key) => key > after).sort()) {
      const row = await this.#attempt(() => this.#read(key, false));
      if (row !== undefined) yield row;
    }
  }

  /** Reads the headers of all entries of the kind, and then the values of the due entries. */
  async due(
    { kind, before, limit, after }: durable.DueQuery,
  ): Promise<readonly durable.DueEntry[]> {
    return await this.#attempt(async () => {
      const due: durable.DuePosition[] = [];
      const { length } = this.#bucket.subject("");
      for await (const { subject, headers } of this.#bucket.heads(`${kind}.>`)) {
        const dueAt = Number(headers?.get(streams.DUE) || Infinity);
        const place = { key: subject.slice(length), dueAt };
        if (dueAt <= before && durable.compareDue(place, after) > 0) due.push(place);
      }
      const first = due.sort(durable.compareDue).slice(0, limit);
      const rows = await Promise.all(first.map(async ({ key, dueAt }) => {
        const row = await this.#read(key, false);
        return row && durable.dueEntryOf({ ...row, due: dueAt });
      }));
      return rows.filter((row) => row !== undefined);
    });
  }

  #checkSize(value: Uint8Array): void {
    const { max_payload: limit = durable.MAX_STORED_BYTES + OVERHEAD_BYTES } =
      this.#connection.info ?? {};
    if (value.byteLength <= limit - OVERHEAD_BYTES) return;
    throw new RangeError(
      `Cannot store a value: it has ${value.byteLength} bytes, but max_payload of the server allows ` +
        `${limit - OVERHEAD_BYTES}`,
    );
  }

  /** Writes a value if the key has that revision; 0 means no value. Returns the new revision. */
  async #send(
    { key, value, expires, due }: StoreWrite,
    revision: number,
  ): Promise<number | undefined> {
    const { seal } = this.#settings;
    const about = headers();
    const ends = `${expires ?? Infinity}`;
    about.set(streams.EXPIRY, ends);
    if (due !== null) about.set(streams.DUE, `${due}`);
    let message = value;
    if (seal !== undefined) {
      about.set(SIGNED, "1");
      message = new Uint8Array(seal.bytes + value.byteLength);
      message.set(value, seal.bytes);
      seal.sign(message, this.#bucket.subject(key), ends);
    }
    const written = await this.#write(() => this.#bucket.write(key, message, about, revision));
    if (++this.#writes % WRITES_TO_SWEEP === 0) void this.#sweepInTurn();
    return written;
  }

  /** Returns the value of a message; `undefined` if its signature is invalid or missing. */
  #valueOf(key: string, { data, header }: StoredMsg): Uint8Array | undefined {
    const { seal } = this.#settings;
    if (seal === undefined) {
      if (header?.has(SIGNED)) throw new Error("a value is signed; set the option secret");
      return data.slice();
    }
    const place = [
      this.#bucket.subject(key),
      header?.get(streams.EXPIRY) ?? "",
      seal.role,
    ] as const;
    return seal.accepts(data, ...place) ? data.slice(seal.bytes) : undefined;
  }

  #lengthOf(bytes: number): number {
    return bytes - (this.#settings.seal?.bytes ?? 0);
  }

  /** Returns the usage of a principal in bytes; `undefined` if the bucket is nearly empty. */
  async #weightOf(owner: string, more: number): Promise<number | undefined> {
    const { state: { bytes } } = await this.#bucket.info();
    if (bytes + more <= this.#settings.maxOwnerBytes) return undefined;
    if (this.#settings.countsKeys) {
      const { state: { subjects = {} } } = await this.#bucket.info(`*.${owner}.>`);
      return Object.keys(subjects).length * SHORT_BYTES;
    }
    const now = this.#settings.clock.timestamp();
    const prefix = this.#bucket.subject("").length;
    let sum = 0;
    for (const keys of owner === "" ? ["*"] : [`*.${owner}`, `*.${owner}.>`]) {
      for await (const { subject, headers } of this.#bucket.heads(keys)) {
        if (streams.expiryOf(headers) <= now) continue;
        // The last header with this name is the server's: the server adds it after the sender's.
        const size = this.#lengthOf(Number(headers?.last(JsHeaders.MessageSizeHdr)));
        sum += durable.entryWeight(subject.slice(prefix), size);
      }
    }
    return sum;
  }

  /** Runs a write. If the bucket is full, sweeps it and writes again. */
  async #write<T>(write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (!streams.isFull(error)) throw error;
      const now = this.#settings.clock.timestamp();
      if (this.#sweeping === undefined) {
        if (now - this.#sweptFullAt < SWEEP_FULL_EVERY_MS) throw error;
        this.#sweptFullAt = now;
      }
      await this.#sweep();
      return await write();
    }
  }

  /** Sweeps the bucket, unless another process has just swept it. */
  async #sweepInTurn(): Promise<void> {
    try {
      const last = await this.#bucket.last(SWEPT);
      const lastAt = last?.time.getTime() ?? -Infinity;
      if (Math.abs(this.#settings.clock.timestamp() - lastAt) < SWEEP_EVERY_MS) return;
      const isMine = await this.#bucket.write(SWEPT, new Uint8Array(), headers(), last?.seq ?? 0);
      if (isMine !== undefined) await this.#sweep();
    } catch {
      // If the server is unreachable, a later sweep deletes the entries.
    }
  }

  #sweep(): Promise<void> {
    return this.#sweeping ??= this.#bucket.sweep(this.#settings.clock.timestamp())
      // The next sweep deletes the remaining entries.
      .catch(noop)
      .finally(() => this.#sweeping = undefined);
  }

  async #attempt<T>(work: () => Promise<T>): Promise<T> {
    // Throws, because the client would buffer the request until it is connected again.
    if (this.#down !== undefined) throw new Error(this.#down);
    try {
      return await work();
    } catch (error) {
      if (!streams.isMissing(error)) throw error;
      await this.#bucket.reopen();
      return await work();
    }
  }

  explain(error: unknown): string {
    return streams.problemOf(error, this.#connection);
  }
}
