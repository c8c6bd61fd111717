// Where things are in this repository.

import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const RUNTIMES = join(ROOT, "scripts", "runtimes");
/** Links to the pinned runtimes, for PATH. */
export const BIN = join(RUNTIMES, "bin");
/** What was built, by its content. Outside of the clone, so that the next one finds it. */
export const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "plue");
