// `npm run soak`: loads a service for an hour, or for the minutes given.

import { attach } from "./lib/process.mjs";
import { setup } from "./setup.mjs";

const { missing } = setup().get("bun");
if (missing !== undefined) {
  console.error(`Cannot soak: ${missing}`);
  process.exit(1);
}
process.exitCode = await attach("bun", ["bench/soak/main.ts", ...process.argv.slice(2)]);
