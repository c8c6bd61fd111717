/**
 * `plue serve --nats`: with a source, a worker; without one, an edge, which serves the tools of the
 * workers and shares its stored state with other edges.
 */

import {
  natsCallStore,
  type NatsOptions,
  remoteTools,
  serveTools,
} from "../../adapters/nats/mod.ts";
import { storedRateLimits } from "../../adapters/hono/mod.ts";
import type { ToolDispatcher } from "../../execute/mod.ts";
import type { Registry } from "../../registry/mod.ts";
import type { Selection } from "../../select/mod.ts";
import { describeThrown } from "../../tool/mod.ts";
import { connectNats, type NatsSettings, wantedSecret } from "../nats.ts";
import type { LoadedTools } from "../sources/mod.ts";
import { CommandError, counted, usageError } from "../terminal.ts";
import type { SharedState } from "./state.ts";

/** A worker or an edge. */
interface NatsService extends AsyncDisposable {
  readonly about: string;
}

interface NatsEdge extends NatsService {
  /** The stored state that all edges share. */
  readonly state: SharedState;
}

type Log = (error: unknown) => void;

const ACTION = "serve";

/** Registers the tools of all workers. */
export async function openEdge(
  registry: Registry,
  settings: NatsSettings,
  log: Log,
): Promise<NatsEdge> {
  return await open(settings, log, async (connection, options) => {
    const { secret, keys } = options;
    const store = await natsCallStore(connection, { secret, ...(keys && { keys }) });
    const remote = await remoteTools(connection, { registry, ...options });
    return {
      end: () => remote.close(),
      about: `The tools are those of ${counted(remote.workers, "worker")} on`,
      state: { store, logins: storedRateLimits(store, { maxPermits: 50 }) },
    };
  });
}

/**
 * Offers tools to the edges. Edges decide who may call and what is approved, so a role and scopes narrow
 * the tools only if the operator of the worker sets them.
 *
 * @param countedBy The dispatcher of calls over HTTP, whose metrics include these calls.
 */
export async function openWorker(
  { registry, dispatch }: LoadedTools,
  selection: Selection,
  settings: NatsSettings,
  countedBy: ToolDispatcher,
  log: Log,
): Promise<NatsService> {
  const { approve: _callers, ...dispatcher } = dispatch;
  return await open(settings, log, async (connection, options) => {
    const served = await serveTools(registry, connection, {
      ...options,
      ...{ selection, dispatcher, countedBy },
    });
    const { length } = registry.select(selection).tools;
    return {
      end: () => served.close(),
      about: `${counted(length, "tool")} can also be called over`,
    };
  });
}

interface Begun {
  readonly about: string;
  end(): Promise<void>;
}

async function open<T extends Begun>(
  settings: NatsSettings,
  log: Log,
  begin: (
    connection: Awaited<ReturnType<typeof connectNats>>,
    options: NatsOptions,
  ) => Promise<T>,
): Promise<T & NatsService> {
  const secret = wantedSecret(ACTION, settings);
  const connection = await connectNats(ACTION, settings);
  try {
    const { keys } = settings;
    const options = { secret, onError: log, ...(keys && { keys }) };
    const begun = await begin(connection, options);
    void logStatus(connection, settings.shown, log);
    return {
      ...begun,
      about: `${begun.about} ${settings.shown}`,
      async [Symbol.asyncDispose]() {
        await begun.end();
        // The last messages, such as aborts of calls, are still sent.
        await connection.drain().catch(() => {});
      },
    };
  } catch (cause) {
    await connection.close();
    if (cause instanceof CommandError) throw cause;
    const why = describeThrown(cause, 2_000).replace(/^Cannot [^:]*: /, "");
    throw usageError(`Cannot ${ACTION} over NATS at ${settings.shown}: ${why}`, { cause });
  }
}

async function logStatus(
  connection: Awaited<ReturnType<typeof connectNats>>,
  shown: string,
  log: Log,
): Promise<void> {
  const tell = (what: string): void => log(`The connection to NATS at ${shown} ${what}`);
  for await (const { type } of connection.status()) {
    if (type === "disconnect" && !connection.isDraining()) tell("is lost; calls are unavailable");
    else if (type === "reconnect") tell("is there again");
  }
  const error = await connection.closed();
  if (error) tell(`has ended: ${describeThrown(error, 300)}; start this process again`);
}
