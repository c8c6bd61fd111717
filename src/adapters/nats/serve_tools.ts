/**
 * A process that offers its tools to others.
 *
 * @module
 */

import { type NatsConnection, nuid } from "@nats-io/nats-core";
import { storedTickets } from "../../execute/durable/mod.ts";
import { ToolDispatcher, type ToolDispatcherOptions } from "../../execute/mod.ts";
import type { ToolRegistry } from "../../registry/mod.ts";
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
import { Directory } from "./directory.ts";
import { HERE_EVERY_MS, type HereMessage, listenForWorkers } from "./fleet.ts";
import { Seal } from "./message.ts";
import { checkServer, checkSubscriptions, noteRefusals } from "./server.ts";
import { ServedCalls } from "./served_calls.ts";
import { Service } from "./service.ts";
import { followStatus } from "./status.ts";
import {
  checkRegistryName,
  digestOfRecord,
  hereSubject,
  pathOf,
  recordOf,
  toolKey,
  workerKey,
} from "./subjects.ts";
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
/** What the callers' limits are checked against by the callers. */
const MAX_BYTES = 67_108_864;
/** An hour: the caller's own limit is shorter, and aborts the call. */
const LONGEST_CALL_MS = 3_600_000;
/** A worker that was not heard for so long is taken out of the directory. */
const DEAD_AFTER_MS = 60_000;
/** How often a worker looks for such ones, in its own beats. */
const BEATS_TO_BURY = 10;

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
  registry: ToolRegistry,
  connection: NatsConnection,
  options: ServeToolsOptions,
): Promise<ServedTools> {
  const read = readFields(ACTION, { ...options }, OPTIONS);
  if (!isObject(registry) || !("tools" in registry)) refuse(ACTION, "it needs a registry");
  if (read.dispatcher?.approve !== undefined) {
    refuse(ACTION, "calls are approved by their callers, so dispatcher.approve cannot be given");
  }
  const { secret, name = "default", drainTimeoutMs = 30_000, leaseMs = 30_000 } = read;
  const seal = new Seal(ACTION, secret as string);
  const log: HookLog = (error) => callHook(() => options.onError?.(error), NO_LOG);
  await checkServer(ACTION, connection);
  await registry.ready();
  const dispatcherOptions: ToolDispatcherOptions = {
    tickets: storedTickets(await natsCallStore(connection)),
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
    selection: read.selection,
  });
  await worker.start();
  return worker;
}

interface WorkerSettings {
  readonly registry: ToolRegistry;
  readonly selection: Selection | undefined;
  readonly connection: NatsConnection;
  readonly seal: Seal;
  readonly name: string;
  readonly dispatcher: ToolDispatcher;
  readonly drainTimeoutMs: number;
  readonly leaseMs: number;
  readonly log: HookLog;
}

/** What a worker keeps of a tool that it serves. */
interface Offer {
  readonly path: string;
  readonly tool: Tool;
  readonly record: Record<string, unknown>;
}

class Worker implements ServedTools {
  readonly worker: string = nuid.next();
  readonly #settings: WorkerSettings;
  /** By path. */
  #offers: ReadonlyMap<string, Offer> = new Map();
  readonly #heard: Map<string, number> = new Map();
  #calls: ServedCalls | undefined;
  #durable: DurableWorker | undefined;
  #service: Service | undefined;
  #directory: Directory | undefined;
  readonly #end: (() => void)[] = [];
  #announcing: Promise<void> = Promise.resolve();
  /** How many announcements are still to be written. */
  #announcements = 1;
  #stopBeating: () => void = () => {};
  #beats = 0;
  #closing: Promise<void> | undefined;

  constructor(settings: WorkerSettings) {
    this.#settings = settings;
  }

