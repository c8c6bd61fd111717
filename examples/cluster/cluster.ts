/**
 * The processes of the cluster: a NATS server and workers on several runtimes, which can be killed,
 * stopped and replaced.
 */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";

/** The secret of callers and workers. A real one is random, and comes from the environment. */
export const SECRET = "the-secret-of-the-example";
/** The time after which another worker continues the task of a dead one, in milliseconds. */
export const LEASE_MS = 5_000;

const ROOT = join(import.meta.dirname, "../..");
const HOOK = join(ROOT, "test/support/node_hook.mjs");

/** How each runtime runs a program of this folder. */
const RUNTIMES: { readonly [name: string]: readonly string[] } = {
  bun: [],
  deno: [
    "run",
    "--allow-all",
    "--no-config",
    "--import-map=deno.json",
    "--node-modules-dir=manual",
  ],
  // In a clone, the package is not built.
  node: existsSync(HOOK) ? ["--import", HOOK] : [],
};

/** Returns the installed runtimes. */
export function runtimes(): readonly string[] {
  return Object.keys(RUNTIMES).filter((name) => {
    const { status, stdout } = spawnSync(name, ["--version"], { encoding: "utf8" });
    // Older versions of Node do not run TypeScript.
    return status === 0 && (name !== "node" || Number(/\d+/.exec(stdout)?.[0]) >= 24);
  });
}

/** Returns true if a NATS server can be started. */
export function hasServer(): boolean {
  return spawnSync("nats-server", ["--version"]).status === 0;
}

/** A worker, in a process of its own. */
export interface ClusterWorker {
  readonly name: string;
  readonly runtime: string;
  /** Kills the process, as a failing machine would. */
  kill(): Promise<void>;
  /** Stops the worker after its calls have ended. */
  drain(): Promise<void>;
  /** Pauses the process, like a machine that is out of memory. */
  pause(): void;
  resume(): void;
}

/** A server and workers. */
export class Cluster implements AsyncDisposable {
  readonly url: string;
  readonly #config: string;
  readonly #folder: string;
  readonly #processes: Set<ChildProcess> = new Set();
  #server: ChildProcess | undefined;
  #workers = 0;

  private constructor(port: number) {
    this.url = `nats://127.0.0.1:${port}`;
    this.#folder = mkdtempSync(join(tmpdir(), "plue-cluster-"));
    this.#config = join(this.#folder, "nats.conf");
    const store = JSON.stringify(join(this.#folder, "jetstream"));
    writeFileSync(
      this.#config,
      `listen: 127.0.0.1:${port}\njetstream { store_dir: ${store} }\n`,
    );
  }

  /** Counts the runs of each call, by its id: the workers note them in a file. */
  get runs(): ReadonlyMap<string, number> {
    const runs = new Map<string, number>();
    for (
      const callId of existsSync(this.#ledger) ? readFileSync(this.#ledger, "utf8").split("\n") : []
    ) {
      if (callId !== "") runs.set(callId, (runs.get(callId) ?? 0) + 1);
    }
    return runs;
  }

  get #ledger(): string {
    return join(this.#folder, "ledger");
  }

  static async start(): Promise<Cluster> {
    const cluster = new Cluster(await freePort());
    await cluster.startServer();
    return cluster;
  }

  async startServer(): Promise<void> {
    this.#server = await this.#start("nats-server", ["-c", this.#config], "Server is ready");
  }

  /** Kills the server. JetStream has its data again after the next start. */
  async killServer(): Promise<void> {
    const server = this.#server;
    if (server !== undefined) await end(server, "SIGKILL");
  }

  /**
   * Starts a program that connects to the server, and waits until the program prints "ready".
   *
   * @param version The version of the definitions of its tools.
   * @param program The path of the program. Default: the worker of the example.
   * @param url The address of the NATS server. Default: the server of this cluster.
   */
  async startWorker(
    runtime: string,
    version = 1,
    program: string = join(import.meta.dirname, "worker.ts"),
    url: string = this.url,
  ): Promise<ClusterWorker> {
    const before = RUNTIMES[runtime] ?? [];
    const args = [...before, program, url, String(version)];
    const child = await this.#start(runtime, args, "ready");
    return {
      name: `worker ${++this.#workers} (${runtime}, version ${version})`,
      runtime,
      kill: () => end(child, "SIGKILL"),
      drain: () => end(child, "SIGTERM"),
      pause: () => void child.kill("SIGSTOP"),
      resume: () => void child.kill("SIGCONT"),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#processes].map((child) => end(child, "SIGKILL")));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Starts a program, and waits for its line `ready`. */
  async #start(command: string, args: readonly string[], ready: string): Promise<ChildProcess> {
    const child = spawn(command, args, {
      cwd: ROOT,
      env: { ...process.env, NODE_OPTIONS: "", PLUE_LEDGER: this.#ledger },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#processes.add(child);
    child.once("exit", () => this.#processes.delete(child));
    let output = "";
    await new Promise<void>((resolve, reject) => {
      let rest = "";
      const read = (chunk: unknown): void => {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) {
          if (line.includes(ready)) resolve();
          else if (output.length < 4_000) output += `${line}\n`;
        }
      };
      child.stdout.setEncoding("utf8").on("data", read);
      child.stderr.setEncoding("utf8").on("data", read);
      child.once("error", reject);
      child.once("exit", () => reject(new Error(`Cannot start ${command}: ${output}`)));
    });
    return child;
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill(signal);
  await ended;
}

/** Returns a port of this machine that is free. */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
