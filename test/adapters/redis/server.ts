/** A Redis server for tests, in a temporary folder, and clients of it. */

import { spawnSync } from "node:child_process";
import { afterAll, beforeAll } from "bun:test";
import { createClient } from "redis";
import { maybe } from "../../support/skip.ts";
import { freePort } from "../../support/free_port.ts";
import { serverOf, ServerProcess } from "../../support/server_process.ts";
import { poll } from "../../support/waiting.ts";

/** The reason why the tests of Redis cannot run here, if there is one. */
export const missing: string | undefined = spawnSync("redis-server", ["--version"]).status === 0
  ? undefined
  : "redis-server is not installed";

/** A test that needs a server. */
export const withServer = maybe(missing === undefined, missing ?? "");

/** With "everysec" a killed server loses writes that it has confirmed. */
const SETTINGS = ["--appendonly", "yes", "--appendfsync", "always"];

type Client = ReturnType<typeof createClient>;
type ClientOptions = NonNullable<Parameters<typeof createClient>[0]>;

/** A running server. */
export class RedisServer extends ServerProcess {
  readonly port: number;
  readonly #settings: readonly string[];

  private constructor(port: number, settings: readonly string[]) {
    super();
    this.port = port;
    this.#settings = settings;
  }

  /** @param settings Arguments of `redis-server`, by default with an append-only file. */
  static async start(settings: readonly string[] = SETTINGS): Promise<RedisServer> {
    const server = new RedisServer(await freePort(), settings);
    await server.start();
    return server;
  }

  /** Starts it, or restarts it with its stored data. */
  async start(): Promise<void> {
    const place = ["--bind", "127.0.0.1", "--port", `${this.port}`, "--dir", this.folder];
    const args = [...place, "--save", "", ...this.#settings];
    this.child = await this.run("redis-server", args, "Ready to accept connections");
  }

  /** A connected client, which is closed with the server. */
  async connect(options: ClientOptions & { readonly port?: number } = {}): Promise<Client> {
    const { port = this.port, ...rest } = options;
    const client = createClient({
      socket: { host: "127.0.0.1", port, reconnectStrategy: 5 },
      disableOfflineQueue: true,
      ...rest,
    });
    this.closings.push(() => client.isOpen && client.destroy());
    // The listener until a store adds its own. It is removed, because some tests count listeners.
    const ignore = (): void => {};
    client.on("error", ignore);
    await client.connect();
    client.off("error", ignore);
    return client;
  }
}

export const useServer = (): () => RedisServer => serverOf(missing, () => RedisServer.start());

/** Starts a cluster of three servers before the tests of a `describe`, and stops it after them. */
export function useCluster(): () => readonly RedisServer[] {
  const servers: RedisServer[] = [];
  const buses: string[] = [];
  beforeAll(async () => {
    if (missing !== undefined) return;
    for (const [first, last] of [[0, 5_460], [5_461, 10_922], [10_923, 16_383]]) {
      const bus = `${await freePort()}`;
      buses.push(bus);
      const enabled = ["--cluster-enabled", "yes", "--cluster-port", bus];
      const server = await RedisServer.start([...SETTINGS, ...enabled]);
      servers.push(server);
      const client = await server.connect();
      await client.sendCommand(["CLUSTER", "ADDSLOTSRANGE", `${first}`, `${last}`]);
      const meet = ["CLUSTER", "MEET", "127.0.0.1", `${servers[0]?.port}`, `${buses[0]}`];
      await client.sendCommand(meet);
    }
    for (const server of servers) {
      const client = await server.connect();
      await poll(async () =>
        `${await client.sendCommand(["CLUSTER", "INFO"])}`.includes("cluster_state:ok")
      );
    }
  });
  afterAll(async () => {
    for (const server of servers) await server.stop();
  });
  return () => servers;
}
