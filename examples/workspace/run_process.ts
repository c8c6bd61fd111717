/**
 * Runs a program without a shell, and makes sure that nothing it started outlives the call.
 *
 * The program leads a process group of its own. When the call is aborted, the group is told to
 * stop (SIGTERM), and killed (SIGKILL) when it has not stopped in time. When the program ends by
 * itself, what it left running in the background is killed too. On Linux, children that moved to
 * another group or session are found by a mark in their environment, also when this process is killed;
 * a child that also cleared its environment is not found.
 *
 * @module
 */

import process from "node:process";
import { Buffer } from "node:buffer";
import { type ChildProcess, spawn } from "node:child_process";
import { killMarked, newMark, startTime } from "./marked_processes.ts";
import { errorCode, Refusal } from "./refusal.ts";

/** What to run. */
export interface ProcessOptions {
  readonly command: string;
  readonly args: readonly string[];
  /** The folder to begin in. */
  readonly cwd: string;
  /** The whole environment; nothing of this process's own is added. */
  readonly env: Readonly<Record<string, string>>;
  /** What the program reads on its standard input. Absent: nothing. */
  readonly input?: string | undefined;
  /** Stops the program. */
  readonly signal: AbortSignal;
  /**
   * How long the program has to stop after SIGTERM, in milliseconds.
   *
   * @default {500}
   */
  readonly killGraceMs?: number | undefined;
}

/** A piece of output. */
export interface ProcessChunk {
  readonly stream: "stdout" | "stderr";
  readonly data: Uint8Array;
}

/** How the program ended: with an exit code, or by a signal. */
export interface ProcessEnd {
  readonly exitCode: number | null;
  readonly signal: string | null;
}

/** How many bytes wait for the consumer before the program is made to wait. */
const HIGH_WATER = 256 * 1024;
/** How long the pipes may stay open after the program's end, in milliseconds. */
const DRAIN_MS = 500;

/**
 * Runs a program and yields its output as it comes. A slow consumer slows the program down.
 *
 * @throws {Refusal} If it cannot be started.
 * @throws The signal's reason, once everything has stopped, if the call was aborted.
 */
export async function* runProcess(
  options: ProcessOptions,
): AsyncGenerator<ProcessChunk, ProcessEnd, void> {
  options.signal.throwIfAborted();
  const running = new RunningProcess(options);
  try {
    for (;;) {
      const chunk = await running.next();
      // No events of an aborted call are wanted; what is left is thrown away below.
      options.signal.throwIfAborted();
      if (chunk === undefined) return running.end();
      yield chunk;
    }
  } finally {
    await running.stop();
  }
}

/** Runs a program and collects its output, at most `maxBytes` of each stream. */
export async function collectProcess(
  options: ProcessOptions & { readonly maxBytes: number },
): Promise<
  ProcessEnd & { readonly stdout: string; readonly stderr: string; readonly isCut: boolean }
> {
  const parts: Record<ProcessChunk["stream"], Uint8Array[]> = { stdout: [], stderr: [] };
  const sizes = { stdout: 0, stderr: 0 };
  let isCut = false;
  const output = runProcess(options);
  for (;;) {
    const step = await output.next();
    if (step.done === true) {
      const text = (stream: ProcessChunk["stream"]) =>
        new TextDecoder().decode(Buffer.concat(parts[stream]));
      return { ...step.value, stdout: text("stdout"), stderr: text("stderr"), isCut };
    }
    const { stream, data } = step.value;
    const left = options.maxBytes - sizes[stream];
    if (data.length > left) isCut = true;
    // Even an empty part would keep all of its data in memory.
    if (left <= 0) continue;
    parts[stream].push(data.subarray(0, left));
    sizes[stream] += Math.min(data.length, left);
  }
}

class RunningProcess {
  readonly #child: ChildProcess;
  readonly #command: string;
  readonly #signal: AbortSignal;
  readonly #killGraceMs: number;
  readonly #mark = newMark();
  readonly #startTime: number;
  readonly #queue: ProcessChunk[] = [];
  readonly #closed: Promise<void>;
  #queued = 0;
  #wake: (() => void) | undefined;
  #end: ProcessEnd | undefined;
  #startError: unknown;
  #swept: Promise<void> | undefined;
  #isClosed = false;
  #isStopping = false;

