/**
 * Loads libplue into the process of Bun (`bun:ffi`), of Deno (`Deno.dlopen`, with `--allow-ffi`) or
 * of Node (the package `koffi`, an optional peer).
 *
 * libplue wakes Deno and Node only by a descriptor. A callback of these runtimes blocks the thread
 * that calls it, and a native thread that aborts a call must not be blocked.
 */

import { Socket } from "node:net";
import process from "node:process";
import { once } from "../../tool/mod.ts";

/** How libplue wakes the runtime when frames are waiting: by a callback, or by a byte to read. */
export type WakeKind = "callback" | "fd";

/** The functions of `plue_guest.h`, and libc's `close`, as foreign functions of the runtime. */
export interface GuestLibrary {
  plue_abi_version(): number;
  /**
   * Attaches this thread's runtime. Returns 0 or a descriptor; -1 if a runtime is attached already.
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
  /** The callback as an argument of the runtime's foreign functions. */
  readonly pointer: unknown;
  close(): void;
}

/** A watched descriptor or socket that can be closed. */
export interface Closable {
  close(): void;
}

export interface GuestRuntime {
  readonly name: string;
  /** The ways in which libplue can wake the runtime, best first. */
  readonly wakes: readonly WakeKind[];
  /** Reads a C string; absent on Node. */
  textAt?(pointer: unknown): string;
  /** Loads the library. Loading it again returns the same object. */
  open(path: string): GuestLibrary | Promise<GuestLibrary>;
  /** Creates a callback for other threads, if `wakes` contains `"callback"`. */
  callback?(run: () => void): WakeCallback;
  /**
   * Calls `run` whenever a descriptor is readable. Closes the descriptor later, unless this throws. A
   * watched descriptor does not keep the process alive.
   */
  watch(descriptor: number, run: () => void): Closable | Promise<Closable>;
}

interface BunRuntime {
  readonly version: string;
  connect(options: {
    readonly fd: number;
    readonly socket: { data(): void; error(): void };
  }): Promise<{ end(): void; unref(): void }>;
}

interface BunFfi {
  dlopen(path: string, symbols: object): { readonly symbols: Libplue };
  readonly CString: new (pointer: unknown) => { toString(): string };
  readonly JSCallback: new (
    run: () => void,
    options: { readonly args: []; readonly returns: "void"; readonly threadsafe: true },
  ) => { readonly ptr: unknown; close(): void };
}

interface DenoRuntime {
  readonly version: { readonly deno: string };
  dlopen(path: string, symbols: object): { readonly symbols: Libplue };
  readonly UnsafePointerView: { getCString(pointer: unknown): string };
}

/** The part of the package koffi that plue uses. */
export interface Koffi {
  load(path: string): { func(prototype: string): (...args: unknown[]) => unknown };
}

type ForeignType = "u32" | "i32" | "pointer" | "buffer" | "void";

/** The functions of libplue that plue calls: all functions for guests, and two for native programs. */
interface Libplue extends GuestLibrary {
  plue_tool_execute(name: Uint8Array, params: Uint8Array, context: null): unknown;
  plue_get_last_error_json(): unknown;
}

/** The result and the parameters of each function. */
const SIGNATURES: {
  readonly [Name in keyof Libplue]: readonly [ForeignType, ...ForeignType[]];
} = {
  plue_tool_execute: ["pointer", "buffer", "buffer", "pointer"],
  plue_get_last_error_json: ["pointer"],
  plue_abi_version: ["u32"],
  plue_guest_attach: ["i32", "pointer"],
  plue_guest_drain: ["i32", "buffer", "u32"],
  plue_guest_push: ["i32", "buffer", "u32"],
  plue_guest_detach: ["void"],
  plue_guest_wakers: ["i32"],
  close: ["i32", "i32"],
};

/** The result of `declare` for each signature, by the function's name. */
function symbolsOf<Declared>(
  declare: (result: ForeignType, parameters: readonly ForeignType[], name: string) => Declared,
): Record<string, Declared> {
  return Object.fromEntries(
    Object.entries(SIGNATURES).map(([name, [result, ...parameters]]) => [
      name,
      declare(result, parameters, name),
    ]),
  );
}

/** The globals that distinguish the runtimes. All of them have `node:process`. */
interface RuntimeGlobals {
  readonly Bun?: BunRuntime;
  readonly Deno?: DenoRuntime;
}

