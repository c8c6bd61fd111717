/**
 * Durable calls, as both sides know them: a stream keeps a call until it has run, and a store keeps
 * who runs it, and then its result. A claim is a compare-and-set: the run whose revision is in the
 * store is the one that counts, and a result is written once.
 *
 * @module
 */

import {
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  type StreamConfig,
} from "@nats-io/jetstream";
import { nanos, type NatsConnection, nuid } from "@nats-io/nats-core";
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
import type { RateLimitStore } from "../http/mod.ts";
import { natsCallStore } from "./call_store.ts";
import { type CallMessage, MAX_SKEW_MS } from "./frames.ts";
import type { Seal } from "./message.ts";
import { natsRateLimitStore } from "./rate_limits.ts";
import { problemOf } from "./server.ts";
import { RESULTS_BUCKET, RUNS_STREAM, runSubject } from "./subjects.ts";

/** How long results are kept, and calls that no worker has taken, in milliseconds. */
export const KEPT_MS = 86_400_000;
/** How many bytes of calls may wait. */
const MAX_WAITING_BYTES = 1_073_741_824;
/** In what the room of a caller is counted, in bytes. */
const ROOM_UNIT = 1_024;
/** How much one caller may send in a day: 128 MiB, an eighth of what may wait. */
const SHARE = { limit: 131_072, windowMs: KEPT_MS };
/** How long the server remembers the keys of calls, in milliseconds. The store remembers them longer. */
const REMEMBERED_MS = 120_000;

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

/** The stream and the store, which are made if they are not there. */
export class Runs {
  readonly manager: JetStreamManager;
  readonly #store: CallStore;
  readonly #shares: RateLimitStore;
  readonly #seal: Seal;
  readonly #log: HookLog;

  private constructor(manager: JetStreamManager, store: CallStore, seal: Seal, log: HookLog) {
    this.manager = manager;
    this.#store = store;
    this.#shares = natsRateLimitStore(store);
    this.#seal = seal;
    this.#log = log;
  }

  /** @throws {Error} If the server cannot keep them. */
  static async open(connection: NatsConnection, seal: Seal, log: HookLog): Promise<Runs> {
    const store = await natsCallStore(connection, { bucket: RESULTS_BUCKET });
    try {
      const manager = await jetstreamManager(connection);
      checkStream(await openStream(manager));
      return new Runs(manager, store, seal, log);
    } catch (cause) {
      const problem = problemOf(cause, connection);
      throw new Error(`Cannot open the stream "${RUNS_STREAM}": ${problem}`, { cause });
    }
  }

  /**
   * Counts what a caller sends, which the stream keeps until it has run. Answers whether its share of
   * the day has room for it. What is kept of results, the store counts.
   */
  async takeRoom(principal: string | undefined, bytes: number): Promise<boolean> {
    const units = 1 + Math.ceil(bytes / ROOM_UNIT);
    const { count } = await this.#shares.take(principal ?? "", units, SHARE);
    return count <= SHARE.limit;
  }

  /** A record that is not signed, or none, counts as a failure: whether the call has run is not known. */
  async read(
    key: string,
  ): Promise<{ readonly record: RunRecord; readonly revision: number } | undefined> {
    const stored = await this.#store.get(key);
    if (stored === undefined) return undefined;
    const { value, revision } = stored;
    const record = this.#seal.unwrap(value, placeOf(key));
    if (isRecord(record)) return { record, revision };
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

/** Whether what a message of the stream has is a call. */
export function isRunMessage(value: unknown): value is RunMessage {
  return isObject(value) && isWord(value["key"]) && isWord(value["inbox"]) &&
    typeof value["time"] === "number";
}

/** What the signature of a record is for. */
function placeOf(key: string): string {
  return `${RESULTS_BUCKET}.${key}`;
}

/** One that an operator has made, with more replicas or another size, is used as it is. */
async function openStream(manager: JetStreamManager): Promise<StreamConfig> {
  try {
    return (await manager.streams.info(RUNS_STREAM)).config;
  } catch (error) {
    const isMissing = error instanceof JetStreamApiError &&
      error.code === JetStreamApiCodes.StreamNotFound;
    if (!isMissing) throw error;
  }
  const { config } = await manager.streams.add({
    name: RUNS_STREAM,
    subjects: [runSubject(">")],
    retention: RetentionPolicy.Workqueue,
    discard: DiscardPolicy.New,
    max_bytes: MAX_WAITING_BYTES,
    max_age: nanos(KEPT_MS),
    duplicate_window: nanos(REMEMBERED_MS),
  });
  return config;
}

function checkStream({ subjects, retention, discard }: StreamConfig): void {
  const wanted = `subjects "${runSubject(">")}", retention "workqueue" and discard "new"`;
  const isRight = subjects?.length === 1 && subjects[0] === runSubject(">") &&
    retention === RetentionPolicy.Workqueue && discard === DiscardPolicy.New;
  if (!isRight) throw new Error(`it is there with other settings; it needs ${wanted}`);
}
