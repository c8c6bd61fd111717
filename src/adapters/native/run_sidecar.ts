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
  if (!isSocket(DESCRIPTOR)) {
    console.error("Cannot run the sidecar: it is started by libplue, not by hand");
    process.exit(EXIT.notAHost);
  }
  startSidecar({
    runtime: runtimeName(),
    open: (events) => openSidecarSocket(DESCRIPTOR, events),
    load: (module) => loadTools(options.tools, module),
    exit: (code) => process.exit(code),
    log: (error) => console.error(error),
  });
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
