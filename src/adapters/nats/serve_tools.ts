/** Workers: processes that offer their tools to others. */

import { type NatsConnection, nuid } from "@nats-io/nats-core";
import { storedTickets } from "../../execute/durable/mod.ts";
import { ToolDispatcher, type ToolDispatcherOptions } from "../../execute/mod.ts";
import type { Registry } from "../../registry/mod.ts";
import type { Selection } from "../../select/mod.ts";
import * as check from "../../tool/mod.ts";
import { fail, isObject, systemClock, type Tool } from "../../tool/mod.ts";
import { natsCallStore } from "./call_store.ts";
import { DurableWorker, type DurableWorkerSettings } from "./durable_worker.ts";
import { listenForWorkers, PRESENCE_EVERY_MS, type PresenceMessage } from "./fleet.ts";
import { checkServer, Link, NATS_OPTIONS, type NatsOptions, readLinkSettings } from "./link.ts";
import { Offers } from "./offers.ts";
import { ServedCalls } from "./served_calls.ts";
import { presenceSubject } from "./protocol.ts";

/** Options for {@linkcode serveTools}. */
export interface ServeToolsOptions extends NatsOptions {
  /** The selection of the tools that are offered. By default, all tools. */
  readonly selection?: Selection;
  /**
   * The options of the dispatcher: transactions, hooks, limits. By default, up to 256 calls run
   * concurrently. There is no `approve`, because callers approve calls.
   */
  readonly dispatcher?: Omit<ToolDispatcherOptions, "approve">;
  /**
   * The dispatcher of calls that arrive in other ways, such as over HTTP. Its metrics, and so `GET
   * /metrics`, then include the calls over NATS.
   */
  readonly countedBy?: ToolDispatcher;
  /**
   * The time that `close` waits for calls in flight, in milliseconds. Then it aborts the calls.
   *
   * @default {30_000}
   */
  readonly drainTimeoutMs?: number;
  /**
   * The duration of the lease of a durable call, in milliseconds, which its worker renews. Another
   * worker takes the call 5 s after the lease has expired. Use the same value for all workers.
   *
   * @default {30_000}
   */
  readonly leaseMs?: number;
  /**
   * The maximum number of tasks that this worker runs concurrently. Further tasks are not fetched,
   * so that they wait for a free worker. The limit of plain calls is `dispatcher: { limits }`.
   *
   * @default {64, or `maxConcurrent` of `limits` if that is less}
   */
  readonly concurrency?: number;
  /** The maximum number of concurrent tasks per tool, by its id. By default, `concurrency`. */
  readonly toolConcurrency?: Readonly<Record<string, number>>;
}

/** A process that offers its tools. */
export interface ServedTools extends AsyncDisposable {
  /** The id of this worker. */
  readonly worker: string;
  /** The number of calls in flight. */
  readonly running: number;
  /**
   * Accepts no more calls, and waits for the calls in flight. Callers then use other workers. The
   * connection and the registry stay open.
   */
  close(): Promise<void>;
}

const ACTION = "serve tools";
const MAX_CONCURRENT = 256;
const TASKS = 64;
const MAX_TASKS = 4_096;
/** The limit for arguments and outputs, in bytes. Callers apply their own, smaller limits. */
const MAX_BYTES = 67_108_864;
/** The limit for the time of a call: an hour. The caller's own timeout is shorter. */
const LONGEST_CALL_MS = 3_600_000;
/** The interval between two checks for dead workers, in presence messages. */
const BEATS_TO_REMOVE = 10;
/** A connection is dead if a worker does not receive this many of its own presence messages. */
const BEATS_TO_RECONNECT = 3;

function isTaskCount(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= MAX_TASKS;
}

