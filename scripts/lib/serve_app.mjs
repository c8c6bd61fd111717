// Serves an app, a file that exports `fetch` as a worker does, on any of the four runtimes.

import { join } from "node:path";
import { ROOT } from "./paths.mjs";

const ENTRY = join(ROOT, "test", "mcp", "serve_app.ts");

const COMMANDS = {
  bun: ["bun", ENTRY],
  deno: [
    "deno",
    "run",
    "--allow-all",
    "--no-check",
    // Only the import map of the configuration: with all of it, Deno would find the built package
    // first.
    "--no-config",
    `--import-map=${join(ROOT, "deno.json")}`,
    "--node-modules-dir=manual",
    ENTRY,
  ],
  node: [
    "node",
    "--disable-warning=ExperimentalWarning",
    `--import=${join(ROOT, "test", "support", "node_hook.mjs")}`,
    ENTRY,
  ],
  workerd: ["bun", ENTRY],
};

/** The names of the runtimes. */
export const RUNTIME_NAMES = Object.keys(COMMANDS);

/** The command that serves the file `app` on a runtime. It prints `Serving <url>` when it does. */
export function serveCommand(runtime, app) {
  return [...COMMANDS[runtime], app, ...(runtime === "workerd" ? ["workerd"] : [])];
}
