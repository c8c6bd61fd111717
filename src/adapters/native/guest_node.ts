/**
 * libplue in Node's own process, by the package `koffi`, an optional peer.
 *
 * Node is woken by a descriptor only: koffi's callbacks for other threads block the thread that
 * calls until they have run, and aborting a call must not block.
 *
 * @module
 */

import { Socket } from "node:net";
import type { GuestLibrary, GuestRuntime } from "./guest_library.ts";

/** What this file uses of koffi. */
export interface Koffi {
  load(path: string): { func(prototype: string): (...args: unknown[]) => unknown };
}

const libraries = new Map<string, GuestLibrary>();

/**
 * Node as a guest.
 *
 * @param version Node's version.
 * @param given The package, if it cannot be found from here.
 * @throws {TypeError} If koffi is not installed.
 */
export async function nodeGuest(version: string, given?: Koffi): Promise<GuestRuntime> {
  const koffi = given ?? await importKoffi();
  return {
    name: `node ${version}`,
    wakes: ["fd"],
    open(path) {
      let library = libraries.get(path);
      if (library === undefined) libraries.set(path, library = load(koffi, path));
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

async function importKoffi(): Promise<Koffi> {
  const module = "koffi";
  try {
    const { default: koffi } = await import(module) as { readonly default: Koffi };
    return koffi;
  } catch (cause) {
    throw new TypeError(
      'Cannot attach to libplue: Node needs the package "koffi" for that; install it, or hand it ' +
        "in as the koffi option",
      { cause },
    );
  }
}

function load(koffi: Koffi, path: string): GuestLibrary {
  const library = koffi.load(path);
  // The prototypes say what comes back.
  const abiVersion = library.func("uint32_t plue_abi_version()") as () => number;
  const attach = library.func("int plue_guest_attach(void *wake)") as (wake: null) => number;
  const drain = library.func("int32_t plue_guest_drain(uint8_t *buffer, uint32_t capacity)") as (
    buffer: Uint8Array,
    capacity: number,
  ) => number;
  const push = library.func("int plue_guest_push(const uint8_t *frames, uint32_t length)") as (
    frames: Uint8Array,
    length: number,
  ) => number;
  const detach = library.func("void plue_guest_detach()") as () => void;
  const wakers = library.func("int plue_guest_wakers()") as () => number;
  const close = library.func("int close(int descriptor)") as (descriptor: number) => number;
  return {
    abiVersion,
    attach: () => attach(null),
    drain: (buffer) => drain(buffer, buffer.length),
    push: (frames) => push(frames, frames.length),
    detach,
    wakers,
    close,
  };
}