  constructor(options: ProcessOptions) {
    const { command, args, cwd, env, input, signal, killGraceMs = 500 } = options;
    this.#command = command;
    this.#signal = signal;
    this.#killGraceMs = killGraceMs;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#closed = promise;
    try {
      this.#child = spawn(command, [...args], {
        cwd,
        env: { ...env, ...this.#mark },
        // Its own group, so that a signal reaches its children too.
        detached: process.platform !== "win32",
        stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
        windowsHide: true,
      });
    } catch (error) {
      throw this.#refusal(error);
    }
    const child = this.#child;
    this.#startTime = startTime(child.pid);
    child.once("error", (error) => {
      // Also raised when a signal cannot be sent; only before the start does it end the process.
      if (child.pid === undefined) {
        this.#startError = error;
        this.#close(resolve);
      }
    });
    child.once("exit", (exitCode, by) => {
      this.#end = { exitCode, signal: by };
      this.#swept = this.#sweep();
    });
    child.once("close", () => this.#close(resolve));
    for (const stream of ["stdout", "stderr"] as const) {
      child[stream]?.on("data", (data: Uint8Array) => {
        if (this.#isStopping) return;
        this.#queue.push({ stream, data });
        this.#queued += data.length;
        if (this.#queued > HIGH_WATER) {
          child.stdout?.pause();
          child.stderr?.pause();
        }
        this.#wake?.();
      });
      // A broken pipe ends the stream; the exit code tells the rest.
      child[stream]?.on("error", () => undefined);
    }
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(input);
    signal.addEventListener("abort", this.#onAbort, { once: true });
    if (signal.aborted) this.#onAbort();
  }

  /** The next piece of output; nothing when the program has ended. */
  async next(): Promise<ProcessChunk | undefined> {
    for (;;) {
      if (this.#startError !== undefined) throw this.#refusal(this.#startError);
      const chunk = this.#queue.shift();
      if (chunk !== undefined) {
        this.#queued -= chunk.data.length;
        if (this.#queued <= HIGH_WATER / 2) this.#flow();
        return chunk;
      }
      if (this.#isClosed || this.#isStopping) {
        await this.#closed;
        return undefined;
      }
      await new Promise<void>((resolve) => this.#wake = resolve);
      this.#wake = undefined;
    }
  }

  end(): ProcessEnd {
    return this.#end ?? { exitCode: null, signal: null };
  }

  /** Stops the program if it runs, and waits until it and its children are gone. */
  async stop(): Promise<void> {
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#beginStop();
    await this.#closed;
    await this.#swept;
  }

  #onAbort = (): void => this.#beginStop();

  #beginStop(): void {
    if (this.#isStopping || this.#isClosed) return;
    this.#isStopping = true;
    this.#queue.length = 0;
    this.#flow();
    this.#wake?.();
    if (this.#end === undefined) this.#signalGroup("SIGTERM");
    const timer = setTimeout(() => {
      if (this.#end === undefined) this.#signalGroup("SIGKILL");
      this.#child.stdout?.destroy();
      this.#child.stderr?.destroy();
    }, this.#killGraceMs);
    this.#closed.then(() => clearTimeout(timer));
  }

  /** After the program's end: kills what it left behind, so that the pipes close. */
  async #sweep(): Promise<void> {
    // At once, and only once: later the system may have given the group's number to others.
    this.#signalGroup("SIGKILL");
    await killMarked(this.#mark.PLUE_CALL, this.#startTime);
    if (this.#isClosed) return;
    const timer = setInterval(() => {
      // While the consumer is slow there is output left to read, and the pipes stay.
      if (this.#queued > HIGH_WATER / 2) return;
      this.#child.stdout?.destroy();
      this.#child.stderr?.destroy();
    }, DRAIN_MS);
    this.#closed.then(() => clearInterval(timer));
  }

  #signalGroup(name: "SIGTERM" | "SIGKILL"): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      if (process.platform === "win32") this.#child.kill(name);
      else process.kill(-pid, name);
    } catch {
      // Nobody of the group is left.
    }
  }

  #flow(): void {
    this.#child.stdout?.resume();
    this.#child.stderr?.resume();
  }

  #close(resolve: () => void): void {
    this.#isClosed = true;
    this.#wake?.();
    resolve();
  }

  #refusal(error: unknown): Refusal {
    const code = errorCode(error);
    const why = code === "ENOENT"
      ? "there is no such command"
      : code === "EACCES"
      ? "it is not executable"
      : `the operating system answered ${code ?? "an unknown error"}`;
    return new Refusal("invalid_arguments", `Cannot run "${this.#command}": ${why}`, {
      pointer: "/command",
      cause: error,
    });
  }
}

/** The variables that are handed on. */
const PASSED: readonly string[] = ["PATH", "HOME", "LANG"];

/** The minimal environment, with `more` on top. */
export function minimalEnvironment(
  more: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const result = new Map<string, string>();
  for (const name of PASSED) {
    const value = process.env[name];
    if (value !== undefined) result.set(name, value);
  }
  for (const [name, value] of Object.entries(more)) result.set(name, value);
  return Object.fromEntries(result);
}
