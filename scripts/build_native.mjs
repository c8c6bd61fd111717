// `npm run build:native`: libplue by cc and make, and the sidecar by Bun, into ffi/build/.
// Usage: node scripts/build_native.mjs [--library] [--sidecar]; without either, the library, and the
// sidecar if what it needs is here.

import { existsSync } from "node:fs";
import { delimiter, join, relative } from "node:path";
import { readOptions } from "./lib/options.mjs";
import { ROOT } from "./lib/paths.mjs";
import { attach, refuse } from "./lib/process.mjs";
import { linkRuntimes } from "./lib/runtimes.mjs";

const BUILD = join(ROOT, "ffi", "build");
const MAIN = join(ROOT, "ffi", "sidecar", "main.ts");
const SIDECAR = join(BUILD, "plue-sidecar");

async function run(...command) {
  const [program, ...args] = command;
  const code = await attach(program, args).catch(({ message }) => message);
  if (code !== 0) refuse(`Cannot build: ${program} ended with ${code}`);
}

function built(...files) {
  console.log(`Built ${files.map((file) => relative(ROOT, file)).join(" and ")}`);
}

async function buildLibrary() {
  await run("make", "-s", "-C", join(ROOT, "ffi"));
  const shared = process.platform === "darwin" ? "libplue.dylib" : "libplue.so";
  built(join(BUILD, shared), join(BUILD, "libplue.a"));
}

/** Why the sidecar cannot be built; `undefined` if it can. */
function whyNoSidecar() {
  const onPath = (process.env.PATH ?? "").split(delimiter)
    .some((folder) => folder !== "" && existsSync(join(folder, "bun")));
  const lacks = [
    ...(linkRuntimes(["bun"]).get("bun").missing === undefined || onPath ? [] : ["Bun"]),
    ...(existsSync(join(ROOT, "node_modules", "typebox")) ? [] : ["the packages of package.json"]),
  ];
  return lacks.length === 0 ? undefined : `it needs ${lacks.join(" and ")}; run "node ` +
    'scripts/setup.mjs", which installs what is missing, then "npm run build:native -- --sidecar"';
}

async function buildSidecar() {
  // One program that contains Bun, for apps. With bytecode it need not parse its code at each start.
  await run("bun", "build", MAIN, "--compile", "--bytecode", "--format=esm", "--minify", ...[
    // The tools that it loads have their own packages, in their own package.json. Settings in the
    // host's folder are not for the sidecar.
    "--compile-autoload-package-json",
    "--no-compile-autoload-dotenv",
    "--no-compile-autoload-bunfig",
  ], `--outfile=${SIDECAR}`);
  // One script, for machines that have Bun, Deno or Node.
  await run("bun", "build", MAIN, "--target=node", `--outfile=${SIDECAR}.js`);
  built(SIDECAR, `${SIDECAR}.js`);
}

const usage = "Usage: node scripts/build_native.mjs [--library] [--sidecar]";
const { options } = readOptions(process.argv.slice(2), usage, { library: true, sidecar: true });
const isAll = options.library === undefined && options.sidecar === undefined;
if (isAll || options.library) await buildLibrary();
if (isAll || options.sidecar) {
  const why = whyNoSidecar();
  if (why === undefined) await buildSidecar();
  else if (options.sidecar) refuse(`Cannot build the sidecar: ${why}`);
  // The library is built, and works with any sidecar, or in a runtime.
  else console.error(`Did not build the sidecar: ${why}`);
}
