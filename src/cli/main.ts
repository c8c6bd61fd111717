/**
 * The program `plue`: the command, with this process around it.
 *
 * @module
 */

import { Console } from "node:console";
import process from "node:process";
import { runCommand } from "./program.ts";
import type { Output } from "./terminal.ts";

const { env, stdin } = process;
const [stdout, stderr] = [process.stdout, process.stderr].map(withWidth) as [Output, Output];

// Standard output is for results. What tools log must not be mixed with them.
globalThis.console = new Console(stderr, stderr) as typeof globalThis.console;

const interrupted = new AbortController();

/** A terminal that does not know its width reports 0 columns; tables and prompts take 80 there. */
function withWidth(stream: Output): Output {
  return stream.columns !== 0 ? stream : new Proxy(stream, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (name === "columns") return value || 80;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** Ctrl-C aborts what runs, which then ends by itself. A second one ends the process at once. */
function interrupt(): void {
  if (interrupted.signal.aborted) process.exit(130);
  interrupted.abort(new DOMException("Interrupted", "AbortError"));
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, interrupt);
stdout.on("error", (error: NodeJS.ErrnoException) => {
  // The reader has seen enough: `plue list | head -1`.
  if (error.code === "EPIPE") process.exit(0);
  stderr.write(`Cannot write the result: ${error.message}\n`, () => process.exit(1));
});
// Without standard error there is nobody to tell.
stderr.on("error", () => {});

// A terminal that nobody looks at may have no columns, and prompts would be one letter wide.
for (const stream of [stdout, stderr]) {
  if (stream.isTTY && !stream.columns) Object.assign(stream, { columns: 80 });
}

const { signal } = interrupted;
const code = await runCommand(process.argv.slice(2), {
  ...{ env, stdin, stdout, stderr, signal, interrupt },
});
// A module may keep timers and connections open, and what was written must arrive.
await Promise.all(
  [stdout, stderr].map((stream) => new Promise<unknown>((resolve) => stream.write("", resolve))),
);
process.exit(code);
