/**
 * Durable calls, for both sides. A stream stores a call until it has run. A bucket stores the claim of
 * the worker that runs it, and then its result. A claim is a compare-and-set on the revision of the
 * record, so that only the newest run can write a result.
 */

import * as js from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import { createHash } from "node:crypto";
import type { ToolProgress } from "../../execute/mod.ts";
import * as durable from "../../execute/durable/mod.ts";
import {
  callHook,
  canonicalJson,
  type HookLog,
  isObject,
  isWord,
  noop,
  systemClock,
  type Tool,
  ToolResult,
  type ToolRun,
} from "../../tool/mod.ts";
import { openCallStore } from "./call_store.ts";
import * as protocol from "./protocol.ts";
import { RESULTS_BUCKET, RUNS_STREAM } from "./protocol.ts";
import type { Link } from "./link.ts";
import type { Seal } from "./seal.ts";
import { isRefused, KEPT_MS, openRunStream, STORAGE, storageProblemOf } from "./streams.ts";

/** The quota of a principal is the size of the stream divided by this number. */
const OWNER_PART = 8;
/** The smallest counted size in bytes. Each other counted size is this size times a power of two. */
const SIZE_UNIT = 1_024;
/** The maximum number of unacknowledged calls of a tool, on all workers together. */
const MAX_UNACKNOWLEDGED = 65_536;
/** The maximum number of starts of a tool whose workers die. */
const MAX_ATTEMPTS = 5;
/** The delay before a request without an answer is repeated, in milliseconds. */
export const AGAIN_MS = 1_000;
/** The duration of a fetch, in milliseconds. Half of it without a heartbeat is a failure. */
const PULL_MS = 10_000;

/** A durable call. The id of the call is the key of its record. */
export interface RunMessage extends protocol.CallMessage {
  readonly inbox: string;
  /** Makes the key of a call without a message id unique. */
  readonly nonce?: string | undefined;
}

export interface StoredRun extends durable.RunRecord {
  readonly refusals: number;
  /** True if the tool has run in part, and the worker has returned the call to the stream. */
  readonly hasRun?: boolean;
}

/** The state of a call that no worker has taken. */
export const NEW_RUN: StoredRun = { holder: "", heldUntil: 0, attempts: 0, refusals: 0 };

/** The position of a message with metadata or progress, by which a replayed message is recognised. */
export interface NewsNumber {
  readonly attempt: number;
  readonly count: number;
}

/** A message to the caller of a durable call, with its key. The result is in the store. */
export type RunNews =
  | NewsNumber & { readonly type: "metadata"; readonly value: unknown }
  | NewsNumber & { readonly type: "progress"; readonly progress: ToolProgress }
  | { readonly type: "done" }
  /** The tool of an aborted call has stopped. */
  | { readonly type: "stopped"; readonly ran?: ToolRun | undefined }
  /** The call has ended, and the store could not save its result. */
  | { readonly type: "ended"; readonly result: ToolResult };

export const RUN_CONTROL: string = protocol.runSubject("").replace(".run.", ".stop.");

/** True if calls of a tool are durable: its `execution` is "task". */
export function isDurable({ execution }: Pick<Tool, "execution">): boolean {
  return execution === "task";
}

/**
 * Returns the key of a call. The same call of the same message and caller has the same key. A call
 * without a message id has a nonce, because some providers' call ids are unique per message only.
 */
export async function runKey(path: string, request: Partial<RunMessage>): Promise<string> {
  const { principal, sessionId, messageId, callId, context, arguments: args, ticket, answers } =
    request;
  const id = messageId === undefined ? request.nonce : callId;
  const tool = `${path.slice(0, path.indexOf("."))}/${protocol.idOfPath(path)}`;
  const what = JSON.parse(
    JSON.stringify([tool, sessionId, messageId, id, context, args, ticket, answers]),
  );
  const digest = createHash("sha256").update(canonicalJson(what)).digest("base64url");
  return `run.${await durable.ownerDigest(principal)}.${digest}`;
}

/** The records of calls. They are signed, because a caller may write only records of aborts. */
class SealedRecords extends durable.LeasedRecords<StoredRun> {
  readonly #seal: Seal;
  readonly #log: HookLog;

  constructor(store: durable.CallStore, seal: Seal, leaseMs: number, log: HookLog) {
    // A record must outlive every copy of the call, even if the caller's clock is ahead.
    const lifeMs = KEPT_MS + 2 * protocol.MAX_SKEW_MS;
    super(store, () => systemClock.timestamp() + lifeMs, systemClock, leaseMs);
    this.#seal = seal;
    this.#log = log;
  }

  /** A lease lasts longer than `heldUntil`, because the holder's clock may be behind this clock. */
  override isHeld({ holder, heldUntil }: StoredRun): boolean {
    return super.isHeld({ holder, heldUntil: heldUntil + protocol.MAX_SKEW_MS });
  }

