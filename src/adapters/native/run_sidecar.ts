/**
 * The sidecar: a process that libplue starts, and that answers it over a socket.
 *
 * @module
 */

import process from "node:process";
import { EXIT, startSidecar } from "./sidecar.ts";
import { isSocket, openSidecarSocket } from "./sidecar_socket.ts";
import { loadTools, type ToolsModule } from "./tools_module.ts";

/** Options for {@linkcode runSidecar}. */
export interface SidecarOptions {
  /**
   * The tools, for a sidecar that is compiled together with them. Absent: the module that the host
   * names (`tools_module`, or the environment variable `PLUE_TOOLS`).
   */
  readonly tools?: ToolsModule | undefined;
}

/** Where libplue leaves its socket. */
const DESCRIPTOR = 3;

/**
 * Runs this process as a sidecar of the libplue that started it, until that one lets it go.
 *
 * A promise that a tool leaves rejected, with nobody to handle it, goes to the log: it ends neither
 * the process nor the calls of others. An exception that nobody catches ends it, as anywhere.
 *
 * @example Usage
 * ```ts ignore
 * // my-sidecar.ts, for `bun build --compile my-sidecar.ts --outfile plue-sidecar`
 * import { runSidecar } from "@plue/tools/native";
 * import { registry } from "./tools.ts";
 *
 * runSidecar({ tools: { registry } });
 * ```
 *
 * @param options The tools, if they are compiled in.
 */
export function runSidecar(options: SidecarOptions = {}): void {
  const fault = findFault();
  if (fault !== undefined) {
    console.error(`Cannot run the sidecar: ${fault}`);
    process.exit(EXIT.notAHost);
  }
  process.on("unhandledRejection", (reason) => {
    console.error("plue-sidecar: a promise was rejected, and nobody handled it:", reason);
  });
  startSidecar({
    runtime: runtimeName(),
    open: (events) => openSidecarSocket(DESCRIPTOR, events),
    load: (module) => loadTools(options.tools, module),
    exit: (code) => process.exit(code),
    log: (error) => console.error(error),
  });
}

/** Why there is no host to be reached; `undefined` if there is one. */
function findFault(): string | undefined {
  try {
    return isSocket(DESCRIPTOR) ? undefined : "it is started by libplue, not by hand";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** The globals by which the runtimes are told apart. */
interface RuntimeGlobals {
  readonly Bun?: { readonly version: string };
  readonly Deno?: { readonly version: { readonly deno: string } };
}

function runtimeName(): string {
  // No set of types knows all three runtimes.
  const { Bun: bun, Deno: deno } = globalThis as unknown as RuntimeGlobals;
  if (bun !== undefined) return `bun ${bun.version}`;
  return deno !== undefined ? `deno ${deno.version.deno}` : `node ${process.versions.node}`;
}
