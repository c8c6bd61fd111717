// The paths of this repository.

import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const RUNTIMES = join(ROOT, "scripts", "runtimes");
/** Links to the pinned runtimes, for PATH. */
export const BIN = join(RUNTIMES, "bin");
/** Builds, by the digests of their sources. This folder is outside of the clone, for all clones. */
export const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "plue");
