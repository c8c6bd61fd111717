/**
 * Streams and buckets of JetStream. Opens and creates them, reads the newest messages of a bucket,
 * deletes expired entries, and explains errors of the server.
 */

import * as js from "@nats-io/jetstream";
import { JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import { type MsgHdrs, nanos, type NatsConnection } from "@nats-io/nats-core";
import * as check from "../../tool/mod.ts";
import { describeThrown, noop, systemClock } from "../../tool/mod.ts";
import { MAX_SKEW_MS, RUNS_STREAM, runSubject } from "./protocol.ts";

/** Codes of the server's API. The texts of the server change between versions. */
const WRONG_LAST_SEQUENCE: readonly number[] = [10071, 10164];
const NO_JETSTREAM: readonly number[] = [10039, 10076];
const NO_RESOURCES: readonly number[] = [10002, 10023, 10028, 10047, 10077];

/** Names of errors of requests that would fail again. */
const REFUSALS: readonly string[] = ["InvalidArgumentError", "PermissionViolationError"];

export function isFull(error: unknown): boolean {
  return error instanceof JetStreamApiError && NO_RESOURCES.includes(error.code);
}

/** True if a stream or a bucket is missing. A write to it then has no responders. */
export function isMissing(error: unknown): boolean {
  return error instanceof JetStreamApiError
    ? error.code === js.JetStreamApiCodes.StreamNotFound
    : error instanceof Error && error.name === "JetStreamNotEnabled";
}

/** True if the server or the client rejected a request that would fail again. */
export function isRefused(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof JetStreamApiError) return isFull(error) || error.status < 500;
  return REFUSALS.includes(error.name) || isRefused(error.cause);
}

export function problemOf(error: unknown, connection: NatsConnection): string {
  if (connection.isClosed()) return "the connection to NATS is closed";
  const message = describeThrown(error);
  if (error instanceof JetStreamApiError) {
    if (NO_JETSTREAM.includes(error.code)) {
      return `JetStream is not enabled for this account (${message})`;
    }
    if (NO_RESOURCES.includes(error.code)) return `a limit of the server is reached (${message})`;
  }
  const name = error instanceof Error ? error.name : "";
  if (name === "PermissionViolationError" || /permissions violation/i.test(message)) {
    return `the user of the connection has no permission (${message})`;
  }
  if (name === "TimeoutError" || name === "NoRespondersError" || /no responders/.test(message)) {
    return `the server does not answer (${message || name})`;
  }
  return message;
}

/** Returns how far this machine's clock is ahead of the server's, in milliseconds. */
export function skewOf(before: number, created: string): number {
  const createdAt = Date.parse(created);
  return Math.max(0, before - createdAt) + Math.min(0, systemClock.timestamp() - createdAt);
}

/** @throws {Error} If this machine's clock and the server's differ too much. */
export function checkSkew(skewMs: number): void {
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return;
  const seconds = (Math.abs(skewMs) / 1_000).toFixed(1);
  const most = MAX_SKEW_MS / 1_000;
  throw new Error(
    `the clock of this machine is ${seconds} s ${skewMs > 0 ? "ahead of" : "behind"} that of the ` +
      `server, but at most ${most} s are allowed; synchronize both clocks`,
  );
}

export interface StorageSettings {
  readonly replicas: number;
  readonly maxBytes: number;
}

export const STORAGE: StorageSettings = { replicas: 1, maxBytes: 1_073_741_824 };

export const STORAGE_OPTIONS: {
  readonly replicas: check.Check<number>;
  readonly maxBytes: check.Check<number>;
} = { replicas: check.wholeFrom(1, 5), maxBytes: check.numberFrom(1_048_576) };

/** The lifetime of durable calls and their results, in milliseconds. */
export const KEPT_MS = 86_400_000;
/** The time in which the server rejects a second message with the same id, in milliseconds. */
const DUPLICATE_MS = 120_000;

export interface BucketPlace {
  readonly connection: NatsConnection;
  readonly name: string;
  /** The settings of a missing bucket. @default {STORAGE} */
  readonly storage?: StorageSettings;
}

/**
 * Settings of all buckets. Direct reads are off, because followers may not have the newest value. With
 * rollup headers, anyone who can deliver one message to a bucket could delete all its values.
 */
export const BUCKET = { allow_direct: false, allow_rollup_hdrs: false } as const;

