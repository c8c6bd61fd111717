/**
 * The program behind `plue-sidecar`: runs the tools of the module that the host names.
 *
 * @module
 */

import { runSidecar } from "../../src/adapters/native/mod.ts";

runSidecar();
