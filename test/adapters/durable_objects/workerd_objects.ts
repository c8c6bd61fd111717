/** Durable Objects in workerd, with their storage on the disk. */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { freePort } from "../../support/free_port.ts";

const SUPPORT = resolve(import.meta.dirname, "../../support");
const missing = spawnSync("workerd", ["--version"]).status !== 0;
/** The reason why these tests cannot run here, if there is one. */
export const whySkipped: string | undefined = missing ? "workerd is not installed" : undefined;

/** Workers in one folder: an edge, and the objects in the same worker or in another one. */
export class WorkerdObjects implements AsyncDisposable {
  readonly url: string;
  readonly #folder = mkdtempSync(join(tmpdir(), "plue-objects-"));
  readonly #port: number;
  #process: ChildProcess | undefined;

  private constructor(port: number) {
    this.#port = port;
    this.url = `http://127.0.0.1:${port}`;
    mkdirSync(join(this.#folder, "disk"));
  }

  /** Bundles the worker, whose source is a text or a path, and writes the configuration. */
  static async create(edge: string, objects = edge): Promise<WorkerdObjects> {
    const workers = new WorkerdObjects(await freePort());
    await workers.#bundle("edge", edge);
    await workers.#bundle("objects", objects);
    const binding = edge === objects ? "" : ', serviceName = "objects"';
    const worker = (name: string, storage: string) =>
      `(
  modules = [(name = "worker.mjs", esModule = embed "${name}.mjs")],
  compatibilityDate = "2026-08-01",
  bindings = [
    (name = "CALLS", durableObjectNamespace = (className = "Calls"${binding})),
    (name = "TOKEN", text = "a-token-of-the-tests"),
  ],${storage}
)`;
    const storage = `
  durableObjectNamespaces = [(className = "Calls", uniqueKey = "plue-calls", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),`;
    const services = edge === objects
      ? `(name = "edge", worker = ${worker("edge", storage)})`
      : `(name = "edge", worker = ${worker("edge", "")}),
    (name = "objects", worker = ${worker("objects", storage)})`;
    writeFileSync(
      join(workers.#folder, "config.capnp"),
      `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    ${services},
    (name = "disk", disk = (path = "${workers.#folder}/disk", writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${workers.#port}", http = (), service = "edge")],
);
`,
    );
    return workers;
  }

  async #bundle(name: string, source: string): Promise<void> {
    let entry = source;
    if (source.includes("\n")) {
      entry = join(this.#folder, `${name}.ts`);
      writeFileSync(entry, source);
    }
    const built = await Bun.build({
      entrypoints: [entry],
      outdir: this.#folder,
      naming: `${name}.mjs`,
      target: "browser",
      conditions: ["workerd", "worker"],
      external: ["cloudflare:workers", "node:*"],
      tsconfig: resolve(SUPPORT, "../../tsconfig.json"),
      ignoreDCEAnnotations: true,
      plugins: [{
        name: "bun:test for workerd",
        setup: (build) =>
          void build.onResolve(
            { filter: /^bun:test$/ },
            () => ({ path: join(SUPPORT, "runner.ts") }),
          ),
      }],
    });
    if (!built.success) throw new AggregateError(built.logs, "Cannot bundle the worker");
  }

  /** Runs the function `test` of the edge, and returns what workerd has printed. */
  test(): string {
    const { stdout, stderr } = spawnSync("workerd", ["test", join(this.#folder, "config.capnp")]);
    return `${stdout}\n${stderr}`;
  }

  /** Starts workerd, and waits until it answers. */
  async start(): Promise<void> {
    const child = spawn("workerd", ["serve", join(this.#folder, "config.capnp")], {
      stdio: "inherit",
    });
    this.#process = child;
    while (await fetch(this.url).catch(() => undefined) === undefined) {
      if (child.exitCode !== null) throw new Error(`workerd ended with ${child.exitCode}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (child === undefined) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
    this.#process = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true });
  }
}
