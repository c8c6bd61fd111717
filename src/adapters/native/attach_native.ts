/** Attaches this runtime to the libplue in its process: native code in it can call the tools. */

import process from "node:process";
import { fileURLToPath } from "node:url";
import type { CallTasks } from "../../execute/durable/mod.ts";
import { ToolDispatcher, type ToolDispatcherOptions } from "../../execute/mod.ts";
import type { Registry } from "../../registry/mod.ts";
import type { Selection } from "../../select/mod.ts";
import { rejectUnknownFields } from "../../tool/mod.ts";
import {
  type Closable,
  type GuestLibrary,
  type GuestRuntime,
  guestRuntime,
  type Koffi,
  type WakeKind,
} from "./guest_runtimes.ts";
import { HostBridge } from "./host_bridge.ts";
import type { NativeTools } from "./host_tools.ts";

/** Options for {@linkcode attachNative}. */
export interface AttachNativeOptions {
  /**
   * The path of libplue. If your shared library is linked with libplue, give its path instead: then
   * this runtime and your code use the same copy of libplue, even with static linking.
   */
  readonly library: string | URL;
  /**
   * The tools that native code may use. The host's `config_json` can exclude more tools.
   *
   * @default Everything that is registered.
   */
  readonly selection?: Selection | undefined;
  /** Stores tasks. If omitted, native code cannot start tasks. */
  readonly tasks?: CallTasks | undefined;
  /** Options for the dispatcher that runs the calls. */
  readonly dispatch?: ToolDispatcherOptions | undefined;
  /**
   * How native threads wake this one. `"callback"` is faster, and only for Bun from 1.4 on; `"fd"`
   * is for every runtime.
   *
   * @default The environment variable `PLUE_WAKE`, or else the fastest that the runtime has.
   */
  readonly wake?: WakeKind | undefined;
  /** True if the process stays alive until `detach()`. @default {true} */
  readonly keepAlive?: boolean | undefined;
  /** Node: the package `koffi`, for programs from whose bundle plue cannot import it. */
  readonly koffi?: Koffi | undefined;
}

const FIELDS: readonly (keyof AttachNativeOptions)[] = [
  "library",
  "selection",
  "tasks",
  "dispatch",
  "wake",
  "keepAlive",
  "koffi",
];

/** This runtime, attached to libplue. */
export interface NativeAttachment extends AsyncDisposable {
  /** How native threads wake this one. */
  readonly wake: WakeKind;
  /**
   * Leaves libplue: running calls fail with `runtime_gone`, and their tools are aborted. Resolves
   * when no native thread can call into this runtime. The registry does not change.
   */
  detach(): Promise<void>;
}

/**
 * Attaches this runtime to the libplue in its process. `plue_tool_list()` and `plue_tool_execute()`
 * of that library then list and call the tools of `registry`, on every thread except this one. A call
 * from this thread would wait for itself, and fails with `would_deadlock`.
 *
 * The runtime detaches when its process or worker thread ends: by itself, by `process.exit()` or by
 * an error. A thread that is ended by `terminate()` does not detach, and native calls would wait
 * for ever: call `detach()` before `terminate()`.
 *
 * @example Usage
 * ```ts ignore
 * import { ToolRegistry } from "@plue/tools";
 * import { attachNative } from "@plue/tools/native";
 *
 * const registry = new ToolRegistry({ tools });
 * await using attachment = await attachNative(registry, { library: "./libmyapp.so" });
 * // Start the native code, which calls plue_tool_execute() on its own threads.
 * ```
 *
 * @param registry The tools. It is followed as it changes.
 * @throws {TypeError} If an option is invalid, or Node has no koffi.
 * @throws {Error} If the library cannot be loaded, or already has a runtime.
 */
export async function attachNative(
  registry: Registry,
  options: AttachNativeOptions,
): Promise<NativeAttachment> {
  rejectUnknownFields("attach to libplue", options, FIELDS);
  const runtime = await guestRuntime(options.koffi);
  const wake = chooseWake(runtime, options.wake ?? (process.env["PLUE_WAKE"] || undefined));
  const { selection, tasks } = options;
  const dispatcher = new ToolDispatcher(registry, options.dispatch);
  const guest = await Guest.attach({
    runtime,
    library: pathOf(options.library),
    tools: { registry, dispatcher, selection, tasks },
    wake,
    keepAlive: options.keepAlive ?? true,
  });
  // Otherwise native threads would wait for a runtime that has ended, or call its wake function.
  const leave = (): void => guest.leave();
  process.once("exit", leave);
  const detach = (): Promise<void> => {
    process.off("exit", leave);
    return guest.detach();
  };
  return Object.freeze({ wake, detach, [Symbol.asyncDispose]: detach });
}

function chooseWake({ name, wakes }: GuestRuntime, wanted: string | undefined): WakeKind {
  const wake = wanted === undefined ? wakes[0] : wakes.find((kind) => kind === wanted);
  if (wake !== undefined) return wake;
  throw new TypeError(
    `Cannot attach to libplue: on ${name}, wake must be "${wakes.join('" or "')}", not "${wanted}"`,
  );
}

function pathOf(library: string | URL): string {
  if (typeof library === "string" && !library.startsWith("file:")) return library;
  const url = new URL(library);
  if (url.protocol !== "file:") {
    throw new TypeError(`Cannot attach to "${url.href}": the library must be a file`);
  }
  return fileURLToPath(url);
}

/** The version of libplue's ABI that this file was written for. */
const ABI_VERSION = 1;

const BUFFER_BYTES = 256 * 1024;
/** The maximum size of a reused buffer: a larger one was allocated for a large frame. */
const KEPT_BYTES = 1024 * 1024;

interface GuestSettings extends Pick<NativeAttachment, "wake"> {
  readonly runtime: GuestRuntime;
  readonly library: string;
  readonly tools: NativeTools;
  readonly keepAlive: boolean;
}

/** A runtime that owns its process, and serves the libplue in it. */
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
    // A watched descriptor does not keep the process alive, so a timer does.
    if (keepAlive) this.#keptAlive = setInterval(() => {}, 2 ** 31 - 1);
  }

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

  /** Fails running calls and accepts no others. Does not wait, because the process ends. */
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
    // libplue does not wake the runtime for the configuration.
    this.#drain();
  }

  async #detach(): Promise<void> {
    this.leave();
    clearInterval(this.#keptAlive);
    // A native thread may be about to call the callback that is freed below. This loop does not
    // block, because that thread may wait for this thread.
    while (this.#library.plue_guest_wakers() > 0) await turn();
    // Callbacks that were posted to this thread still run in the next turn.
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
      // Reads the rest after an error: libplue wakes the runtime only if the queue was empty.
      if (!isEmpty && this.#isAttached) setTimeout(() => this.#drain(), 0);
    }
    if (this.#buffer.length > KEPT_BYTES) this.#buffer = new Uint8Array(BUFFER_BYTES);
  }

  #push(frames: Uint8Array): void {
    // After detaching, responses have no receiver.
    if (!this.#isAttached) return;
    if (this.#library.plue_guest_push(frames, frames.length) !== 0) {
      throw new Error("Cannot answer libplue: it rejected a frame as malformed");
    }
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1));
}
