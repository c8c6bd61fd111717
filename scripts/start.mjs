// `npm start`: installs what serving needs, then serves the example toolset on Bun. Arguments are
// those of `plue serve`.

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
  // The commands and the network are for those who ask for them.
  { env: { PLUE_MAX_RISK: process.env.PLUE_MAX_RISK || "low" } },
);
