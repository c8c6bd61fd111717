/**
 * The shape of an app with a user interface: native code keeps the main thread, and the tools are
 * in a worker. On Bun.
 *
 * ```sh
 * bun test/native/worker_guest.ts libsuite.so callback|fd "part ..."
 * ```
 */

import process from "node:process";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { attachNative, type WakeKind } from "../../src/adapters/native/mod.ts";
import { loadSuite } from "./suite_library.ts";
import { dispatch, registry } from "./tools.ts";

if (isMainThread) await keepMainThread();
else await serve(workerData as Job);

interface Job {
  readonly library: string;
  readonly wake: WakeKind;
}

async function keepMainThread(): Promise<void> {
  const [library = "", wake = "", parts = ""] = process.argv.slice(2);
  const suite = await loadSuite(library);
  const worker = new Worker(new URL(import.meta.url), { workerData: { library, wake } });
  await new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
  suite.start(parts);
  // Nothing runs in this thread's event loop from here on.
  while (suite.status() < 0) Bun.sleepSync(1);
  const left = new Promise((resolve) => worker.once("message", resolve));
  worker.postMessage("detach");
  await left;
  await worker.terminate();
  process.exitCode = suite.status();
}

async function serve({ library, wake }: Job): Promise<void> {
  const attachment = await attachNative(registry, { library, wake, dispatch });
  parentPort?.once("message", async () => {
    await attachment.detach();
    parentPort?.postMessage("detached");
  });
  parentPort?.postMessage("attached");
}
