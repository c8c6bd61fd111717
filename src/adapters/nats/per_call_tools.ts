/**
 * Callers on runtimes where a connection ends with its request.
 *
 * @module
 */

import type { NatsConnection } from "@nats-io/nats-core";
import {
  MAX_TIMEOUT_MS,
  NO_LOG,
  numberFrom,
  systemClock,
  type Tool,
  within,
} from "../../tool/mod.ts";
import { Directory } from "./directory.ts";
import { Fleet } from "./fleet.ts";
import { CallLine, readRemoteOptions, type RemoteToolsOptions, Sync } from "./remote_tools.ts";
import { checkServer } from "./server.ts";

/** Options for {@linkcode remoteToolsPerCall}. */
export interface PerCallToolsOptions extends RemoteToolsOptions {
  /**
   * The age of the tools after which `refresh` reads them again, in milliseconds. After a worker did not
   * respond, it is one second.
   *
   * @default {10_000}
   */
  readonly maxAgeMs?: number;
}

/** The tools of all workers, in a registry that outlives requests. */
export interface PerCallTools {
  /** The tools that are in the registry now. */
  readonly tools: readonly Tool[];
  /**
   * Reads the tools if they are older than `maxAgeMs`. Rejects if the first read fails; after a later
   * failure the tools stay as they are, and `onError` is called.
   */
  refresh(): Promise<void>;
}

const ACTION = "use remote tools";
/** The maximum age of the tools after a worker did not respond, in milliseconds. */
const LOST_MS = 1_000;
/** The maximum time to flush the last messages of a connection, in milliseconds. */
const FLUSH_MS = 1_000;

/**
 * Registers the tools of all workers, like {@linkcode remoteTools}, on runtimes that end a connection with
 * its request, such as Cloudflare Workers. Registry, handler and tools outlive requests; each call and
 * each `refresh` opens a connection of its own.
 *
 * @example Usage
 * ```ts ignore
 * const registry = new ToolRegistry();
 * const handler = createToolHandler(registry, { authorize });
 * let tools: PerCallTools | undefined;
 *
 * export default {
 *   async fetch(request: Request, env: Env): Promise<Response> {
 *     tools ??= remoteToolsPerCall(() => wsconnect({ servers: env.NATS, timeout: 2_000 }), {
 *       registry,
 *       secret: env.PLUE_NATS_SECRET,
 *     });
 *     try {
 *       await tools.refresh();
 *     } catch {
 *       return new Response("The tools cannot be reached now", { status: 503 });
 *     }
 *     return await handler.fetch(request);
 *   },
 * };
 * ```
 *
 * @param connect Opens a connection, which this function closes.
 * @throws {TypeError | RangeError} If an option is invalid.
 */
export function remoteToolsPerCall(
  connect: () => Promise<NatsConnection>,
  options: PerCallToolsOptions,
): PerCallTools {
  const { maxAgeMs = 10_000, ...given } = { ...options };
  numberFrom(0, MAX_TIMEOUT_MS)(ACTION, maxAgeMs, "maxAgeMs");
  const { registry, seal, name, inboxPrefix, kept, observer } = readRemoteOptions(
    options,
    given,
  );
  const { log } = observer;
  const fleet = new Fleet(undefined, seal, name, log);
  const sync = new Sync(name, registry, fleet, {
    async open() {
      const connection = await connect();
      const lookAgain = (): Promise<void> => read(connection);
      return new CallLine({
        ...{ seal, fleet, inboxPrefix, kept, log, connection, lookAgain },
      });
    },
    done(line) {
      line.stop();
      return end(line.connection);
    },
  }, observer);
  registry.subscribe(({ type }) => {
    if (type === "removed") sync.retry();
  });
  let known: readonly string[] | undefined;
  let triedAt = -Infinity;

  async function read(connection: NatsConnection): Promise<void> {
    if (known === undefined) await checkServer(ACTION, connection);
    const { storage } = kept;
    const settings = { action: ACTION, connection, seal, registry: name, log, storage };
    const directory = await Directory.open(settings, () => {});
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
      // Concurrent requests use the old tools: they cannot wait for the connection of another request.
      const mostMs = fleet.hasLost ? Math.min(maxAgeMs, LOST_MS) : maxAgeMs;
      if (known !== undefined && now - triedAt < mostMs) return;
      triedAt = now;
      try {
        const connection = await connect();
        await read(connection).finally(() => end(connection));
      } catch (error) {
        if (known === undefined) throw error;
        log(error);
      }
    },
  };
}

/** Closes a connection after its last messages were sent. */
async function end(connection: NatsConnection): Promise<void> {
  // A WebSocket with unsent bytes closes 100 ms later. A lost one is never flushed.
  if (!connection.isClosed()) {
    await within(systemClock, FLUSH_MS, connection.flush().catch(NO_LOG));
  }
  await connection.close();
}
