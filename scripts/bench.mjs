// `npm run bench`: runs the benchmarks one after the other.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { readOptions } from "./lib/options.mjs";
import { ROOT } from "./lib/paths.mjs";
import { attach } from "./lib/process.mjs";
import { setup } from "./setup.mjs";

const COMMANDS = {
  bun: ["bun"],
  node: [
    "node",
    "--expose-gc",
    "--disable-warning=ExperimentalWarning",
    "--import=./test/support/node_hook.mjs",
  ],
  deno: [
    "deno",
    "run",
    "--allow-all",
    "--no-check",
    "--node-modules-dir=manual",
    "--v8-flags=--expose-gc",
  ],
};

const USAGE = `npm run bench -- [--on runtime,…] [part of a file name]…

Runs every bench/*.bench.ts on Bun, or those whose names are given, on the runtimes given.`;
const { options, rest: match } = readOptions(process.argv.slice(2), USAGE, {
  on: Object.keys(COMMANDS),
});
const on = options.on ?? ["bun"];
const files = readdirSync(join(ROOT, "bench"))
  .filter((name) => name.endsWith(".bench.ts"))
  .filter((name) => match.length === 0 || match.some((part) => name.includes(part)))
  .sort();
if (files.length === 0) {
  console.error("Cannot run a benchmark: no file bench/*.bench.ts is left by these names");
  process.exit(2);
}

const runtimes = setup();
let failed = 0;
for (const name of on) {
  const { missing, version } = runtimes.get(name);
  if (missing !== undefined) {
    console.log(`\nSkipped on ${name}: ${missing}`);
    continue;
  }
  for (const file of files) {
    console.log(`\n=== ${file} on ${name} ${version}\n`);
    const [command, ...args] = COMMANDS[name];
    if (await attach(command, [...args, `bench/${file}`]) !== 0) {
      failed++;
      console.error(`FAIL ${file} on ${name}`);
    }
  }
}
process.exitCode = failed > 0 ? 1 : 0;
