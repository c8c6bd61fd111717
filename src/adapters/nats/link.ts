/** The connection of a worker or a caller: the check of the server, and the connection's state. */

import { jetstreamManager } from "@nats-io/jetstream";
import {
  type Msg,
  type NatsConnection,
  PermissionViolationError,
  type Status,
  type Subscription,
} from "@nats-io/nats-core";
import { callHook, type HookLog } from "../../tool/mod.ts";
import type { Seal } from "./seal.ts";
import { problemOf } from "./streams.ts";

/** The oldest server that the tests run with. */
const OLDEST = [2, 9] as const;

/** The smallest supported `max_payload`: some messages are sent in one part. */
const LEAST_PAYLOAD = 65_536;

const FORGED_LOGGED = 16;

/** @throws {Error} If the server lacks a feature. The message has the name of the feature. */
export async function checkServer(action: string, connection: NatsConnection): Promise<void> {
  const fail = (problem: string, cause?: unknown): never => {
    throw new Error(`Cannot ${action}: ${problem}`, { cause });
  };
  if (connection.isClosed()) fail("the connection to NATS is closed");
  const { version = "", jetstream, headers, max_payload: most = LEAST_PAYLOAD } = connection.info ??
    {};
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
    fail(`the server is NATS ${version}, but ${OLDEST.join(".")} or later is required`);
  }
  if (most < LEAST_PAYLOAD) {
    fail(`max_payload of the server is ${most} bytes, but at least ${LEAST_PAYLOAD} are required`);
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

export interface StatusFollower {
  /** Called when the connection was lost or closed. */
  down?(why: string): void;
  /** Called after a reconnection, possibly to another server. */
  up?(): void;
  /** Called when the user of the connection may not publish to a subject. */
  forbidden?(subject: string): void;
}

/** Calls `follower` when the state of a connection changes. Returns a function that stops this. */
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

export interface LinkSettings {
  readonly seal: Seal;
  readonly name: string;
  readonly log: HookLog;
}

/** A connection of a worker or a caller, which signs messages and logs errors. */
export class Link {
  readonly connection: NatsConnection;
  readonly seal: Seal;
  readonly name: string;
  readonly log: HookLog;
  readonly #followers: Set<StatusFollower> = new Set();
  readonly #unfollow: () => void;
  #rejected: PermissionViolationError | undefined;
  #down: string | undefined;
  #forged = 0;

  constructor(connection: NatsConnection, { seal, name, log }: LinkSettings) {
    this.connection = connection;
    this.seal = seal;
    this.name = name;
    this.log = log;
    this.#unfollow = followStatus(connection, {
      down: (why) => this.#end(why),
      up: () => {
        this.#down = undefined;
        for (const follower of this.#followers) follower.up?.();
      },
      forbidden: (subject) => {
        for (const follower of this.#followers) follower.forbidden?.(subject);
      },
    });
  }

  /** The reason why nothing can be sent; `undefined` while the connection is up. */
  get down(): string | undefined {
    return this.#down;
  }

  get maxBytes(): number {
    return this.connection.info?.max_payload ?? 1_048_576;
  }

  #end(why: string): void {
    this.#down = why;
    for (const follower of this.#followers) follower.down?.(why);
  }

  follow(follower: StatusFollower): void {
    this.#followers.add(follower);
  }

  /** Stops following the connection, and reports `why` as its loss. The connection stays open. */
  stop(why: string): void {
    this.#unfollow();
    this.#end(why);
  }

  readonly listen = (subject: string, take: (message: Msg) => void): Subscription =>
    this.connection.subscribe(subject, {
      callback: (error, message) => {
        if (error instanceof PermissionViolationError) this.#rejected ??= error;
        if (error !== null) return this.log(error);
        callHook(() => take(message), this.log);
      },
    });

  /**
   * Logs that a message has a wrong signature. After the first few, only each power of two is
   * logged, so that an attacker cannot flood the log.
   */
  logForged(what: string): void {
    const count = ++this.#forged;
    const isFew = count <= FORGED_LOGGED;
    if (!isFew && (count & (count - 1)) !== 0) return;
    this.log(new Error(isFew ? what : `${what} (${count} of them so far)`));
  }

  publish(subject: string, value: unknown): void {
    callHook(() => this.connection.publish(subject, this.seal.wrap(value, subject)), this.log);
  }

  /** Waits for all subscriptions. @throws {Error} If the server has rejected one. */
  async checkSubscriptions(action: string): Promise<void> {
    await this.connection.flush();
    const cause = this.#rejected;
    if (cause === undefined) return;
    const why = `the user of the connection may not subscribe to "${cause.subject}"`;
    throw new Error(`Cannot ${action}: ${why}`, { cause });
  }
}
