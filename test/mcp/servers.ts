/** Starts an app on each of the four runtimes, as a separate process. */

import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { afterAll, beforeAll } from "bun:test";
import { serveCommand } from "../../scripts/lib/runtimes.mjs";

export const ROOT: string = join(import.meta.dirname, "../..");

export interface RunningServer {
  /** The URL of the MCP endpoint. */
  readonly url: URL;
  stop(): Promise<void>;
}

/** Starts `app`, a file that exports `fetch`, and waits until it serves. Port 0: a free port. */
export async function startServer(
  runtime: string,
  app: string,
  port: string = "0",
): Promise<RunningServer> {
  const [command = "", ...args] = serveCommand(runtime, app);
  const child = spawn(command, args, {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, PORT: port },
  });
  const url = await servedAt(child);
  return {
    url: new URL(url),
    async stop() {
      const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
      child.kill("SIGTERM");
      // A server with open streams may take long to end.
      const timer = setTimeout(() => child.kill("SIGKILL"), 5_000);
      await gone;
      clearTimeout(timer);
    },
  };
}

/** Starts `app` before the tests of a `describe`, and stops it after them. */
export function serverOn(runtime: string, app: string): { readonly url: URL } {
  let server: RunningServer | undefined;
  beforeAll(async () => void (server = await startServer(runtime, app)));
  afterAll(() => server?.stop());
  return {
    get url() {
      if (server === undefined) throw new Error("The server has not started");
      return server.url;
    },
  };
}

function servedAt(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let printed = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
      const url = /Serving (\S+)/.exec(printed)?.[1];
      if (url !== undefined) resolve(url);
    });
    child.once("exit", (code) => reject(new Error(`The server ended with ${code}: ${printed}`)));
    child.once("error", reject);
  });
}
