// `npm run build:native`: libplue by cc and make, and the sidecar by Bun, into ffi/build/.
// Usage: node scripts/build_native.mjs [--library] [--sidecar]; without either, both.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { ROOT } from "./lib/paths.mjs";
import { environment } from "./lib/process.mjs";
import { linkRuntimes } from "./lib/runtimes.mjs";

const BUILD = join(ROOT, "ffi", "build");
const MAIN = join(ROOT, "ffi", "sidecar", "main.ts");

/** What can be built, and how. */
const PARTS = {
  "--library": [["make", "-C", join(ROOT, "ffi")]],
  "--sidecar": [
    // One program, with Bun in it: for apps. Bytecode saves it the parsing at each start.
    [
      "bun",
      "build",
      MAIN,
      "--compile",
      "--bytecode",
      "--format=esm",
      // The tools that it loads have packages of their own, which only their package.json explains;
      // the settings that lie in the host's folder are not the sidecar's.
      "--compile-autoload-package-json",
      "--no-compile-autoload-dotenv",
      "--no-compile-autoload-bunfig",
      `--outfile=${join(BUILD, "plue-sidecar")}`,
    ],
    // One script, for machines that have Bun, Deno or Node.
    ["bun", "build", MAIN, "--target=node", `--outfile=${join(BUILD, "plue-sidecar.js")}`],
  ],
};

function run([command, ...args]) {
  const { status, error } = spawnSync(command, args, {
    cwd: ROOT,
    env: environment(),
    stdio: "inherit",
  });
  if (status === 0) return;
  console.error(
    `Cannot build: ${command} ${error === undefined ? `ended with ${status}` : error.message}`,
  );
  process.exit(1);
}

const asked = process.argv.slice(2);
const unknown = asked.find((word) => !Object.hasOwn(PARTS, word));
if (unknown !== undefined) {
  console.error(`"${unknown}" is none of ${Object.keys(PARTS).join(", ")}`);
  process.exit(2);
}
const parts = asked.length === 0 ? Object.keys(PARTS) : asked;
if (parts.includes("--sidecar")) {
  const { missing } = linkRuntimes(["bun"]).get("bun");
  if (missing !== undefined) {
    console.error(`Cannot build the sidecar: ${missing}; run npm install, or pass --library`);
    process.exit(1);
  }
}
for (const part of parts) PARTS[part].forEach(run);
