/**
 * Durable calls, as both sides know them: a stream keeps a call until it has run, and a store keeps
 * who runs it, and then its result. A claim is a compare-and-set: the run whose revision is in the
 * store is the one that counts, and a result is written once.
 *
 * @module
 */

import {
  DiscardPolicy,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
} from "@nats-io/jetstream";
import { nanos, type NatsConnection } from "@nats-io/nats-core";
import { createHash } from "node:crypto";
import type { ToolProgress } from "../../execute/mod.ts";
import { type CallStore, ownerDigest } from "../../execute/durable/mod.ts";
import { canonicalJson, type Tool, type ToolResult } from "../../tool/mod.ts";
import { natsCallStore } from "./call_store.ts";
import type { CallMessage } from "./frames.ts";
import { RESULTS_BUCKET, RUNS_STREAM, runSubject } from "./subjects.ts";

/** How long results are kept, and calls that no worker has taken, in milliseconds. */
export const KEPT_MS = 86_400_000;
/** How many bytes of calls may wait. */
const MAX_WAITING_BYTES = 1_073_741_824;
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
    /** How many workers have begun it. */
    readonly attempts: number;
  }
  | { readonly state: "done"; readonly result: ToolResult };

/** What a worker tells the caller of a durable call, as it comes. The result is in the store. */
export type RunNews =
  | { readonly type: "metadata"; readonly value: unknown }
  | { readonly type: "progress"; readonly progress: ToolProgress }
  | { readonly type: "done" };

/** Where workers hear that a durable call is not wanted any more. */
export const RUN_CONTROL: string = runSubject("").replace(".run.", ".stop.");

/** Whether calls of a tool are durable: those that its author has made tasks. */
export function isDurable({ execution }: Pick<Tool, "execution">): boolean {
  return execution === "task";
}

/**
 * The same for the same call of the same caller, also when the definition of the tool has changed: it
 * has one result.
 *
 * @param tool The name of the registry and the id of the tool.
 */
export async function runKey(tool: string, request: Partial<CallMessage>): Promise<string> {
  const { principal, sessionId, messageId, callId, arguments: args, ticket, answers } = request;
  const what = JSON.parse(
    JSON.stringify([tool, sessionId, messageId, callId, args, ticket, answers]),
  );
  const digest = createHash("sha256").update(canonicalJson(what)).digest("base64url");
  return `run.${await ownerDigest(principal)}.${digest}`;
}

/** The stream and the store, which are made if they are not there. */
export class Runs {
  readonly store: CallStore;
  readonly manager: JetStreamManager;

  private constructor(store: CallStore, manager: JetStreamManager) {
    this.store = store;
    this.manager = manager;
  }

  /** @throws {Error} If the server cannot keep them. */
  static async open(connection: NatsConnection): Promise<Runs> {
    const store = await natsCallStore(connection, { bucket: RESULTS_BUCKET });
    const manager = await jetstreamManager(connection);
    await manager.streams.add({
      name: RUNS_STREAM,
      subjects: [runSubject(">")],
      retention: RetentionPolicy.Workqueue,
      discard: DiscardPolicy.New,
      max_bytes: MAX_WAITING_BYTES,
      max_age: nanos(KEPT_MS),
      duplicate_window: nanos(REMEMBERED_MS),
    });
    return new Runs(store, manager);
  }

  async read(
    key: string,
  ): Promise<{ readonly record: RunRecord; readonly revision: number } | undefined> {
    const stored = await this.store.get(key);
    if (stored === undefined) return undefined;
    const record: RunRecord = JSON.parse(new TextDecoder().decode(stored.value));
    return { record, revision: stored.revision };
  }

  /**
   * Writes a record in the place of the one with that revision; 0 for none.
   *
   * @returns The new revision; `undefined` if another one is there.
   */
  write(key: string, record: RunRecord, revision: number): Promise<number | undefined> {
    const value = new TextEncoder().encode(JSON.stringify(record));
    const options = { expiresAt: Date.now() + KEPT_MS };
    return revision === 0
      ? this.store.create(key, value, options)
      : this.store.update(key, value, revision, options);
  }
}
