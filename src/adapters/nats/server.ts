/**
 * The server: what it must be able to do, whether the connection to it is up, and its errors in words.
 *
 * @module
 */

import { JetStreamApiCodes, JetStreamApiError, jetstreamManager } from "@nats-io/jetstream";
import { type NatsConnection, PermissionViolationError, type Status } from "@nats-io/nats-core";
import { describeThrown, type HookLog } from "../../tool/mod.ts";

/** The oldest server that the tests run with. */
const OLDEST = [2, 9] as const;

/** The smallest limit of a message that leaves room for what is sent whole. */
const LEAST_PAYLOAD = 65_536;

/** Codes of the server's API, which its texts do not keep to. */
const WRONG_LAST_SEQUENCE: readonly number[] = [10071, 10164];
const NO_JETSTREAM: readonly number[] = [10039, 10076];
const NO_RESOURCES: readonly number[] = [10002, 10023, 10028, 10047, 10077];

/** What the client or the server says of a request that it does not take. */
const REFUSALS: readonly string[] = ["InvalidArgumentError", "PermissionViolationError"];

/** Whether a write failed because another one came first. */
export function isConflict(error: unknown): boolean {
  return error instanceof JetStreamApiError && WRONG_LAST_SEQUENCE.includes(error.code);
}

/** Whether the server has no room for a write. */
export function isFull(error: unknown): boolean {
  return error instanceof JetStreamApiError && NO_RESOURCES.includes(error.code);
}

/** True if a stream or a bucket is missing. */
export function isMissing(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound;
}

/** Whether a request, or its cause, was refused, and would be again. */
export function isRefused(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof JetStreamApiError) return isFull(error) || error.status < 500;
  return REFUSALS.includes(error.name) || isRefused(error.cause);
}

/** What is wrong, in words that say what would be right. */
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
 * Makes sure that a server can do what is needed.
 *
 * @throws {Error} If it cannot, with the one thing that is wrong.
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

/** Keeps the subscriptions that the server refuses while a side starts. */
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
 * Waits until the server has taken the subscriptions that were made.
 *
 * @param refused What {@linkcode noteRefusals} has kept.
 * @throws {Error} If it has refused one.
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

/** What follows a connection. */
export interface StatusFollower {
  /** The connection was lost, or closed. */
  down(why: string): void;
  /** It is there again, perhaps to another server. */
  up(): void;
  /** The server has refused a message, because the user may not publish there. */
  forbidden?(subject: string): void;
}

/** Follows a connection until the function that it returns is called. */
export function followStatus(connection: NatsConnection, follower: StatusFollower): () => void {
  let isOver = false;
  // The client's iterator can be stopped, which its type does not say.
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
