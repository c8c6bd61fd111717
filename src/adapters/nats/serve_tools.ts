/**
 * A process that offers its tools to others.
 *
 * @module
 */

import { type NatsConnection, nuid } from "@nats-io/nats-core";
import { storedTickets } from "../../execute/durable/mod.ts";
import { ToolDispatcher, type ToolDispatcherOptions } from "../../execute/mod.ts";
import { type Registry, ToolRegistry } from "../../registry/mod.ts";
import type { Selection } from "../../select/mod.ts";
import {
  callHook,
  checkFunction,
  type HookLog,
  isObject,
  MAX_TIMEOUT_MS,
  must,
  NO_LOG,
  numberFrom,
  readFields,
  refuse,
  systemClock,
  type Tool,
  type ToolFailure,
} from "../../tool/mod.ts";
import type { CallTelemetry } from "../../execute/mod.ts";
import { natsCallStore } from "./call_store.ts";
import { DurableWorker } from "./durable_worker.ts";
import { listenForWorkers, PRESENCE_EVERY_MS, type PresenceMessage } from "./fleet.ts";
import { Seal } from "./message.ts";
import {
  checkServer,
  checkSubscriptions,
  noteRefusals,
  STORAGE,
  STORAGE_OPTIONS,
  type StorageSettings,
} from "./server.ts";
import { Offers } from "./offers.ts";
import { ServedCalls } from "./served_calls.ts";
import { Service } from "./service.ts";
import { followStatus } from "./status.ts";
import { checkRegistryName, presenceSubject } from "./subjects.ts";
import { isTelemetry } from "./telemetry.ts";

/** Options for {@linkcode serveTools}. */
export interface ServeToolsOptions {
  /**
   * What callers and workers share, at least 16 characters. Of a list, the first one signs and all
   * are accepted, so that it can be replaced.
   */
  readonly secret: string | readonly string[];
  /**
   * The name under which the tools are offered. Processes that offer the same tools have the same.
   *
   * @default {"default"}
   */
  readonly name?: string;
  /** Which tools are offered. Absent: all. */
  readonly selection?: Selection;
  /**
   * How calls are run: transactions, hooks, limits. By default 256 calls run at once. What callers
   * decide is not asked again: approvals are theirs.
   */
  readonly dispatcher?: Omit<ToolDispatcherOptions, "approve">;
  /**
   * The dispatcher of the calls that the process takes in other ways, such as over HTTP. It counts
   * these calls among its own, so that `GET /metrics` has them.
   */
  readonly countedBy?: ToolDispatcher;
  /**
   * How long `close` waits for running calls, in milliseconds. Then they are aborted.
   *
   * @default {30_000}
   */
  readonly drainTimeoutMs?: number;
  /**
   * How long a durable call is held by a worker that does not renew that, in milliseconds. When a
   * worker has died, another one takes its calls after that. All workers must have the same.
   *
   * @default {30_000}
   */
  readonly leaseMs?: number;
  /**
   * How many tasks this worker runs at once. It takes no more of them than that, so that others wait
   * for a worker that has a place. For plain calls, `dispatcher: { limits }` says it.
   *
   * @default {64, or the `maxConcurrent` of these limits if that is less}
   */
  readonly concurrency?: number;
  /**
   * How many tasks of a tool this worker runs at once, by the id of the tool. Absent: as many as
   * `concurrency` says.
   */
  readonly toolConcurrency?: Readonly<Record<string, number>>;
  /**
   * How many servers of a cluster keep the streams and buckets that are not there yet.
   *
   * @default {1}
   */
  readonly replicas?: number;
  /**
   * How many bytes each of these may have, which the server reserves.
   *
   * @default {1_073_741_824}
   */
  readonly maxBytes?: number;
  /**
   * Traces and measures the calls, as parts of their callers' traces: what `openTelemetry` makes. It
   * is the `telemetry` of `dispatcher`, and either may be given.
   */
  readonly telemetry?: CallTelemetry;
  /** Receives errors that reach no caller. */
  onError?(error: unknown): void;
}

/** A process that offers its tools. */
export interface ServedTools extends AsyncDisposable {
  /** Names this worker, until its process ends. */
  readonly worker: string;
  /** How many calls run here. */
  readonly running: number;
  /**
   * Takes no more calls, waits for those that run, and tells callers to go elsewhere. The connection
   * and the registry stay open.
   */
  close(): Promise<void>;
}

const ACTION = "serve tools";
/** How many calls one worker runs at once unless it is told otherwise. */
const MAX_CONCURRENT = 256;
/** How many tasks one worker runs at once by default. */
const TASKS = 64;
const MAX_TASKS = 4_096;
/** What the callers' limits are checked against by the callers. */
const MAX_BYTES = 67_108_864;
/** An hour: the caller's own limit is shorter, and aborts the call. */
const LONGEST_CALL_MS = 3_600_000;
/** How often a worker looks for others that have died, in its own beats. */
const BEATS_TO_REMOVE = 10;
/** A worker that does not receive so many of its own beats has a connection that is stuck. */
const BEATS_TO_RECONNECT = 3;

