// Packages as npm installed them, cached by the content of the lock file: unpacking those of the
// tests takes minutes of work, linking them seconds. Hard links, because a package finds others by
// its real path.

import { createHash } from "node:crypto";
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
} from "node:fs";
import { join } from "node:path";
import { CACHE } from "./paths.mjs";

/** The lifetime of packages that nobody installs. */
const KEPT_MS = 7 * 24 * 60 * 60 * 1_000;

/** The cached packages for a folder and the arguments with which npm installs them. */
function cached(folder, args) {
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(
    readFileSync(join(folder, "package.json"), "utf8"),
  );
  const wanted = [dependencies, devDependencies, optionalDependencies, args];
  const hash = createHash("sha256")
    .update(JSON.stringify([process.platform, process.arch, ...wanted]))
    .update(readFileSync(join(folder, "package-lock.json")));
  return join(CACHE, "packages", hash.digest("hex").slice(0, 32));
}

function linkFiles(from, to) {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) linkFiles(source, target);
    else if (entry.isSymbolicLink()) symlinkSync(readlinkSync(source), target);
    else linkSync(source, target);
  }
}

/** Links all files of a folder into another, or none. */
function link(from, to) {
  try {
    rmSync(to, { recursive: true, force: true });
    linkFiles(from, to);
    return true;
  } catch {
    // The cache may be on another disk, or read-only.
    rmSync(to, { recursive: true, force: true });
    return false;
  }
}

/** Installs the packages from the cache. Returns false if they are not there. */
export function restorePackages(folder, args) {
  const from = cached(folder, args);
  if (!existsSync(from) || !link(from, join(folder, "node_modules"))) return false;
  utimesSync(from, new Date(), new Date());
  return true;
}

/** True if npm passed over a package for this machine, which it does when it cannot fetch it. */
function isIncomplete(folder) {
  const { glibcVersionRuntime } = process.report.getReport().header;
  const own = {
    os: process.platform,
    cpu: process.arch,
    libc: glibcVersionRuntime === undefined ? "musl" : "glibc",
  };
  const { packages } = JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8"));
  return Object.entries(packages).some(([path, wanted]) =>
    wanted.cpu !== undefined && !existsSync(join(folder, path)) &&
    Object.entries(own).every(([field, value]) => wanted[field]?.includes(value) ?? true)
  );
}

/** Adds the installed packages to the cache, and removes old ones from it. */
export function keepPackages(folder, args) {
  const to = cached(folder, args);
  if (existsSync(to) || isIncomplete(folder)) return;
  // Under another name until it is complete: another run may link it.
  const parts = `${to}.${process.pid}`;
  if (!link(join(folder, "node_modules"), parts)) return;
  for (const old of readdirSync(join(to, "..")).map((name) => join(to, "..", name))) {
    if (Date.now() - statSync(old).mtimeMs > KEPT_MS) rmSync(old, { recursive: true, force: true });
  }
  if (existsSync(to)) rmSync(parts, { recursive: true });
  else renameSync(parts, to);
}
