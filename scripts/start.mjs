// `npm start`: installs what serving needs, then serves the example toolset on Bun. The arguments
// are passed to `plue serve`.

import { attach } from "./lib/process.mjs";
import { setup } from "./setup.mjs";

const { missing } = setup({ serving: true }).get("bun");
if (missing !== undefined) {
  console.error(`Cannot serve: ${missing}`);
  process.exit(1);
}
process.exitCode = await attach(
  "bun",
  ["src/cli/main.ts", "serve", "examples/workspace/mod.ts", ...process.argv.slice(2)],
  // Commands and network access need a flag.
  { env: { PLUE_MAX_RISK: process.env.PLUE_MAX_RISK || "low" } },
);
