/** The executor for programs in QuickJS, compiled to WebAssembly (`quickjs-wasi`). */

import type { JSValueHandle } from "quickjs-wasi";
import { fail, systemClock } from "../../tool/mod.ts";
import type { Executor, Program } from "./executor.ts";
import { meterModule } from "./meter.ts";
import { PRELUDE } from "./prelude.ts";
import { FILE, ProgramRun, type Sandbox, Stopped } from "./program_run.ts";

/** The number of calls of the interrupt handler, each after 8,000 steps, for a millisecond. */
const INTERRUPTS_PER_MS = 10;
/** A call of the host's clock takes as long as 40 steps. */
const CLOCK_INTERRUPTS = 40 / 8_000;
/** The multiple of `cpuMs` for which a program may occupy its thread on a busy machine. */
const MAX_SLOWNESS = 20;
/** All of JavaScript except `WeakRef` (bit 9) and `performance` (bit 10). */
const INTRINSICS = ~(1 << 9 | 1 << 10);
const MAX_STACK = 262_144;

/**
 * Creates an executor that runs each program in its own QuickJS, on Bun, Deno, Node and Cloudflare
 * Workers. Create it once per process, because it compiles the module. Needs the package
 * `quickjs-wasi`.
 *
 * @example Usage
 * ```ts
 * import { readFile } from "node:fs/promises";
 * import { quickJs } from "@plue/tools/code";
 *
 * const file = new URL(import.meta.resolve("quickjs-wasi/quickjs.wasm"));
 * export const executor = quickJs(await readFile(file));
 * ```
 *
 * @param module `quickjs.wasm` of the package: its bytes, or on Workers the compiled module.
 * @returns The executor. Programs reject if the module or the package is not the right one.
 */
export function quickJs(module: Uint8Array | ArrayBuffer | WebAssembly.Module): Executor {
  let compiled: Promise<WebAssembly.Module> | WebAssembly.Module | undefined;
  return {
    async run(program) {
      compiled ??= module instanceof WebAssembly.Module
        ? module
        : WebAssembly.compile(meterModule(new Uint8Array(module)));
      const library = await import("quickjs-wasi").catch((cause) =>
        fail("run programs", 'install the package "quickjs-wasi"', cause)
      );
      return await new ProgramRun(program, await open(library, await compiled, program)).run();
    },
  };
}

type Library = typeof import("quickjs-wasi");
type Operation = "run" | "fail" | "settle" | "take";

async function open(
  { QuickJS }: Library,
  wasm: WebAssembly.Module,
  { limits: { cpuMs, memoryBytes }, source, time }: Program,
): Promise<Sandbox> {
  let ranMs = 0;
  let turnBegan = Infinity;
  let interrupts = 0;
  let isInterrupted = false;
  const vm = await QuickJS.create({
    wasm,
    // Constant time, no randomness, and no output.
    wasi: (memory) => ({
      clock_time_get(_clock: number, _precision: bigint, address: number): number {
        interrupts += CLOCK_INTERRUPTS;
        new DataView(memory.buffer).setBigUint64(address, BigInt(time) * 1_000_000n, true);
        return 0;
      },
      random_get: () => 0,
      fd_write: () => 0,
    }),
    intrinsics: INTRINSICS,
    timezoneOffset: 0,
    memoryLimit: memoryBytes,
    maxStackSize: MAX_STACK,
    interruptHandler: () =>
      isInterrupted ||= ++interrupts > cpuMs * INTERRUPTS_PER_MS ||
        ranMs + systemClock.now() - turnBegan > cpuMs * MAX_SLOWNESS,
  });
  const prelude = vm.evalCode(PRELUDE, "plue.js");
  const names = ["run", "fail", "settle", "take"] as const;
  const functions = new Map(names.map((name) => [name, prelude.getProp(name)]));

  const checkLimits = (error: unknown): void => {
    const why = isInterrupted
      ? `the program used more than ${cpuMs} ms of processor time; do less per program`
      : error instanceof WebAssembly.RuntimeError || error instanceof RangeError
      ? "the functions or data of the program are nested too deeply"
      : /^(out of memory$|wasm_malloc)/.test((error as Error).message)
      ? `the program used more than ${memoryBytes} bytes of memory; keep less data`
      : undefined;
    if (why !== undefined) throw new Stopped(why);
  };
  /** Calls a function of the prelude, and then the jobs of the program. */
  const enter = (operation: Operation, args: () => readonly JSValueHandle[]): string => {
    try {
      const method = functions.get(operation) as JSValueHandle;
      const result = vm.callFunction(method, vm.undefined, ...args());
      if (operation !== "take") vm.executePendingJobs();
      else {
        const text = result.toString();
        // The text for a value that does not fit into the memory.
        if (text === "<null>") throw new Error("out of memory");
        return text;
      }
    } catch (error) {
      checkLimits(error);
      const { handle } = error as InstanceType<Library["JSException"]>;
      if (handle === undefined || operation === "fail") throw error;
      enter("fail", () => [handle]);
    }
    return "";
  };
  return {
    turn(operation, json) {
      turnBegan = systemClock.now();
      try {
        return vm.withScope(() => {
          enter(operation, () => {
            const text = vm.newString(json);
            // The source is in the first line, so that the lines of errors are its own.
            const code = `(async () => {${source}\n})`;
            return operation === "run" ? [text, vm.evalCode(code, FILE)] : [text];
          });
          return enter("take", () => []);
        });
      } catch (error) {
        checkLimits(error);
        throw error;
      } finally {
        ranMs += systemClock.now() - turnBegan;
        turnBegan = Infinity;
      }
    },
    close: () => vm.dispose(),
  };
}
