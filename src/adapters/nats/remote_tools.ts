/** The side of callers: registers the tools of all workers in a registry. */

import type { NatsConnection } from "@nats-io/nats-core";
import type { Registry } from "../../registry/mod.ts";
import * as check from "../../tool/mod.ts";
import { fail, isObject, isWord, noop, systemClock, type Tool, within } from "../../tool/mod.ts";
import { Directory } from "./directory.ts";
import { Fleet } from "./fleet.ts";
import { checkServer, Link, NATS_OPTIONS, type NatsOptions, readLinkSettings } from "./link.ts";
import { isInbox } from "./protocol.ts";
import { CallLine, type RemoteSettings, Sync } from "./sync.ts";

/** Options for {@linkcode remoteTools}. */
export interface RemoteToolsOptions extends NatsOptions {
  /** The registry that receives the tools and their changes. */
  readonly registry: Registry;
  /** The prefix of reply subjects, for users who may subscribe to no other. @default {"_INBOX"} */
  readonly inboxPrefix?: string;
  /**
   * The maximum size of the waiting tasks of each `principal`, in bytes; a task counts at least 1,024.
   * Further tasks fail with `overloaded`.
   *
   * @default {an eighth of the size of the stream "PLUE_CALLS"}
   */
  readonly maxOwnerBytes?: number;
}

/** The tools of all workers, in a registry. */
export interface RemoteTools extends AsyncDisposable {
  /** The tools that are in the registry now. */
  readonly tools: readonly Tool[];
  /** The number of workers that send presence messages. */
  readonly workers: number;
  /** Removes the tools from the registry, and ends their calls. The connection stays open. */
  close(): Promise<void>;
}

const ACTION = "use remote tools";

const OPTIONS = {
  registry: check.createCheck(
    "a registry",
    (value): value is Registry => isObject(value) && "tools" in value,
  ),
  inboxPrefix: check.createCheck(
    'a subject that does not begin with "$" or "plue"',
    (value): value is string => isWord(value) && isInbox(`${value}.`),
  ),
  maxOwnerBytes: check.numberFrom(1_024),
  ...NATS_OPTIONS,
};

/** @param own The options, without the fields of other functions. */
function readOptions(options: RemoteToolsOptions, own: object): RemoteSettings {
  const fields = check.readFields(ACTION, own, OPTIONS);
  const { registry, inboxPrefix = "_INBOX", maxOwnerBytes, telemetry, ...read } = fields;
  if (registry === undefined) fail(ACTION, "the option registry is required");
  const link = readLinkSettings(ACTION, "caller", read, options);
  return { registry, link, inboxPrefix, maxOwnerBytes, telemetry };
}

/**
 * Registers the tools that workers offer with {@linkcode serveTools}. They are listed, selected,
 * exported and called like local tools. The caller's process applies permissions, approval and
 * limits. The worker validates the arguments again.
 *
 * A tool is available while a worker serves its current definition. A call goes to one of these workers.
 * If no worker accepts the call, it fails with `unavailable`.
 *
 * @example Usage
 * ```ts ignore
 * import { connect } from "@nats-io/transport-node";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { remoteTools } from "@plue/tools/nats";
 *
 * const registry = new ToolRegistry();
 * const connection = await connect({ servers: "nats://localhost" });
 * await using tools = await remoteTools(connection, { registry, secret: process.env.PLUE_SECRET });
 * const result = await new ToolDispatcher(registry).dispatch({ name: "add", arguments: { a: 1 } });
 * ```
 *
 * @throws {TypeError} If an option is invalid.
 * @throws {Error} If the server lacks a feature, or the user of the connection lacks a permission.
 */
export async function remoteTools(
  connection: NatsConnection,
  options: RemoteToolsOptions,
): Promise<RemoteTools> {
  const settings = readOptions(options, { ...options });
  await checkServer(ACTION, connection);
  const link = new Link(connection, settings.link);
  let directory: Directory | undefined;
  const fleet = new Fleet(link, systemClock, (revision) => directory?.expect(revision));
  link.follow({ up: () => directory?.restart() });
  const line = new CallLine(link, fleet, settings);
  const sync = new Sync(settings, fleet, { open: () => line, done() {} });
  const close = (): void => {
    directory?.stop();
    sync.clear();
    line.stop();
    fleet.stop();
  };
  const closed = (): Promise<void> => Promise.resolve(close());
  void connection.closed().then(close);
  try {
    await link.checkSubscriptions(ACTION);
    directory = await Directory.open(ACTION, link, (keys) => {
      if (directory !== undefined) sync.update(keys, directory.entries);
    });
    sync.update(directory.entries.keys(), directory.entries);
  } catch (error) {
    close();
    throw error;
  }
  return {
    get tools() {
      return sync.tools;
    },
    get workers() {
      return fleet.size;
    },
    close: closed,
    [Symbol.asyncDispose]: closed,
  };
}

