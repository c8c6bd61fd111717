/** `libsuite`, the host suite as a shared library, on every runtime. */

import { createRequire } from "node:module";
import type { Koffi } from "../../src/adapters/native/mod.ts";

/** The functions of `ffi/test/suite_library.c`. */
export interface SuiteLibrary {
  /** Starts the named parts, separated by spaces, on a new thread. */
  start(parts: string): number;
  /** Returns -1 while the parts run, and then the exit code for the program. */
  status(): number;
  /** Calls a tool on this thread, and returns the result. */
  callHere(): string;
}

/** The path of koffi, which only these tests need. */
export function findKoffi(): Koffi | undefined {
  try {
    return createRequire(import.meta.url)("koffi");
  } catch {
    return undefined;
  }
}

/** Loads the library with the runtime's foreign function interface. */
export async function loadSuite(path: string): Promise<SuiteLibrary> {
  const { Bun: bun, Deno: deno } = globalThis as {
    readonly Bun?: unknown;
    readonly Deno?: DenoFfi;
  };
  if (bun !== undefined) return await loadWithBun(path);
  return deno === undefined ? loadWithKoffi(path) : loadWithDeno(deno, path);
}

async function loadWithBun(path: string): Promise<SuiteLibrary> {
  const { CString, dlopen, ptr } = await import("bun:ffi");
  const { symbols } = dlopen(path, {
    suite_start: { args: ["ptr"], returns: "i32" },
    suite_status: { args: [], returns: "i32" },
    suite_call_here: { args: [], returns: "ptr" },
    plue_free_json: { args: ["ptr"], returns: "void" },
  });
  return {
    start: (parts) => symbols.suite_start(ptr(zeroTerminated(parts))),
    status: () => symbols.suite_status(),
    callHere() {
      const pointer = symbols.suite_call_here();
      if (pointer === null) throw new Error("no answer");
      const text = String(new CString(pointer));
      symbols.plue_free_json(pointer);
      return text;
    },
  };
}

/** The part of Deno's foreign functions that is used. */
interface DenoFfi {
  dlopen(path: string, symbols: object): {
    readonly symbols: {
      suite_start(parts: Uint8Array): number;
      suite_status(): number;
      suite_call_here(): object;
      plue_free_json(text: object): void;
    };
  };
  readonly UnsafePointerView: { getCString(pointer: object): string };
}

function loadWithDeno(deno: DenoFfi, path: string): SuiteLibrary {
  const { symbols } = deno.dlopen(path, {
    suite_start: { parameters: ["buffer"], result: "i32" },
    suite_status: { parameters: [], result: "i32" },
    suite_call_here: { parameters: [], result: "pointer" },
    plue_free_json: { parameters: ["pointer"], result: "void" },
  });
  return {
    start: (parts) => symbols.suite_start(zeroTerminated(parts)),
    status: () => symbols.suite_status(),
    callHere() {
      const pointer = symbols.suite_call_here();
      const text = deno.UnsafePointerView.getCString(pointer);
      symbols.plue_free_json(pointer);
      return text;
    },
  };
}

function loadWithKoffi(path: string): SuiteLibrary {
  const koffi = findKoffi();
  if (koffi === undefined) throw new Error("koffi is not installed");
  const library = koffi.load(path);
  const start = library.func("int suite_start(const char *parts)");
  const status = library.func("int suite_status()");
  // The returned string is never freed: it has a few bytes, and there is only one.
  const callHere = library.func("const char *suite_call_here()");
  return {
    start: (parts) => Number(start(parts)),
    status: () => Number(status()),
    callHere: () => String(callHere()),
  };
}

function zeroTerminated(text: string): Uint8Array {
  return new TextEncoder().encode(`${text}\0`);
}
