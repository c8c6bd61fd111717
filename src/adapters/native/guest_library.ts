/**
 * libplue as a runtime's foreign-function interface gives it, and what else each runtime does in
 * its own way. One file per runtime implements this; `guest.ts` is written once.
 *
 * @module
 */

/** How libplue tells the runtime that frames are waiting: by a callback, or by a byte to read. */
export type WakeKind = "callback" | "fd";

/** The seam of `plue_guest.h`. */
export interface GuestLibrary {
  /** Which ABI the library has. */
  abiVersion(): number;
  /** Attaches this thread's runtime: 0 or a descriptor, or -1 if there is one already. */
  attach(wake: WakeCallback | undefined): number;
  /** Takes frames; how many bytes they have, or the negated size that is needed. */
  drain(buffer: Uint8Array): number;
  /** Gives frames; 0, or -1 if one is malformed. */
  push(frames: Uint8Array): number;
  detach(): void;
  /** How many threads are on their way into the callback. */
  wakers(): number;
  /** Closes a descriptor of `attach` that nothing has taken over: libc's function, found through it. */
  close(descriptor: number): void;
}

/** A function of this runtime that any thread may call, and that then runs in this one. */
export interface WakeCallback {
  /** What the runtime's foreign functions take for it. */
  readonly pointer: unknown;
  close(): void;
}

/** Something to stop. */
export interface Closable {
  close(): void;
}

/** One runtime. */
export interface GuestRuntime {
  /** Name and version, for people. */
  readonly name: string;
  /** How it can be woken; the first is the better one. */
  readonly wakes: readonly WakeKind[];
  /** Loads the library. Loading one again gives the same. */
  open(path: string): GuestLibrary | Promise<GuestLibrary>;
  /** Makes a callback for other threads, where `wakes` has `"callback"`. */
  callback?(run: () => void): WakeCallback;
  /**
   * Calls `run` whenever something can be read from a descriptor, which it takes over unless it
   * throws. That alone does not keep the process alive.
   */
  watch(descriptor: number, run: () => void): Closable | Promise<Closable>;
}