  get running(): number {
    return (this.#calls?.running ?? 0) + (this.#durable?.running ?? 0);
  }

  async start(): Promise<void> {
    const { registry, connection, seal, name, dispatcher, log } = this.#settings;
    const { worker } = this;
    this.#offers = this.#offered();
    const { refused, note } = noteRefusals(log);
    const failed = ({ id }: Tool, { error: { code } }: ToolFailure): void => {
      if (code === "input_required") return;
      if (this.#service !== undefined) this.#service.lastError = `${code}: ${id}`;
    };
    const here = listenForWorkers(
      connection,
      seal,
      note,
      (id) => this.#heard.has(id),
      ({ worker: id }) => this.#heard.set(id, now()),
    );
    this.#end.push(() => here.unsubscribe());
    this.#calls = new ServedCalls({
      ...{ connection, seal, worker, dispatcher, log: note },
      toolAt: (path) => this.#offers.get(path)?.tool,
      failed,
    });
    this.#durable = new DurableWorker({
      ...{ connection, seal, worker, dispatcher, log, failed },
      leaseMs: this.#settings.leaseMs,
    });
    try {
      await checkSubscriptions(ACTION, connection, refused);
      this.#directory = await Directory.open(
        { action: ACTION, connection, seal, registry: name, log },
        () => this.#heal(),
      );
      await this.#announce(this.#offers.values());
      this.#announcements--;
      await this.#durable.check([...this.#offers.values()].map(({ tool }) => tool));
      this.#followDurable();
    } catch (error) {
      void this.close();
      throw error;
    }
    this.#end.push(
      registry.subscribe(() => this.#follow()),
      followStatus(connection, {
        down() {},
        // Another server may have no entries of this worker: they are then written again.
        up: () => {
          this.#directory?.restart();
          this.#durable?.reconnect();
        },
      }),
    );
    this.#service = new Service({
      ...{ connection, worker, log, registry: name },
      metrics: () => dispatcher.metrics(),
    });
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
    const { connection, name, drainTimeoutMs, log } = this.#settings;
    for (const end of this.#end.splice(0)) end();
    this.#stopBeating();
    this.#service?.stop();
    this.#say(true);
    this.#directory?.stop();
    // Without a connection, results reach nobody.
    const graceMs = connection.isClosed() ? 0 : drainTimeoutMs;
    const drained = Promise.all([this.#calls?.drain(graceMs), this.#durable?.drain(graceMs)]);
    await this.#announcing;
    if (!connection.isClosed()) {
      await this.#directory?.remove(workerKey(name, this.worker)).catch(log);
    }
    await drained;
  }

  /** The tools that are offered now. Definitions that are the same stay the same objects. */
  #offered(): Map<string, Offer> {
    const { registry, selection, name } = this.#settings;
    const known = new Map([...this.#offers.values()].map((offer) => [offer.tool, offer]));
    const offers = new Map<string, Offer>();
    for (const tool of registry.select(selection).tools) {
      let offer = known.get(tool);
      if (offer === undefined) {
        const record = recordOf(tool);
        offer = { path: pathOf(name, tool.id, digestOfRecord(record)), tool, record };
      }
      offers.set(offer.path, offer);
    }
    return offers;
  }

  /** Follows the registry. */
  #follow(): void {
    const before = this.#offers;
    this.#offers = this.#offered();
    const isSame = before.size === this.#offers.size &&
      [...before.keys()].every((path) => this.#offers.has(path));
    if (isSame) return;
    this.#announceLater((path) => !before.has(path));
    this.#followDurable();
  }

  #followDurable(): void {
    this.#durable?.follow(
      new Map([...this.#offers].map(([path, { tool }]) => [path, tool] as const)),
    );
  }

  #announceLater(isMeant: (path: string) => boolean): void {
    this.#announcements++;
    const { log } = this.#settings;
    this.#announcing = this.#announcing
      .then(() => this.#announce([...this.#offers.values()].filter(({ path }) => isMeant(path))))
      .catch(log)
      .finally(() => this.#announcements--);
  }

  /** Writes into the directory what this worker serves, and then the definitions. */
  async #announce(offers: Iterable<Offer>): Promise<void> {
    if (this.#closing !== undefined) return;
    const { name } = this.#settings;
    const paths = [...this.#offers.keys()];
    await this.#directory?.put(workerKey(name, this.worker), { paths });
    // A few at a time: a thousand writes at once would be slow for everybody.
    const rest = [...offers];
    const write = async (): Promise<void> => {
      for (let offer = rest.shift(); offer !== undefined; offer = rest.shift()) {
        await this.#directory?.put(toolKey(offer.path), offer.record);
      }
    };
    await Promise.all(Array.from({ length: 16 }, write));
  }

  #beat(): void {
    this.#say(false);
    this.#service?.renew();
    this.#stopBeating = systemClock.setTimeout(() => {
      this.#beat();
      if (++this.#beats % BEATS_TO_BURY === 0) this.#bury();
    }, HERE_EVERY_MS);
  }

  #say(isLeaving: boolean): void {
    const { connection, seal, registry, log } = this.#settings;
    const down = [...this.#offers.values()]
      .filter(({ tool }) => !registry.isAvailable(tool)).map(({ path }) => path);
    const subject = hereSubject(this.worker);
    const message: HereMessage = {
      worker: this.worker,
      time: systemClock.timestamp(),
      ...(isLeaving && { bye: true }),
      ...(down.length > 0 && { down }),
    };
    try {
      connection.publish(subject, seal.wrap(message, subject));
    } catch (error) {
      log(error);
    }
  }

  /** Writes what is missing of its own entries: another worker may have taken this one for dead. */
  #heal(): void {
    const { entries } = this.#directory ?? {};
    if (entries === undefined || this.#announcements > 0 || this.#closing !== undefined) return;
    const isMissing = (path: string): boolean => !entries.has(toolKey(path));
    const isKnown = entries.has(workerKey(this.#settings.name, this.worker));
    if (!isKnown || [...this.#offers.keys()].some(isMissing)) this.#announceLater(isMissing);
  }

  /** Takes workers out of the directory that have died, and definitions that no worker serves. */
  #bury(): void {
    const { name, log } = this.#settings;
    const { entries } = this.#directory ?? {};
    if (entries === undefined) return;
    const prefix = workerKey(name, "");
    const served = new Set<unknown>();
    for (const [key, { value, revision }] of entries) {
      if (!key.startsWith(prefix)) continue;
      const id = key.slice(prefix.length);
      // One that was never heard is given the same time from now on.
      const heardAt = this.#heard.get(id) ?? now();
      this.#heard.set(id, heardAt);
      if (id === this.worker || now() - heardAt < DEAD_AFTER_MS) {
        for (const path of value["paths"] as readonly unknown[] ?? []) served.add(path);
      } else {
        this.#heard.delete(id);
        this.#directory?.remove(key, revision).catch(log);
      }
    }
    const tools = toolKey(`${name}.`);
    for (const [key, { revision }] of entries) {
      if (key.startsWith(tools) && !served.has(`${name}.${key.slice(tools.length)}`)) {
        this.#directory?.remove(key, revision).catch(log);
      }
    }
  }
}

function now(): number {
  return systemClock.now();
}
