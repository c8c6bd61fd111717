// Installs pinned packages that are missing: the project's, and the runtimes in a folder of their
// own (a deno in the project's node_modules breaks `deno task`).
// Usage: node scripts/setup.mjs

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ROOT, RUNTIMES } from "./lib/paths.mjs";
import { linkRuntimes, lostRuntimes, NAMES } from "./lib/runtimes.mjs";

/** True if the installed packages match the lock file. */
function isInstalled(folder, { dev }) {
  const installed = join(folder, "node_modules", ".package-lock.json");
  if (!existsSync(installed)) return false;
  const read = (file) => JSON.parse(readFileSync(file, "utf8")).packages;
  const there = read(installed);
  return Object.entries(read(join(folder, "package-lock.json"))).every(([path, wanted]) =>
    path === "" || there[path]?.version === wanted.version ||
    // Packages for other machines are not installed. Installed ones must have the pinned version.
    (there[path] === undefined &&
      (wanted.optional || wanted.peer || wanted.devOptional || (wanted.dev && !dev)))
  );
}

function npm(folder, args) {
  const result = spawnSync(
    "npm",
    [...args, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
    { cwd: folder, stdio: ["ignore", "inherit", "inherit"], shell: process.platform === "win32" },
  );
  if (result.status !== 0) {
    throw new Error(`Cannot install the pinned packages: npm ${args[0]} failed in ${folder}`);
  }
}

/**
 * Installs the project's packages and the runtimes.
 *
 * @param options `serving`: only what `npm start` needs, which is Bun.
 * @returns For each runtime its file and version, or why it is missing.
 */
export function setup({ serving = false } = {}) {
  if (!isInstalled(ROOT, { dev: true })) {
    console.log("Installing the packages that package-lock.json pins");
    npm(ROOT, ["ci"]);
  }
  const names = serving ? ["bun"] : NAMES;
  if (!isInstalled(RUNTIMES, { dev: !serving }) || lostRuntimes(names).length > 0) {
    console.log(`Installing the pinned runtimes: ${names.join(", ")}`);
    // Not `npm ci`: it needs the packages of other machines in the lock file too.
    npm(RUNTIMES, ["install", "--no-save", ...(serving ? ["--omit=dev"] : [])]);
  }
  const lost = lostRuntimes(names);
  if (lost.length > 0) {
    throw new Error(`Cannot install ${lost.join(", ")}: npm passed over the package, try again`);
  }
  return linkRuntimes(names);
}

/**
 * Installs the packages of one suite. A failure is not an error, because only that suite needs
 * them.
 *
 * @param name The folder, from the root.
 * @returns Why they are missing, or `undefined`.
 */
export function setupPackages(name) {
  const folder = join(ROOT, name);
  if (isInstalled(folder, { dev: true })) return undefined;
  console.log(`Installing the packages that ${name}/package-lock.json pins`);
  try {
    // Not always `npm ci`: the lock file of the site lists packages of other machines without their
    // addresses, which `npm ci` rejects.
    npm(folder, name === "scripts/site" ? ["install", "--no-save"] : ["ci"]);
    return undefined;
  } catch (error) {
    return error.message;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, { version, missing }] of setup()) console.log(`${name}: ${version ?? missing}`);
}
