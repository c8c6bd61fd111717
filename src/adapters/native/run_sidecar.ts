/** The process that libplue starts to run the tools of a native program, and its socket. */

import { statSync } from "node:fs";
import process from "node:process";
import { describeThrown } from "../../tool/mod.ts";
import { FrameStream } from "./frames.ts";
import { HostBridge } from "./host_bridge.ts";
import type { NativeTools } from "./host_tools.ts";
import { loadTools, type ToolsModule } from "./tools_module.ts";

/** Options for {@linkcode runSidecar}. */
export interface SidecarOptions {
  /**
   * The tools, for a sidecar that is compiled together with them. If omitted, the host
   * names a module (`tools_module`, or the environment variable `PLUE_TOOLS`).
   */
  readonly tools?: ToolsModule | undefined;
}

/** The descriptor on which libplue leaves its socket. */
const DESCRIPTOR = 3;

/**
 * Runs this process as a sidecar of the libplue that started it, until libplue ends it.
 *
 * A rejected promise that a tool does not handle is logged; the process and other calls continue.
 * An uncaught exception ends the process, and running calls fail with its message.
 *
 * @example Usage
 * ```ts ignore
 * // my-sidecar.ts, for `bun build --compile my-sidecar.ts --outfile plue-sidecar`
 * import { runSidecar } from "@plue/tools/native";
 * import { registry } from "./tools.ts";
 *
 * runSidecar({ tools: { registry } });
 * ```
 */
export function runSidecar(options: SidecarOptions = {}): void {
  const fault = findFault();
  if (fault !== undefined) {
    console.error(`Cannot run the sidecar: ${fault}`);
    process.exit(EXIT.notAHost);
  }
  process.on("unhandledRejection", (reason) => {
    try {
      console.error("plue-sidecar: unhandled rejection of a promise:", reason);
    } catch {
      console.error("plue-sidecar: unhandled rejection of a promise:", describeThrown(reason));
    }
  });
  const crash = startSidecar({
    runtime: runtimeName(),
    open: (events) => openSidecarSocket(DESCRIPTOR, events),
    load: (module) => loadTools(options.tools, module),
    exit: (code) => process.exit(code),
    collectGarbage,
    log: (error) => console.error(error),
  });
  process.on("uncaughtException", (error) => {
    // If the module of tools has a listener too, that listener handles the exception.
    if (process.listenerCount("uncaughtException") === 1) crash(error);
  });
}

