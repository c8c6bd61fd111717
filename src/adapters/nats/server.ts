/**
 * The server: its required features, its streams and buckets, the state of the connection, and its errors
 * as messages.
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
import {
  nanos,
  type NatsConnection,
  PermissionViolationError,
  type Status,
} from "@nats-io/nats-core";
import { type Check, describeThrown, numberFrom, systemClock, wholeFrom } from "../../tool/mod.ts";
import { type KV, Kvm } from "@nats-io/kv";
import {
  CALLS_BUCKET,
  DIRECTORY,
  MAX_SKEW_MS,
  RESULTS_BUCKET,
  RUNS_STREAM,
  runSubject,
} from "./protocol.ts";

/** The oldest server that the tests run with. */
const OLDEST = [2, 9] as const;

/** The smallest `max_payload`: messages that are sent whole need it. */
const LEAST_PAYLOAD = 65_536;

/** Codes of the server's API; its messages change between versions. */
const WRONG_LAST_SEQUENCE: readonly number[] = [10071, 10164];
const NO_JETSTREAM: readonly number[] = [10039, 10076];
const NO_RESOURCES: readonly number[] = [10002, 10023, 10028, 10047, 10077];

/** Names of errors of requests that would fail again. */
const REFUSALS: readonly string[] = ["InvalidArgumentError", "PermissionViolationError"];

export function isConflict(error: unknown): boolean {
  return error instanceof JetStreamApiError && WRONG_LAST_SEQUENCE.includes(error.code);
}

export function isFull(error: unknown): boolean {
  return error instanceof JetStreamApiError && NO_RESOURCES.includes(error.code);
}

/** True if a stream or a bucket is missing. A write to it then has no responders. */
export function isMissing(error: unknown): boolean {
  return error instanceof JetStreamApiError
    ? error.code === JetStreamApiCodes.StreamNotFound
    : error instanceof Error && error.name === "JetStreamNotEnabled";
}

/** True if the server or the client rejected a request, so that it would fail again. */
export function isRefused(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof JetStreamApiError) return isFull(error) || error.status < 500;
  return REFUSALS.includes(error.name) || isRefused(error.cause);
}

export function problemOf(error: unknown, connection: NatsConnection): string {
  if (connection.isClosed()) return "the connection to NATS is closed";
  const said = describeThrown(error);
  if (error instanceof JetStreamApiError) {
    if (NO_JETSTREAM.includes(error.code)) {
      return `JetStream is not enabled for this account (${said})`;
    }
    if (NO_RESOURCES.includes(error.code)) return `a limit of the server is reached (${said})`;
  }
  const name = error instanceof Error ? error.name : "";
  if (name === "PermissionViolationError" || /permissions violation/i.test(said)) {
    return `the user of the connection has no permission (${said})`;
  }
  if (name === "TimeoutError" || name === "NoRespondersError" || /no responders/.test(said)) {
    return `the server does not answer (${said || name})`;
  }
  return said;
}

/** @throws {Error} If the server lacks a feature, with its name. */
export async function checkServer(action: string, connection: NatsConnection): Promise<void> {
  const fail = (problem: string, cause?: unknown): never => {
    throw new Error(`Cannot ${action}: ${problem}`, { cause });
  };
  if (connection.isClosed()) fail("the connection to NATS is closed");
  const { version = "", jetstream, headers, max_payload: most = LEAST_PAYLOAD } = connection.info ??
    {};
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
    fail(`the server is NATS ${version}, and ${OLDEST.join(".")} or later is needed`);
  }
  if (most < LEAST_PAYLOAD) {
    fail(`max_payload of the server is ${most} bytes, and ${LEAST_PAYLOAD} or more are needed`);
  }
  if (headers !== true) fail("the server has headers turned off");
  if (jetstream !== true) {
    fail('the server has no JetStream: start it with "-js", or with "jetstream {}" in its file');
  }
  try {
    await (await jetstreamManager(connection)).getAccountInfo();
  } catch (cause) {
    fail(problemOf(cause, connection), cause);
  }
}

/**
 * Returns how far this machine's clock is ahead of the server's, in milliseconds, by the creation of a
 * consumer.
 */
export function skewOf(before: number, created: string): number {
  const createdAt = Date.parse(created);
  return Math.max(0, before - createdAt) + Math.min(0, systemClock.timestamp() - createdAt);
}

/** @throws {Error} If the clocks differ by more than is allowed. */
export function checkSkew(skewMs: number): void {
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return;
  throw new Error(
    `the clock of this machine is ${(Math.abs(skewMs) / 1_000).toFixed(1)} s ` +
      `${skewMs > 0 ? "ahead of" : "behind"} that of the server, and ${
        MAX_SKEW_MS / 1_000
      } s are ` +
      "allowed; set both",
  );
}

export interface StatusFollower {
  /** Is called when the connection was lost or closed. */
  down?(why: string): void;
  /** Is called after a reconnection, possibly to another server. */
  up?(): void;
  /** Is called when the user may not publish to a subject. */
  forbidden?(subject: string): void;
}

/** Follows the state of a connection. Returns a function that stops it. */
export function followStatus(connection: NatsConnection, follower: StatusFollower): () => void {
  let isOver = false;
  // The client's iterator has a method `stop`, which its type lacks.
  const statuses = connection.status() as AsyncIterable<Status> & { readonly stop?: () => void };
  void (async () => {
    for await (const status of statuses) {
      if (isOver) return;
      const { type } = status;
      if (type === "error") {
        const { error } = status;
        if (!(error instanceof PermissionViolationError) || error.operation !== "publish") continue;
        follower.forbidden?.(error.subject);
      } else if (type === "disconnect") {
        follower.down?.("the connection to NATS is lost; try it again later");
      } else if (type === "reconnect") follower.up?.();
    }
  })();
  void connection.closed().then(() => {
    if (!isOver) follower.down?.("the connection to NATS is closed");
  });
  return () => {
    isOver = true;
    statuses.stop?.();
  };
}

export interface StorageSettings {
  readonly replicas: number;
  readonly maxBytes: number;
}

/** One server, and 1 GiB. */
export const STORAGE: StorageSettings = { replicas: 1, maxBytes: 1_073_741_824 };

export const STORAGE_OPTIONS: {
  readonly replicas: Check<number>;
  readonly maxBytes: Check<number>;
} = { replicas: wholeFrom(1, 5), maxBytes: numberFrom(1_048_576) };

/** The lifetime of durable calls and their results, in milliseconds. */
export const KEPT_MS = 86_400_000;
/** The time in which the server rejects a second message with the same id, in milliseconds. */
const DUPLICATE_MS = 120_000;

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
 * @throws {Error} If it has other settings.
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
 * @throws {Error} If the server rejects a stream: with its name and the remedy.
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
