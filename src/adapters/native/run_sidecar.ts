/**
 * The sidecar: a process that libplue starts, and that answers it over a socket.
 *
 * @module
 */

import process from "node:process";
import { FrameStream } from "./frame_stream.ts";
import { isSocket, openSidecarSocket } from "./sidecar_socket.ts";
import { ToolHostBridge } from "./tool_host_bridge.ts";
import type { NativeTools } from "./tool_offer.ts";
import { importTools, type ToolsModule, toolsOf } from "./tools_module.ts";

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

/** How long the tools may take to be disposed of, once the host is gone. */
const DISPOSE_WITHIN_MS = 5_000;

/** What the process ends with. */
const EXIT = { done: 0, failed: 1, notAHost: 2 } as const;

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
    return process.exit(EXIT.notAHost);
  }
  let tools: NativeTools | undefined;
  let isEnding = false;

  const load = async (module: string | undefined): Promise<NativeTools> => {
    if (options.tools !== undefined) return tools = toolsOf(options.tools);
    if (module === undefined || module === "") {
      throw new TypeError(
        "Cannot start the tools: no module was named; set PLUE_TOOLS, or the option tools_module",
      );
    }
    return tools = await importTools(module);
  };
  const end = async (): Promise<void> => {
    if (isEnding) return;
    isEnding = true;
    bridge.close("The host is gone");
    // The host ends a process that takes too long; without a host, nobody would.
    setTimeout(() => process.exit(EXIT.failed), DISPOSE_WITHIN_MS);
    try {
      await tools?.registry.dispose();
      process.exit(EXIT.done);
    } catch (error) {
      console.error(error);
      process.exit(EXIT.failed);
    }
  };
  const bridge = new ToolHostBridge({
    load,
    runtime: runtimeName(),
    send: (frames) => socket.write(frames),
    onShutdown: () => void end(),
    onFailed: () => socket.end(() => process.exit(EXIT.failed)),
  });
  const stream = new FrameStream((bytes) => bridge.receive(bytes));
  const socket = openSidecarSocket(DESCRIPTOR, {
    data(bytes) {
      try {
        stream.push(bytes);
      } catch (error) {
        // After a frame that is none, nothing that follows can be read.
        console.error(error);
        process.exit(EXIT.failed);
      }
    },
    end: () => void end(),
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
