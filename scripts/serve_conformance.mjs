// `npm run serve:conformance`: serves the tools that MCP's conformance suite calls.
// `PORT` is where (by default 8787), `RUNTIME` on what: bun (the default), deno, node, workerd.

import { join } from "node:path";
import { ROOT } from "./lib/paths.mjs";
import { attach } from "./lib/process.mjs";
import { RUNTIME_NAMES, serveCommand } from "./lib/serve_app.mjs";
import { setup } from "./setup.mjs";

const { RUNTIME: runtime = "bun", PORT: port = "8787" } = process.env;
if (!RUNTIME_NAMES.includes(runtime)) {
  console.error(`Cannot serve on "${runtime}": RUNTIME is one of ${RUNTIME_NAMES.join(", ")}`);
  process.exit(2);
}
const { missing } = setup().get(runtime);
if (missing !== undefined) {
  console.error(`Cannot serve: ${missing}`);
  process.exit(1);
}
const [command, ...args] = serveCommand(runtime, join(ROOT, "test/support/conformance/worker.ts"));
process.exitCode = await attach(command, args, { env: { PORT: port } });
