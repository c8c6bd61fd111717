/**
 * Durable calls, for both sides. A stream stores a call until it has run. A bucket stores the claim of
 * the worker that runs it, and then its result. A claim is a compare-and-set on the revision of the
 * record, so that only the newest run can write a result.
 *
 * @module
 */

import { jetstream, type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { type NatsConnection, nuid } from "@nats-io/nats-core";
import { createHash } from "node:crypto";
import type { ToolProgress } from "../../execute/mod.ts";
import { type CallStore, ownerDigest } from "../../execute/durable/mod.ts";
import {
  canonicalJson,
  type HookLog,
  isObject,
  isWord,
  systemClock,
  type Tool,
  ToolResult,
} from "../../tool/mod.ts";
import { natsCallStore } from "./call_store.ts";
import { type CallMessage, MAX_SKEW_MS } from "./frames.ts";
import type { Seal } from "./seal.ts";
import { OwnerShares } from "./owner_shares.ts";
import {
  KEPT_MS,
  openRunStream,
  STORAGE,
  storageProblemOf,
  type StorageSettings,
} from "./streams.ts";
import { ownedRunSubject, RESULTS_BUCKET, RUNS_STREAM, runSubject } from "./subjects.ts";

/** The quota of a principal: this part of the stream. */
const OWNER_PART = 8;
/** The smallest counted size in bytes. The others are this size times a power of two. */
const SIZE_UNIT = 1_024;

/** A call in the stream. */
export interface RunMessage extends CallMessage {
  /** The key of its record in the store. */
  readonly key: string;
  /** The subject of messages to its caller. */
  readonly inbox: string;
}

/** The state of a call. */
export type RunRecord =
  | {
    readonly state: "claimed";
    readonly worker: string;
    /** The end of the lease, in milliseconds since 1970. */
    readonly until: number;
    /** The number of earlier leases that expired. */
    readonly lostLeases: number;
  }
  /** Every worker that took the call has rejected it. */
  | {
    readonly state: "waiting";
    readonly lostLeases: number;
    /** The number of rejections. */
    readonly refusals: number;
  }
  | { readonly state: "done"; readonly result: ToolResult };

/** A message to the caller of a durable call. The result is in the store. */
export type RunNews =
  | { readonly type: "metadata"; readonly value: unknown }
  | { readonly type: "progress"; readonly progress: ToolProgress }
  | { readonly type: "done" }
  /** The call has ended, and the store could not save its result. */
  | { readonly type: "ended"; readonly result: ToolResult };

/** The prefix of the subjects on which workers receive aborts of durable calls. */
export const RUN_CONTROL: string = runSubject("").replace(".run.", ".stop.");

/** True if calls of a tool are durable: its `execution` is "task". */
export function isDurable({ execution }: Pick<Tool, "execution">): boolean {
  return execution === "task";
}

/**
 * Returns the key of a call. It is the same for the same call of the same caller, even if the definition
 * of the tool has changed, so that the call has one result. Call ids alone are not unique: some
 * providers send none, and they are then counted per message. A call without a message id therefore
 * gets a new key each time.
 *
 * @param tool The name of the registry and the id of the tool.
 */
export async function runKey(tool: string, request: Partial<CallMessage>): Promise<string> {
  const { principal, sessionId, messageId, callId, context, arguments: args, ticket, answers } =
    request;
  const id = messageId === undefined ? nuid.next() : callId;
  const what = JSON.parse(
    JSON.stringify([tool, sessionId, messageId, id, context, args, ticket, answers]),
  );
  const digest = createHash("sha256").update(canonicalJson(what)).digest("base64url");
  return `run.${await ownerDigest(principal)}.${digest}`;
}

/** Settings of {@linkcode Runs}. */
export interface RunsSettings {
  readonly connection: NatsConnection;
  readonly seal: Seal;
  readonly log: HookLog;
  /** The maximum size of the waiting calls of a principal, in bytes. By default, an eighth of the stream. */
  readonly maxOwnerBytes?: number | undefined;
  /** The settings of the stream and the bucket if they are missing. @default {STORAGE} */
  readonly storage?: StorageSettings | undefined;
}

/** A signed call, ready to be published. */
export interface OwnedRun {
  readonly subject: string;
  readonly body: Uint8Array;
  /** The digest of the principal. */
  readonly owner: string;
  readonly size: number;
}

/** Signs a call for the subject of its principal. */
export async function sealRun(path: string, message: RunMessage, seal: Seal): Promise<OwnedRun> {
  const owner = await ownerDigest(message.principal);
  const { byteLength } = seal.wrap(message, "");
  const size = Math.max(0, Math.ceil(Math.log2(byteLength / SIZE_UNIT)));
  const subject = ownedRunSubject(path, owner, size);
  return { subject, body: seal.wrap(message, subject), owner, size };
}

function bytesOf(size: number): number {
  return SIZE_UNIT * 2 ** size;
}

/** The stream of durable calls, and the store of their records. */
export class Runs {
  readonly manager: JetStreamManager;
  readonly #store: CallStore;
  readonly #connection: NatsConnection;
  readonly #shares: OwnerShares;
  readonly #maxOwnerBytes: number;
  readonly #seal: Seal;
  readonly #log: HookLog;

  private constructor(
    { connection, seal, log, maxOwnerBytes }: RunsSettings,
    manager: JetStreamManager,
    store: CallStore,
    maxBytes: number,
  ) {
    this.manager = manager;
    this.#store = store;
    this.#connection = connection;
    this.#seal = seal;
    this.#log = log;
    this.#maxOwnerBytes = maxOwnerBytes ?? maxBytes / OWNER_PART;
    this.#shares = new OwnerShares({
      ...{ maxBytes: this.#maxOwnerBytes, clock: systemClock, firstBytes: 0 },
      measure: (owner, bytes) => this.#waitingOf(owner, bytes),
    });
  }

  /** @throws {Error} If the stream or the bucket cannot be opened or created. */
  static async open(settings: RunsSettings): Promise<Runs> {
    const { connection, storage = STORAGE } = settings;
    const store = await natsCallStore(connection, { bucket: RESULTS_BUCKET, ...storage });
    try {
      const manager = await jetstreamManager(connection);
      const config = await openRunStream(manager, storage);
      const maxBytes = config.max_bytes > 0 ? config.max_bytes : storage.maxBytes;
      return new Runs(settings, manager, store, maxBytes);
    } catch (cause) {
      const problem = storageProblemOf(cause, connection, RUNS_STREAM, storage);
      throw new Error(`Cannot open the stream "${RUNS_STREAM}": ${problem}`, { cause });
    }
  }

  /**
   * Publishes a call, unless the quota of its principal is used up. A call whose caller has ended counts
   * until a worker has acknowledged it.
   *
   * @param msgID The server stores one call with each id.
   * @returns True in `duplicate` if the server had the call; `undefined` if the quota is used up.
   */
  async send(
    { subject, body, owner, size }: OwnedRun,
    msgID: string,
  ): Promise<{ readonly duplicate: boolean } | undefined> {
    const stream = jetstream(this.#connection);
    return await this.#shares.write(
      owner,
      bytesOf(size),
      () => stream.publish(subject, body, { msgID }),
      () => Promise.resolve(undefined),
    );
  }

  /** Subtracts a call that has ended from the quota. */
  free({ owner, size }: OwnedRun): void {
    this.#shares.give(owner, bytesOf(size));
  }

  /** Returns the size of the waiting calls of a principal; `undefined` if the stream is nearly empty. */
  async #waitingOf(owner: string, more: number): Promise<number | undefined> {
    const { streams } = this.manager;
    const { state: { bytes } } = await streams.info(RUNS_STREAM);
    if (bytes + more <= this.#maxOwnerBytes) return undefined;
    const subjects_filter = ownedRunSubject("*.*.*.*", owner, "*");
    const { state: { subjects = {} } } = await streams.info(RUNS_STREAM, { subjects_filter });
    let sum = 0;
    for (const [subject, count] of Object.entries(subjects)) {
      sum += count * bytesOf(Number(subject.slice(subject.lastIndexOf(".") + 1)));
    }
    return sum;
  }

  /** Reads a record. A record with a wrong signature counts as a failure: the call may have run. */
  async read(
    key: string,
  ): Promise<{ readonly record: RunRecord; readonly revision: number } | undefined> {
    const stored = await this.#store.get(key);
    if (stored === undefined) return undefined;
    const { value, revision } = stored;
    const record = this.#seal.unwrap(value, placeOf(key), "worker");
    if (isRecord(record)) return { record, revision };
    // A caller may abort its call, but not write another result.
    const ended = this.#seal.unwrap(value, placeOf(key), "caller");
    if (isRecord(ended) && isAborted(ended)) return { record: ended, revision };
    this.#log(new Error("The record of a durable call is damaged, or has a wrong signature"));
    return { record: { state: "done", result: DAMAGED }, revision };
  }

  /** True if a call has ended, or a worker has a lease on it. */
  async isHeld(key: string): Promise<boolean> {
    const { record } = await this.read(key) ?? {};
    return record?.state === "done" ||
      (record?.state === "claimed" && record.until > systemClock.timestamp());
  }

  /**
   * Writes a record if the stored one has this revision, or none is stored and the revision is 0.
   *
   * @returns The new revision; `undefined` if the stored record has another one.
   */
  write(key: string, record: RunRecord, revision: number): Promise<number | undefined> {
    const value = this.#seal.wrap(record, placeOf(key));
    // The record must outlive every copy of its call, even if the caller's clock is ahead.
    const options = { expiresAt: systemClock.timestamp() + KEPT_MS + 2 * MAX_SKEW_MS };
    return revision === 0
      ? this.#store.create(key, value, options)
      : this.#store.update(key, value, revision, options);
  }
}

const DAMAGED: ToolResult = ToolResult.error(
  "unavailable",
  "The record of the call is damaged, or has a wrong signature; it may have run",
  { ran: "unknown" },
);

function isRecord(value: unknown): value is RunRecord {
  if (!isObject(value)) return false;
  const { state, result, until, lostLeases, refusals } = value;
  switch (state) {
    case "done":
      return isObject(result);
    case "claimed":
      return typeof until === "number" && typeof lostLeases === "number";
    default:
      return state === "waiting" && typeof refusals === "number" && typeof lostLeases === "number";
  }
}

function isAborted(record: RunRecord): boolean {
  return record.state === "done" && !record.result.ok && record.result.error.code === "aborted";
}

/** True if the value is a durable call. */
export function isRunMessage(value: unknown): value is RunMessage {
  return isObject(value) && isWord(value["key"]) && isWord(value["inbox"]) &&
    typeof value["time"] === "number";
}

/** Returns the place that the signature of a record covers. */
function placeOf(key: string): string {
  return `${RESULTS_BUCKET}.${key}`;
}
