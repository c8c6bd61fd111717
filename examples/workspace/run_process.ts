/**
 * Runs a program without a shell, and stops everything in its process group when the call ends.
 *
 * When the call is aborted, the group gets SIGTERM, and SIGKILL if it does not stop in time. When
 * the program ends by itself, its background processes are killed. A child process that moved to
 * another session is not found.
 */

import { Buffer } from "node:buffer";
import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";
import { PassThrough } from "node:stream";
import { errorCode, Refusal } from "./refusal.ts";

/** The program to run. */
export interface ProcessOptions {
  readonly command: string;
  readonly args: readonly string[];
  /** The working directory. */
  readonly cwd: string;
  /** The whole environment; this process's own variables are not added. */
  readonly env: Readonly<Record<string, string>>;
  /** The text on the standard input. By default it is empty. */
  readonly input?: string | undefined;
  /** Stops the program. */
  readonly signal: AbortSignal;
}

/** A piece of output. */
export interface ProcessChunk {
  readonly stream: "stdout" | "stderr";
  readonly data: Uint8Array;
}

/** The exit code of a program, or the signal that ended it. */
export interface ProcessEnd {
  readonly exitCode: number | null;
  readonly signal: string | null;
}

/** The program is paused while more pieces than this wait for the consumer. */
const HIGH_WATER = 8;
/** The time that a group has to stop after SIGTERM, in milliseconds. */
const KILL_GRACE_MS = 500;
/** The time that the pipes may stay open after the program's end, in milliseconds. */
const DRAIN_MS = 500;

/**
 * Runs a program and yields its output as it arrives. A slow consumer slows the program down.
 *
 * @throws {Refusal} If the program cannot be started.
 * @throws The signal's reason if the call was aborted, after the group has stopped.
 */
export async function* runProcess(
  options: ProcessOptions,
): AsyncGenerator<ProcessChunk, ProcessEnd, void> {
  const { signal } = options;
  signal.throwIfAborted();
  const child = start(options);
  const output = mergedOutput(child);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = (): void => {
    if (output.writableEnded) return;
    output.end();
    child.stdout?.resume();
    child.stderr?.resume();
    if (child.exitCode !== null || child.signalCode !== null) return;
    signalGroup(child, "SIGTERM");
    timer = setTimeout(() => signalGroup(child, "SIGKILL"), KILL_GRACE_MS);
  };
  /** Closes pipes that a process of another session holds open, unless output waits in them. */
  const drain = (): void => {
    timer = setTimeout(() => {
      if (!output.writableNeedDrain) {
        child.stdout?.destroy();
        child.stderr?.destroy();
      }
      drain();
    }, output.writableEnded ? 0 : DRAIN_MS);
  };
  const ended = new Promise<ProcessEnd>((resolve, reject) => {
    child.on("error", (error) => {
      // The event also reports a signal that could not be sent; then the program has a pid.
      if (child.pid === undefined) reject(cannotRun(options.command, error));
    });
    child.once("close", (exitCode, by) => resolve({ exitCode, signal: by }));
  });
  const closed = ended.catch(() => {}).then(() => {
    clearTimeout(timer);
    output.end();
  });
  child.once("exit", () => {
    // Killed now, because the system may give the group's number to other processes later.
    signalGroup(child, "SIGKILL");
    clearTimeout(timer);
    drain();
  });
  child.stdin?.on("error", () => {});
  child.stdin?.end(options.input);
  signal.addEventListener("abort", stop, { once: true });
  try {
    for await (const chunk of output) {
      signal.throwIfAborted();
      yield chunk;
    }
    signal.throwIfAborted();
    return await ended;
  } finally {
    signal.removeEventListener("abort", stop);
    stop();
    await closed;
  }
}

/** Returns both output streams of a program as one stream of {@linkcode ProcessChunk}. */
function mergedOutput({ stdout, stderr }: ChildProcess): PassThrough {
  const output = new PassThrough({ objectMode: true, highWaterMark: HIGH_WATER });
  for (const [stream, readable] of [["stdout", stdout], ["stderr", stderr]] as const) {
    readable?.on("error", () => {});
    readable?.on("data", (data: Uint8Array) => {
      if (output.writableEnded || output.write({ stream, data })) return;
      stdout?.pause();
      stderr?.pause();
    });
    output.on("drain", () => readable?.resume());
  }
  return output;
}

/** The end of a program with its output. */
export interface ProcessOutput extends ProcessEnd {
  readonly stdout: string;
  readonly stderr: string;
  /** True if the output was longer. */
  readonly isCut: boolean;
}

/** Runs a program and collects at most `maxBytes` of each output stream. */
export async function collectProcess(
  options: ProcessOptions & { readonly maxBytes: number },
): Promise<ProcessOutput> {
  const parts: Record<ProcessChunk["stream"], Uint8Array[]> = { stdout: [], stderr: [] };
  const left = { stdout: options.maxBytes, stderr: options.maxBytes };
  const text = (stream: ProcessChunk["stream"]) =>
    new TextDecoder().decode(Buffer.concat(parts[stream]));
  let isCut = false;
  const output = runProcess(options);
  for (;;) {
    const { done, value } = await output.next();
    if (done === true) return { ...value, stdout: text("stdout"), stderr: text("stderr"), isCut };
    const { stream, data } = value;
    if (data.length > left[stream]) isCut = true;
    // Even an empty part would keep all of its data in memory.
    if (left[stream] > 0) parts[stream].push(data.subarray(0, left[stream]));
    left[stream] = Math.max(0, left[stream] - data.length);
  }
}

/** Returns `PATH`, `HOME` and `LANG` of this process, with `more` on top. */
export function minimalEnvironment(
  more: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const passed = ["PATH", "HOME", "LANG"].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(passed), ...more };
}

function start({ command, args, cwd, env, input }: ProcessOptions): ChildProcess {
  try {
    return spawn(command, [...args], {
      cwd,
      env,
      // A process group of its own, so that a signal also reaches its children.
      detached: process.platform !== "win32",
      stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
      windowsHide: true,
    });
  } catch (error) {
    throw cannotRun(command, error);
  }
}

function signalGroup(child: ChildProcess, name: "SIGTERM" | "SIGKILL"): void {
  if (child.pid === undefined) return;
  try {
    if (process.platform === "win32") child.kill(name);
    else process.kill(-child.pid, name);
  } catch {
    // All processes of the group have ended.
  }
}

const START_ERRORS: ReadonlyMap<string | undefined, string> = new Map([
  ["ENOENT", "there is no such command"],
  ["EACCES", "it is not executable"],
]);

function cannotRun(command: string, error: unknown): Refusal {
  const code = errorCode(error);
  const why = START_ERRORS.get(code) ?? `the operating system reported ${code ?? "an error"}`;
  return new Refusal("invalid_arguments", `Cannot run "${command}": ${why}`, {
    pointer: "/command",
    cause: error,
  });
}