const OPTIONS = {
  selection: check.createCheck("an object", (value): value is Selection => isObject(value)),
  dispatcher: check.createCheck(
    "an object",
    (value): value is ToolDispatcherOptions => isObject(value),
  ),
  countedBy: check.createCheck("a dispatcher", (value) => value instanceof ToolDispatcher),
  drainTimeoutMs: check.numberFrom(0, check.MAX_TIMEOUT_MS),
  leaseMs: check.numberFrom(1_000, 3_600_000),
  concurrency: check.wholeFrom(1, MAX_TASKS),
  toolConcurrency: check.createCheck(
    `an object with numbers from 1 to ${MAX_TASKS}, by the ids of tools`,
    (value): value is Readonly<Record<string, number>> =>
      isObject(value) && Object.values(value).every(isTaskCount),
  ),
  ...NATS_OPTIONS,
};

/**
 * Offers the tools of a registry to other processes, which list them with {@linkcode remoteTools}. Calls
 * are distributed over all workers. Closing a worker loses no call.
 *
 * A worker runs a call if its signature is valid for this worker and for the definition that the worker
 * offers. It validates the arguments again. Changes of the registry are followed.
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
 * @throws {TypeError} If an option is invalid.
 * @throws {Error} If the server lacks a feature, or the user of the connection lacks a permission.
 */
export async function serveTools(
  registry: Registry,
  connection: NatsConnection,
  options: ServeToolsOptions,
): Promise<ServedTools> {
  const read = check.readFields(ACTION, { ...options }, OPTIONS);
  if (!isObject(registry) || !("tools" in registry)) fail(ACTION, "a registry is required");
  if (read.dispatcher?.approve !== undefined) {
    fail(ACTION, "callers approve calls, so dispatcher.approve is not allowed");
  }
  const settings = readLinkSettings(ACTION, "worker", read, options);
  const { drainTimeoutMs = 30_000, leaseMs = 30_000, keys } = read;
  const { maxConcurrent = TASKS } = read.dispatcher?.limits ?? {};
  // More tasks than `maxConcurrent` would only be fetched and rejected.
  const { concurrency = Math.min(TASKS, maxConcurrent), toolConcurrency = {} } = read;
  await checkServer(ACTION, connection);
  // Only tools with `init` are prepared now: compiling the schemas of 40,000 tools takes seconds.
  const initialized = registry.tools.filter(({ init }) => init !== undefined);
  await Promise.all(
    initialized.map(async (tool) => registry.release(await registry.acquire(tool))),
  );
  const dispatcherOptions: ToolDispatcherOptions = {
    tickets: storedTickets(
      await natsCallStore(connection, { ...{ secret: options.secret, ...(keys && { keys }) } }),
    ),
    timeoutMs: LONGEST_CALL_MS,
    maxArgumentBytes: MAX_BYTES,
    maxOutputBytes: MAX_BYTES,
    ...(read.telemetry && { telemetry: read.telemetry }),
    // All other errors of a call are in its result.
    onError: ({ phase, error }) => phase === "telemetry" && settings.log(error),
    ...read.dispatcher,
    limits: { maxConcurrent: MAX_CONCURRENT, ...read.dispatcher?.limits },
    approve: () => true,
  };
  const dispatcher = read.countedBy?.withOptions(registry, dispatcherOptions) ??
    new ToolDispatcher(registry, dispatcherOptions);
  for (const id of Object.keys(toolConcurrency)) {
    if (registry.getTool(id) !== undefined) continue;
    const why = `The option toolConcurrency has no effect for "${id}": there is no such tool now`;
    settings.log(new Error(why));
  }
  const worker = new Worker({
    link: new Link(connection, settings),
    ...{ registry, selection: read.selection, dispatcher, drainTimeoutMs, leaseMs, concurrency },
    toolConcurrency: { ...toolConcurrency },
  });
  await worker.start();
  return worker;
}

interface WorkerSettings extends DurableWorkerSettings {
  readonly registry: Registry;
  readonly selection: Selection | undefined;
  readonly drainTimeoutMs: number;
}

