/** A PostgreSQL server for tests, in a temporary folder, and PgBouncer in front of it. */

import { type ChildProcess, spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync } from "node:fs";
import { rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import pg from "pg";
import { freePort } from "../../support/free_port.ts";
import { serverOf, ServerProcess } from "../../support/server_process.ts";
import { poll } from "../../support/waiting.ts";

/** Debian has no link to the server, because several versions may be installed. */
const DEBIAN = "/usr/lib/postgresql";
const bins = [
  "/usr/bin",
  ...(existsSync(DEBIAN) ? readdirSync(DEBIAN).map((version) => join(DEBIAN, version, "bin")) : []),
];
const bin = bins.findLast((folder) => existsSync(join(folder, "initdb"))) ?? "";

/** The reason why the tests of PostgreSQL cannot run here, if there is one. */
export const missing: string | undefined = bin === "" ? "PostgreSQL is not installed" : undefined;
/** The reason why the tests of PgBouncer cannot run here, if there is one. */
export const missingBouncer: string | undefined = missing ??
  (existsSync("/usr/sbin/pgbouncer") ? undefined : "PgBouncer is not installed");

/** The user of the servers, which reject root. */
const user = process.getuid?.() === 0
  ? Number(spawnSync("id", ["-u", "postgres"], { encoding: "utf8" }).stdout)
  : undefined;

/** The command that runs a server as that user. */
function unprivileged(command: string, args: readonly string[]): [string, string[]] {
  if (user === undefined) return [command, [...args]];
  return ["setpriv", [`--reuid=${user}`, `--regid=${user}`, "--clear-groups", command, ...args]];
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "plue-postgres-"));
  if (user !== undefined) chownSync(folder, user, user);
  return folder;
}

/** The folder of an empty database. It is created once for each version, which takes seconds. */
function emptyDatabase(): string {
  const { stdout } = spawnSync(join(bin, "postgres"), ["--version"], { encoding: "utf8" });
  const cache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "plue");
  const kept = join(cache, stdout.trim().replaceAll(/\W+/g, "-"));
  if (existsSync(kept)) return kept;
  const folder = newFolder();
  const [command, args] = unprivileged(join(bin, "initdb"), [
    ...["-D", join(folder, "data"), "-U", "plue", "--auth=trust", "-E", "UTF8", "--no-sync"],
    // This locale does not order texts by their code units.
    ...["--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US"],
  ]);
  const { status, stderr } = spawnSync(command, args, { cwd: folder, encoding: "utf8" });
  if (status !== 0) throw new Error(`initdb has failed: ${stderr}`);
  // The folder has another name until it is complete, because another process may create it too.
  mkdirSync(cache, { recursive: true });
  const own = `${kept}.${process.pid}`;
  spawnSync("cp", ["-a", join(folder, "data"), own]);
  rmSync(folder, { recursive: true });
  if (existsSync(kept)) rmSync(own, { recursive: true });
  else renameSync(own, kept);
  return kept;
}

function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {
      // The process has already ended.
    }
  }
}

/** Additional settings of the server. */
export type ServerSettings = Readonly<Record<string, string>>;

/** A running server. */
export class PostgresServer extends ServerProcess {
  readonly port: number;
  readonly url: string;
  #bouncer: ChildProcess | undefined;

  private constructor(port: number) {
    super();
    if (user !== undefined) chownSync(this.folder, user, user);
    this.port = port;
    this.url = `postgres://plue@127.0.0.1:${port}/postgres`;
  }

  static async start(): Promise<PostgresServer> {
    const server = new PostgresServer(await freePort());
    const copied = spawnSync("cp", ["-a", emptyDatabase(), join(server.folder, "data")]);
    if (copied.status !== 0) throw new Error(`Cannot copy a database: ${copied.stderr}`);
    await server.start();
    return server;
  }

  /** Starts it, or restarts it with its stored data. */
  async start(settings: ServerSettings = {}): Promise<void> {
    const all = {
      port: `${this.port}`,
      listen_addresses: "127.0.0.1",
      unix_socket_directories: this.folder,
      ...settings,
    };
    const args = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const [command, words] = unprivileged(join(bin, "postgres"), [
      ...["-D", join(this.folder, "data"), ...args],
    ]);
    // Processes of the killed server may still run.
    await poll(async () => {
      this.child = await this.run(command, words, "ready to accept connections").catch(() =>
        undefined
      );
      return this.child !== undefined;
    });
  }

  /** Stops all processes of the server, as if the network was lost, until they are resumed. */
  freeze(): { resume(): void } {
    const backends = this.#backends();
    signal(backends, "SIGSTOP");
    return { resume: () => signal(backends, "SIGCONT") };
  }

  /** Kills it and its processes, as `kill -9` and the end of a machine do. */
  override async kill(): Promise<void> {
    const backends = this.child === undefined ? [] : this.#backends();
    const ended = super.kill();
    signal(backends, "SIGKILL");
    await ended;
  }

  /** The processes of its connections. */
  #backends(): readonly number[] {
    const args = ["--ppid", `${this.child?.pid}`, "-o", "pid="];
    return spawnSync("ps", args, { encoding: "utf8" }).stdout.split("\n").map(Number)
      .filter((pid) => pid > 0);
  }

  /** Creates a pool, which is closed with the server. */
  pool(config: pg.PoolConfig = {}): pg.Pool {
    const limits = { connectionTimeoutMillis: 5_000, max: 8 };
    const pool = new pg.Pool({ connectionString: this.url, ...limits, ...config });
    this.closings.push(() => pool.ended || pool.end());
    return pool;
  }

  /** Starts PgBouncer in transaction mode. Returns the URL of the database at PgBouncer. */
  async bounce(): Promise<string> {
    const port = await freePort();
    const config = join(this.folder, "pgbouncer.ini");
    writeFileSync(
      config,
      `[databases]
* = host=127.0.0.1 port=${this.port} user=plue
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
`,
    );
    const bouncer = unprivileged("/usr/sbin/pgbouncer", [config]);
    this.#bouncer = await this.run(...bouncer, "process up");
    return `postgres://plue@127.0.0.1:${port}/postgres`;
  }

  override async stop(): Promise<void> {
    this.closings.push(() => this.#bouncer?.kill("SIGKILL"));
    await super.stop();
  }
}

export const useServer = (): () => PostgresServer =>
  serverOf(missing, () => PostgresServer.start());
