/** The connection of a worker or a caller: the check of the server, and the connection's state. */

import { jetstreamManager } from "@nats-io/jetstream";
import {
  type Msg,
  type NatsConnection,
  PermissionViolationError,
  type Status,
  type Subscription,
} from "@nats-io/nats-core";
import * as check from "../../tool/mod.ts";
import { callHook, type HookLog, isObject, noop } from "../../tool/mod.ts";
import { type NatsKeys, type Role, Seal } from "./seal.ts";
import { problemOf } from "./streams.ts";
import type { CallTelemetry } from "../../execute/mod.ts";
import { checkRegistryName } from "./protocol.ts";

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
  if (headers !== true) fail("headers are disabled on the server");
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

/** Options of workers and callers. */
export interface NatsOptions {
  /**
   * The secret that callers and workers share: at least 16 characters without spaces. With a list,
   * the first secret signs and all are accepted, so that you can replace a secret step by step.
   */
  readonly secret: string | readonly string[];
  /**
   * Keys that separate callers and workers: neither can act as the other. Set keys in all processes of
   * a registry, or in no process. With keys, each message needs another signature and another check.
   */
  readonly keys?: NatsKeys;
  /**
   * The name of the registry. All workers with the same tools, and their callers, use one name.
   *
   * @default {"default"}
   */
  readonly name?: string;
  /**
   * The result of `openTelemetry`, which makes a worker's span a child of the caller's span. Workers
   * also measure their calls with it; callers use the `telemetry` of their own dispatcher.
   */
  readonly telemetry?: CallTelemetry;
  /** Receives errors that no call returns. */
  onError?(error: unknown): void;
}

export const NATS_OPTIONS: {
  readonly [Name in keyof NatsOptions]-?: check.Check<Required<NatsOptions>[Name]>;
} = {
  secret: (_action: string, value: unknown): string | readonly string[] => value as string,
  keys: (_action: string, value: unknown): NatsKeys => value as NatsKeys,
  name: checkRegistryName,
  telemetry: check.createCheck(
    "the result of openTelemetry()",
    (value): value is CallTelemetry => isObject(value) && typeof value["begin"] === "function",
  ),
  onError: check.checkFunction,
};

/** Reads checked options. @throws {TypeError} If the secret or the keys are not valid. */
export function readLinkSettings(
  action: string,
  role: Role,
  { secret, keys, name = "default" }: Partial<NatsOptions>,
  options: Pick<NatsOptions, "onError">,
): LinkSettings {
  if (keys !== undefined && keys?.seed === undefined) {
    throw new TypeError(`Cannot ${action}: keys must have a seed, callers and workers`);
  }
  return {
    seal: new Seal(action, secret as string, role, keys),
    name,
    log: (error) => callHook(() => options.onError?.(error), noop),
  };
}
