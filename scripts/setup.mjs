// Installs missing pinned packages: of the project, of the runtimes, of single suites, and of Zig. The
// runtimes are in their own folder, because a deno in the project's node_modules breaks `deno task`.
// Usage: node scripts/setup.mjs

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { statSync, utimesSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { CACHE, ROOT, RUNTIMES } from "./lib/paths.mjs";
import { capture } from "./lib/process.mjs";
import { linkRuntimes, NAMES } from "./lib/runtimes.mjs";

/** Installed packages, by their lock file: unpacking takes minutes, linking seconds. */
const PACKAGES = join(CACHE, "packages");
/** Packages that were not used for this time, in milliseconds, are removed from the cache. */
const KEPT_MS = 7 * 24 * 60 * 60 * 1_000;

/** True for a package for this machine only, such as a binary. */
function isForThisMachine({ os, cpu, libc }) {
  const { glibcVersionRuntime } = process.report.getReport().header;
  const ownLibc = glibcVersionRuntime === undefined ? "musl" : "glibc";
  return cpu?.includes(process.arch) && (os?.includes(process.platform) ?? true) &&
    (libc?.includes(ownLibc) ?? true);
}

/** True if the installed packages match the lock file. Npm skips optional packages that it cannot fetch. */
function isInstalled(folder, dev) {
  const installed = join(folder, "node_modules", ".package-lock.json");
  if (!existsSync(installed)) return false;
  const read = (file) => JSON.parse(readFileSync(file, "utf8")).packages;
  const there = read(installed);
  return Object.entries(read(join(folder, "package-lock.json"))).every(([path, wanted]) => {
    if (path === "") return true;
    if (existsSync(join(folder, path))) return there[path]?.version === wanted.version;
    return (wanted.dev && !dev) ||
      ((wanted.optional || wanted.peer || wanted.devOptional) && !isForThisMachine(wanted));
  });
}

/** Links all files of a folder into another. Returns false if the folder is read-only or elsewhere. */
function link(from, to) {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(dirname(to), { recursive: true });
  // Hard links, because a package finds others by its real path.
  if (spawnSync("cp", ["-al", from, to]).status === 0) return true;
  rmSync(to, { recursive: true, force: true });
  return false;
}

/** Adds installed packages to the cache, and removes old ones from it. */
function keep(modules, cached) {
  // The copy has another name until it is complete, because other runs link complete copies.
  const parts = `${cached}.${process.pid}`;
  if (!link(modules, parts)) return;
  for (const old of readdirSync(PACKAGES).map((name) => join(PACKAGES, name))) {
    if (Date.now() - statSync(old).mtimeMs > KEPT_MS) rmSync(old, { recursive: true, force: true });
  }
  utimesSync(parts, new Date(), new Date());
  if (existsSync(cached)) rmSync(parts, { recursive: true });
  else renameSync(parts, cached);
}

/** Installs the packages of a folder. Returns an error message, or `undefined`. */
async function install(folder, args, dev = true) {
  if (isInstalled(folder, dev)) return undefined;
  const modules = join(folder, "node_modules");
  const lock = join(folder, "package-lock.json");
  const hash = createHash("sha256")
    .update([process.platform, process.arch, ...args].join(" "))
    .update(readFileSync(lock));
  const cached = join(PACKAGES, hash.digest("hex").slice(0, 32));
  if (existsSync(cached) && link(cached, modules)) {
    utimesSync(cached, new Date(), new Date());
    return undefined;
  }
  console.log(`Installing the packages that ${lock} pins`);
  const { code, output } = await capture("npm", [
    ...args,
    ...["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
  ], { cwd: folder, env: { PATH: process.env.PATH }, timeoutMs: 1_200_000 });
  if (code !== 0) return `npm cannot install the packages of ${folder}: ${output.trim()}`;
  if (!isInstalled(folder, dev)) return `npm skipped a package of ${folder}; try again`;
  keep(modules, cached);
  return undefined;
}

/**
 * Installs the project's packages and the runtimes.
 *
 * @param options `serving`: only what `npm start` needs, which is Bun.
 * @returns The file and the version of each runtime, or the reason why it is missing.
 */
export async function setup({ serving = false } = {}) {
  // Not `npm ci`: it needs the packages of other machines in the lock file too.
  const args = ["install", "--no-save", ...(serving ? ["--omit=dev"] : [])];
  const lacks = await Promise.all([install(ROOT, ["ci"]), install(RUNTIMES, args, !serving)]);
  const lack = lacks.find((reason) => reason !== undefined);
  if (lack !== undefined) throw new Error(`Cannot install the pinned packages: ${lack}`);
  return linkRuntimes(serving ? ["bun"] : NAMES);
}

/**
 * Installs the packages of one suite. A failure is not an error, because only that suite needs them.
 *
 * @param name The folder, from the root.
 * @returns An error message, or `undefined`.
 */
export function setupPackages(name) {
  return install(join(ROOT, name), ["ci"]);
}

/**
 * Finds Zig 0.16, on the PATH or in `scripts/zig`, where it is installed if it is missing.
 *
 * @returns {Promise<{ env?: Record<string, string>, missing?: string }>} The environment in which
 * the command `zig` is found, or the reason why there is no Zig.
 */
export async function findZig() {
  const { stdout } = spawnSync("zig", ["version"], { encoding: "utf8" });
  if (stdout?.startsWith("0.16.")) return { env: {} };
  if (process.platform !== "linux" || process.arch !== "x64") {
    return { missing: "there is no zig 0.16" };
  }
  const lack = await setupPackages("scripts/zig");
  if (lack !== undefined) return { missing: `there is no zig 0.16, and ${lack}` };
  const packages = join(ROOT, "scripts", "zig", "node_modules", "@zigc");
  const cache = join(CACHE, "zig");
  return {
    env: {
      PATH: `${join(packages, "linux-x64", "bin")}:${process.env.PATH ?? ""}`,
      ZIG_LIB_DIR: join(packages, "lib"),
      ZIG_LOCAL_CACHE_DIR: cache,
      ZIG_GLOBAL_CACHE_DIR: cache,
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, { version, missing }] of await setup()) {
    console.log(`${name}: ${version ?? missing}`);
  }
}
