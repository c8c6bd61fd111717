/**
 * The directory: a bucket with the definitions of the tools, and with what each worker serves. Its
 * entries are signed, because whoever writes a definition writes to a model.
 *
 * @module
 */

import { type ConsumerMessages, DeliverPolicy, jetstream } from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import { type HookLog, isObject, systemClock } from "../../tool/mod.ts";
import type { Seal } from "./message.ts";
import { MAX_SKEW_MS } from "./frames.ts";
import { isConflict, problemOf } from "./server.ts";
import { DIRECTORY } from "./subjects.ts";

/** How large the directory may become, in bytes. */
const MAX_BYTES = 1_073_741_824;
const SUBJECT = `$KV.${DIRECTORY}.`;
/** How long to wait before a failed watch begins again. */
const AGAIN_MS = 1_000;

/** An entry of the directory. */
export interface DirectoryEntry {
  readonly value: Record<string, unknown>;
  /** Later entries have higher ones. */
  readonly revision: number;
}

/** What a directory is opened with. */
export interface DirectorySettings {
  readonly action: string;
  readonly connection: NatsConnection;
  readonly seal: Seal;
  /** The name of the registry whose entries are followed. */
  readonly registry: string;
  readonly log: HookLog;
}

/** The entries of one registry, followed. */
export class Directory {
  /** By key. */
  readonly entries: Map<string, DirectoryEntry> = new Map();
  readonly #settings: DirectorySettings;
  readonly #kv: KV;
  readonly #onChange: () => void;
  #messages: ConsumerMessages | undefined;
  #isStopped = false;
  /** How far this clock is ahead of the server's, in milliseconds. */
  #skewMs = 0;

  private constructor(settings: DirectorySettings, kv: KV, onChange: () => void) {
    this.#settings = settings;
    this.#kv = kv;
    this.#onChange = onChange;
  }

  /**
   * Opens the directory, and reads the entries that are there.
   *
   * @param onChange Is called after changes, not after each.
   * @throws {Error} If it cannot be read.
   */
  static async open(settings: DirectorySettings, onChange: () => void): Promise<Directory> {
    const { action, connection } = settings;
    try {
      const kv = await new Kvm(connection).create(DIRECTORY, { history: 1, max_bytes: MAX_BYTES });
      const directory = new Directory(settings, kv, onChange);
      await directory.#follow();
      directory.#checkClock();
      return directory;
    } catch (cause) {
      throw new Error(`Cannot ${action}: ${problemOf(cause, connection)}`, { cause });
    }
  }

  /** With a wrong clock all calls would be refused, and the fault would be hard to find. */
  #checkClock(): void {
    const skew = this.#skewMs;
    if (Math.abs(skew) <= MAX_SKEW_MS) return;
    throw new Error(
      `the clock of this machine is ${Math.abs(Math.round(skew / 1_000))} s ` +
        `${skew > 0 ? "ahead of" : "behind"} that of the server; set both`,
    );
  }

  /** Writes an entry, also over one that is there. Gives its revision. */
  put(key: string, value: unknown): Promise<number> {
    const { action, connection, seal } = this.#settings;
    const entry = seal.wrap(value, key);
    const { max_payload: most = entry.length } = connection.info ?? {};
    if (entry.length > most) {
      throw new RangeError(
        `Cannot ${action}: the entry "${key}" of the directory has ${entry.length} bytes, and the ` +
          `server takes ${most}; give groups of tools names of their own, or raise max_payload`,
      );
    }
    return this.#kv.put(key, entry);
  }

  /** Removes an entry, unless it is not the one that was seen. */
  async remove(key: string, revision?: number): Promise<void> {
    try {
      await this.#kv.delete(key, revision === undefined ? {} : { previousSeq: revision });
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }

  /** Reads everything again: after the connection was lost, another server may be there. */
  restart(): void {
    this.#messages?.stop();
    this.#messages = undefined;
    if (this.#isStopped) return;
    this.#follow().catch((error) => {
      this.#settings.log(error);
      systemClock.setTimeout(() => this.#messages ?? this.restart(), AGAIN_MS);
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.restart();
  }

  /** Reads what is there, and follows what comes. Resolves when the first is done. */
  async #follow(): Promise<void> {
    const { connection, registry } = this.#settings;
    const before = systemClock.timestamp();
    const consumer = await jetstream(connection).consumers.getPushConsumer(`KV_${DIRECTORY}`, {
      filter_subjects: `${SUBJECT}${registry}.>`,
      deliver_policy: DeliverPolicy.LastPerSubject,
    });
    if (this.#isStopped) return;
    const stale = new Set(this.entries.keys());
    const { num_pending: pending, created } = await consumer.info(true);
    // The server has made the consumer between the two times.
    const madeAt = Date.parse(created);
    this.#skewMs = Math.max(0, before - madeAt) + Math.min(0, systemClock.timestamp() - madeAt);
    let isRead = (): void => {};
    const ready = new Promise<void>((resolve) => isRead = resolve);
    let isReading = pending > 0;
    let isTelling = false;
    const tell = (): void => {
      if (isReading || isTelling) return;
      isTelling = true;
      // One deploy writes many entries.
      systemClock.setTimeout(() => {
        isTelling = false;
        this.#onChange();
      }, 0);
    };
    const done = (): void => {
      isReading = false;
      for (const key of stale) this.entries.delete(key);
      isRead();
      tell();
    };
    const messages = await consumer.consume({
      callback: ({ subject, data, seq, info }) => {
        const key = subject.slice(SUBJECT.length);
        stale.delete(key);
        this.#take(key, data, seq);
        if (isReading && info.pending === 0) done();
        else tell();
      },
    });
    this.#messages = messages;
    void messages.closed().then((error) => {
      if (this.#messages !== messages || this.#isStopped || connection.isClosed()) return;
      this.#settings.log(error ?? new Error("The watch of the directory has ended"));
      systemClock.setTimeout(() => this.#messages === messages && this.restart(), AGAIN_MS);
    });
    if (!isReading) done();
    await ready;
  }

  #take(key: string, data: Uint8Array, revision: number): void {
    // A deleted entry has no value.
    const value = data.byteLength === 0 ? undefined : this.#settings.seal.unwrap(data, key);
    if (isObject(value)) this.entries.set(key, { value, revision });
    else {
      this.entries.delete(key);
      if (data.byteLength > 0) {
        this.#settings.log(new Error(`An entry of the directory has a wrong signature: "${key}"`));
      }
    }
  }
}
