/** The executor for programs in QuickJS, compiled to WebAssembly (`quickjs-wasi`). */

import type { JSValueHandle, QuickJS } from "quickjs-wasi";
import { fail, systemClock } from "../../tool/mod.ts";
import type { Executor, Program } from "./executor.ts";
import { meterModule } from "./meter.ts";
import { PRELUDE } from "./prelude.ts";
import { FILE, ProgramRun, type Sandbox, Stopped } from "./program_run.ts";

/** The number of calls of the interrupt handler, each after 8,000 steps, for a millisecond. */
const INTERRUPTS_PER_MS = 25;
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
      const sandbox = new QuickJsSandbox(library, program);
      await sandbox.open(await compiled);
      return await new ProgramRun(program, sandbox).run();
    },
  };
}

type Library = typeof import("quickjs-wasi");
type Operation = "run" | "fail" | "settle" | "take";

class QuickJsSandbox implements Sandbox {
  readonly #library: Library;
  readonly #program: Program;
  readonly #prelude: Partial<Record<Operation, JSValueHandle>> = {};
  #vm: QuickJS | undefined;
  #ranMs = 0;
  #turnBegan = Infinity;
  #interrupts = 0;
  #isInterrupted = false;

  constructor(library: Library, program: Program) {
    this.#library = library;
    this.#program = program;
  }

  async open(wasm: WebAssembly.Module): Promise<void> {
    const { limits: { cpuMs, memoryBytes }, time } = this.#program;
    const vm = await this.#library.QuickJS.create({
      wasm,
      // A time that stands still, no randomness, and no output.
      wasi: (memory) => ({
        clock_time_get(_clock: number, _precision: bigint, address: number): number {
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
      interruptHandler: () => {
        const ranMs = this.#ranMs + systemClock.now() - this.#turnBegan;
        return this.#isInterrupted ||= ++this.#interrupts > cpuMs * INTERRUPTS_PER_MS ||
          ranMs > cpuMs * MAX_SLOWNESS;
      },
    });
    this.#vm = vm;
    const prelude = vm.evalCode(PRELUDE, "plue.js");
    for (const name of ["run", "fail", "settle", "take"] as const) {
      this.#prelude[name] = prelude.getProp(name);
    }
  }

  turn(operation: "run" | "settle", json: string): string {
    const vm = this.#vm as QuickJS;
    this.#turnBegan = systemClock.now();
    try {
      return vm.withScope(() => {
        this.#enter(vm, operation, () => {
          // The source is in the first line, so that the lines of errors are its own.
          const source = `(async () => {${this.#program.source}\n})`;
          const more = operation === "run" ? [vm.evalCode(source, FILE)] : [];
          return [vm.newString(json), ...more];
        });
        return this.#enter(vm, "take", () => []);
      });
    } catch (error) {
      this.#checkLimits(error);
      throw error;
    } finally {
      this.#ranMs += systemClock.now() - this.#turnBegan;
      this.#turnBegan = Infinity;
    }
  }

  /** Calls a function of the prelude, and then the jobs of the program. */
  #enter(vm: QuickJS, operation: Operation, args: () => readonly JSValueHandle[]): string {
    try {
      const method = this.#prelude[operation] as JSValueHandle;
      const result = vm.callFunction(method, vm.undefined, ...args());
      const text = result.isString ? result.toString() : "";
      if (operation !== "take") vm.executePendingJobs();
      return text;
    } catch (error) {
      this.#checkLimits(error);
      const { handle } = error as InstanceType<Library["JSException"]>;
      if (handle === undefined || operation === "fail") throw error;
      return this.#enter(vm, "fail", () => [handle]);
    }
  }

  #checkLimits(error: unknown): void {
    const { cpuMs, memoryBytes } = this.#program.limits;
    const why = this.#isInterrupted
      ? `the program used more than ${cpuMs} ms of processor time; do less per program`
      : error instanceof WebAssembly.RuntimeError || error instanceof RangeError
      ? "the functions or data of the program are nested too deeply"
      : /^(out of memory$|wasm_malloc)/.test((error as Error).message)
      ? `the program used more than ${memoryBytes} bytes of memory; keep less data`
      : undefined;
    if (why !== undefined) throw new Stopped(why);
  }

  close(): void {
    this.#vm?.dispose();
  }
}
