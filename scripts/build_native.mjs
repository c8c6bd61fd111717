// `npm run build:native`: libplue by cc and make, and the sidecar by Bun, into ffi/build/.
// Usage: node scripts/build_native.mjs [--library] [--sidecar]; without either, the library, and the
// sidecar if what it needs is here.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join, relative } from "node:path";
import { ROOT } from "./lib/paths.mjs";
import { environment } from "./lib/process.mjs";
import { linkRuntimes } from "./lib/runtimes.mjs";

const BUILD = join(ROOT, "ffi", "build");
const MAIN = join(ROOT, "ffi", "sidecar", "main.ts");
const SIDECAR = join(BUILD, "plue-sidecar");

/** The build targets: the command and the output file. */
const PARTS = {
  "--library": {
    commands: [["make", "-s", "-C", join(ROOT, "ffi")]],
    files: [
      join(BUILD, process.platform === "darwin" ? "libplue.dylib" : "libplue.so"),
      join(BUILD, "libplue.a"),
    ],
  },
  "--sidecar": {
    commands: [
      // One program that contains Bun, for apps. With bytecode it need not parse its code at each
      // start.
      [
        "bun",
        "build",
        MAIN,
        "--compile",
        "--bytecode",
        "--format=esm",
        "--minify",
        // The tools that it loads have their own packages, in their own package.json. Settings in
        // the host's folder are not for the sidecar.
        "--compile-autoload-package-json",
        "--no-compile-autoload-dotenv",
        "--no-compile-autoload-bunfig",
        `--outfile=${SIDECAR}`,
      ],
      // One script, for machines that have Bun, Deno or Node.
      ["bun", "build", MAIN, "--target=node", `--outfile=${SIDECAR}.js`],
    ],
    files: [SIDECAR, `${SIDECAR}.js`],
  },
};

/** The missing programs for the sidecar, and their sources; `undefined` if nothing is missing. */
function sidecarLacks() {
  const onPath = (process.env.PATH ?? "").split(delimiter)
    .some((folder) => folder !== "" && existsSync(join(folder, "bun")));
  const lacks = [
    ...(linkRuntimes(["bun"]).get("bun").missing === undefined || onPath ? [] : ["Bun"]),
    ...(existsSync(join(ROOT, "node_modules", "typebox")) ? [] : ["the packages of package.json"]),
  ];
  if (lacks.length === 0) return undefined;
  return `it needs ${lacks.join(" and ")}; run "node scripts/setup.mjs", which installs what is ` +
    'missing, then "npm run build:native -- --sidecar"';
}

function run([command, ...args]) {
  const { status, error } = spawnSync(command, args, {
    cwd: ROOT,
    env: environment(),
    stdio: "inherit",
  });
  if (status === 0) return;
  const why = error?.code === "ENOENT"
    ? `there is no ${command} on the PATH`
    : `${command} ${error === undefined ? `ended with ${status}` : error.message}`;
  console.error(`Cannot build: ${why}`);
  process.exit(1);
}

function build(part) {
  part.commands.forEach(run);
  console.log(`Built ${part.files.map((file) => relative(ROOT, file)).join(" and ")}`);
}

const asked = process.argv.slice(2);
const unknown = asked.find((word) => !Object.hasOwn(PARTS, word));
if (unknown !== undefined) {
  console.error(`"${unknown}" is none of ${Object.keys(PARTS).join(", ")}`);
  process.exit(2);
}
const isEverything = asked.length === 0;
if (isEverything || asked.includes("--library")) build(PARTS["--library"]);
if (isEverything || asked.includes("--sidecar")) {
  const lacks = sidecarLacks();
  if (lacks === undefined) {
    build(PARTS["--sidecar"]);
  } else {
    console.error(`${isEverything ? "Did not" : "Cannot"} build the sidecar: ${lacks}`);
    // The library is built, and works with any sidecar, or in a runtime.
    if (!isEverything) process.exit(1);
  }
}
