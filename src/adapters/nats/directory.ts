/**
 * The directory: a bucket with the definitions of the tools, and with what each worker serves. Its
 * entries are signed, because models read the definitions.
 *
 * @module
 */

import {
  type ConsumerMessages,
  DeliverPolicy,
  jetstream,
  type JsMsg,
  type PushConsumer,
} from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import { type HookLog, isListOf, isObject, isWord, NO_LOG, systemClock } from "../../tool/mod.ts";
import type { Seal } from "./message.ts";
import { MAX_SKEW_MS } from "./frames.ts";
import { isConflict, STORAGE, storageProblemOf, type StorageSettings } from "./server.ts";
import { DIRECTORY, workerKey } from "./subjects.ts";

const SUBJECT = `$KV.${DIRECTORY}.`;
/** How long to wait before a failed watch begins again. */
const AGAIN_MS = 1_000;

/** The server may count an entry too many, which then never comes: when to stop waiting, in milliseconds. */
const QUIET_MS = 1_000;

/** An entry of the directory. */
export interface DirectoryEntry {
  readonly value: Record<string, unknown>;
  /** Later entries have higher ones. */
  readonly revision: number;
}

/** How many tools an entry with a part of a worker's list has: every server takes so many paths. */
export const MAX_LISTED = 128;

/** A part of the list of the tools that a worker serves, by their paths. */
export interface ToolList {
  readonly worker: string;
  /** Those that are available. */
  readonly up: readonly string[];
  /** Those that are not available now. */
  readonly down: readonly string[];
  /** The ids of some that are not served, because no server message can have their definitions. */
  readonly tooLarge: readonly string[];
}

/** Reads an entry as a part of a worker's list; `undefined` if it is none. */
export function listIn(
  registry: string,
  key: string,
  value: Readonly<Record<string, unknown>> | undefined,
): ToolList | undefined {
  const prefix = workerKey(registry, "");
  if (value === undefined || !key.startsWith(prefix)) return undefined;
  const words = (field: string): readonly string[] => {
    const given = value[field];
    return isListOf(given, isWord) ? given as readonly string[] : [];
  };
  const [worker = ""] = key.slice(prefix.length).split(".");
  return { worker, up: words("up"), down: words("down"), tooLarge: words("tooLarge") };
}

/** What a directory is opened with. */
export interface DirectorySettings {
  readonly action: string;
  readonly connection: NatsConnection;
  readonly seal: Seal;
  /** The name of the registry whose entries are followed. */
  readonly registry: string;
  readonly log: HookLog;
  /** How the bucket is made if it is not there. @default {STORAGE} */
  readonly storage?: StorageSettings;
}

/** The entries of one registry, followed. */
export class Directory {
  /** By key. */
  readonly entries: Map<string, DirectoryEntry> = new Map();
  readonly #settings: DirectorySettings;
  readonly #kv: KV;
  readonly #onChange: (keys: ReadonlySet<string>) => void;
  #consumer: PushConsumer | undefined;
  #messages: ConsumerMessages | undefined;
  /** Counts the times that the entries were read from the beginning. */
  #round = 0;
  /** The revision that was read last. */
  #readTo = 0;
  #isStopped = false;
  /** How far this clock is ahead of the server's, in milliseconds. */
  #skewMs = 0;

  private constructor(
    settings: DirectorySettings,
    kv: KV,
    onChange: (keys: ReadonlySet<string>) => void,
  ) {
    this.#settings = settings;
    this.#kv = kv;
    this.#onChange = onChange;
  }

  /**
   * Opens the directory, and reads the entries that are there.
   *
   * @param onChange Is called after later changes, not after each, with the keys that may have changed.
   * @throws {Error} If it cannot be read.
   */
  static async open(
    settings: DirectorySettings,
    onChange: (keys: ReadonlySet<string>) => void,
  ): Promise<Directory> {
    const { action, connection, storage = STORAGE } = settings;
    try {
      const kv = await new Kvm(connection).create(DIRECTORY, {
        ...{ history: 1, max_bytes: storage.maxBytes, replicas: storage.replicas },
      });
      const directory = new Directory(settings, kv, onChange);
      await directory.#follow(directory.#round);
      directory.#checkClock();
      return directory;
    } catch (cause) {
      const problem = storageProblemOf(cause, connection, DIRECTORY, storage);
      throw new Error(`Cannot ${action}: ${problem}`, { cause });
    }
  }

