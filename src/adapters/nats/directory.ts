/**
 * The directory: a bucket with the definitions of all tools, and the list of each worker. Its entries are
 * signed, because models read the definitions.
 */

import type { PushConsumer } from "@nats-io/jetstream";
import type { KvWatchEntry } from "@nats-io/kv";
import type { QueuedIterator } from "@nats-io/nats-core";
import {
  isListOf,
  isObject,
  isWord,
  noop,
  systemClock,
  TIME_OVER,
  within,
} from "../../tool/mod.ts";
import type { Link } from "./link.ts";
import { DIRECTORY, toolKey, workerKey } from "./protocol.ts";
import { Bucket, checkSkew, isMissing, QUIET_MS, skewOf, storageProblemOf } from "./streams.ts";

const AGAIN_MS = 1_000;
const ENDED = "The watch of the directory has ended";
/** After this time, a missing entry counts as lost by the watch, in milliseconds. */
const BEHIND_MS = 3_000;

export interface DirectoryEntry {
  /** `undefined` for a definition that the reader does not need, or has already registered. */
  value: Record<string, unknown> | undefined;
  readonly revision: number;
}

type Watch = QueuedIterator<KvWatchEntry>;

function consumerOf(watch: Watch): PushConsumer {
  return (watch as unknown as { readonly _data: PushConsumer })._data;
}

/** The maximum number of paths in a part of a worker's list. A part must fit into one message. */
export const MAX_LISTED = 128;

/** A part of a worker's list: the paths of tools that the worker serves. */
export interface ToolList {
  readonly worker: string;
  readonly up: readonly string[];
  readonly down: readonly string[];
  /** The ids of some tools that are omitted, because their definitions are larger than a message. */
  readonly tooLarge: readonly string[];
}

/** Reads an entry as a part of a worker's list; returns `undefined` for other entries. */
export function listIn(
  registry: string,
  key: string,
  value: Readonly<Record<string, unknown>> | undefined,
): ToolList | undefined {
  const prefix = workerKey(registry, "");
  if (value === undefined || !key.startsWith(prefix)) return undefined;
  const words = (field: string): readonly string[] => {
    const list = value[field];
    return isListOf(list, isWord) ? list as readonly string[] : [];
  };
  const [worker = ""] = key.slice(prefix.length).split(".");
  return { worker, up: words("up"), down: words("down"), tooLarge: words("tooLarge") };
}

export class Directory {
  readonly entries: Map<string, DirectoryEntry> = new Map();
  readonly bucket: Bucket;
  readonly #link: Link;
  readonly #hasDefinitions: boolean;
  readonly #onChange: (keys: ReadonlySet<string>) => void;
  readonly #changed: Set<string> = new Set();
  #stopNotifying: (() => void) | undefined;
  #watch: Watch | undefined;
  #round = 0;
  #readTo = 0;
  #written = 0;
  #behindSince: number | undefined;
  /** The last revision for which all entries were read again. */
  #expected = 0;
  #isStopped = false;
  #skewMs = 0;

  private constructor(
    link: Link,
    bucket: Bucket,
    onChange: (keys: ReadonlySet<string>) => void,
    hasDefinitions: boolean,
  ) {
    this.#link = link;
    this.bucket = bucket;
    this.#onChange = onChange;
    this.#hasDefinitions = hasDefinitions;
  }

  /** Opens the directory and reads it. Later calls `onChange` once for all changes of a turn. */
  static async open(
    action: string,
    link: Link,
    onChange: (keys: ReadonlySet<string>) => void = () => {},
    hasDefinitions = true,
  ): Promise<Directory> {
    const { connection } = link;
    try {
      const bucket = await Bucket.open({ connection, name: DIRECTORY });
      const directory = new Directory(link, bucket, onChange, hasDefinitions);
      await directory.#follow(directory.#round);
      // Rejects a wrong clock: all calls would fail, and the cause would be hard to find.
      checkSkew(directory.skewMs);
      return directory;
    } catch (cause) {
      const problem = storageProblemOf(cause, connection, DIRECTORY);
      throw new Error(`Cannot ${action}: ${problem}`, { cause });
    }
  }

  /** The difference between this machine's clock and the server's clock, in milliseconds. */
  get skewMs(): number {
    return this.#skewMs;
  }

  get written(): number {
    return this.#written;
  }

