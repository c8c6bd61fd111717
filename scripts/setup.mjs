// Installs pinned packages that are missing: the project's, and the runtimes in a folder of their
// own (a deno in the project's node_modules breaks `deno task`).
// Usage: node scripts/setup.mjs

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { keepPackages, restorePackages } from "./lib/packages.mjs";
import { ROOT, RUNTIMES } from "./lib/paths.mjs";
import { capture } from "./lib/process.mjs";
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

const NPM_OPTIONS = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];

function npm(folder, args) {
  if (restorePackages(folder, args)) return;
  const result = spawnSync("npm", [...args, ...NPM_OPTIONS], {
    cwd: folder,
    stdio: ["ignore", "inherit", "inherit"],
    shell: process.platform === "win32",
  });
  if (result.status !== 0) {
    throw new Error(`Cannot install the pinned packages: npm ${args[0]} failed in ${folder}`);
  }
  keepPackages(folder, args);
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
 * Installs the packages of one suite, while other work goes on. A failure is not an error, because only that suite needs
 * them.
 *
 * @param name The folder, from the root.
 * @returns Why they are missing, or `undefined`.
 */
export async function setupPackages(name) {
  const folder = join(ROOT, name);
  if (isInstalled(folder, { dev: true })) return undefined;
  // Not always `npm ci`: the lock file of the site lists packages of other machines without their
  // addresses, which `npm ci` rejects.
  const args = name === "scripts/site" ? ["install", "--no-save"] : ["ci"];
  if (restorePackages(folder, args)) return undefined;
  const { code, output } = await capture("npm", [...args, ...NPM_OPTIONS], { cwd: folder });
  if (code !== 0) return `npm cannot install the packages of ${name}: ${output.trim()}`;
  keepPackages(folder, args);
  return undefined;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, { version, missing }] of setup()) console.log(`${name}: ${version ?? missing}`);
}
