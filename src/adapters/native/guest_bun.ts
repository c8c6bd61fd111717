/**
 * libplue in Bun's own process, by `bun:ffi`.
 *
 * @module
 */

import type { Closable, GuestLibrary, GuestRuntime, WakeCallback } from "./guest_library.ts";

/** What this file uses of Bun. */
interface BunRuntime {
  readonly version: string;
  connect(options: {
    readonly fd: number;
    readonly socket: { data(): void; error(): void };
  }): Promise<{ end(): void; unref(): void }>;
}

/** What this file uses of `bun:ffi`. */
interface BunFfi {
  dlopen(path: string, symbols: object): { readonly symbols: PlueSymbols };
  readonly JSCallback: new (
    run: () => void,
    options: { readonly args: []; readonly returns: "void"; readonly threadsafe: true },
  ) => { readonly ptr: unknown; close(): void };
}

interface PlueSymbols {
  plue_abi_version(): number;
  plue_guest_attach(wake: unknown): number;
  plue_guest_drain(buffer: Uint8Array, capacity: number): number;
  plue_guest_push(frames: Uint8Array, length: number): number;
  plue_guest_detach(): void;
  plue_guest_wakers(): number;
  close(descriptor: number): number;
}

const SYMBOLS = {
  plue_abi_version: { args: [], returns: "u32" },
  plue_guest_attach: { args: ["ptr"], returns: "i32" },
  plue_guest_drain: { args: ["ptr", "u32"], returns: "i32" },
  plue_guest_push: { args: ["ptr", "u32"], returns: "i32" },
  plue_guest_detach: { args: [], returns: "void" },
  plue_guest_wakers: { args: [], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
};

const libraries = new Map<string, GuestLibrary>();

/** Bun as a guest. */
export async function bunGuest(bun: BunRuntime): Promise<GuestRuntime> {
  // Not a literal: the other runtimes would look for it before they run anything.
  const module = "bun:ffi";
  const ffi = await import(module) as BunFfi;
  return {
    name: `bun ${bun.version}`,
    wakes: hasSoundCallbacks(bun.version) ? ["callback", "fd"] : ["fd"],
    open(path) {
      let library = libraries.get(path);
      if (library === undefined) {
        libraries.set(path, library = libraryOf(ffi.dlopen(path, SYMBOLS).symbols));
      }
      return library;
    },
    callback(run): WakeCallback {
      const callback = new ffi.JSCallback(run, { args: [], returns: "void", threadsafe: true });
      return { pointer: callback.ptr, close: () => callback.close() };
    },
    async watch(descriptor, run): Promise<Closable> {
      const socket = await bun.connect({ fd: descriptor, socket: { data: run, error() {} } });
      socket.unref();
      return { close: () => socket.end() };
    },
  };
}

function libraryOf(symbols: PlueSymbols): GuestLibrary {
  return {
    abiVersion: () => symbols.plue_abi_version(),
    attach: (wake) => symbols.plue_guest_attach(wake === undefined ? null : wake.pointer),
    drain: (buffer) => symbols.plue_guest_drain(buffer, buffer.length),
    push: (frames) => symbols.plue_guest_push(frames, frames.length),
    detach: () => symbols.plue_guest_detach(),
    wakers: () => symbols.plue_guest_wakers(),
    close: (descriptor) => symbols.close(descriptor),
  };
}

/** Before 1.4, a callback that another thread calls corrupts the heap. */
export function hasSoundCallbacks(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 1 || (major === 1 && minor >= 4);
}
