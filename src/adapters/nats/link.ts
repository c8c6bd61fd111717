/** The connection of a worker or a caller: its options, its state, and the traces of its calls. */

import {
  type Msg,
  type NatsConnection,
  PermissionViolationError,
  type Subscription,
} from "@nats-io/nats-core";
import {
  type CallTelemetry,
  type DispatchContext,
  type ResumedCall,
  TICKET_RUN,
  type ToolCall,
} from "../../execute/mod.ts";
import {
  assertSync,
  callHook,
  type Check,
  checkFunction,
  createCheck,
  type HookLog,
  isObject,
  noop,
  type Tool,
} from "../../tool/mod.ts";
import { readTraceParent, writeTraceParent } from "../http/mod.ts";
import { type NatsKeys, type Role, Seal } from "./seal.ts";
import {
  followStatus,
  type StatusFollower,
  STORAGE,
  STORAGE_OPTIONS,
  type StorageSettings,
} from "./server.ts";
import { type CallMessage, checkRegistryName } from "./protocol.ts";

const FORGED_LOGGED = 16;

/** Options of workers and callers. */
export interface NatsOptions {
  /**
   * The secret that callers and workers share, at least 16 characters without spaces. The first of a
   * list signs and all are accepted, so that it can be replaced.
   */
  readonly secret: string | readonly string[];
  /**
   * Keys with which a worker cannot act as a caller, nor a caller as a worker. All processes of a
   * registry must have them, or no process. Each message then costs a signature and a check more.
   */
  readonly keys?: NatsKeys;
  /**
   * The name of the registry. Workers that offer the same tools, and their callers, have the same.
   *
   * @default {"default"}
   */
  readonly name?: string;
  /**
   * The number of servers in a cluster that store the streams and buckets that are missing.
   *
   * @default {1}
   */
  readonly replicas?: number;
  /**
   * The maximum size of each of these in bytes, which the server reserves.
   *
   * @default {1_073_741_824}
   */
  readonly maxBytes?: number;
  /**
   * Makes a worker's span a child of its caller's: `openTelemetry` returns it. A worker also measures
   * its calls with it, as with `telemetry` of its `dispatcher`; a caller's dispatcher has its own.
   */
  readonly telemetry?: CallTelemetry;
  /** Receives errors that no call returns. */
  onError?(error: unknown): void;
}

export const NATS_OPTIONS: {
  readonly [Name in keyof NatsOptions]-?: Check<Required<NatsOptions>[Name]>;
} = {
  secret: (_action: string, value: unknown): string | readonly string[] => value as string,
  keys: (_action: string, value: unknown): NatsKeys => value as NatsKeys,
  name: checkRegistryName,
  ...STORAGE_OPTIONS,
  telemetry: createCheck(
    "what openTelemetry makes",
    (value): value is CallTelemetry => isObject(value) && typeof value["begin"] === "function",
  ),
  onError: checkFunction,
};

export interface LinkSettings {
  readonly seal: Seal;
  readonly name: string;
  readonly log: HookLog;
  /** The settings of missing streams and buckets. @default {STORAGE} */
  readonly storage?: StorageSettings;
}

/** A connection of a worker or a caller, which signs messages and logs errors. */
export class Link {
  readonly connection: NatsConnection;
  readonly seal: Seal;
  readonly name: string;
  readonly log: HookLog;
  readonly storage: StorageSettings;
  readonly #followers: Set<StatusFollower> = new Set();
  readonly #unfollow: () => void;
  #rejected: PermissionViolationError | undefined;
  #down: string | undefined;
  #forged = 0;

  constructor(
    connection: NatsConnection,
    { seal, name, log, storage = STORAGE }: LinkSettings,
  ) {
    this.connection = connection;
    this.seal = seal;
    this.name = name;
    this.log = log;
    this.storage = storage;
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

  /** Ends the calls of the link. The connection stays open. */
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
   * Logs a message with a wrong signature: the first few, and then one at each power of two, so that an
   * attacker cannot flood the log.
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

/** Reads checked options. @throws {TypeError} If the secret or the keys are not valid. */
export function readLinkSettings(
  action: string,
  role: Role,
  { secret, keys, name = "default", ...read }: Partial<NatsOptions>,
  options: Pick<NatsOptions, "onError">,
): Required<LinkSettings> {
  if (keys !== undefined && keys?.seed === undefined) {
    throw new TypeError(`Cannot ${action}: keys must have a seed, callers and workers`);
  }
  const { replicas = STORAGE.replicas, maxBytes = STORAGE.maxBytes } = read;
  return {
    seal: new Seal(action, secret as string, role, keys),
    ...{ name, storage: { replicas, maxBytes } },
    log: (error) => callHook(() => options.onError?.(error), noop),
  };
}

/** Returns the position in a trace of the call that runs now, in the form of W3C's `traceparent`. */
export function currentTrace(
  telemetry: CallTelemetry | undefined,
  log: HookLog,
): string | undefined {
  let trace: string | undefined;
  callHook(() => {
    const place = assertSync(telemetry?.place?.());
    const header = place && writeTraceParent(place);
    // Telemetry may return another form.
    if (header && readTraceParent(header)) trace = header;
  }, log);
  return trace;
}

export function requestOf(
  { callId, arguments: args, ticket, answers = {} }: CallMessage,
  { id: name }: Tool,
): ToolCall | ResumedCall & Pick<ToolCall, "name"> {
  return ticket === undefined ? { name, arguments: args, callId } : { name, ticket, answers };
}

/** @param run The same for all attempts to resume the call: the next worker may use its ticket again. */
export function contextOf(
  call: CallMessage,
  { idempotent }: Tool,
  run: string | undefined = call.run,
): DispatchContext {
  const { sessionId, messageId, principal, context, timeoutMs, trace, mute } = call;
  return {
    ...{ sessionId, messageId, principal, context, timeoutMs },
    services: idempotent && run !== undefined ? { [TICKET_RUN]: run } : {},
    ...(trace !== undefined && { trace: { headers: new Map([["traceparent", trace]]) } }),
    ...(mute === true && { onQuestion: () => null }),
  };
}