  /**
   * Reads all entries again if an entry with this revision is missing for long: the server may have lost
   * the watch, which the client notices only after 90 s.
   */
  expect(revision: number): void {
    // A revision that is still missing after the read was never written.
    if (!(revision > this.#readTo && revision > this.#expected)) return;
    const now = systemClock.now();
    this.#behindSince ??= now;
    if (now - this.#behindSince < BEHIND_MS) return;
    this.#expected = revision;
    this.#behindSince = undefined;
    this.#link.log(
      new Error("The server does not deliver changes of the directory: all entries are read again"),
    );
    this.restart();
  }

  async put(key: string, value: Record<string, unknown>): Promise<void> {
    const sealed = this.#link.seal.wrap(value, key);
    const revision = await this.bucket.kv.put(key, sealed).catch((error) => {
      if (isMissing(error)) {
        // The server has lost the bucket. restart() creates a new one, whose revisions start again.
        this.#written = 0;
        this.restart();
      }
      throw error;
    });
    this.#written = Math.max(this.#written, revision);
    // If a newer entry was read meanwhile, it stays.
    if (revision > this.#readTo) {
      this.entries.set(key, { value: this.#isRead(key) ? value : undefined, revision });
    }
  }

  /** Writes an entry without waiting for the server. */
  send(key: string, value: Record<string, unknown>): void {
    const { connection, seal } = this.#link;
    connection.publish(this.bucket.subject(key), seal.wrap(value, key));
  }

  /** Reads all entries again: after a lost connection, another server may have other entries. */
  restart(): void {
    this.#endWatch(this.#watch);
    this.#watch = undefined;
    const round = ++this.#round;
    if (!this.#isStopped) this.#follow(round).catch((error) => this.#restartLater(round, error));
  }

  stop(): void {
    this.#isStopped = true;
    this.restart();
  }

  #endWatch(watch: Watch | undefined): void {
    if (watch === undefined) return;
    watch.stop();
    // Otherwise the server would keep the consumer for five minutes, and match each entry with it.
    consumerOf(watch).delete().catch(noop);
  }

  #restartLater(round: number, error: unknown): void {
    const { connection, log } = this.#link;
    if (round !== this.#round || this.#isStopped || connection.isClosed()) return;
    log(error);
    systemClock.setTimeout(() => round === this.#round && this.restart(), AGAIN_MS);
  }

  /** Reads the entries, and then follows their changes. Resolves when the entries are read. */
  async #follow(round: number): Promise<void> {
    if (round > 0) await this.bucket.reopen();
    const before = systemClock.timestamp();
    const watch = await this.bucket.kv.watch({ key: `${this.#link.name}.>` });
    if (round !== this.#round) return this.#endWatch(watch);
    this.#watch = watch;
    const consumer = consumerOf(watch);
    const { num_pending: count, created } = await consumer.info(true);
    this.#skewMs = skewOf(before, created);
    this.#readTo = 0;
    const stale = new Set(this.entries.keys());
    const changes = watch[Symbol.asyncIterator]();
    let next = changes.next();
    for (let isRead = count === 0; !isRead;) {
      const change = await within(systemClock, QUIET_MS, next);
      if (round !== this.#round) return;
      if (change === TIME_OVER) {
        // The announced count may be one too high. This checks that the connection is not lost.
        isRead = await consumer.info().then(() => true, () => false);
        continue;
      }
      if (change.done === true) throw new Error(ENDED);
      const { key, isUpdate, delta } = change.value;
      this.#take(change.value, stale.delete(key));
      isRead = isUpdate || delta === 0;
      next = changes.next();
    }
    for (const key of stale) {
      this.entries.delete(key);
      this.#changed.add(key);
    }
    // The entries of the first read are not reported as changes.
    if (round === 0) this.#changed.clear();
    else this.#notify();
    this.#followChanges(round, changes, next).catch((error) => this.#restartLater(round, error));
  }

  async #followChanges(
    round: number,
    changes: AsyncIterator<KvWatchEntry, void>,
    next: Promise<IteratorResult<KvWatchEntry, void>>,
  ): Promise<void> {
    for (let change = await next; round === this.#round; change = await changes.next()) {
      if (change.done === true) throw new Error(ENDED);
      this.#take(change.value, false);
      this.#notify();
    }
  }

  /** Notifies the reader once for the changes of a turn: one deploy writes many entries. */
  #notify(): void {
    this.#stopNotifying ??= systemClock.setTimeout(() => {
      this.#stopNotifying = undefined;
      const keys = new Set(this.#changed);
      this.#changed.clear();
      if (!this.#isStopped) this.#onChange(keys);
    }, 0);
  }

  #isRead(key: string): boolean {
    return this.#hasDefinitions || !key.startsWith(toolKey(`${this.#link.name}.`));
  }

  /** @param isStale True if the known entry is from an earlier watch: its revision is not compared. */
  #take({ key, value: data, revision }: KvWatchEntry, isStale: boolean): void {
    this.#readTo = revision;
    this.#behindSince = undefined;
    // The process has written a newer entry meanwhile.
    if (!isStale && revision < (this.entries.get(key)?.revision ?? 0)) return;
    this.#changed.add(key);
    const { seal } = this.#link;
    if (!this.#isRead(key) && seal.accepts(data, key, "", "worker")) {
      return void this.entries.set(key, { value: undefined, revision });
    }
    // A deletion marker has no value.
    const value = data.byteLength === 0 ? undefined : seal.unwrap(data, key, "worker");
    if (isObject(value)) return void this.entries.set(key, { value, revision });
    this.entries.delete(key);
    if (data.byteLength > 0) {
      this.#link.logForged(
        `An entry of the directory has a wrong signature: ${JSON.stringify(key)}`,
      );
    }
  }
}
