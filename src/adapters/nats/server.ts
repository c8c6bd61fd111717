/**
 * The server: its required features, the state of the connection, and its errors as messages.
 *
 * @module
 */

import { JetStreamApiCodes, JetStreamApiError, jetstreamManager } from "@nats-io/jetstream";
import { type NatsConnection, PermissionViolationError, type Status } from "@nats-io/nats-core";
import { describeThrown, type HookLog } from "../../tool/mod.ts";

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

/** True if a write failed because another write came first. */
export function isConflict(error: unknown): boolean {
  return error instanceof JetStreamApiError && WRONG_LAST_SEQUENCE.includes(error.code);
}

/** True if the server has no space for a write. */
export function isFull(error: unknown): boolean {
  return error instanceof JetStreamApiError && NO_RESOURCES.includes(error.code);
}

/** True if a stream or a bucket is missing. */
export function isMissing(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound;
}

/** True if the server or the client rejected a request, so that it would fail again. */
export function isRefused(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof JetStreamApiError) return isFull(error) || error.status < 500;
  return REFUSALS.includes(error.name) || isRefused(error.cause);
}

/** Describes an error, and what to do. */
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

/**
 * Checks that a server has all required features.
 *
 * @throws {Error} If one is missing, with its name.
 */
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

/** Collects the subscriptions that the server rejects during the start. */
export function noteRefusals(
  log: HookLog,
): { readonly refused: unknown[]; readonly note: HookLog } {
  const refused: unknown[] = [];
  const note: HookLog = (error) => {
    if (error instanceof PermissionViolationError) refused.push(error);
    log(error);
  };
  return { refused, note };
}

/**
 * Waits until the server has processed all subscriptions.
 *
 * @param refused The errors of {@linkcode noteRefusals}.
 * @throws {Error} If the server has rejected one.
 */
export async function checkSubscriptions(
  action: string,
  connection: NatsConnection,
  refused: readonly unknown[],
): Promise<void> {
  await connection.flush();
  const [cause] = refused;
  if (cause instanceof PermissionViolationError) {
    const why = `the user of the connection may not subscribe to "${cause.subject}"`;
    throw new Error(`Cannot ${action}: ${why}`, { cause });
  }
}

/** Receives the changes of a connection's state. */
export interface StatusFollower {
  /** Is called when the connection was lost or closed. */
  down(why: string): void;
  /** Is called after a reconnection, possibly to another server. */
  up(): void;
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
        follower.down("the connection to NATS is lost; try it again later");
      } else if (type === "reconnect") follower.up();
    }
  })();
  void connection.closed().then(() => {
    if (!isOver) follower.down("the connection to NATS is closed");
  });
  return () => {
    isOver = true;
    statuses.stop?.();
  };
}
