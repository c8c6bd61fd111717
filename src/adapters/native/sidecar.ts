/**
 * A sidecar between its socket and its end, on every runtime.
 *
 * @module
 */

import { FrameStream } from "./frames.ts";
import { HostBridge } from "./host_bridge.ts";
import type { NativeTools } from "./host_tools.ts";

/** The events of a sidecar's socket. */
export interface SidecarSocketEvents {
  /** Something has arrived. Valid until it returns. */
  data(bytes: Uint8Array): void;
  /** The host has disconnected. May be called more than once. */
  end(): void;
}

/** The socket. */
export interface SidecarSocket {
  /** Sends. The bytes are copied where they must wait. */
  write(bytes: Uint8Array): void;
  /** Closes it when everything is sent. */
  end(then: () => void): void;
}

/** The functions of a sidecar's process. */
export interface SidecarProcess {
  /** Name and version of the runtime, for people. */
  readonly runtime: string;
  /** Opens the socket to the host. No event is sent before this returns. */
  open(events: SidecarSocketEvents): SidecarSocket;
  /** Gives the tools. */
  load(module: string | undefined): Promise<NativeTools>;
  /** Ends the process. */
  exit(code: number): void;
  /** Frees the memory of a large call. Otherwise several calls of 100 MB would add up. */
  collectGarbage(): void;
  /** Writes what went wrong to the log. */
  log(error: unknown): void;
}

/** The exit codes of the process. */
export const EXIT = { done: 0, failed: 1, notAHost: 2 } as const;

/** The maximum time to dispose of the tools after the host has disconnected. */
const DISPOSE_WITHIN_MS = 5_000;

/** A sidecar that serves its host. */
export interface Sidecar {
  /** Ends the process because of an uncaught exception, with a message for the host. */
  crash(error: unknown): void;
}

/** Serves the host until it disconnects; then disposes of the tools, and ends the process. */
export function startSidecar(own: SidecarProcess): Sidecar {
  let tools: NativeTools | undefined;
  let isEnding = false;

  const end = async (): Promise<void> => {
    if (isEnding) return;
    isEnding = true;
    bridge.close("The host is gone");
    // The host ends a sidecar that takes too long. Without a host, this timer does.
    const timer = setTimeout(() => own.exit(EXIT.failed), DISPOSE_WITHIN_MS);
    let code: number = EXIT.done;
    try {
      await tools?.registry.dispose();
    } catch (error) {
      own.log(error);
      code = EXIT.failed;
    }
    clearTimeout(timer);
    own.exit(code);
  };
  const bridge = new HostBridge({
    load: async (module) => tools = await own.load(module),
    runtime: own.runtime,
    send: (frames) => socket.write(frames),
    onShutdown: () => void end(),
    // When the result has been sent.
    onLargeCall: () => void setTimeout(own.collectGarbage, 0),
    onFailed: () => socket.end(() => own.exit(EXIT.failed)),
  });
  const stream = new FrameStream((bytes) => bridge.receive(bytes));
  const socket = own.open({
    data(bytes) {
      try {
        stream.push(bytes);
      } catch (error) {
        // After an invalid frame, nothing can be read.
        own.log(error);
        own.exit(EXIT.failed);
      }
    },
    end: () => void end(),
  });
  return {
    crash(error) {
      own.log(error);
      bridge.giveUp(`The tool process ended: ${summaryOf(error)}`);
    },
  };
}

/** The maximum length of an exception's summary, in characters. */
const MAX_SUMMARY = 300;

/**
 * An exception in a line that any caller may read: its first line, and the name of the file in which
 * it was thrown. Sources, paths and the stack are for the log.
 */
function summaryOf(error: unknown): string {
  if (!(error instanceof Error)) return "something other than an Error was thrown";
  const [line = ""] = `${error.name}: ${error.message}`.split("\n", 1);
  const [, place] = /([^/\\\s(]+:\d+:\d+)\)?$/m.exec(error.stack ?? "") ?? [];
  return line.slice(0, MAX_SUMMARY) + (place === undefined ? "" : ` (${place})`);
}
