/** Serves a worker in workerd, for tests and benchmarks that run on Bun. */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../support/free_port.ts";

export interface ServedWorker {
  readonly url: string;
  stop(): Promise<void>;
}

/** Bundles `entry`, serves it, and waits until it answers. Port 0 is any free one. */
export async function serveWorker(
  entry: string,
  conditions = "",
  wantedPort = 0,
): Promise<ServedWorker> {
  const folder = mkdtempSync(join(tmpdir(), "plue-worker-"));
  const built = await Bun.build({
    entrypoints: [entry],
    outdir: folder,
    naming: "worker.mjs",
    target: "browser",
    conditions: ["workerd", "worker"],
    external: ["node:*"],
    tsconfig: join(import.meta.dirname, "../../tsconfig.json"),
  });
  if (!built.success) throw new AggregateError(built.logs, "Cannot bundle the worker");
  const port = wantedPort === 0 ? await freePort() : wantedPort;
  writeFileSync(
    join(folder, "config.capnp"),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    # By default, workers reach no address of this machine.
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const main :Workerd.Worker = (
  modules = [(name = "worker.mjs", esModule = embed "worker.mjs")],
  compatibilityDate = "2026-08-01",
  ${conditions}
);
`,
  );
  const child = spawn("workerd", ["serve", join(folder, "config.capnp")], { stdio: "inherit" });
  const url = `http://127.0.0.1:${port}`;
  await answers(child, `${url}/healthz`);
  return {
    url,
    async stop() {
      const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
      // On SIGTERM, workerd waits for its clients, and a stream may never end.
      child.kill("SIGKILL");
      await gone;
      rmSync(folder, { recursive: true });
    },
  };
}

async function answers(child: ChildProcess, url: string): Promise<void> {
  for (;;) {
    const response = await fetch(url).catch(() => undefined);
    if (response?.status === 200) return;
    if (child.exitCode !== null) throw new Error(`workerd ended with ${child.exitCode}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