export async function guestRuntime(koffi: Koffi | undefined): Promise<GuestRuntime> {
  // No type package declares the globals of all three runtimes.
  const { Bun: bun, Deno: deno } = globalThis as unknown as RuntimeGlobals;
  if (bun !== undefined) return await bunGuest(bun);
  return deno === undefined ? await nodeGuest(process.versions.node, koffi) : denoGuest(deno);
}

async function bunGuest(bun: BunRuntime): Promise<GuestRuntime> {
  // Not a literal, because other runtimes would resolve it before they run the module.
  const module = "bun:ffi";
  const ffi = await import(module) as BunFfi;
  const symbols = symbolsOf((returns, parameters) => ({
    returns,
    args: parameters.map((type) => type === "pointer" || type === "buffer" ? "ptr" : type),
  }));
  return {
    name: `bun ${bun.version}`,
    wakes: hasSoundCallbacks(bun.version) ? ["callback", "fd"] : ["fd"],
    textAt: (pointer) => new ffi.CString(pointer).toString(),
    open: (path) => once(libraries, path, () => ffi.dlopen(path, symbols).symbols),
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

/** Returns false for Bun before 1.4, where a callback from another thread corrupts the heap. */
export function hasSoundCallbacks(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 1 || (major === 1 && minor >= 4);
}

export function denoGuest(deno: DenoRuntime): GuestRuntime {
  const symbols = symbolsOf((result, parameters) => ({ result, parameters }));
  return {
    name: `deno ${deno.version.deno}`,
    wakes: ["fd"],
    textAt: (pointer) => deno.UnsafePointerView.getCString(pointer),
    open: (path) => once(libraries, path, () => deno.dlopen(path, symbols).symbols),
    watch: watchSocket,
  };
}

/**
 * Node as a guest.
 *
 * @param version Node's version.
 * @param library The package koffi, if this module cannot import it.
 */
export async function nodeGuest(version: string, library?: Koffi): Promise<GuestRuntime> {
  const koffi = library ?? await importKoffi();
  return {
    name: `node ${version}`,
    wakes: ["fd"],
    open: (path) => once(libraries, path, () => koffiSymbols(koffi, path)),
    watch: watchSocket,
  };
}

async function importKoffi(): Promise<Koffi> {
  const module = "koffi";
  try {
    const { default: koffi } = await import(module) as { readonly default: Koffi };
    return koffi;
  } catch (cause) {
    throw new TypeError(
      'Cannot attach to libplue: Node needs the package "koffi"; install it, or pass it as the ' +
        "option koffi",
      { cause },
    );
  }
}

const C_TYPES: { readonly [Type in ForeignType]: string } = {
  u32: "uint32_t",
  i32: "int32_t",
  pointer: "void *",
  buffer: "uint8_t *",
  void: "void",
};

function koffiSymbols(koffi: Koffi, path: string): Libplue {
  const library = koffi.load(path);
  const functions: unknown = symbolsOf((result, parameters, name) => {
    const types = parameters.map((type) => C_TYPES[type]).join(", ");
    return library.func(`${C_TYPES[result]} ${name}(${types})`);
  });
  // SIGNATURES has the type of each function.
  return functions as Libplue;
}

const libraries = new Map<string, Libplue>();

/** Reads from a descriptor with `node:net`, which Deno and Node have. */
function watchSocket(descriptor: number, run: () => void): Closable {
  const socket = new Socket({ fd: descriptor, readable: true, writable: true });
  socket.on("data", run);
  socket.on("error", () => {});
  socket.unref();
  return { close: () => socket.destroy() };
}

/**
 * Calls a tool through libplue as a native program does. Blocks the thread, so the process must do
 * nothing else. libplue reads its settings from the environment.
 *
 * @returns The result as JSON, or `undefined` on Node, which cannot load libraries by itself.
 */
export async function callThroughLibplue(
  path: string,
  tool: string,
  params: string,
): Promise<string | undefined> {
  if (process.versions["bun"] === undefined && process.versions["deno"] === undefined) return;
  const { open, textAt = String } = await guestRuntime(undefined);
  const library = await open(path) as Libplue;
  const [name, json] = [tool, params].map((text) => new TextEncoder().encode(`${text}\0`));
  // Not freed, because the process ends after this call.
  const result = library.plue_tool_execute(name as Uint8Array, json as Uint8Array, null);
  const failure = JSON.parse(textAt(library.plue_get_last_error_json()));
  if (failure.message !== undefined) throw new Error(failure.message);
  return textAt(result);
}
