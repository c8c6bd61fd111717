/**
 * A runtime that owns its process and answers the libplue in it.
 *
 * @module
 */

import type { Closable, GuestLibrary, GuestRuntime, WakeKind } from "./guest_library.ts";
import { ToolHostBridge } from "./tool_host_bridge.ts";
import type { NativeTools } from "./tool_offer.ts";

/** The ABI that this side was written for. */
const ABI_VERSION = 1;

const BUFFER_BYTES = 256 * 1024;
/** A buffer that grew beyond this for a large frame is not kept. */
const KEPT_BYTES = 1024 * 1024;

/** What a guest is attached with. */
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
  readonly #bridge: ToolHostBridge;
  /** What wakes this thread. */
  #waker: Closable | undefined;
  #keptAlive: ReturnType<typeof setInterval> | undefined;
  #buffer: Uint8Array = new Uint8Array(BUFFER_BYTES);
  #isAttached = false;
  #detaching: Promise<void> | undefined;

  private constructor(library: GuestLibrary, { runtime, tools, keepAlive }: GuestSettings) {
    this.#library = library;
    this.#bridge = new ToolHostBridge({
      load: () => tools,
      send: (frames) => this.#push(frames),
      runtime: runtime.name,
    });
    // No waker counts as something to wait for.
    if (keepAlive) this.#keptAlive = setInterval(() => {}, 2 ** 31 - 1);
  }

  /** @throws {Error} If the library cannot be loaded or attached to. */
  static async attach(settings: GuestSettings): Promise<Guest> {
    const library = await settings.runtime.open(settings.library);
    const version = library.abiVersion();
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

  /** Asks availability functions again, and tells libplue if the list has changed. */
  refresh(): void {
    this.#bridge.refresh();
  }

  /**
   * Fails the running calls at once, and answers no others: for the end of the process or the
   * worker, which waits for nothing.
   */
  leave(): void {
    if (!this.#isAttached) return;
    this.#isAttached = false;
    this.#library.detach();
    this.#bridge.close("The tools are detached from the host");
  }

  /** Leaves, and frees what native threads could call. A second call waits for the same end. */
  detach(): Promise<void> {
    return this.#detaching ??= this.#detach();
  }

  async #attach({ runtime, library, wake }: GuestSettings): Promise<void> {
    const callback = wake === "callback" ? runtime.callback?.(() => this.#drain()) : undefined;
    const descriptor = this.#library.attach(callback);
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
    // The configuration is waiting, and came without a wake.
    this.#drain();
  }

  async #detach(): Promise<void> {
    this.leave();
    clearInterval(this.#keptAlive);
    // A thread may be about to call what is freed here; waiting for it would block this thread,
    // which that one may need.
    while (this.#library.wakers() > 0) await turn();
    // Calls that were posted to this thread before still run.
    await turn();
    this.#waker?.close();
  }

  #drain(): void {
    let isEmpty = false;
    try {
      while (this.#isAttached && !isEmpty) {
        const count = this.#library.drain(this.#buffer);
        isEmpty = count === 0;
        if (count < 0) this.#buffer = new Uint8Array(-count);
        else if (count > 0) this.#bridge.receive(this.#buffer.subarray(0, count));
      }
    } finally {
      // After an error: libplue does not wake again before its queue has been emptied.
      if (!isEmpty && this.#isAttached) setTimeout(() => this.#drain(), 0);
    }
    if (this.#buffer.length > KEPT_BYTES) this.#buffer = new Uint8Array(BUFFER_BYTES);
  }

  #push(frames: Uint8Array): void {
    // What a tool answers after the end is for nobody.
    if (!this.#isAttached) return;
    if (this.#library.push(frames) !== 0) {
      throw new Error("Cannot answer libplue: it takes a frame for malformed");
    }
  }
}

/** Lets the event loop turn. */
function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1));
}
