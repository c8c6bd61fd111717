/** A server program of the tests: it runs in a temporary folder, and can be paused and killed. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { afterAll, beforeAll } from "bun:test";

export class ServerProcess implements AsyncDisposable {
  readonly folder: string = mkdtempSync(join(tmpdir(), "plue-server-"));
  /** Functions that close the clients of the tests, before the server ends. */
  readonly closings: (() => unknown)[] = [];
  child: ChildProcess | undefined;

  /** Runs a program. Resolves when its output contains a text, and rejects if it ends before. */
  async run(command: string, args: readonly string[], ready: string): Promise<ChildProcess> {
    const child = spawn(command, args, { cwd: this.folder });
    let log = "";
    await new Promise<void>((resolve, reject) => {
      const read = (chunk: unknown): void => {
        log += chunk;
        if (log.includes(ready)) resolve();
      };
      child.stdout.on("data", read);
      child.stderr.on("data", read);
      child.once("exit", () => reject(new Error(`${command} has ended: ${log}`)));
    });
    return child;
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
    if (this.child?.pid !== undefined) process.kill(this.child.pid, name);
  }

  /** Kills the server, as if its machine failed. */
  async kill(): Promise<void> {
    const { child } = this;
    this.child = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  async stop(): Promise<void> {
    await Promise.all(this.closings.map((close) => close()));
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** Starts a server before the tests of a `describe`, and stops it after them. */
export function serverOf<Server extends ServerProcess>(
  missing: string | undefined,
  start: () => Promise<Server>,
): () => Server {
  let server: Server | undefined;
  beforeAll(async () => {
    if (missing === undefined) server = await start();
  });
  afterAll(async () => await server?.stop());
  return () => {
    if (server === undefined) throw new Error("The server does not run");
    return server;
  };
}
