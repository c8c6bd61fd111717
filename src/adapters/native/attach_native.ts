/**
 * Attaches this runtime to the libplue in its process, so that native code in it can call the
 * tools.
 */

import process from "node:process";
import { fileURLToPath } from "node:url";
import type { CallTasks } from "../../execute/durable/mod.ts";
import { ToolDispatcher, type ToolDispatcherOptions } from "../../execute/mod.ts";
import type { Registry } from "../../registry/mod.ts";
import type { Selection } from "../../select/mod.ts";
import { Guest, type GuestRuntime, type WakeKind } from "./guest.ts";
import { guestRuntime, type Koffi } from "./guest_runtimes.ts";

/** Options for {@linkcode attachNative}. */
export interface AttachNativeOptions {
  /**
   * The path of libplue, or better, of your shared library that is linked with it: then both use the
   * same copy of libplue, even if it is linked statically.
   */
  readonly library: string | URL;
  /**
   * The tools that native code may have. The host's `config_json` narrows it further.
   *
   * @default Everything that is registered.
   */
  readonly selection?: Selection | undefined;
  /** Runs the calls. If omitted, a dispatcher is created from `dispatch`. */
  readonly dispatcher?: ToolDispatcher | undefined;
  /** Stores tasks. If omitted, native code cannot start tasks. */
  readonly tasks?: CallTasks | undefined;
  /** Options for the dispatcher that is created. */
  readonly dispatch?: ToolDispatcherOptions | undefined;
  /**
   * How native threads wake this one. `"callback"` is faster, and only for Bun from 1.4 on; `"fd"`
   * is for every runtime.
   *
   * @default The environment variable `PLUE_WAKE`, or else the fastest that the runtime has.
   */
  readonly wake?: WakeKind | undefined;
  /**
   * True if the process stays alive until `detach()`.
   *
   * @default {true}
   */
  readonly keepAlive?: boolean | undefined;
  /** Node: the package `koffi`, if it cannot be found from here. */
  readonly koffi?: Koffi | undefined;
}

/** This runtime, attached to libplue. */
export interface NativeAttachment extends AsyncDisposable {
  /** How native threads wake this one. */
  readonly wake: WakeKind;
  /**
   * Calls the tools' availability functions, and sends libplue the list if it has changed. This also
   * happens when the registry changes, after calls, and every second.
   */
  refresh(): void;
  /**
   * Leaves libplue: running calls fail with `runtime_gone`, and their tools are aborted. Resolves
   * when no native thread can call into this runtime. The registry does not change.
   */
  detach(): Promise<void>;
}

/**
 * Attaches this runtime to the libplue in its process. `plue_tool_list()` and `plue_tool_execute()`
 * of that library are then answered by `registry`, from whichever thread they are called, except
 * this one: that would wait for itself, and fails with `would_deadlock`.
 *
 * The end of the process, or of a worker, by itself, by `process.exit()` or by an error detaches,
 * too. `terminate()` does not: a worker that is attached must `detach()` before that, or calls wait
 * for ever.
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
 * @param options The library's path, and other options.
 * @returns The attachment. The tools can be called from then on.
 * @throws {TypeError} If an option is invalid, or Node has no koffi.
 * @throws {Error} If the library cannot be loaded, or a runtime is attached to it already.
 */
export async function attachNative(
  registry: Registry,
  options: AttachNativeOptions,
): Promise<NativeAttachment> {
  const runtime = await guestRuntime(options.koffi);
  const wake = chooseWake(runtime, options.wake ?? (process.env["PLUE_WAKE"] || undefined));
  const dispatcher = options.dispatcher ?? new ToolDispatcher(registry, options.dispatch);
  const guest = await Guest.attach({
    runtime,
    library: pathOf(options.library),
    tools: { registry, dispatcher, selection: options.selection, tasks: options.tasks },
    wake,
    keepAlive: options.keepAlive ?? true,
  });
  // Native threads must not wait for, or wake, a runtime that has ended.
  const leave = (): void => guest.leave();
  process.once("exit", leave);
  const detach = (): Promise<void> => {
    process.off("exit", leave);
    return guest.detach();
  };
  return Object.freeze({
    wake,
    refresh: () => guest.refresh(),
    detach,
    [Symbol.asyncDispose]: detach,
  });
}

function chooseWake({ name, wakes }: GuestRuntime, wanted: string | undefined): WakeKind {
  const wake = wanted === undefined ? wakes[0] : wakes.find((kind) => kind === wanted);
  if (wake !== undefined) return wake;
  throw new TypeError(
    `Cannot attach to libplue: the wake of ${name} must be "${wakes.join('" or "')}", ` +
      `not "${wanted}"`,
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
