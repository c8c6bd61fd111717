/**
 * Serves an app on this runtime, or in workerd, until it receives a signal. Usage: `bun|deno
 * run|node serve_app.ts <entry> [workerd]`; `PORT` is the port, by default any free port.
 */

import { resolve } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { serve } from "../runtime/serve.ts";

const [entry = "", mode] = process.argv.slice(2);
const file = resolve(entry);
const port = Number(process.env["PORT"] ?? 0);

async function start(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  if (mode === "workerd") {
    // Only Bun can bundle for workerd.
    const { serveWorker } = await import("../runtime/workerd.ts");
    return await serveWorker(file, "", port);
  }
  const { default: app } = await import(pathToFileURL(file).href) as {
    readonly default: { fetch(request: Request): Promise<Response> };
  };
  return await serve((request) => app.fetch(request), port);
}

const { url, stop } = await start();
console.log(`Serving ${url}/mcp`);
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => void stop().finally(() => process.exit(0)));
}
