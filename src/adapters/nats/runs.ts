/**
 * Durable calls, as both sides know them: a stream keeps a call until it has run, and a store keeps
 * who runs it, and then its result. A claim is a compare-and-set: the run whose revision is in the
 * store is the one that counts, and a result is written once.
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

/** One caller may have so many bytes of calls waiting: one part of what may wait. */
const OWNER_PART = 8;
/** The smallest size that is counted, in bytes. Others are this one times a power of two. */
const SIZE_UNIT = 1_024;

/** A call in the stream. */
export interface RunMessage extends CallMessage {
  /** Where its record is in the store. */
  readonly key: string;
  /** Where its caller hears of it. */
  readonly inbox: string;
}

/** What is known of a call. */
export type RunRecord =
  | {
    readonly state: "claimed";
    readonly worker: string;
    /** Until when, in milliseconds since 1970. */
    readonly until: number;
    /** How many workers had it before, whose leases ran out. */
    readonly lostLeases: number;
  }
  /** No worker has it: those that had it have refused it. */
  | {
    readonly state: "waiting";
    readonly lostLeases: number;
    /** How many times it was refused. */
    readonly refusals: number;
  }
  | { readonly state: "done"; readonly result: ToolResult };

/** What a worker tells the caller of a durable call, as it comes. The result is in the store. */
export type RunNews =
  | { readonly type: "metadata"; readonly value: unknown }
  | { readonly type: "progress"; readonly progress: ToolProgress }
  | { readonly type: "done" }
  /** The call has ended, and its result could not be kept. */
  | { readonly type: "ended"; readonly result: ToolResult };

/** Where workers hear that a durable call is not wanted any more. */
export const RUN_CONTROL: string = runSubject("").replace(".run.", ".stop.");

/** Whether calls of a tool are durable: those that its author has made tasks. */
export function isDurable({ execution }: Pick<Tool, "execution">): boolean {
  return execution === "task";
}

/**
 * The same for the same call of the same caller, also when the definition of the tool has changed: it
 * has one result. Call ids alone are not enough: where a provider gives none, they are counted anew
 * for each message. A call without the id of its message is therefore another one each time.
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

/** What durable calls are kept with. */
export interface RunsSettings {
  readonly connection: NatsConnection;
  readonly seal: Seal;
  readonly log: HookLog;
  /** How many bytes of calls one owner may have waiting. Absent: an eighth of the stream. */
  readonly maxOwnerBytes?: number | undefined;
  /** How the stream and the bucket are made if they are not there. @default {STORAGE} */
  readonly storage?: StorageSettings | undefined;
}

/** A call as it is published. */
export interface OwnedRun {
  readonly subject: string;
  readonly body: Uint8Array;
  /** The digest of the principal. */
  readonly owner: string;
  readonly size: number;
}

/** Signs a call for the subject of its owner. */
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

/** The stream and the store, which are made if they are not there. */
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

  /** @throws {Error} If the server cannot keep them. */
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
   * Publishes a call, unless its owner has as much waiting as it may. A call whose caller has ended is
   * counted until a worker has taken it off the stream.
   *
   * @param msgID The server takes one call with each.
   * @returns Whether the server had it; `undefined` if it was not sent.
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

  /** Frees the room of a call that has ended. */
  free({ owner, size }: OwnedRun): void {
    this.#shares.give(owner, bytesOf(size));
  }

  /** How many bytes of an owner wait; `undefined` if all owners together have room for more. */
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

  /** A record that is not signed, or none, counts as a failure: whether the call has run is not known. */
  async read(
    key: string,
  ): Promise<{ readonly record: RunRecord; readonly revision: number } | undefined> {
    const stored = await this.#store.get(key);
    if (stored === undefined) return undefined;
    const { value, revision } = stored;
    const record = this.#seal.unwrap(value, placeOf(key), "worker");
    if (isRecord(record)) return { record, revision };
    // A caller may end a call, and not say how else it has ended.
    const ended = this.#seal.unwrap(value, placeOf(key), "caller");
    if (isRecord(ended) && isAborted(ended)) return { record: ended, revision };
    this.#log(new Error("The record of a durable call is damaged, or has a wrong signature"));
    return { record: { state: "done", result: DAMAGED }, revision };
  }

  /** Whether a call has ended, or a worker holds it. */
  async isHeld(key: string): Promise<boolean> {
    const { record } = await this.read(key) ?? {};
    return record?.state === "done" ||
      (record?.state === "claimed" && record.until > systemClock.timestamp());
  }

  /**
   * Writes a record in the place of the one with that revision; 0 for none.
   *
   * @returns The new revision; `undefined` if another one is there.
   */
  write(key: string, record: RunRecord, revision: number): Promise<number | undefined> {
    const value = this.#seal.wrap(record, placeOf(key));
    // Longer than its call may be sent again, whatever clock its caller has.
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

/** Whether what a message of the stream has is a call. */
export function isRunMessage(value: unknown): value is RunMessage {
  return isObject(value) && isWord(value["key"]) && isWord(value["inbox"]) &&
    typeof value["time"] === "number";
}

/** What the signature of a record is for. */
function placeOf(key: string): string {
  return `${RESULTS_BUCKET}.${key}`;
}
