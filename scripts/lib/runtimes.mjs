// The pinned runtimes: which package holds which binary on this machine. The binaries are used
// directly, because the packages' launchers need install scripts, which are not run.

import { chmodSync, existsSync, mkdirSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { delimiter, join, relative } from "node:path";
import { BIN, ROOT, RUNTIMES } from "./paths.mjs";

const OS = process.platform;
const CPU = process.arch;
const BUN_CPU = CPU === "arm64" ? "aarch64" : CPU;

/** The possible paths of each binary below `node_modules`, best first. */
const BINARIES = {
  bun: ["", "-musl", "-baseline", "-musl-baseline"].map((kind) =>
    `@oven/bun-${OS}-${BUN_CPU}${kind}/bin/bun`
  ),
  deno: [`@deno/${OS}-${CPU}-glibc/deno`, `@deno/${OS}-${CPU}/deno`],
  node: [`node-${OS}-${CPU}/bin/node`],
  workerd: [`@cloudflare/workerd-${OS}-${CPU === "x64" ? "64" : CPU}/bin/workerd`],
};

/** The runtimes, in the order of the table's columns. */
export const NAMES = Object.keys(BINARIES);

function version(file) {
  try {
    const stdio = ["ignore", "pipe", "ignore"];
    return execFileSync(file, ["--version"], { encoding: "utf8", stdio }).split("\n")[0].trim();
  } catch {
    return undefined;
  }
}

/** A Node on the PATH that can strip types and hook `bun:test`: 24 or later. */
function nodeOnPath() {
  const own = (process.env.PATH ?? "").split(delimiter)
    .filter((folder) => folder !== "" && folder !== BIN)
    .map((folder) => join(folder, "node"));
  return [process.execPath, ...own].find((file) =>
    existsSync(file) && Number(/^v(\d+)\./.exec(version(file) ?? "")?.[1]) >= 24
  );
}

function find(name) {
  for (const path of BINARIES[name]) {
    const file = join(RUNTIMES, "node_modules", path);
    if (!existsSync(file)) continue;
    chmodSync(file, 0o755);
    // Skips a binary for another C library or CPU, which exists but does not run.
    if (version(file) !== undefined) return file;
  }
  return name === "node" ? nodeOnPath() : undefined;
}

/**
 * Links the installed runtimes into `scripts/runtimes/bin`.
 *
 * @returns For each runtime the file, or the reason why it is missing.
 */
export function linkRuntimes(names = NAMES) {
  mkdirSync(BIN, { recursive: true });
  return new Map(names.map((name) => {
    const file = find(name);
    if (file === undefined) {
      rmSync(join(BIN, name), { force: true });
      return [name, { missing: `no ${name} for ${OS} on ${CPU}` }];
    }
    const [path, target] = [join(BIN, name), relative(BIN, file)];
    // A correct link stays, because another run may use it.
    if (!existsSync(path) || readlinkSync(path) !== target) {
      rmSync(path, { force: true });
      symlinkSync(target, path);
    }
    return [name, { file, version: version(file) }];
  }));
}

/** The options with which a runtime runs the TypeScript files of the repository. */
export const FLAGS = {
  bun: [],
  deno: [
    "--allow-all",
    "--no-check",
    // Only the import map of the configuration: with all of it, Deno would find the built package
    // first, and exclude the tests that need permissions.
    "--no-config",
    `--import-map=${join(ROOT, "deno.json")}`,
    "--node-modules-dir=manual",
  ],
  node: [
    "--disable-warning=ExperimentalWarning",
    `--import=${join(ROOT, "test", "support", "node_hook.mjs")}`,
  ],
};

/** The command that runs a TypeScript file of the repository. `gc` adds `globalThis.gc`. */
export function commandOn(runtime, { gc = false } = {}) {
  const own = runtime === "workerd" ? "bun" : runtime;
  const more = { deno: ["--v8-flags=--expose-gc"], node: ["--expose-gc"] };
  return [...[own, ...(own === "deno" ? ["run"] : []), ...FLAGS[own]], ...(gc && more[own] || [])];
}

/**
 * The command that serves an app, a file that exports `fetch` as a worker does. It prints
 * `Serving <url>` once it serves.
 */
export function serveCommand(runtime, app) {
  const program = join(ROOT, "test", "mcp", "serve_app.ts");
  return [...commandOn(runtime), program, app, ...(runtime === "workerd" ? ["workerd"] : [])];
}
