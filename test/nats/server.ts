/** A NATS server for tests, with JetStream in a temporary folder, and connections to it. */

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "@nats-io/transport-node";
import { maybe } from "../support/skip.ts";
import { freePort } from "../support/free_port.ts";
import { serverOf, ServerProcess } from "../support/server_process.ts";

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
export class TestServer extends ServerProcess {
  readonly port: number;
  readonly url: string;
  readonly #config: string = join(this.folder, "nats.conf");
  readonly #settings: string;

  private constructor(port: number, { config, jetstream = "", lines = "" }: ServerOptions) {
    super();
    this.port = port;
    this.url = `nats://127.0.0.1:${port}`;
    const store = JSON.stringify(join(this.folder, "jetstream"));
    // By default, the limit is a part of the free disk, and the streams of all tests reserve more.
    const settings = config ??
      `jetstream {\nstore_dir: ${store}\n${jetstream || "max_file_store: 1TB"}\n}`;
    this.#settings = `listen: 127.0.0.1:${port}\n${settings}\n`;
    writeFileSync(this.#config, this.#settings + lines);
  }

  /** Replaces the additional lines of the configuration while the server runs. */
  async reload(lines: string): Promise<void> {
    writeFileSync(this.#config, this.#settings + lines);
    const { child } = this;
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
    this.child = await this.run("nats-server", ["-c", this.#config], "Server is ready");
  }

  /** Creates a connection, which is closed with the server. */
  async connect(options: Parameters<typeof connect>[0] = {}): Promise<Connection> {
    const connection = await connect({
      ...{ servers: this.url, reconnectTimeWait: 50, maxReconnectAttempts: -1 },
      ...options,
    });
    this.closings.push(() => connection.close());
    return connection;
  }
}

/** Starts a server before the tests of a `describe`, and stops it after them. */
export function useServer(options?: ServerOptions): TestServer {
  const server = serverOf(missing, () => TestServer.start(options));
  return new Proxy({} as TestServer, {
    get: (_, name) => {
      const value: unknown = Reflect.get(server(), name);
      return typeof value === "function" ? value.bind(server()) : value;
    },
  });
}
