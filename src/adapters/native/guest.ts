/**
 * A runtime that owns its process, and serves the libplue in it. `guest_runtimes.ts` has the parts
 * that differ between runtimes.
 */

import type { NativeTools } from "./host_tools.ts";
import { HostBridge } from "./host_bridge.ts";

/** How libplue wakes the runtime when frames are waiting: by a callback, or by a byte to read. */
export type WakeKind = "callback" | "fd";

/** The functions of `plue_guest.h`, and libc's `close`, as foreign functions of the runtime. */
export interface GuestLibrary {
  /** Returns the ABI version of the library. */
  plue_abi_version(): number;
  /**
   * Attaches this thread's runtime: 0 or a descriptor, or -1 if there is one already.
   *
   * @param wake The pointer of a {@linkcode WakeCallback}, or `null`.
   */
  plue_guest_attach(wake: unknown): number;
  /** Reads frames. Returns their size in bytes, or the negated required size. */
  plue_guest_drain(buffer: Uint8Array, capacity: number): number;
  /** Writes frames. Returns 0, or -1 if one is malformed. */
  plue_guest_push(frames: Uint8Array, length: number): number;
  plue_guest_detach(): void;
  /** The number of threads that are about to call the callback. */
  plue_guest_wakers(): number;
  /** Closes an unused descriptor of `plue_guest_attach`. */
  close(descriptor: number): number;
}

/** A function that any thread may call, and that runs in this runtime's thread. */
export interface WakeCallback {
  /** Its value as an argument of the runtime's foreign functions. */
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
  /** The ways to wake it, best first. */
  readonly wakes: readonly WakeKind[];
  /** Reads a C string; absent on Node. */
  textAt?(pointer: unknown): string;
  /** Loads the library. Loading it again returns the same object. */
  open(path: string): GuestLibrary | Promise<GuestLibrary>;
  /** Creates a callback for other threads, if `wakes` contains `"callback"`. */
  callback?(run: () => void): WakeCallback;
  /**
   * Calls `run` whenever a descriptor is readable. It takes over the descriptor unless it throws.
   * That alone does not keep the process alive.
   */
  watch(descriptor: number, run: () => void): Closable | Promise<Closable>;
}

/** The ABI that this side was written for. */
const ABI_VERSION = 1;

const BUFFER_BYTES = 256 * 1024;
/** A larger buffer, grown for a large frame, is not reused. */
const KEPT_BYTES = 1024 * 1024;

/** The settings of a guest. */
export interface GuestSettings {
  readonly runtime: GuestRuntime;
  /** The path of the library. */
  readonly library: string;
  readonly tools: NativeTools;
  readonly wake: WakeKind;
  readonly keepAlive: boolean;
}

/** A runtime that is attached to libplue. */
export class Guest {
  readonly #library: GuestLibrary;
  readonly #bridge: HostBridge;
  /** Calls `#drain` when frames are waiting. */
  #waker: Closable | undefined;
  #keptAlive: ReturnType<typeof setInterval> | undefined;
  #buffer: Uint8Array = new Uint8Array(BUFFER_BYTES);
  #isAttached = false;
  #detaching: Promise<void> | undefined;

  private constructor(library: GuestLibrary, { runtime, tools, keepAlive }: GuestSettings) {
    this.#library = library;
    this.#bridge = new HostBridge({
      load: () => tools,
      send: (frames) => this.#push(frames),
      runtime: runtime.name,
    });
    // The wakers do not keep the process alive.
    if (keepAlive) this.#keptAlive = setInterval(() => {}, 2 ** 31 - 1);
  }

  /** @throws {Error} If the library cannot be loaded or attached to. */
  static async attach(settings: GuestSettings): Promise<Guest> {
    const library = await settings.runtime.open(settings.library);
    const version = library.plue_abi_version();
    if (version !== ABI_VERSION) {
      throw new Error(
        `Cannot attach to "${settings.library}": it has ABI ${version}, not ${ABI_VERSION}`,
      );
    }
    const guest = new Guest(library, settings);
    try {
      await guest.#attach(settings);
    } catch (error) {
      if (guest.#isAttached) await guest.detach();
      clearInterval(guest.#keptAlive);
      throw error;
    }
    return guest;
  }

  /** Calls availability functions, and sends libplue the list if it has changed. */
  refresh(): void {
    this.#bridge.refresh();
  }

  /**
   * Fails the running calls, and serves no others, without waiting: for the end of the process or
   * the worker.
   */
  leave(): void {
    if (!this.#isAttached) return;
    this.#isAttached = false;
    this.#library.plue_guest_detach();
    this.#bridge.close("The tools are detached from the host");
  }

  /** Detaches, and frees the callbacks of native threads. A second call waits for the same end. */
  detach(): Promise<void> {
    return this.#detaching ??= this.#detach();
  }

  async #attach({ runtime, library, wake }: GuestSettings): Promise<void> {
    const callback = wake === "callback" ? runtime.callback?.(() => this.#drain()) : undefined;
    const descriptor = this.#library.plue_guest_attach(callback?.pointer ?? null);
    if (descriptor < 0) {
      callback?.close();
      throw new Error(
        `Cannot attach to "${library}": a runtime is attached already, or no descriptor is left`,
      );
    }
    this.#isAttached = true;
    try {
      this.#waker = callback ?? await runtime.watch(descriptor, () => this.#drain());
    } catch (error) {
      this.leave();
      this.#library.close(descriptor);
      throw error;
    }
    // The configuration is waiting: libplue does not wake for it.
    this.#drain();
  }

  async #detach(): Promise<void> {
    this.leave();
    clearInterval(this.#keptAlive);
    // A thread may be about to call the freed function. It may need this thread, so blocking could
    // deadlock.
    while (this.#library.plue_guest_wakers() > 0) await turn();
    // Callbacks that were posted to this thread before still run.
    await turn();
    this.#waker?.close();
  }

  #drain(): void {
    let isEmpty = false;
    try {
      while (this.#isAttached && !isEmpty) {
        const count = this.#library.plue_guest_drain(this.#buffer, this.#buffer.length);
        isEmpty = count === 0;
        if (count < 0) this.#buffer = new Uint8Array(-count);
        else if (count > 0) this.#bridge.receive(this.#buffer.subarray(0, count));
      }
    } finally {
      // After an error, because libplue wakes again only after its queue was emptied.
      if (!isEmpty && this.#isAttached) setTimeout(() => this.#drain(), 0);
    }
    if (this.#buffer.length > KEPT_BYTES) this.#buffer = new Uint8Array(BUFFER_BYTES);
  }

  #push(frames: Uint8Array): void {
    // A response after the end has no receiver.
    if (!this.#isAttached) return;
    if (this.#library.plue_guest_push(frames, frames.length) !== 0) {
      throw new Error("Cannot answer libplue: it takes a frame for malformed");
    }
  }
}

/** Lets the event loop turn. */
function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1));
}
