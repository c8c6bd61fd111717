// The pinned Zig: a compiler of C and Zig for every platform from one machine.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { keepPackages, restorePackages } from "./packages.mjs";
import { CACHE, ROOT } from "./paths.mjs";

const PACKAGES = join(ROOT, "scripts", "zig");

/**
 * Finds Zig 0.16, on the PATH or in `scripts/zig`, where it is installed if it is missing.
 *
 * @returns {{ env?: Record<string, string>, missing?: string }} The environment with which `zig`
 * runs it, or why there is none.
 */
export function findZig() {
  const { stdout } = spawnSync("zig", ["version"], { encoding: "utf8" });
  if (stdout?.startsWith("0.16.")) return { env: {} };
  if (process.platform !== "linux" || process.arch !== "x64") {
    return { missing: "there is no zig 0.16" };
  }
  const modules = join(PACKAGES, "node_modules");
  const library = join(modules, "@zigc", "lib");
  const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
  if (!existsSync(join(library, "package.json")) && !restorePackages(PACKAGES, args)) {
    const { status } = spawnSync("npm", args, { cwd: PACKAGES, stdio: "ignore" });
    if (status !== 0) {
      return { missing: "there is no zig 0.16, and it cannot be installed in scripts/zig" };
    }
    keepPackages(PACKAGES, args);
  }
  const cache = join(CACHE, "zig");
  const bin = join(modules, "@zigc", "linux-x64", "bin");
  return {
    env: {
      PATH: `${bin}:${process.env.PATH ?? ""}`,
      ZIG_LIB_DIR: library,
      ZIG_LOCAL_CACHE_DIR: cache,
      ZIG_GLOBAL_CACHE_DIR: cache,
    },
  };
}
