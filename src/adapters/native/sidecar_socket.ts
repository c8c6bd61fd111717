/**
 * The socket between a sidecar and its host, on every runtime.
 *
 * @module
 */

import { statSync } from "node:fs";
import { Socket } from "node:net";

/** What a sidecar is told of its socket. */
export interface SidecarSocketEvents {
  /** Something has arrived. Valid until it returns. */
  data(bytes: Uint8Array): void;
  /** The host is gone. May be told more than once. */
  end(): void;
}

/** The socket. */
export interface SidecarSocket {
  /** Sends. The bytes are copied where they must wait. */
  write(bytes: Uint8Array): void;
  /** Closes it when everything is sent. */
  end(then: () => void): void;
}

/** What this file uses of Bun. */
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
  /** How many bytes were taken; below 0 if the other end is gone. */
  write(bytes: Uint8Array): number;
  end(): void;
}

/**
 * Whether a descriptor is a socket: it is one only where libplue started this process.
 *
 * @throws {Error} If the runtime does not let this process look, as Deno without its permissions.
 */
export function isSocket(descriptor: number): boolean {
  try {
    // Not fstat: Deno knows only the descriptors that it opened itself.
    return statSync(`/dev/fd/${descriptor}`).isSocket();
  } catch (error) {
    if (isOfPermissions(error)) throw error;
    return false;
  }
}

/** Whether Deno or Node refused something that the system might have allowed. */
function isOfPermissions(error: unknown): boolean {
  const { name, code } = error as { readonly name?: unknown; readonly code?: unknown };
  return name === "NotCapable" || code === "ERR_ACCESS_DENIED";
}

/** Opens the socket that libplue left on a descriptor. Nothing is told before this returns. */
export function openSidecarSocket(
  descriptor: number,
  events: SidecarSocketEvents,
): SidecarSocket {
  // No set of types knows all three runtimes.
  const { Bun: bun } = globalThis as unknown as { readonly Bun?: BunSockets };
  // Bun's node:net never reads from a descriptor that it was given.
  return bun === undefined
    ? openNodeSocket(descriptor, events)
    : new BunSidecarSocket(bun, descriptor, events);
}

function openNodeSocket(fd: number, events: SidecarSocketEvents): SidecarSocket {
  const socket = new Socket({ fd, readable: true, writable: true });
  socket.on("data", (bytes: Uint8Array) => events.data(bytes));
  for (const event of ["end", "close", "error"]) socket.on(event, () => events.end());
  return {
    // The socket keeps what it cannot send at once, and the bytes are only lent.
    write: (bytes) => void socket.write(bytes.slice()),
    end: (then) => void socket.end(then),
  };
}

/** Bun's socket, which takes what it can and leaves the rest to its caller. */
export class BunSidecarSocket implements SidecarSocket {
  readonly #events: SidecarSocketEvents;
  /** What was not sent yet, oldest first. */
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
