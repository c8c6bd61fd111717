// Programs of the repository on the pinned runtimes: `npm start`, and `npm run bench`, `cluster`,
// `soak` and `serve:conformance`. The arguments are passed on.
// Usage: node scripts/run.mjs program [argument]…

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { readOptions } from "./lib/options.mjs";
import { ROOT } from "./lib/paths.mjs";
import { attach, fail } from "./lib/process.mjs";
import { commandOn, NAMES, serveCommand } from "./lib/runtimes.mjs";
import { setup } from "./setup.mjs";

/** Runs a command on a runtime, which is installed if it is missing. */
async function runOn(runtime, command, { serving, env } = {}) {
  const { missing } = (await setup({ serving })).get(runtime) ??
    { missing: `"${runtime}" is not one of ${NAMES.join(", ")}` };
  if (missing !== undefined) fail(`Cannot run: ${missing}`);
  const [program, ...args] = command;
  return await attach(program, args, { env });
}

const PROGRAMS = {
  /** Serves the example toolset with the arguments of `plue serve`. */
  start: (args) =>
    runOn("bun", ["bun", "src/cli/main.ts", "serve", "examples/workspace/mod.ts", ...args], {
      serving: true,
      // Commands and network access need a flag.
      env: { PLUE_MAX_RISK: process.env.PLUE_MAX_RISK || "low" },
    }),

  /** Loads a service for an hour, or for the given number of minutes. */
  soak: (args) => runOn("bun", ["bun", "bench/soak/main.ts", ...args]),

  /** Runs examples/cluster, or a measurement of it, which is a file of bench/nats. */
  cluster: ([name, ...args]) =>
    runOn("bun", [
      "bun",
      name === undefined ? "examples/cluster/main.ts" : `bench/nats/${name}.ts`,
      ...args,
    ]),

  /** Serves the tools of MCP's conformance suite on `PORT` (8787), on `RUNTIME` (bun). */
  conformance() {
    const { RUNTIME: runtime = "bun", PORT = "8787" } = process.env;
    const app = join(ROOT, "test/support/conformance/worker.ts");
    return runOn(runtime, serveCommand(runtime, app), { env: { PORT } });
  },

  async bench(args) {
    const usage = `npm run bench -- [--on runtime,…] [part of a file name]…

Runs every bench/*.bench.ts on Bun, or those with such names, on the given runtimes.`;
    const { options, rest } = readOptions(args, usage, { on: ["bun", "node", "deno"] }, true);
    const files = readdirSync(join(ROOT, "bench"))
      .filter((name) => name.endsWith(".bench.ts"))
      .filter((name) => rest.length === 0 || rest.some((part) => name.includes(part)))
      .sort();
    if (files.length === 0) fail("Cannot run a benchmark: no bench/*.bench.ts has such a name", 2);
    let code = 0;
    for (const name of options.on ?? ["bun"]) {
      for (const file of files) {
        console.log(`\n=== ${file} on ${name}\n`);
        const command = [...commandOn(name, { gc: true }), `bench/${file}`];
        if (await runOn(name, command) === 0) continue;
        code = 1;
        console.error(`FAIL ${file} on ${name}`);
      }
    }
    return code;
  },
};

const [program, ...args] = process.argv.slice(2);
if (!Object.hasOwn(PROGRAMS, program ?? "")) {
  fail(`Usage: node scripts/run.mjs ${Object.keys(PROGRAMS).join("|")} [argument]…`, 2);
}
process.exitCode = await PROGRAMS[program](args);
