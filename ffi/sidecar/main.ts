/**
 * The program behind `plue-sidecar`: runs the tools of the module that the host names.
 *
 * @module
 */

// Not by mod.ts: the half for guests would be loaded, too.
import { runSidecar } from "../../src/adapters/native/run_sidecar.ts";

runSidecar();
