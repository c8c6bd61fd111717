// `npm run build:native`: libplue by cc and make, and the sidecar by Bun, into ffi/build/.
// Usage: node scripts/build_native.mjs [--sidecar]; with `--sidecar` the sidecar only, otherwise the
// library, and the sidecar if Bun and the packages are installed.

import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { readOptions } from "./lib/options.mjs";
import { ROOT } from "./lib/paths.mjs";
import { attach, fail } from "./lib/process.mjs";
import { linkRuntimes } from "./lib/runtimes.mjs";

const MAIN = join(ROOT, "ffi", "sidecar", "main.ts");
const SIDECAR = join(ROOT, "ffi", "build", "plue-sidecar");

async function run(...command) {
  const [program, ...args] = command;
  const code = await attach(program, args).catch(({ message }) => message);
  if (code !== 0) fail(`Cannot build: ${program} ended with ${code}`);
}

async function buildLibrary() {
  await run("make", "-s", "-C", join(ROOT, "ffi"));
  const shared = process.platform === "darwin" ? "libplue.dylib" : "libplue.so";
  console.log(`Built ffi/build/${shared} and ffi/build/libplue.a`);
}

/** The reason why the sidecar cannot be built, or `undefined`. */
function whyNoSidecar() {
  const onPath = (process.env.PATH ?? "").split(delimiter)
    .some((folder) => folder !== "" && existsSync(join(folder, "bun")));
  const hasBun = onPath || linkRuntimes(["bun"]).get("bun").missing === undefined;
  if (hasBun && existsSync(join(ROOT, "node_modules", "typebox"))) return undefined;
  return "it needs Bun and the packages of package.json; " +
    'run "node scripts/setup.mjs", then "npm run build:native -- --sidecar"';
}

async function buildSidecar() {
  // One program that contains Bun, for apps. Bytecode saves parsing the code at each start.
  await run("bun", "build", MAIN, "--compile", "--bytecode", "--format=esm", "--minify", ...[
    // The tools have their own packages in their own package.json. The sidecar must not read the
    // settings in the host's folder.
    "--compile-autoload-package-json",
    "--no-compile-autoload-dotenv",
    "--no-compile-autoload-bunfig",
  ], `--outfile=${SIDECAR}`);
  // One script, for machines that have Bun, Deno or Node.
  await run("bun", "build", MAIN, "--target=node", `--outfile=${SIDECAR}.js`);
  console.log("Built ffi/build/plue-sidecar and ffi/build/plue-sidecar.js");
}

const usage = "Usage: node scripts/build_native.mjs [--sidecar]";
const { options } = readOptions(process.argv.slice(2), usage, { sidecar: true });
if (!options.sidecar) await buildLibrary();
const why = whyNoSidecar();
if (why === undefined) await buildSidecar();
else if (options.sidecar) fail(`Cannot build the sidecar: ${why}`);
// The library is built, and works with any sidecar, or in a runtime's process.
else console.error(`Did not build the sidecar: ${why}`);
