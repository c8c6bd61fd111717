/**
 * The streams and buckets of JetStream that callers and workers use. A process creates what is missing,
 * unless an administrator has done that with {@linkcode createStreams}.
 *
 * @module
 */

import {
  DiscardPolicy,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  type StreamConfig,
} from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import { nanos, type NatsConnection } from "@nats-io/nats-core";
import { type Check, describeThrown, numberFrom } from "../../tool/mod.ts";
import { isFull, isMissing, problemOf } from "./server.ts";
import { CALLS_BUCKET, DIRECTORY, RESULTS_BUCKET, RUNS_STREAM, runSubject } from "./subjects.ts";

/** Settings of a stream or bucket that a process creates. */
export interface StorageSettings {
  /** The number of servers in a cluster that store it. */
  readonly replicas: number;
  readonly maxBytes: number;
}

/** One server, and 1 GiB. */
export const STORAGE: StorageSettings = { replicas: 1, maxBytes: 1_073_741_824 };

/** Checks of the options with these names. */
export const STORAGE_OPTIONS: {
  readonly replicas: Check<number>;
  readonly maxBytes: Check<number>;
} = { replicas: numberFrom(1, 5), maxBytes: numberFrom(1_048_576) };

/** How long durable calls and their results are stored, in milliseconds. */
export const KEPT_MS = 86_400_000;
/** How long the server rejects a second message with the same id, in milliseconds. */
const DUPLICATE_MS = 120_000;

/** Opens a bucket, and creates it if it is missing. */
export async function openBucket(
  connection: NatsConnection,
  name: string,
  { maxBytes, replicas }: StorageSettings,
): Promise<KV> {
  return await new Kvm(connection).create(name, {
    ...{ history: 1, max_bytes: maxBytes, replicas },
    // Compare-and-set needs the newest value, which a follower may not have yet.
    allow_direct: false,
  });
}

/**
 * Opens the stream of durable calls, and creates it if it is missing.
 *
 * @throws {Error} If a stream of that name has other settings.
 */
export async function openRunStream(
  manager: JetStreamManager,
  { maxBytes, replicas }: StorageSettings,
): Promise<StreamConfig> {
  const wanted = {
    subjects: [runSubject(">")],
    retention: RetentionPolicy.Workqueue,
    discard: DiscardPolicy.New,
  };
  const config = await configOf(manager, RUNS_STREAM) ?? (await manager.streams.add({
    ...{ name: RUNS_STREAM, ...wanted, max_bytes: maxBytes, num_replicas: replicas },
    ...{ max_age: nanos(KEPT_MS), duplicate_window: nanos(DUPLICATE_MS) },
  })).config;
  const { subjects = [], retention, discard } = config;
  const isRight = subjects.join() === wanted.subjects.join() && retention === wanted.retention &&
    discard === wanted.discard;
  if (isRight) return config;
  throw new Error(
    `it has other settings; it needs subjects "${wanted.subjects}", retention "workqueue" and ` +
      'discard "new"',
  );
}

/** Returns the configuration of a stream; `undefined` if the stream is missing. */
async function configOf(
  { streams }: JetStreamManager,
  name: string,
): Promise<StreamConfig | undefined> {
  try {
    return (await streams.info(name)).config;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** A stream or bucket, as {@linkcode createStreams} leaves it. */
export interface CreatedStream extends StorageSettings {
  readonly name: string;
  readonly state: "created" | "changed" | "unchanged";
}

/**
 * Creates all streams and buckets that are missing, and changes the others to the settings that are
 * given.
 *
 * @throws {Error} If the server refuses one, with its name and what to do.
 */
export async function createStreams(
  connection: NatsConnection,
  given: Partial<StorageSettings>,
): Promise<readonly CreatedStream[]> {
  const manager = await jetstreamManager(connection);
  const storage = { ...STORAGE, ...given };
  const created: CreatedStream[] = [];
  for (const name of [DIRECTORY, CALLS_BUCKET, RESULTS_BUCKET, RUNS_STREAM]) {
    const stream = name === RUNS_STREAM ? name : `KV_${name}`;
    try {
      const before = await configOf(manager, stream);
      if (name === RUNS_STREAM) await openRunStream(manager, storage);
      else await openBucket(connection, name, storage);
      const { max_bytes, num_replicas } = before ?? {};
      const isOther = max_bytes !== (given.maxBytes ?? max_bytes) ||
        num_replicas !== (given.replicas ?? num_replicas);
      const { config } = before !== undefined && isOther
        ? await manager.streams.update(stream, {
          ...before,
          ...given.maxBytes !== undefined && { max_bytes: given.maxBytes },
          ...given.replicas !== undefined && { num_replicas: given.replicas },
        })
        : await manager.streams.info(stream);
      created.push({
        ...{ name, replicas: config.num_replicas, maxBytes: config.max_bytes },
        state: before === undefined ? "created" : isOther ? "changed" : "unchanged",
      });
    } catch (cause) {
      const problem = storageProblemOf(cause, connection, name, storage);
      throw new Error(`Cannot create "${name}": ${problem}`, { cause });
    }
  }
  return created;
}

/** Explains why a stream or a bucket could not be opened, and what to do. */
export function storageProblemOf(
  error: unknown,
  connection: NatsConnection,
  name: string,
  { replicas, maxBytes }: StorageSettings,
): string {
  const problem = problemOf(error, connection);
  if (/permissions violation.*\.STREAM\.CREATE\./i.test(problem)) {
    return `"${name}" is missing, and the user of the connection may not create it; run ` +
      `"plue nats init" as a user who may (${describeThrown(error)})`;
  }
  if (!isFull(error)) return problem;
  const size = `${maxBytes} bytes on ${replicas === 1 ? "one server" : `${replicas} servers`}`;
  return `there is no room for "${name}", which reserves ${size}; give the server more storage, ` +
    `or the option maxBytes a smaller number: ${problem}`;
}
