/** The executor for programs in QuickJS, compiled to WebAssembly (`quickjs-wasi`). */

import type { JSValueHandle, QuickJS } from "quickjs-wasi";
import { abortable, fail, isObject, systemClock } from "../../tool/mod.ts";
import type { Executor, Program, ProgramCall, ProgramEnd } from "./executor.ts";
import { meterModule } from "./meter.ts";
import { PRELUDE } from "./prelude.ts";

/** The number of calls of the interrupt handler that take about a millisecond. */
const INTERRUPTS_PER_MS = 8;
/** All of JavaScript except `WeakRef` (bit 9) and `performance` (bit 10). */
const INTRINSICS = ~(1 << 9 | 1 << 10);
const MAX_STACK = 262_144;
/** The name of programs in the stacks of errors. */
const FILE = "program.js";

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
        fail("run programs", 'the package "quickjs-wasi" is not installed', cause)
      );
      return await new QuickJsRun(library, program).run(await compiled);
    },
  };
}

type Library = typeof import("quickjs-wasi");

const SUSPENDED: ProgramEnd = { kind: "suspended" };
const STUCK: ProgramEnd = { kind: "stopped", why: "the program waits forever for a promise" };

/** The end of a program that exceeded a limit. */
class Stopped extends Error {}

class QuickJsRun {
  readonly #library: Library;
  readonly #program: Program;
  /** The results of calls; without a text, the call waits for a person. */
  readonly #replies: { readonly index: number; readonly text: string | undefined }[] = [];
  #wake: () => void = () => {};
  #error: unknown;
  #running = 0;
  #waiting = 0;
  #calls = 0;
  #cpuMs = 0;
  #turnBegan = Infinity;
  #interrupts = 0;
  #isInterrupted = false;
  #prelude: JSValueHandle | undefined;

  constructor(library: Library, program: Program) {
    this.#library = library;
    this.#program = program;
  }

  async run(wasm: WebAssembly.Module): Promise<ProgramEnd> {
    const { source, signal, limits } = this.#program;
    const vm = await this.#open(wasm);
    try {
      const { maxCalls: calls, maxLogLength: log, maxOutputLength: output } = limits;
      const json = vm.newString(JSON.stringify({ calls, log, output }));
      // The source is in the first line, so that the lines of errors are its own.
      this.#turn(vm, "run", () => [vm.evalCode(`(async () => {${source}\n})`, FILE), json]);
      for (;;) {
        const end = this.#take(vm);
        if (this.#replies.length === 0) {
          // Calls that the program has not awaited end before it does.
          if (this.#running === 0) return end ?? (this.#waiting > 0 ? SUSPENDED : STUCK);
          await abortable(new Promise<void>((resolve) => this.#wake = resolve), signal);
        }
        signal.throwIfAborted();
        if (this.#error !== undefined) throw this.#error;
        const { index = -1, text } = this.#replies.shift() ?? {};
        if (text === undefined) this.#waiting++;
        else this.#turn(vm, "settle", () => [vm.newString(`{"index":${index},${text.slice(1)}`)]);
      }
    } catch (error) {
      if (error instanceof Stopped) return { kind: "stopped", why: error.message };
      throw error;
    } finally {
      vm.dispose();
    }
  }

  async #open(wasm: WebAssembly.Module): Promise<QuickJS> {
    const { limits: { cpuMs, memoryBytes }, time } = this.#program;
    const none = (): number => 0;
    const vm = await this.#library.QuickJS.create({
      wasm,
      // A time that stands still, no randomness, and no output.
      wasi: (memory) => ({
        clock_time_get(_clock: number, _precision: bigint, address: number): number {
          new DataView(memory.buffer).setBigUint64(address, BigInt(time) * 1_000_000n, true);
          return 0;
        },
        random_get: none,
        fd_write: none,
      }),
      intrinsics: INTRINSICS,
      timezoneOffset: 0,
      memoryLimit: memoryBytes,
      maxStackSize: MAX_STACK,
      interruptHandler: () => {
        const used = this.#cpuMs + systemClock.now() - this.#turnBegan;
        return this.#isInterrupted ||= used > cpuMs ||
          ++this.#interrupts > cpuMs * INTERRUPTS_PER_MS;
      },
    });
    this.#prelude = vm.evalCode(PRELUDE, "plue.js");
    return vm;
  }

  /** Runs the program until it waits. @throws {Stopped} */
  #turn(vm: QuickJS, operation: string, args: () => readonly JSValueHandle[]): string {
    this.#turnBegan = systemClock.now();
    try {
      return vm.withScope(() => this.#enter(vm, operation, args));
    } catch (error) {
      this.#checkLimits(error);
      throw error;
    } finally {
      this.#cpuMs += systemClock.now() - this.#turnBegan;
      this.#turnBegan = Infinity;
    }
  }

  /** Calls a function of the prelude, and then the jobs of the program. */
  #enter(vm: QuickJS, operation: string, args: () => readonly JSValueHandle[]): string {
    try {
      const method = (this.#prelude as JSValueHandle).getProp(operation);
      const result = vm.callFunction(method, vm.undefined, ...args());
      const text = result.isString ? result.toString() : "";
      vm.executePendingJobs();
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
      : /^out of memory$|malloc/.test((error as Error).message)
      ? `the program used more than ${memoryBytes} bytes of memory; keep less data`
      : undefined;
    if (why !== undefined) throw new Stopped(why);
  }

  /** Begins the new calls of the program. Returns its end, if it has ended. */
  #take(vm: QuickJS): ProgramEnd | undefined {
    const text = this.#turn(vm, "take", () => []);
    if (text === "") return undefined;
    // Not trusted: the program may have changed the globals that the prelude uses.
    const { calls, log, end } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    const { maxCalls } = this.#program.limits;
    for (const call of listOf(calls)) {
      const [index, id, json] = listOf(call);
      if (index !== this.#calls || this.#calls++ >= maxCalls) {
        throw new Stopped(`the program made more than ${maxCalls} calls`);
      }
      this.#begin({ index, id: String(id), json: String(json) });
    }
    return isObject(end) ? this.#readEnd(end, listOf(log).map(String)) : undefined;
  }

  #readEnd({ value, failed }: Record<string, unknown>, given: readonly string[]): ProgramEnd {
    const { source, limits: { maxLogLength, maxOutputLength } } = this.#program;
    const log = given.join("\n").length > maxLogLength + 64 ? [] : given;
    if (typeof value === "string" && value.length <= maxOutputLength) {
      return { kind: "returned", json: value, log };
    }
    const [name = "", text = "", stack = ""] = listOf(failed).map(String);
    const message = `${name && `${name}: `}${text}`.slice(0, 2_200);
    // An incomplete source fails in the line after it.
    const line = Number(stack.split(`${FILE}:`)[1]?.split(":", 1)[0]);
    const last = source.split("\n").length;
    return { kind: "threw", message, ...(line > 0 && { line: Math.min(line, last) }), log };
  }

  #begin(call: ProgramCall): void {
    this.#running++;
    this.#program.call(call)
      .then((text) => void this.#replies.push({ index: call.index, text }))
      .catch((error) => void (this.#error ??= error))
      .finally(() => {
        this.#running--;
        this.#wake();
      });
  }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