class Worker implements ServedTools {
  readonly worker: string = nuid.next();
  readonly #settings: WorkerSettings;
  readonly #link: Link;
  readonly #offers: Offers;
  readonly #calls: ServedCalls;
  readonly #durable: DurableWorker;
  readonly #end: (() => void)[] = [];
  #stopBeating: () => void = () => {};
  /** Cancels the pending update after a change of the registry. */
  #stopFollowing: (() => void) | undefined;
  #beats = 0;
  /** The presence messages sent since the last one was received; `undefined` before the first. */
  #missedBeats: number | undefined;
  #closing: Promise<void> | undefined;

  constructor(settings: WorkerSettings) {
    const { worker } = this;
    const { link, dispatcher } = settings;
    this.#settings = settings;
    this.#link = link;
    const offers = this.#offers = new Offers({ ...settings, worker });
    const presence = listenForWorkers(
      link,
      (id) => offers.has(id),
      ({ worker: id }) => offers.touch(id),
      (revision) => offers.directory?.expect(revision),
    );
    const own = link.listen(presenceSubject(link.name, worker), () => void (this.#missedBeats = 0));
    this.#end.push(() => presence.unsubscribe(), () => own.unsubscribe());
    const toolAt = (path: string): Tool | undefined => offers.at(path);
    this.#calls = new ServedCalls({ link, worker, dispatcher, toolAt });
    this.#durable = new DurableWorker(settings);
  }

  get running(): number {
    return this.#calls.running + this.#durable.running;
  }

  async start(): Promise<void> {
    const link = this.#link;
    try {
      await link.checkSubscriptions(ACTION);
      await this.#offers.open(ACTION);
      await this.#durable.check(this.#offers.tools.values());
      this.#durable.follow(this.#offers.tools);
    } catch (error) {
      void this.close();
      throw error;
    }
    this.#end.push(
      this.#settings.registry.subscribe(() => this.#followLater()),
      () => this.#stopFollowing?.(),
    );
    link.follow({ up: () => this.#offers.restart() });
    void link.connection.closed().then(() => this.close());
    this.#beat();
  }

  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const { connection, log } = this.#link;
    for (const end of this.#end.splice(0)) end();
    this.#stopBeating();
    this.#publishPresence(true);
    // Without a connection, no result can be sent.
    const graceMs = connection.isClosed() ? 0 : this.#settings.drainTimeoutMs;
    await Promise.all([
      this.#calls.drain(graceMs),
      this.#durable.drain(graceMs),
      this.#offers.close(this.#link.down === undefined && !connection.isClosed()).catch(log),
    ]);
    this.#link.stop("the worker has stopped");
  }

  /** Updates the offers once for all changes of a turn: an update visits all tools. */
  #followLater(): void {
    this.#stopFollowing ??= systemClock.setTimeout(() => {
      this.#stopFollowing = undefined;
      if (!this.#offers.refresh()) return;
      this.#offers.announce();
      this.#durable.follow(this.#offers.tools);
    }, 0);
  }

  #beat(): void {
    this.#reconnectIfStuck();
    this.#publishPresence(false);
    this.#stopBeating = systemClock.setTimeout(() => {
      this.#beat();
      if (this.#link.down === undefined) this.#offers.announce();
      if (++this.#beats % BEATS_TO_REMOVE === 0) {
        this.#offers.removeDead().catch(this.#link.log);
      }
    }, PRESENCE_EVERY_MS);
  }

  /** Reconnects if own messages are missing: a dead connection may stay open for minutes. */
  #reconnectIfStuck(): void {
    if (this.#link.down !== undefined || this.#missedBeats === undefined) return;
    if (this.#missedBeats++ < BEATS_TO_RECONNECT) return;
    this.#missedBeats = 0;
    const { connection, log } = this.#link;
    log(new Error("The server does not deliver this worker's own messages; the worker reconnects"));
    connection.reconnect().catch(log);
  }

  #publishPresence(isLeaving: boolean): void {
    const message: PresenceMessage = {
      worker: this.worker,
      time: systemClock.timestamp(),
      revision: this.#offers.directory?.written ?? 0,
      ...(isLeaving && { isLeaving }),
    };
    this.#link.publish(presenceSubject(this.#link.name, this.worker), message);
  }
}