function isTaskCount(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= MAX_TASKS;
}

const OPTIONS = {
  secret: (_action: string, value: unknown): string | readonly string[] => value as string,
  name: checkRegistryName,
  selection: must("an object", (value): value is Selection => isObject(value)),
  dispatcher: must("an object", (value): value is ToolDispatcherOptions => isObject(value)),
  countedBy: must(
    "a dispatcher",
    (value): value is ToolDispatcher => value instanceof ToolDispatcher,
  ),
  drainTimeoutMs: numberFrom(0, MAX_TIMEOUT_MS),
  leaseMs: numberFrom(1_000, 3_600_000),
  concurrency: numberFrom(1, MAX_TASKS),
  toolConcurrency: must(
    `an object with numbers from 1 to ${MAX_TASKS}, by the ids of tools`,
    (value): value is Readonly<Record<string, number>> =>
      isObject(value) && Object.values(value).every(isTaskCount),
  ),
  ...STORAGE_OPTIONS,
  telemetry: must("what openTelemetry makes", isTelemetry),
  onError: checkFunction,
};

/**
 * Offers the tools of a registry to other processes, which see them with {@linkcode remoteTools}.
 * Start several of them, and calls are spread; end one with `close`, and no call is lost.
 *
 * A call is run if one who knows the secret has signed it, for this worker and for the definition
 * that the worker has. Its arguments are checked again. Changes of the registry are followed.
 *
 * @example Usage
 * ```ts ignore
 * import { connect } from "@nats-io/transport-node";
 * import { ToolRegistry } from "@plue/tools";
 * import { serveTools } from "@plue/tools/nats";
 *
 * const registry = new ToolRegistry({ tools: [add] });
 * const connection = await connect({ servers: "nats://localhost" });
 * const served = await serveTools(registry, connection, { secret: process.env.PLUE_SECRET });
 * process.once("SIGTERM", () => served.close().then(() => connection.close()));
 * ```
 *
 * @throws {TypeError} If an option is wrong.
 * @throws {Error} If the server cannot do what is needed, or does not let this user.
 */
export async function serveTools(
  registry: Registry,
  connection: NatsConnection,
  options: ServeToolsOptions,
): Promise<ServedTools> {
  const read = readFields(ACTION, { ...options }, OPTIONS);
  if (!isObject(registry) || !("tools" in registry)) refuse(ACTION, "it needs a registry");
  if (read.dispatcher?.approve !== undefined) {
    refuse(ACTION, "calls are approved by their callers, so dispatcher.approve cannot be given");
  }
  const { secret, name = "default", drainTimeoutMs = 30_000, leaseMs = 30_000 } = read;
  const { maxConcurrent = TASKS } = read.dispatcher?.limits ?? {};
  // What the limits refuse would only wait for longer.
  const { concurrency = Math.min(TASKS, maxConcurrent), toolConcurrency = {} } = read;
  const { replicas = STORAGE.replicas, maxBytes = STORAGE.maxBytes } = read;
  const storage = { replicas, maxBytes };
  const seal = new Seal(ACTION, secret as string);
  const log: HookLog = (error) => callHook(() => options.onError?.(error), NO_LOG);
  await checkServer(ACTION, connection);
  // The tools of a kernel alone become ready at their first calls.
  if (registry instanceof ToolRegistry) await registry.ready();
  const dispatcherOptions: ToolDispatcherOptions = {
    tickets: storedTickets(
      await natsCallStore(connection, { secret: secret as string, ...storage }),
    ),
    timeoutMs: LONGEST_CALL_MS,
    maxArgumentBytes: MAX_BYTES,
    maxOutputBytes: MAX_BYTES,
    ...(read.telemetry && { telemetry: read.telemetry }),
    // What else goes wrong in a call, its caller reads.
    onError: ({ phase, error }) => phase === "telemetry" && log(error),
    ...read.dispatcher,
    limits: { maxConcurrent: MAX_CONCURRENT, ...read.dispatcher?.limits },
    approve: () => true,
  };
  const dispatcher = read.countedBy?.withOptions(registry, dispatcherOptions) ??
    new ToolDispatcher(registry, dispatcherOptions);
  const worker = new Worker({
    ...{ registry, connection, seal, name, dispatcher, log, drainTimeoutMs, leaseMs },
    ...{ concurrency, toolConcurrency: { ...toolConcurrency }, storage },
    selection: read.selection,
  });
  await worker.start();
  return worker;
}

interface WorkerSettings {
  readonly registry: Registry;
  readonly selection: Selection | undefined;
  readonly connection: NatsConnection;
  readonly seal: Seal;
  readonly name: string;
  readonly dispatcher: ToolDispatcher;
  readonly drainTimeoutMs: number;
  readonly leaseMs: number;
  readonly concurrency: number;
  readonly toolConcurrency: Readonly<Record<string, number>>;
  readonly storage: StorageSettings;
  readonly log: HookLog;
}