  override encode(record: StoredRun, key: string): Uint8Array {
    return this.#seal.wrap(record, `${RESULTS_BUCKET}.${key}`);
  }

  /** Reads a record. With a wrong signature, it counts as a failure, since the call may have run. */
  override decode(value: Uint8Array, key: string): StoredRun {
    const record = this.#seal.unwrap(value, `${RESULTS_BUCKET}.${key}`, "worker");
    if (isRun(record)) return record;
    const ended = this.#seal.unwrap(value, `${RESULTS_BUCKET}.${key}`, "caller");
    if (isRun(ended) && ended.result?.ok === false && ended.result.error.code === "aborted") {
      return ended;
    }
    this.#log(new Error("The record of a durable call is damaged, or has a wrong signature"));
    return { ...NEW_RUN, result: DAMAGED };
  }
}

function isRun(value: unknown): value is StoredRun {
  if (!isObject(value)) return false;
  const { holder, heldUntil, attempts, refusals, result } = value;
  return typeof holder === "string" && typeof heldUntil === "number" &&
    typeof attempts === "number" && typeof refusals === "number" &&
    (result === undefined || isObject(result));
}

const DAMAGED: ToolResult = ToolResult.error(
  "unavailable",
  "The record of the call is damaged, or has a wrong signature; it may have run",
  { ran: "unknown" },
);

export interface RunsSettings {
  readonly leaseMs?: number | undefined;
  /** Returns true to stop retrying to store a result. */
  readonly isOver?: () => boolean;
  /** The maximum size of the waiting calls of a principal, in bytes. By default, an eighth of the stream. */
  readonly maxOwnerBytes?: number | undefined;
}

export interface OwnedRun {
  readonly subject: string;
  readonly body: Uint8Array;
  readonly owner: string;
  readonly size: number;
}

/** Signs a call for the subject of its principal. */
export async function sealRun(path: string, message: RunMessage, seal: Seal): Promise<OwnedRun> {
  const owner = await durable.ownerDigest(message.principal);
  const { byteLength } = seal.wrap(message, "");
  const size = Math.max(0, Math.ceil(Math.log2(byteLength / SIZE_UNIT)));
  const subject = protocol.ownedRunSubject(path, owner, size);
  return { subject, body: seal.wrap(message, subject), owner, size };
}

function bytesOf(size: number): number {
  return SIZE_UNIT * 2 ** size;
}

export class Runs {
  readonly records: durable.LeasedRecords<StoredRun>;
  readonly engine: durable.TaskEngine<StoredRun>;
  readonly #link: Link;
  readonly #leaseMs: number;
  readonly #manager: js.JetStreamManager;
  readonly #quotas: durable.MeasuredQuotas;
  readonly #maxOwnerBytes: number;

