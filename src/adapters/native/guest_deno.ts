/**
 * libplue in Deno's own process, by `Deno.dlopen` (`--allow-ffi`).
 *
 * Deno is woken by a descriptor only: its callbacks for other threads block the thread that calls
 * until they have run, and aborting a call must not block.
 *
 * @module
 */

import { Socket } from "node:net";
import type { GuestLibrary, GuestRuntime } from "./guest_library.ts";

/** What this file uses of Deno. */
interface DenoRuntime {
  readonly version: { readonly deno: string };
  dlopen(path: string, symbols: object): { readonly symbols: PlueSymbols };
}

interface PlueSymbols {
  plue_abi_version(): number;
  plue_guest_attach(wake: null): number;
  plue_guest_drain(buffer: Uint8Array, capacity: number): number;
  plue_guest_push(frames: Uint8Array, length: number): number;
  plue_guest_detach(): void;
  plue_guest_wakers(): number;
  close(descriptor: number): number;
}

const SYMBOLS = {
  plue_abi_version: { parameters: [], result: "u32" },
  plue_guest_attach: { parameters: ["pointer"], result: "i32" },
  plue_guest_drain: { parameters: ["buffer", "u32"], result: "i32" },
  plue_guest_push: { parameters: ["buffer", "u32"], result: "i32" },
  plue_guest_detach: { parameters: [], result: "void" },
  plue_guest_wakers: { parameters: [], result: "i32" },
  close: { parameters: ["i32"], result: "i32" },
};

const libraries = new Map<string, GuestLibrary>();

/** Deno as a guest. */
export function denoGuest(deno: DenoRuntime): GuestRuntime {
  return {
    name: `deno ${deno.version.deno}`,
    wakes: ["fd"],
    open(path) {
      let library = libraries.get(path);
      if (library === undefined) {
        libraries.set(path, library = libraryOf(deno.dlopen(path, SYMBOLS).symbols));
      }
      return library;
    },
    watch(descriptor, run) {
      const socket = new Socket({ fd: descriptor, readable: true, writable: true });
      socket.on("data", run);
      socket.on("error", () => {});
      socket.unref();
      return { close: () => socket.destroy() };
    },
  };
}

function libraryOf(symbols: PlueSymbols): GuestLibrary {
  return {
    abiVersion: () => symbols.plue_abi_version(),
    attach: () => symbols.plue_guest_attach(null),
    drain: (buffer) => symbols.plue_guest_drain(buffer, buffer.length),
    push: (frames) => symbols.plue_guest_push(frames, frames.length),
    detach: () => symbols.plue_guest_detach(),
    wakers: () => symbols.plue_guest_wakers(),
    close: (descriptor) => symbols.close(descriptor),
  };
}
