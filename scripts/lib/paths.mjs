// Where things are in this repository.

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const RUNTIMES = join(ROOT, "scripts", "runtimes");
/** Code of others that says whether an export is right, with packages of its own. */
export const ORACLES = join(ROOT, "test", "oracles");
/** Links to the pinned runtimes, for PATH. */
export const BIN = join(RUNTIMES, "bin");
