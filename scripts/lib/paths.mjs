// Where things are in this repository.

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const RUNTIMES = join(ROOT, "scripts", "runtimes");
/** Links to the pinned runtimes, for PATH. */
export const BIN = join(RUNTIMES, "bin");