class Worker implements ServedTools {
  readonly worker: string = nuid.next();
  readonly #settings: WorkerSettings;
  readonly #offers: Offers;
  #calls: ServedCalls | undefined;
  #durable: DurableWorker | undefined;
  #service: Service | undefined;
  readonly #end: (() => void)[] = [];
  /** Whether the connection is up. */
  #isUp = true;
  #stopBeating: () => void = () => {};
  /** Set while a change of the registry is to be followed. */
  #stopFollowing: (() => void) | undefined;
  #beats = 0;
  /** Its beats since it received one of them; `undefined` before the first. */
  #unheard: number | undefined;
  #closing: Promise<void> | undefined;

  constructor(settings: WorkerSettings) {
    this.#settings = settings;
    this.#offers = new Offers({ ...settings, action: ACTION, worker: this.worker });
  }

  get running(): number {
    return (this.#calls?.running ?? 0) + (this.#durable?.running ?? 0);
  }

  async start(): Promise<void> {
    const { registry, connection, seal, name, dispatcher, log } = this.#settings;
    const { leaseMs, concurrency, toolConcurrency, storage } = this.#settings;
    const { worker } = this;
    const { refused, note } = noteRefusals(log);
    const failed = ({ id }: Tool, { error: { code } }: ToolFailure): void => {
      if (code === "input_required") return;
      if (this.#service !== undefined) this.#service.lastError = `${code}: ${id}`;
    };
    const presence = listenForWorkers(
      connection,
      seal,
      name,
      note,
      (id) => this.#offers.knows(id),
      ({ worker: id }) => this.#offers.hear(id),
    );
    const own = connection.subscribe(presenceSubject(name, worker), {
      callback: (error) => error === null ? void (this.#unheard = 0) : note(error),
    });
    this.#end.push(() => presence.unsubscribe(), () => own.unsubscribe());
    this.#calls = new ServedCalls({
      ...{ connection, seal, worker, dispatcher, log: note },
      toolAt: (path) => this.#offers.at(path),
      failed,
    });
    this.#durable = new DurableWorker({
      ...{ connection, seal, worker, dispatcher, log, failed },
      ...{ leaseMs, concurrency, toolConcurrency, storage },
    });
    this.#service = new Service({
      ...{ connection, worker, log, registry: name },
      metrics: () => dispatcher.metrics(),
    });
    try {
      await checkSubscriptions(ACTION, connection, refused);
      await this.#offers.open();
      await this.#durable.check(this.#offers.tools.values());
      this.#followDurable();
    } catch (error) {
      void this.close();
      throw error;
    }
    this.#end.push(
      registry.subscribe(() => this.#followLater()),
      () => this.#stopFollowing?.(),
      followStatus(connection, {
        down: () => void (this.#isUp = false),
        up: () => {
          this.#isUp = true;
          this.#offers.restart();
          this.#durable?.reconnect();
        },
      }),
    );
    void connection.closed().then(() => this.close());
    this.#beat();
  }

  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const { connection, drainTimeoutMs, log } = this.#settings;
    for (const end of this.#end.splice(0)) end();
    this.#stopBeating();
    this.#service?.stop();
    this.#say(true);
    // Without a connection, results reach nobody.
    const graceMs = connection.isClosed() ? 0 : drainTimeoutMs;
    await Promise.all([
      this.#calls?.drain(graceMs),
      this.#durable?.drain(graceMs),
      this.#offers.close(this.#isUp && !connection.isClosed()).catch(log),
    ]);
  }

  /** Follows the registry once for all changes of a turn: the cost is that of all tools. */
  #followLater(): void {
    this.#stopFollowing ??= systemClock.setTimeout(() => {
      this.#stopFollowing = undefined;
      this.#follow();
    }, 0);
  }

  #follow(): void {
    if (!this.#offers.refresh()) return;
    this.#offers.announce();
    this.#followDurable();
  }

  #followDurable(): void {
    this.#durable?.follow(this.#offers.tools);
  }

  #beat(): void {
    this.#reconnectIfStuck();
    this.#say(false);
    this.#service?.renew();
    this.#stopBeating = systemClock.setTimeout(() => {
      this.#beat();
      if (this.#isUp) this.#offers.announce();
      if (++this.#beats % BEATS_TO_REMOVE === 0) {
        this.#offers.removeDead().catch(this.#settings.log);
      }
    }, PRESENCE_EVERY_MS);
  }

  /** A server or a network may fail without an end of the connection, and pings take minutes. */
  #reconnectIfStuck(): void {
    if (!this.#isUp || this.#unheard === undefined) return;
    if (this.#unheard++ < BEATS_TO_RECONNECT) return;
    this.#unheard = 0;
    const { connection, log } = this.#settings;
    log(new Error("The server does not deliver this worker's own messages; it connects again"));
    connection.reconnect().catch(log);
  }

  #say(isLeaving: boolean): void {
    const { connection, seal, name, log } = this.#settings;
    const subject = presenceSubject(name, this.worker);
    const message: PresenceMessage = {
      worker: this.worker,
      time: systemClock.timestamp(),
      ...(isLeaving && { isLeaving }),
    };
    try {
      connection.publish(subject, seal.wrap(message, subject));
    } catch (error) {
      log(error);
    }
  }
}
