// `npm start`: installs what serving needs, then serves the example toolset on Bun.

import { attach } from "./lib/process.mjs";
import { setup } from "./setup.mjs";

const { missing } = setup({ serving: true }).get("bun");
if (missing !== undefined) {
  console.error(`Cannot serve: ${missing}`);
  process.exit(1);
}
process.exitCode = await attach("bun", ["examples/serve.ts", ...process.argv.slice(2)]);