/** Opens a bucket, and creates it if it is missing. The client's own function allows rollup headers. */
export async function openBucket(
  { connection, name, storage = STORAGE }: BucketPlace,
): Promise<KV> {
  const manager = await js.jetstreamManager(connection);
  const stream = `KV_${name}`;
  if (await configOf(manager, stream) === undefined) {
    await manager.streams.add({
      ...{ name: stream, subjects: [`$KV.${name}.>`], max_msgs_per_subject: 1, ...BUCKET },
      ...{
        max_bytes: storage.maxBytes,
        num_replicas: storage.replicas,
        discard: js.DiscardPolicy.New,
      },
    });
  }
  return await new Kvm(connection).open(name, { allow_direct: BUCKET.allow_direct });
}

/** The server's response to a write may be sent as a request to purge or delete waiting calls. */
export const RUN_STREAM = { deny_delete: true, deny_purge: true } as const;

/**
 * Opens the stream of durable calls, and creates it if it is missing.
 * @throws {Error} If an existing stream has other settings.
 */
export async function openRunStream(
  manager: JetStreamManager,
  { maxBytes, replicas }: StorageSettings = STORAGE,
): Promise<js.StreamConfig> {
  const wanted = {
    subjects: [runSubject(">")],
    retention: js.RetentionPolicy.Workqueue,
    discard: js.DiscardPolicy.New,
  };
  const config = await configOf(manager, RUNS_STREAM) ?? (await manager.streams.add({
    ...{ name: RUNS_STREAM, ...wanted, max_bytes: maxBytes, num_replicas: replicas },
    ...{ max_age: nanos(KEPT_MS), duplicate_window: nanos(DUPLICATE_MS), ...RUN_STREAM },
  })).config;
  const { subjects = [], retention, discard } = config;
  const isRight = subjects.join() === wanted.subjects.join() && retention === wanted.retention &&
    discard === wanted.discard;
  if (isRight) return config;
  throw new Error(
    `its settings differ; required are subjects "${wanted.subjects}", retention "workqueue" and ` +
      'discard "new"',
  );
}

