// `npm run cluster`: the example of examples/cluster; `-- faults`, `-- memory` and `-- speed` measure it.

import { attach } from "./lib/process.mjs";
import { setup } from "./setup.mjs";

const PROGRAMS = Object.fromEntries(
  ["faults", "memory", "speed"].map((name) => [name, `bench/nats/${name}.ts`]),
);
const [name, ...rest] = process.argv.slice(2);
if (name !== undefined && PROGRAMS[name] === undefined) {
  console.error(
    'Cannot run the cluster: "faults", "memory" and "speed" are the programs besides the example',
  );
  process.exit(2);
}
const { missing } = setup().get("bun");
if (missing !== undefined) {
  console.error(`Cannot run the cluster: ${missing}`);
  process.exit(1);
}
process.exitCode = await attach("bun", [PROGRAMS[name] ?? "examples/cluster/main.ts", ...rest]);
