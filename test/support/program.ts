/** Starts programs under test, waits for their output, and kills them when the test ends. */

import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import process from "node:process";
import { FLAGS } from "../../scripts/lib/runtimes.mjs";

export const projectFolder: string = fileURLToPath(new URL("../..", import.meta.url));

/** The arguments of this runtime before a file of the repository: Deno then downloads nothing. */
export const RUN: readonly string[] = "Deno" in globalThis ? ["run", ...FLAGS.deno] : [];

/** A running program. It is killed when the test is over. */
export interface Program extends AsyncDisposable {
  readonly child: ChildProcess;
  /** Waits until its output on both streams matches, and returns the match. */
  printed(wanted: RegExp): Promise<RegExpExecArray>;
  /** Waits for its end. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  readonly output: { readonly stdout: string; readonly stderr: string };
}

/**
 * Starts a program with these variables. Of this environment it gets only PATH, HOME, and the
 * folder of Node's cache of compiled sources, which halves the time of a start.
 */
export function startProgram(
  command: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  cwd: string = projectFolder,
): Program {
  const { PATH = "", HOME = "", NODE_COMPILE_CACHE = "" } = process.env;
  const child = spawn(command, [...args], {
    cwd,
    env: { PATH, HOME, NODE_COMPILE_CACHE, NO_COLOR: "1", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = { stdout: "", stderr: "" };
  const waiting = new Set<() => void>();
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream].setEncoding("utf8");
    child[stream].on("data", (text: string) => {
      output[stream] += text;
      for (const look of waiting) look();
    });
  }
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      resolve({ code, signal });
      for (const look of waiting) look();
    });
  });
  // If a test does not wait for the end, `printed` rejects when the program did not start.
  ended.catch(() => undefined);
  return {
    child,
    output,
    ended,
    printed: (wanted) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = wanted.exec(output.stdout) ?? wanted.exec(output.stderr);
          if (found === null && child.exitCode === null && child.signalCode === null) return;
          waiting.delete(look);
          if (found !== null) resolve(found);
          else reject(new Error(`It ended without printing ${wanted}: ${JSON.stringify(output)}`));
        };
        waiting.add(look);
        child.once("error", reject);
        look();
      }),
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await ended.catch(() => undefined);
    },
  };
}
