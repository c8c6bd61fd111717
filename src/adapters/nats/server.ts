/**
 * What a server must be able to do, checked once at the start, and errors of JetStream in words.
 *
 * @module
 */

import { JetStreamApiError, jetstreamManager } from "@nats-io/jetstream";
import { type NatsConnection, PermissionViolationError } from "@nats-io/nats-core";
import { type Check, describeThrown, type HookLog, numberFrom } from "../../tool/mod.ts";

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

/** Whether a request, or its cause, was refused, and would be again. */
export function isRefused(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof JetStreamApiError) return isFull(error) || error.status < 500;
  return REFUSALS.includes(error.name) || isRefused(error.cause);
}

/** How a stream or a bucket is made that is not there. */
export interface StorageSettings {
  /** How many servers of a cluster keep it. */
  readonly replicas: number;
  readonly maxBytes: number;
}

/** One server, and 1 GiB. */
export const STORAGE: StorageSettings = { replicas: 1, maxBytes: 1_073_741_824 };

/** Checks of the options that say so. */
export const STORAGE_OPTIONS: {
  readonly replicas: Check<number>;
  readonly maxBytes: Check<number>;
} = { replicas: numberFrom(1, 5), maxBytes: numberFrom(1_048_576) };

/** What is wrong with a stream or a bucket that could not be opened. */
export function storageProblemOf(
  error: unknown,
  connection: NatsConnection,
  name: string,
  { replicas, maxBytes }: StorageSettings,
): string {
  const problem = problemOf(error, connection);
  if (!isFull(error)) return problem;
  const size = `${maxBytes} bytes on ${replicas === 1 ? "one server" : `${replicas} servers`}`;
  return `there is no room for "${name}", which reserves ${size}; give the server more storage, ` +
    `or the option maxBytes a smaller number: ${problem}`;
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
