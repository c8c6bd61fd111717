/** The program `plue`: runs the command with the streams, signals and exit code of this process. */

import { Console } from "node:console";
import process from "node:process";
import { Writable } from "node:stream";
import { runCommand } from "./program.ts";
import type { Output } from "./terminal.ts";

const { env, stdin } = process;
const stderr = withWidth(process.stderr);
const stdout = results(withWidth(process.stdout));

// Standard output is for results. Output of tools must not be mixed with them.
globalThis.console = new Console(stderr, stderr) as typeof globalThis.console;

const interrupted = new AbortController();

/** A terminal that does not know its width reports 0 columns; tables and prompts take 80 there. */
function withWidth(stream: Output): Output {
  return stream.isTTY !== true || stream.columns ? stream : new Proxy(stream, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (name === "columns") return value || 80;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** Ends the process if a result cannot be written, which each runtime reports in another way. */
function results(target: Output): Output {
  const fail = ({ code, message }: NodeJS.ErrnoException): void => {
    // The reader has enough output, such as `head` in `plue list | head -1`.
    if (code === "EPIPE") process.exit(0);
    const why = message.replace(/^E[A-Z]+: /, "").replace(/, write$| \(os error \d+\)$/, "");
    stderr.write(`Cannot write the result: ${why.toLowerCase()}\n`, () => process.exit(1));
  };
  target.on("error", () => {});
  const stream = new Writable({
    write(chunk, _encoding, done) {
      try {
        target.write(chunk, (error) => error ? fail(error) : done());
      } catch (error) {
        fail(error as NodeJS.ErrnoException);
      }
    },
  });
  const { isTTY = false, columns = 80 } = target;
  return Object.assign(stream, { isTTY, columns });
}

/** Aborts running work, which then ends by itself. A second Ctrl-C ends the process. */
function interrupt(): void {
  if (interrupted.signal.aborted) process.exit(130);
  interrupted.abort(new DOMException("Interrupted", "AbortError"));
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, interrupt);
// Without standard error, errors of the process cannot be reported.
stderr.on("error", () => {});

const { signal } = interrupted;
const code = await runCommand(process.argv.slice(2), {
  ...{ env, stdin, stdout, stderr, signal, interrupt },
});
// Exits explicitly, because a module may keep timers open, but first writes the output.
await Promise.all(
  [stdout, stderr].map((stream) => new Promise<unknown>((resolve) => stream.write("", resolve))),
);
process.exit(code);
