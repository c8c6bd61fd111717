/**
 * Calls one tool through libplue as a native program does, to see whether that works: with Bun's and
 * Deno's own interfaces for libraries.
 *
 * @module
 */

/** The functions that this file calls. The runtime chooses the type of pointers. */
interface HostLibrary {
  plue_tool_execute(name: Uint8Array, params: Uint8Array, context: null): unknown;
  plue_get_last_error_json(): unknown;
}

/** The part of `bun:ffi` that this file uses. */
interface BunFfi {
  dlopen(path: string, symbols: object): { readonly symbols: HostLibrary };
  readonly CString: new (pointer: unknown) => { toString(): string };
}

/** The part of Deno that this file uses. */
interface DenoFfi {
  dlopen(path: string, symbols: object): { readonly symbols: HostLibrary };
  readonly UnsafePointerView: { getCString(pointer: unknown): string };
}

const TEXT = new TextEncoder();

/**
 * Calls a tool, and waits for its result without letting anything else run: only for a process that
 * does nothing else. libplue takes its settings from the environment.
 *
 * @returns The result as JSON, or `undefined` on a runtime that cannot load libraries.
 * @throws {Error} If the call fails.
 */
export async function callThroughLibplue(
  library: string,
  tool: string,
  params: string,
): Promise<string | undefined> {
  const opened = await open(library);
  if (opened === undefined) return undefined;
  const { symbols, textAt } = opened;
  const [name, json] = [tool, params].map((text) => TEXT.encode(`${text}\0`));
  // Not freed: the process ends with this.
  const result = symbols.plue_tool_execute(name as Uint8Array, json as Uint8Array, null);
  const failure = JSON.parse(textAt(symbols.plue_get_last_error_json())) as
    | { readonly message?: string }
    | null;
  if (failure?.message !== undefined) throw new Error(failure.message);
  return textAt(result);
}

async function open(
  library: string,
): Promise<
  { readonly symbols: HostLibrary; readonly textAt: (pointer: unknown) => string } | undefined
> {
  const { Bun: bun, Deno: deno } = globalThis as {
    readonly Bun?: unknown;
    readonly Deno?: DenoFfi;
  };
  if (bun !== undefined) {
    // Not a literal: the other runtimes would look for it before they run anything.
    const module = "bun:ffi";
    const ffi = await import(module) as BunFfi;
    const { symbols } = ffi.dlopen(library, {
      plue_tool_execute: { args: ["ptr", "ptr", "ptr"], returns: "ptr" },
      plue_get_last_error_json: { args: [], returns: "ptr" },
    });
    return {
      symbols,
      textAt: (pointer) => pointer === null ? "" : new ffi.CString(pointer).toString(),
    };
  }
  if (deno === undefined) return undefined;
  const { symbols } = deno.dlopen(library, {
    plue_tool_execute: { parameters: ["buffer", "buffer", "pointer"], result: "pointer" },
    plue_get_last_error_json: { parameters: [], result: "pointer" },
  });
  return {
    symbols,
    textAt: (pointer) => pointer === null ? "" : deno.UnsafePointerView.getCString(pointer),
  };
}