/** Returns the reason why the host cannot be reached; `undefined` if it can be reached. */
function findFault(): string | undefined {
  try {
    return isSocket(DESCRIPTOR) ? undefined : "only libplue can start it";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

// No type package declares the globals of all three runtimes.
const { Bun: bun, Deno: deno } = globalThis as unknown as {
  readonly Bun?: BunSockets & { readonly version: string; gc(force: boolean): void };
  readonly Deno?: { readonly version: { readonly deno: string } };
};

function collectGarbage(): void {
  if (bun !== undefined) return bun.gc(true);
  process.getBuiltinModule("node:v8").setFlagsFromString("--expose-gc");
  process.getBuiltinModule("node:vm").runInNewContext("gc()");
}

function runtimeName(): string {
  if (bun !== undefined) return `bun ${bun.version}`;
  return deno !== undefined ? `deno ${deno.version.deno}` : `node ${process.versions.node}`;
}

/** The part of Bun that this file uses. */
export interface BunSockets {
  connect(options: {
    readonly fd: number;
    readonly socket: {
      data(socket: unknown, bytes: Uint8Array): void;
      drain(): void;
      end(): void;
      close(): void;
      error(): void;
    };
  }): Promise<BunSocket>;
}

export interface BunSocket {
  /** Returns the number of bytes that were sent; below 0 if the other end is closed. */
  write(bytes: Uint8Array): number;
  end(): void;
}

/**
 * Returns true if a descriptor is a socket, as in a process that libplue has started.
 *
 * @throws {Error} If the permissions of Deno or Node forbid the check.
 */
export function isSocket(descriptor: number): boolean {
  try {
    // Not fstat, because Deno supports only descriptors that it has opened.
    return statSync(`/dev/fd/${descriptor}`).isSocket();
  } catch (error) {
    if (isOfPermissions(error)) throw error;
    return false;
  }
}

/** Returns true if the permissions of Deno or Node caused the error. */
function isOfPermissions(error: unknown): boolean {
  const { name, code } = error as { readonly name?: unknown; readonly code?: unknown };
  return name === "NotCapable" || code === "ERR_ACCESS_DENIED";
}

const READ_BYTES = 64 * 1024;

/** Opens the socket that libplue left on a descriptor. No event is sent before this returns. */
function openSidecarSocket(descriptor: number, events: SidecarSocketEvents): SidecarSocket {
  // Bun's node:net never reads from a descriptor that it was given.
  return bun === undefined
    ? openNodeSocket(descriptor, events)
    : new BunSidecarSocket(bun, descriptor, events);
}

function openNodeSocket(fd: number, events: SidecarSocketEvents): SidecarSocket {
  // Loaded here only, because loading it takes milliseconds, and Bun does not use it.
  const { Socket } = process.getBuiltinModule("node:net");
  // One buffer for all reads, because Deno frees its own buffers late.
  const buffer = new Uint8Array(READ_BYTES);
  const callback = (length: number): boolean => {
    events.data(buffer.subarray(0, length));
    return true;
  };
  const socket = new Socket({ fd, readable: true, writable: true, onread: { buffer, callback } });
  socket.resume();
  for (const event of ["end", "close", "error"]) socket.on(event, () => events.end());
  return {
    // Copies the bytes: the socket may send them later, but the caller reuses its buffer.
    write: (bytes) => void socket.write(bytes.slice()),
    end: (then) => void socket.end(then),
  };
}

/** A socket of Bun, whose `write` may send only some of the bytes: this class sends the rest later. */
export class BunSidecarSocket implements SidecarSocket {
  readonly #events: SidecarSocketEvents;
  /** The bytes to send, oldest first. */
  readonly #waiting: Uint8Array[] = [];
  #socket: BunSocket | undefined;
  #afterEnd: (() => void) | undefined;

  constructor(bun: BunSockets, fd: number, events: SidecarSocketEvents) {
    this.#events = events;
    const end = (): void => events.end();
    bun.connect({
      fd,
      socket: {
        data: (_socket, bytes) => events.data(bytes),
        drain: () => this.#sendWaiting(),
        end,
        close: end,
        error: end,
      },
    }).then((socket) => {
      this.#socket = socket;
      this.#sendWaiting();
    }, end);
  }

  write(bytes: Uint8Array): void {
    if (this.#socket === undefined || this.#waiting.length > 0) {
      this.#waiting.push(bytes.slice());
      return;
    }
    const sent = this.#socket.write(bytes);
    if (sent < 0) this.#events.end();
    else if (sent < bytes.length) this.#waiting.push(bytes.slice(sent));
  }

  end(then: () => void): void {
    this.#afterEnd = then;
    this.#sendWaiting();
  }

  #sendWaiting(): void {
    const socket = this.#socket;
    if (socket === undefined) return;
    for (let bytes = this.#waiting[0]; bytes !== undefined; bytes = this.#waiting[0]) {
      const sent = socket.write(bytes);
      if (sent < 0) return this.#events.end();
      if (sent < bytes.length) {
        this.#waiting[0] = bytes.subarray(sent);
        return;
      }
      this.#waiting.shift();
    }
    if (this.#afterEnd === undefined) return;
    socket.end();
    this.#afterEnd();
  }
}

export interface SidecarSocketEvents {
  /** Receives bytes, which are valid until this returns. */
  data(bytes: Uint8Array): void;
  /** The host has disconnected. May be called more than once. */
  end(): void;
}

export interface SidecarSocket {
  /** Sends bytes. Copies the bytes that cannot be sent immediately. */
  write(bytes: Uint8Array): void;
  /** Closes the socket after everything was sent. */
  end(then: () => void): void;
}

export interface SidecarProcess {
  readonly runtime: string;
  /** Opens the socket to the host. No event is sent before this returns. */
  open(events: SidecarSocketEvents): SidecarSocket;
  load(module: string | undefined): Promise<NativeTools>;
  exit(code: number): void;
  /** Frees the memory of a large call. Otherwise several calls of 100 MB would add up. */
  collectGarbage(): void;
  log(error: unknown): void;
}

const EXIT = { done: 0, failed: 1, notAHost: 2 } as const;

/** The maximum time to dispose of the tools after the host has disconnected. */
const DISPOSE_WITHIN_MS = 5_000;

/**
 * Serves the host until it disconnects; then disposes of the tools, and ends the process.
 *
 * @returns Ends the process because of an uncaught exception, with a message for the host.
 */
export function startSidecar(own: SidecarProcess): (error: unknown) => void {
  let tools: NativeTools | undefined;
  let isEnding = false;

  const end = async (): Promise<void> => {
    if (isEnding) return;
    isEnding = true;
    bridge.close("The host has disconnected");
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
    // Runs in a later turn, after the result was sent.
    onLargeCall: () => void setTimeout(own.collectGarbage, 0),
    onFailed: () => socket.end(() => own.exit(EXIT.failed)),
  });
  const stream = new FrameStream((bytes) => bridge.receive(bytes));
  const socket = own.open({
    data(bytes) {
      try {
        stream.push(bytes);
      } catch (error) {
        // After an invalid frame, the stream cannot be read further.
        own.log(error);
        own.exit(EXIT.failed);
      }
    },
    end: () => void end(),
  });
  return (error) => {
    own.log(error);
    bridge.giveUp(`The tool process ended: ${summaryOf(error)}`);
  };
}

const MAX_SUMMARY = 300;

/**
 * Returns an exception as one line that any caller may read: the first line of its message, and the
 * name of the file that threw it. Sources, paths and the stack are only for the log.
 */
function summaryOf(error: unknown): string {
  if (!(error instanceof Error)) return "something other than an Error was thrown";
  const [line = ""] = `${error.name}: ${error.message}`.split(/[\r\n\u0085\u2028\u2029]/, 1);
  const [, place] = /([^/\\\s(]+:\d+:\d+)\)?$/m.exec(error.stack ?? "") ?? [];
  return line.slice(0, MAX_SUMMARY) + (place === undefined ? "" : ` (${place})`);
}
