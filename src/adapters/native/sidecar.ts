/**
 * What a sidecar does between its socket and its end, whatever the runtime.
 *
 * @module
 */

import { FrameStream } from "./frame_stream.ts";
import type { SidecarSocket, SidecarSocketEvents } from "./sidecar_socket.ts";
import { ToolHostBridge } from "./tool_host_bridge.ts";
import type { NativeTools } from "./tool_offer.ts";

/** What a sidecar needs of its process. */
export interface SidecarProcess {
  /** Name and version of the runtime, for people. */
  readonly runtime: string;
  /** Opens the socket to the host. Nothing is told before this returns. */
  open(events: SidecarSocketEvents): SidecarSocket;
  /** Gives the tools. */
  load(module: string | undefined): Promise<NativeTools>;
  /** Ends the process. What runs after it does not matter any more. */
  exit(code: number): void;
  /** Writes what went wrong to the log. */
  log(error: unknown): void;
}

/** What the process ends with. */
export const EXIT = { done: 0, failed: 1, notAHost: 2 } as const;

/** How long the tools may take to be disposed of, once the host is gone. */
const DISPOSE_WITHIN_MS = 5_000;

/** Answers the host until it lets go, or is gone; then disposes of the tools, and ends the process. */
export function startSidecar(process: SidecarProcess): void {
  let tools: NativeTools | undefined;
  let isEnding = false;

  const end = async (): Promise<void> => {
    if (isEnding) return;
    isEnding = true;
    bridge.close("The host is gone");
    // The host ends a process that takes too long; without a host, nobody would.
    const timer = setTimeout(() => process.exit(EXIT.failed), DISPOSE_WITHIN_MS);
    let code: number = EXIT.done;
    try {
      await tools?.registry.dispose();
    } catch (error) {
      process.log(error);
      code = EXIT.failed;
    }
    clearTimeout(timer);
    process.exit(code);
  };
  const bridge = new ToolHostBridge({
    load: async (module) => tools = await process.load(module),
    runtime: process.runtime,
    send: (frames) => socket.write(frames),
    onShutdown: () => void end(),
    onFailed: () => socket.end(() => process.exit(EXIT.failed)),
  });
  const stream = new FrameStream((bytes) => bridge.receive(bytes));
  const socket = process.open({
    data(bytes) {
      try {
        stream.push(bytes);
      } catch (error) {
        // After a frame that is none, nothing that follows can be read.
        process.log(error);
        process.exit(EXIT.failed);
      }
    },
    end: () => void end(),
  });
}
