/** A NATS server for tests, with JetStream in a temporary folder, and connections to it. */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "bun:test";
import { connect } from "@nats-io/transport-node";
import { maybe } from "../support/skip.ts";
import { freePort } from "../support/free_port.ts";

type Connection = Awaited<ReturnType<typeof connect>>;

/** The reason why the tests of NATS cannot run here, or `undefined`. */
export const missing: string | undefined = spawnSync("nats-server", ["--version"]).status === 0
  ? undefined
  : "nats-server is not installed";

/** A test that needs a server. */
export const withServer = maybe(missing === undefined, missing ?? "");

/** A secret of 16 characters or more. */
export const SECRET = "a-secret-of-the-tests";

/** How a server is started. */
export interface ServerOptions {
  /** Lines for its configuration, instead of the lines that enable JetStream. */
  readonly config?: string;
  /** Lines for the block that turns JetStream on. */
  readonly jetstream?: string;
  /** Additional lines. */
  readonly lines?: string;
}

/** A running server. */
export class TestServer implements AsyncDisposable {
  readonly port: number;
  readonly url: string;
  readonly #folder: string = mkdtempSync(join(tmpdir(), "plue-nats-"));
  readonly #connections: Connection[] = [];
  readonly #config: string = join(this.#folder, "nats.conf");
  readonly #settings: string;
  #process: ChildProcess | undefined;

  private constructor(port: number, { config, jetstream = "", lines = "" }: ServerOptions) {
    this.port = port;
    this.url = `nats://127.0.0.1:${port}`;
    const store = JSON.stringify(join(this.#folder, "jetstream"));
    const settings = config ?? `jetstream {\nstore_dir: ${store}\n${jetstream}\n}`;
    this.#settings = `listen: 127.0.0.1:${port}\n${settings}\n`;
    writeFileSync(this.#config, this.#settings + lines);
  }

  /** Replaces the additional lines of the configuration while the server runs. */
  async reload(lines: string): Promise<void> {
    writeFileSync(this.#config, this.#settings + lines);
    const child = this.#process;
    await new Promise<void>((resolve) => {
      child?.stderr?.on("data", (chunk) => `${chunk}`.includes("Reloaded server") && resolve());
      child?.kill("SIGHUP");
    });
  }

  static async start(options: ServerOptions = {}): Promise<TestServer> {
    const server = new TestServer(await freePort(), options);
    await server.start();
    return server;
  }

  /** Starts it, or restarts it with its stored data. */
  async start(): Promise<void> {
    const child = spawn("nats-server", ["-c", this.#config]);
    this.#process = child;
    let output = "";
    await new Promise<void>((resolve, reject) => {
      child.stderr.on("data", (chunk) => {
        output += chunk;
        if (output.includes("Server is ready")) resolve();
      });
      child.once("exit", () => reject(new Error(`nats-server has ended: ${output}`)));
    });
  }

  /** Stops the server, as if the network was lost, until it is resumed. */
  pause(): void {
    this.#process?.kill("SIGSTOP");
  }

  resume(): void {
    this.#process?.kill("SIGCONT");
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

  /** Creates a connection, which is closed with the server. */
  async connect(options: Parameters<typeof connect>[0] = {}): Promise<Connection> {
    const connection = await connect({
      ...{ servers: this.url, reconnectTimeWait: 50, maxReconnectAttempts: -1 },
      ...options,
    });
    this.#connections.push(connection);
    return connection;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Starts a server before the tests of a `describe`, and stops it after them. */
export function useServer(options?: ServerOptions): TestServer {
  let server: TestServer | undefined;
  beforeAll(async () => {
    if (missing === undefined) server = await TestServer.start(options);
  });
  afterAll(async () => await server?.stop());
  return new Proxy({} as TestServer, {
    get: (_, name) => {
      const value: unknown = Reflect.get(server ?? {}, name);
      return typeof value === "function" ? value.bind(server) : value;
    },
  });
}