  private constructor(
    link: Link,
    { leaseMs = 0, isOver = () => false, maxOwnerBytes }: RunsSettings,
    manager: js.JetStreamManager,
    store: durable.CallStore,
    maxBytes: number,
  ) {
    this.#link = link;
    this.#leaseMs = leaseMs;
    this.#manager = manager;
    const records = this.records = new SealedRecords(store, link.seal, leaseMs, link.log);
    this.engine = new durable.TaskEngine({
      ...{ records, maxAttempts: MAX_ATTEMPTS, log: link.log, retryMs: AGAIN_MS, isRefused },
      isOver: () => isOver() || link.connection.isClosed(),
      end: (record, result) => ({ ...record, holder: "", result }),
    });
    this.#maxOwnerBytes = maxOwnerBytes ?? maxBytes / OWNER_PART;
    this.#quotas = new durable.MeasuredQuotas({
      ...{ maxBytes: this.#maxOwnerBytes, clock: systemClock, firstBytes: 0 },
      measure: (owner, bytes) => this.#waitingOf(owner, bytes),
    });
  }

  /** @throws {Error} If the stream or the bucket cannot be opened or created. */
  static async open(link: Link, settings: RunsSettings): Promise<Runs> {
    const { connection } = link;
    // A caller writes only short records of aborts, and may not fetch messages to measure them.
    const isCaller = settings.leaseMs === undefined;
    const store = await openCallStore(connection, { bucket: RESULTS_BUCKET }, isCaller);
    try {
      const manager = await js.jetstreamManager(connection);
      const config = await openRunStream(manager);
      const maxBytes = config.max_bytes > 0 ? config.max_bytes : STORAGE.maxBytes;
      return new Runs(link, settings, manager, store, maxBytes);
    } catch (cause) {
      const problem = storageProblemOf(cause, connection, RUNS_STREAM);
      throw new Error(`Cannot open the stream "${RUNS_STREAM}": ${problem}`, { cause });
    }
  }

  /**
   * Publishes a call, which counts for the quota of its principal until a worker has acknowledged it.
   * Returns `undefined` if the quota is used up.
   */
  async send(
    { subject, body, owner, size }: OwnedRun,
    msgID: string,
  ): Promise<{ readonly duplicate: boolean } | undefined> {
    const stream = js.jetstream(this.#link.connection);
    return await this.#quotas.write(
      owner,
      bytesOf(size),
      () => stream.publish(subject, body, { msgID }),
      () => Promise.resolve(undefined),
    );
  }

  free({ owner, size }: OwnedRun): void {
    this.#quotas.give(owner, bytesOf(size));
  }

  /** Returns the size of the waiting calls of a principal; `undefined` if the stream is nearly empty. */
  async #waitingOf(owner: string, more: number): Promise<number | undefined> {
    const { streams } = this.#manager;
    const { state: { bytes } } = await streams.info(RUNS_STREAM);
    if (bytes + more <= this.#maxOwnerBytes) return undefined;
    const subjects_filter = protocol.ownedRunSubject("*.*.*.*", owner, "*");
    const { state: { subjects = {} } } = await streams.info(RUNS_STREAM, { subjects_filter });
    let sum = 0;
    for (const [subject, count] of Object.entries(subjects)) {
      const size = Number(subject.slice(subject.lastIndexOf(".") + 1));
      // Only an unsigned call can have a size above the server's limit for messages.
      if (size >= 0 && bytesOf(size) < 2 * this.#link.maxBytes) sum += count * bytesOf(size);
    }
    return sum;
  }

  /** True if a call has ended, or a worker has a lease on it. */
  async isHeld(key: string): Promise<boolean> {
    const { record } = await this.records.read(key) ?? {};
    return record !== undefined && (record.result !== undefined || this.records.isHeld(record));
  }

  /** Opens the queue of the calls of a tool, by the path of its definition without the digest. */
  async openQueue(tool: string): Promise<RunQueue> {
    // The name of a consumer must not contain dots.
    const filter = protocol.ownedRunSubject(`${tool}.*`, "*", "*");
    const name = createHash("sha256").update(filter).digest("base64url");
    await this.#manager.consumers.add(RUNS_STREAM, {
      ...{ durable_name: name, filter_subject: filter, ack_policy: js.AckPolicy.Explicit },
      ...{ ack_wait: nanos(this.#leaseMs), max_ack_pending: MAX_UNACKNOWLEDGED },
      inactive_threshold: nanos(KEPT_MS),
    });
    const { consumers } = js.jetstream(this.#link.connection);
    return new RunQueue(await consumers.get(RUNS_STREAM, name), this.#link);
  }
}

/** A call that the server delivers again until it is acknowledged. */
export interface Delivery {
  readonly call: RunMessage;
  /** The time by the server's clock, in milliseconds since 1970. */
  readonly storedAt: number;
  ack(): void;
  /** Returns the call to the server, which delivers it after `ms` milliseconds. */
  retry(ms: number): void;
  /** Postpones the next delivery. */
  extend(): void;
}

/** Returns the path of a definition, without the owner and the size at the end of the subject. */
function pathOfRun(subject: string): string {
  return subject.slice(protocol.runSubject("").length).split(".").slice(0, -2).join(".");
}

export class RunQueue {
  readonly #consumer: js.Consumer;
  readonly #link: Link;
  #messages: js.ConsumerMessages | undefined;
  #isStopped = false;

  constructor(consumer: js.Consumer, link: Link) {
    this.#consumer = consumer;
    this.#link = link;
  }

  stop(): void {
    this.#isStopped = true;
    this.#messages?.stop();
  }

  async *fetch(most: number): AsyncGenerator<Delivery, void, void> {
    const messages = await this.#consumer.fetch({ max_messages: most, expires: PULL_MS });
    this.#messages = messages;
    if (this.#isStopped) return messages.stop();
    for await (const message of messages) {
      const call = this.#link.seal.unwrap(message.data, message.subject);
      // A caller that sends the key of another call could otherwise replace the result of that call.
      const path = pathOfRun(message.subject);
      // The arguments of a hostile caller may be too deep for the stack.
      if (isRunMessage(call) && call.id === await runKey(path, call).catch(noop)) {
        yield {
          call,
          storedAt: message.time.getTime(),
          ack: () => message.ack(),
          retry: (ms) => message.nak(ms),
          extend: () => callHook(() => message.working(), this.#link.log),
        };
      } else {
        this.#link.logForged("A durable call is damaged or has a wrong signature, and was not run");
        message.term();
      }
    }
  }
}

function isRunMessage(value: unknown): value is RunMessage {
  return isObject(value) && isWord(value["id"]) && protocol.isInbox(value["inbox"]) &&
    typeof value["time"] === "number";
}
