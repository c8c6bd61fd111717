/** One run of a program: its turns, its calls and its end. */

import { listOf } from "../../schema/mod.ts";
import { abortable, systemClock } from "../../tool/mod.ts";
import type { Program, ProgramCall, ProgramEnd } from "./executor.ts";

/** One program with the prelude. The program is not trusted: any text is possible. */
export interface Sandbox {
  /**
   * Calls `run` or `settle` of the prelude, lets the program run until it waits, and returns the
   * lines of `take` of the prelude.
   */
  turn(operation: "run" | "settle", json: string): string | Promise<string>;
  close(): void;
}

/** The name of programs in the stacks of errors. */
export const FILE = "program.js";

/** After this time in turns, all programs wait until the thread has done other work. */
const MAX_BUSY_MS = 20;
let busyMs = 0;

/** A separate timer: on workerd, a request cannot wait on another request's timer. */
function rest(): Promise<void> {
  const before = busyMs;
  return new Promise((resolve) =>
    void systemClock.setTimeout(() => {
      // Otherwise, another program has run since, and the thread has done no other work.
      if (busyMs === before) busyMs = 0;
      resolve();
    }, 0)
  );
}

export class Stopped extends Error {}

export class ProgramRun {
  readonly #program: Program;
  readonly #sandbox: Sandbox;
  /** The results of calls, for `settle` of the prelude. */
  readonly #replies: string[] = [];
  #wake: () => void = () => {};
  #error: unknown;
  #calls = 0;
  #running = 0;
  #waiting = 0;
  #end: ProgramEnd | undefined;

  constructor(program: Program, sandbox: Sandbox) {
    this.#program = program;
    this.#sandbox = sandbox;
  }

  async run(): Promise<ProgramEnd> {
    const { signal, limits } = this.#program;
    const abort = (): void => {
      this.#error ??= signal.reason;
      this.#wake();
    };
    signal.addEventListener("abort", abort);
    try {
      signal.throwIfAborted();
      const { maxCalls: calls, maxLogLength: log, maxOutputLength: output } = limits;
      await this.#turn("run", JSON.stringify({ calls, log, output }));
      for (;;) {
        if (this.#error !== undefined) throw this.#error;
        const reply = this.#replies.shift();
        if (reply !== undefined) await this.#turn("settle", reply);
        // Waits for calls that the program has not awaited.
        else if (this.#running > 0) await new Promise<void>((resolve) => this.#wake = resolve);
        else if (this.#end !== undefined) return this.#end;
        else if (this.#waiting > 0) return { kind: "suspended" };
        else throw new Stopped("the program waits forever for a promise");
      }
    } catch (error) {
      if (error instanceof Stopped) return { kind: "stopped", why: error.message };
      throw error;
    } finally {
      signal.removeEventListener("abort", abort);
      this.#sandbox.close();
    }
  }

  /** Runs the program until it waits, and begins its new calls. */
  async #turn(operation: "run" | "settle", json: string): Promise<void> {
    const { limits: { maxCalls }, signal } = this.#program;
    while (busyMs > MAX_BUSY_MS) await rest();
    const begunAt = systemClock.now();
    // A promise, because turns that throw also count: programs that exceed a limit take the longest.
    const output = (async () => await this.#sandbox.turn(operation, json))();
    busyMs += systemClock.now() - begunAt;
    const text = await abortable(output, signal);
    // Not trusted: the program may have changed the globals that the prelude uses, and a short text
    // can be a list of a million texts or objects.
    const [end, ...calls] = text.split("\n", 2 * maxCalls + 3);
    for (let at = 0; at < calls.length; at += 2) {
      if (this.#calls === maxCalls) {
        throw new Stopped(`the program made more than ${maxCalls} calls`);
      }
      const name = calls[at] as string;
      const id = name.startsWith('"') ? JSON.parse(name) : "null";
      void this.#begin({ index: this.#calls++, id, json: calls[at + 1] || "null" });
    }
    if (end) this.#end = this.#readEnd(end);
  }

  #readEnd(json: string): ProgramEnd {
    const { source, limits: { maxLogLength, maxOutputLength } } = this.#program;
    // A character has at most six characters in JSON, and the texts of an error have 4,200.
    const isTooLong = json.length > 6 * (maxOutputLength + maxLogLength + 5_000);
    const { value, failed, log: lines } = Object(isTooLong ? "" : JSON.parse(json));
    const printed = textsOf(lines);
    const log = printed.join("\n").length > maxLogLength + 64 ? [] : printed;
    if (typeof value === "string" && value.length <= maxOutputLength) {
      return { kind: "returned", json: value, log };
    }
    const [name = "", text = "", stack = ""] = textsOf(failed);
    const message = `${name && `${name}: `}${text}`.slice(0, 2_200);
    // An incomplete source fails in the line after it.
    const line = Number(stack.split(`${FILE}:`)[1]?.split(":", 1)[0]);
    const last = source.split("\n").length;
    return { kind: "threw", message, ...(line > 0 && { line: Math.min(line, last) }), log };
  }

  async #begin(call: ProgramCall): Promise<void> {
    this.#running++;
    try {
      const text = await this.#program.call(call);
      if (text === undefined) this.#waiting++;
      else this.#replies.push(`{"index":${call.index},${text.slice(1)}`);
    } catch (error) {
      this.#error ??= error;
    }
    this.#running--;
    this.#wake();
  }
}

/** Returns a list of texts, with "null" for other values. */
function textsOf(list: unknown): readonly string[] {
  return listOf(list).map((one) => typeof one === "string" ? one : "null");
}