  /** With a wrong clock all calls would be refused, and the fault would be hard to find. */
  #checkClock(): void {
    const skew = this.#skewMs;
    if (Math.abs(skew) <= MAX_SKEW_MS) return;
    throw new Error(
      `the clock of this machine is ${(Math.abs(skew) / 1_000).toFixed(1)} s ` +
        `${skew > 0 ? "ahead of" : "behind"} that of the server, and ${
          MAX_SKEW_MS / 1_000
        } s are ` +
        "allowed; set both",
    );
  }

  /** Writes an entry, also over one that is there. */
  async put(key: string, value: Record<string, unknown>): Promise<void> {
    const revision = await this.#kv.put(key, this.#settings.seal.wrap(value, key));
    // What was read meanwhile is newer.
    if (revision > this.#readTo) this.entries.set(key, { value, revision });
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
    // The server would keep it for five minutes, and match each entry against it.
    this.#consumer?.delete().catch(NO_LOG);
    this.#consumer = undefined;
    const round = ++this.#round;
    if (!this.#isStopped) this.#follow(round).catch((error) => this.#restartLater(round, error));
  }

  stop(): void {
    this.#isStopped = true;
    this.restart();
  }

  #restartLater(round: number, error: unknown): void {
    const { connection, log } = this.#settings;
    if (round !== this.#round || this.#isStopped || connection.isClosed()) return;
    log(error);
    systemClock.setTimeout(() => round === this.#round && this.restart(), AGAIN_MS);
  }

  /** Reads what is there, and follows what comes. Resolves when the first is done. */
  async #follow(round: number): Promise<void> {
    const { connection, registry } = this.#settings;
    const before = systemClock.timestamp();
    const consumer = await jetstream(connection).consumers.getPushConsumer(`KV_${DIRECTORY}`, {
      filter_subjects: `${SUBJECT}${registry}.>`,
      deliver_policy: DeliverPolicy.LastPerSubject,
    });
    const { num_pending: count, created } = await consumer.info(true);
    if (round !== this.#round) return void consumer.delete().catch(NO_LOG);
    this.#consumer = consumer;
    // The server has made the consumer between the two times.
    const madeAt = Date.parse(created);
    this.#skewMs = Math.max(0, before - madeAt) + Math.min(0, systemClock.timestamp() - madeAt);
    this.#readTo = 0;
    const stale = new Set(this.entries.keys());
    const changed = new Set<string>();
    let isTelling = false;
    const tell = (): void => {
      if (isTelling) return;
      isTelling = true;
      // One deploy writes many entries.
      systemClock.setTimeout(() => {
        isTelling = false;
        const keys = new Set(changed);
        changed.clear();
        if (round === this.#round) this.#onChange(keys);
      }, 0);
    };
    let isReading = true;
    let disarm = (): void => {};
    const read = (): void => {
      isReading = false;
      disarm();
      for (const key of stale) {
        this.entries.delete(key);
        changed.add(key);
      }
      // The entries of the beginning are no changes.
      if (round === 0) changed.clear();
      else tell();
    };
    await new Promise<void>((resolve, reject) => {
      const end = (): void => {
        if (isReading) read();
        resolve();
      };
      const endWhenQuiet = (): void => {
        disarm();
        // Without a server there is more to come when it is back.
        disarm = systemClock.setTimeout(() => consumer.info().then(end, endWhenQuiet), QUIET_MS);
      };
      let seen = 0;
      const callback = ({ subject, data, seq, info }: JsMsg): void => {
        if (round !== this.#round) return;
        const key = subject.slice(SUBJECT.length);
        const isStale = stale.delete(key);
        // What this process has written since is newer.
        if (isStale || seq >= (this.entries.get(key)?.revision ?? 0)) {
          changed.add(key);
          this.#take(key, data, seq);
        }
        this.#readTo = seq;
        if (!isReading) tell();
        else if (info.pending === 0 || ++seen >= count) end();
        else endWhenQuiet();
      };
      consumer.consume({ callback }).then((messages) => {
        if (round !== this.#round) {
          messages.stop();
          return resolve();
        }
        this.#messages = messages;
        void messages.closed().then((error) => {
          const why = error ?? new Error("The watch of the directory has ended");
          disarm();
          if (isReading) reject(why);
          else this.#restartLater(round, why);
        });
        if (count === 0) end();
        else if (isReading) endWhenQuiet();
      }, reject);
    });
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