/** Options for {@linkcode remoteToolsPerCall}. */
export interface PerCallToolsOptions extends RemoteToolsOptions {
  /**
   * The age of the tools after which `refresh` reads them again, in milliseconds. If a worker did
   * not respond, one second is used instead.
   *
   * @default {10_000}
   */
  readonly maxAgeMs?: number;
}

/** The tools of all workers, in a registry that outlives requests. */
export interface PerCallTools extends Pick<RemoteTools, "tools"> {
  /**
   * Reads the tools if they are older than `maxAgeMs`. Rejects if the first read fails; after a later
   * failure the tools do not change, and `onError` is called.
   */
  refresh(): Promise<void>;
}

/** The maximum age of the tools after a worker did not respond, in milliseconds. */
const LOST_MS = 1_000;
/** The maximum time to flush the last messages of a connection, in milliseconds. */
const FLUSH_MS = 1_000;

/**
 * Registers the tools of all workers, like {@linkcode remoteTools}, on runtimes that close a
 * connection at the end of its request, such as Cloudflare Workers. Registry, handler and tools
 * outlive requests. Each call and each `refresh` opens a new connection.
 *
 * @example Usage
 * ```ts ignore
 * // Once per isolate:
 * const connect = () => wsconnect({ servers: env.NATS, timeout: 2_000 });
 * const tools = remoteToolsPerCall(connect, { registry, secret: env.PLUE_NATS_SECRET });
 * // In each request:
 * await tools.refresh();
 * return await handler.fetch(request);
 * ```
 *
 * @param connect Opens a connection. plue closes it.
 * @throws {TypeError | RangeError} If an option is invalid.
 */
export function remoteToolsPerCall(
  connect: () => Promise<NatsConnection>,
  options: PerCallToolsOptions,
): PerCallTools {
  const { maxAgeMs = 10_000, ...common } = { ...options };
  check.numberFrom(0, check.MAX_TIMEOUT_MS)(ACTION, maxAgeMs, "maxAgeMs");
  const settings = readOptions(options, common);
  const fleet = new Fleet();
  const sync = new Sync(settings, fleet, {
    async open() {
      const own = new Link(await connect(), settings.link);
      return new CallLine(own, fleet, settings, () => read(own));
    },
    done(line) {
      line.stop();
      return end(line.link.connection);
    },
  });
  let known: readonly string[] | undefined;
  let triedAt = -Infinity;

  async function read(own: Link): Promise<void> {
    if (known === undefined) await checkServer(ACTION, own.connection);
    const directory = await Directory.open(ACTION, own);
    // Its entries are read once. The next read finds later changes.
    directory.stop();
    const { entries } = directory;
    fleet.find();
    sync.update(new Set([...known ?? [], ...entries.keys()]), entries);
    known = [...entries.keys()];
  }

  return {
    get tools() {
      return sync.tools;
    },
    async refresh() {
      const now = systemClock.now();
      // Concurrent requests use the old tools: none can wait on another request's connection.
      const mostMs = fleet.hasLost ? Math.min(maxAgeMs, LOST_MS) : maxAgeMs;
      if (known !== undefined && now - triedAt < mostMs) return;
      triedAt = now;
      try {
        const connection = await connect();
        await read(new Link(connection, settings.link)).finally(() => end(connection));
      } catch (error) {
        if (known === undefined) throw error;
        settings.link.log(error);
      }
    },
  };
}

async function end(connection: NatsConnection): Promise<void> {
  // A WebSocket with unsent bytes takes 100 ms longer to close. A lost connection is never flushed.
  if (!connection.isClosed()) {
    await within(systemClock, FLUSH_MS, connection.flush().catch(noop));
  }
  await connection.close();
}
