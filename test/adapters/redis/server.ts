/** A Redis server for tests, in a temporary folder, and clients of it. */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { afterAll, beforeAll } from "bun:test";
import { createClient } from "redis";
import { maybe } from "../../support/skip.ts";
import { freePort } from "../../support/free_port.ts";
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
export class RedisServer implements AsyncDisposable {
  readonly port: number;
  readonly #folder: string = mkdtempSync(join(tmpdir(), "plue-redis-"));
  readonly #settings: readonly string[];
  readonly #clients: Client[] = [];
  #process: ChildProcess | undefined;

  private constructor(port: number, settings: readonly string[]) {
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
    const place = ["--bind", "127.0.0.1", "--port", `${this.port}`, "--dir", this.#folder];
    const child = spawn("redis-server", [...place, "--save", "", ...this.#settings]);
    this.#process = child;
    let log = "";
    await new Promise<void>((resolve, reject) => {
      child.stdout.on("data", (chunk) => {
        log += chunk;
        if (log.includes("Ready to accept connections")) resolve();
      });
      child.once("exit", () => reject(new Error(`redis-server has ended: ${log}`)));
    });
  }

  /** Stops the server, as if the network was lost, until it is resumed. */
  pause(): void {
    this.#signal("SIGSTOP");
  }

  resume(): void {
    this.#signal("SIGCONT");
  }

  /** Does not use the child's own `kill`, which works only once in Deno. */
  #signal(name: "SIGSTOP" | "SIGCONT"): void {
    if (this.#process?.pid !== undefined) process.kill(this.#process.pid, name);
  }

  /** Kills the server, as if its machine failed. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  /** A connected client, which is closed with the server. */
  async connect(options: ClientOptions & { readonly port?: number } = {}): Promise<Client> {
    const { port = this.port, ...rest } = options;
    const client = createClient({
      socket: { host: "127.0.0.1", port, reconnectStrategy: 5 },
      disableOfflineQueue: true,
      ...rest,
    });
    this.#clients.push(client);
    // The listener until a store adds its own. It is removed, because some tests count listeners.
    const ignore = (): void => {};
    client.on("error", ignore);
    await client.connect();
    client.off("error", ignore);
    return client;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) if (client.isOpen) client.destroy();
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Starts a server before the tests of a `describe`, and stops it after them. */
export function useServer(): () => RedisServer {
  let server: RedisServer | undefined;
  beforeAll(async () => {
    if (missing === undefined) server = await RedisServer.start();
  });
  afterAll(async () => await server?.[Symbol.asyncDispose]());
  return () => {
    if (server === undefined) throw new Error("There is no server");
    return server;
  };
}

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
    for (const server of servers) await server[Symbol.asyncDispose]();
  });
  return () => servers;
}
