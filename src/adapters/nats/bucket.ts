/**
 * A bucket of JetStream: its newest messages, and the deletion of expired entries and old markers.
 */

import {
  type Consumer,
  DeliverPolicy,
  jetstream,
  type JetStreamManager,
  jetstreamManager,
  type JsMsg,
  type StoredMsg,
  type StreamInfo,
} from "@nats-io/jetstream";
import type { KV } from "@nats-io/kv";
import type { MsgHdrs, NatsConnection } from "@nats-io/nats-core";
import { noop, systemClock } from "../../tool/mod.ts";
import { checkSkew, isConflict, openBucket, skewOf, type StorageSettings } from "./server.ts";

/** The header with the expiry of an entry, in milliseconds since 1970. */
export const EXPIRY = "Plue-End";
/** The age at which a deletion marker is purged: by then all watches have seen it. In milliseconds. */
export const MARKER_MS = 3_600_000;
/** The server may announce one entry too many: the wait for the next one, in milliseconds. */
export const QUIET_MS = 1_000;
const AT_ONCE = 64;

interface BucketPlace {
  readonly connection: NatsConnection;
  readonly name: string;
  readonly storage: StorageSettings;
}

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
    const { connection, name, storage } = place;
    const kv = await openBucket(connection, name, storage);
    return new Bucket(kv, await jetstreamManager(connection, { checkAPI: false }), place);
  }

  async reopen(): Promise<void> {
    const { connection, name, storage } = this.#place;
    await openBucket(connection, name, storage);
  }

  get #stream(): string {
    return `KV_${this.#place.name}`;
  }

  /** Returns the subject of a key, or of the keys that match. */
  subject(keys: string): string {
    return `$KV.${this.#place.name}.${keys}`;
  }

  /** Returns the settings and the state, with the keys that match. */
  async info(keys?: string): Promise<StreamInfo> {
    const options = keys === undefined ? {} : { subjects_filter: this.subject(keys) };
    return await this.#streams.info(this.#stream, options);
  }

  /** Returns the newest message of a key, which may be a deletion marker. */
  async last(key: string): Promise<StoredMsg | undefined> {
    const query = { last_by_subj: this.subject(key) };
    return await this.#streams.getMessage(this.#stream, query) ?? undefined;
  }

  /**
   * Writes a message if the newest one of its key has this revision; 0 means none.
   *
   * @returns The new revision; `undefined` if the newest message is another one.
   */
  async write(
    key: string,
    message: Uint8Array,
    headers: MsgHdrs,
    revision: number,
  ): Promise<number | undefined> {
    const options = { headers, expect: { lastSubjectSequence: revision } };
    const stream = jetstream(this.#place.connection);
    const written = stream.publish(this.subject(key), message, options);
    return (await written.catch(ignoreConflict))?.seq;
  }

  /** Deletes the entry with this revision, or any. Returns false if the newest one is another one. */
  async remove(key: string, previousSeq?: number): Promise<boolean> {
    const options = previousSeq === undefined ? {} : { previousSeq };
    return await this.kv.delete(key, options).then(() => true).catch(ignoreConflict) ?? false;
  }

  /** @throws {Error} If the clock of this machine is off. */
  async checkClock(): Promise<void> {
    const { consumer } = await this.#openHeads("=");
    consumer.delete().catch(noop);
  }

  /** Purges expired entries and old deletion markers. Reads each entry once, without its value. */
  async sweep(now: number): Promise<void> {
    const purged: Promise<unknown>[] = [];
    for await (const { subject, seq, time, headers } of this.heads(">")) {
      const isOver = isMarker(headers)
        ? time.getTime() <= now - MARKER_MS
        : expiryOf(headers) <= now;
      // A purge leaves no marker, so it fits into a full bucket.
      const old = { filter: subject, seq: seq + 1 };
      if (isOver) purged.push(this.#streams.purge(this.#stream, old));
      if (purged.length >= AT_ONCE) await Promise.all(purged.splice(0));
    }
    await Promise.all(purged);
  }

  /** Opens a consumer of the newest message of each key, without its value. */
  async #openHeads(keys: string): Promise<{ readonly consumer: Consumer; readonly count: number }> {
    const before = systemClock.timestamp();
    const { consumers } = jetstream(this.#place.connection);
    const consumer = await consumers.get(this.#stream, {
      filter_subjects: this.subject(keys),
      deliver_policy: DeliverPolicy.LastPerSubject,
      headers_only: true,
    });
    const { num_pending: count, created } = await consumer.info(true);
    checkSkew(skewOf(before, created));
    return { consumer, count };
  }

  /** Yields the newest message of each key that matches, without its value. */
  async *heads(keys: string): AsyncGenerator<JsMsg, void, void> {
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
}

function ignoreConflict(error: unknown): undefined {
  if (!isConflict(error)) throw error;
}

function isMarker(headers: MsgHdrs | undefined): boolean {
  return headers?.has("KV-Operation") ?? false;
}

/** Returns the expiry of an entry, in milliseconds since 1970. A deleted entry has expired. */
export function expiryOf(headers: MsgHdrs | undefined): number {
  return isMarker(headers) ? -Infinity : Number(headers?.get(EXPIRY) || Infinity);
}