export async function configOf(
  { streams }: JetStreamManager,
  name: string,
): Promise<js.StreamConfig | undefined> {
  try {
    return (await streams.info(name)).config;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Explains why a stream or a bucket could not be opened, and what to do. */
export function storageProblemOf(
  error: unknown,
  connection: NatsConnection,
  name: string,
  { replicas, maxBytes }: StorageSettings = STORAGE,
): string {
  const problem = problemOf(error, connection);
  if (/permissions violation.*\.STREAM\.CREATE\./i.test(problem)) {
    return `"${name}" is missing, and the user of the connection may not create it; run ` +
      `"plue nats init" as a user who may (${describeThrown(error)})`;
  }
  if (!isFull(error)) return problem;
  const size = `${maxBytes} bytes on ${replicas === 1 ? "one server" : `${replicas} servers`}`;
  return `the server has no storage for "${name}", which reserves ${size}; add storage to the ` +
    `server, or create less with "plue nats init --max-bytes": ${problem}`;
}

/** The header with the expiry of an entry, in milliseconds since 1970. */
export const EXPIRY = "Plue-End";
/** The header with the time from which an entry is due. The header is only a hint, and not signed. */
export const DUE = "Plue-Due";
/** The age in milliseconds at which a deletion marker is purged. By then all watches have read it. */
export const MARKER_MS = 3_600_000;
/** The wait for the next entry, in milliseconds, because the server may announce one too many. */
export const QUIET_MS = 1_000;
const AT_ONCE = 64;
/** The maximum number of entries that a sweep purges. The next sweep purges the rest. */
const MAX_SWEPT = 65_536;

export class Bucket {
  readonly kv: KV;
  readonly #streams: JetStreamManager["streams"];
  readonly #place: BucketPlace;

  private constructor(kv: KV, { streams }: JetStreamManager, place: BucketPlace) {
    this.kv = kv;
    this.#streams = streams;
    this.#place = place;
  }

  static async open(place: BucketPlace): Promise<Bucket> {
    const manager = await js.jetstreamManager(place.connection, { checkAPI: false });
    return new Bucket(await openBucket(place), manager, place);
  }

  async reopen(): Promise<void> {
    await openBucket(this.#place);
  }

  get #stream(): string {
    return `KV_${this.#place.name}`;
  }

  /** Returns the subject of a key, or of the keys that match a pattern. */
  subject(keys: string): string {
    return `$KV.${this.#place.name}.${keys}`;
  }

  /** Returns the settings and the state of the bucket's stream, with the keys that match. */
  async info(keys?: string): Promise<js.StreamInfo> {
    const options = keys === undefined ? {} : { subjects_filter: this.subject(keys) };
    return await this.#streams.info(this.#stream, options);
  }

  /** Returns the newest message of a key, which may be a deletion marker. */
  async last(key: string): Promise<js.StoredMsg | undefined> {
    const query = { last_by_subj: this.subject(key) };
    return await this.#streams.getMessage(this.#stream, query) ?? undefined;
  }

  /**
   * Writes a message if the newest message of the key has this revision; 0 means no message.
   *
   * @returns The new revision; `undefined` if the newest message has another revision.
   */
  async write(
    key: string,
    message: Uint8Array,
    headers: MsgHdrs,
    revision: number,
  ): Promise<number | undefined> {
    const options = { headers, expect: { lastSubjectSequence: revision } };
    const stream = js.jetstream(this.#place.connection);
    const written = stream.publish(this.subject(key), message, options);
    return (await written.catch(ignoreConflict))?.seq;
  }

  /** Deletes an entry. Returns false, and changes nothing, if its revision is not `previousSeq`. */
  async remove(key: string, previousSeq?: number): Promise<boolean> {
    const options = previousSeq === undefined ? {} : { previousSeq };
    return await this.kv.delete(key, options).then(() => true).catch(ignoreConflict) ?? false;
  }

  /** @throws {Error} If the clock of this machine is wrong. */
  async checkClock(): Promise<void> {
    for await (const _ of this.heads("="));
  }

  /** Purges expired entries and old deletion markers. Reads each entry once, without its value. */
  async sweep(now: number): Promise<void> {
    const old: { readonly filter: string; readonly seq: number }[] = [];
    for await (const { subject, seq, time, headers } of this.heads(">")) {
      const isOver = isMarker(headers)
        ? time.getTime() <= now - MARKER_MS
        : expiryOf(headers) <= now;
      if (isOver) old.push({ filter: subject, seq: seq + 1 });
      if (old.length >= MAX_SWEPT) break;
    }
    // A purge writes no marker, so it works in a full bucket. It would disturb the consumer above.
    const purge = (one: typeof old[number]) => this.#streams.purge(this.#stream, one);
    while (old.length > 0) await Promise.all(old.splice(-AT_ONCE).map(purge));
  }

  /**
   * Yields the message of each key that matches, without its value.
   *
   * @throws {Error} If the clock of this machine is wrong.
   */
  async *heads(keys: string): AsyncGenerator<js.JsMsg, void, void> {
    const before = systemClock.timestamp();
    const { consumers } = js.jetstream(this.#place.connection);
    const consumer = await consumers.get(this.#stream, {
      filter_subjects: this.subject(keys),
      // A bucket has one message of each key. LastPerSubject would delay writes for longer.
      deliver_policy: js.DeliverPolicy.All,
      headers_only: true,
    });
    let [seen, disarm] = [0, noop as () => void];
    try {
      const { num_pending: count, created } = await consumer.info(true);
      checkSkew(skewOf(before, created));
      if (count === 0) return;
      const messages = await consumer.consume();
      const stopWhenQuiet = (): () => void =>
        systemClock.setTimeout(() => messages.stop(), QUIET_MS);
      disarm = stopWhenQuiet();
      for await (const message of messages) {
        disarm();
        yield message;
        // Other processes may continue to write, so the count ends the loop.
        if (message.info.pending === 0 || ++seen >= count) return;
        disarm = stopWhenQuiet();
      }
    } finally {
      disarm();
      // Otherwise the server would keep the consumer for five minutes.
      consumer.delete().catch(noop);
    }
  }
}

function ignoreConflict(error: unknown): undefined {
  const isConflict = error instanceof JetStreamApiError && WRONG_LAST_SEQUENCE.includes(error.code);
  if (!isConflict) throw error;
}

function isMarker(headers: MsgHdrs | undefined): boolean {
  return headers?.has("KV-Operation") ?? false;
}

/** Returns the expiry of an entry, in milliseconds since 1970. A deleted entry has expired. */
export function expiryOf(headers: MsgHdrs | undefined): number {
  return isMarker(headers) ? -Infinity : Number(headers?.get(EXPIRY) || Infinity);
}
