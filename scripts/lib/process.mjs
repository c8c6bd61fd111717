// Runs programs: captured for the test table, or attached to the terminal.

import { spawn } from "node:child_process";
import { constants } from "node:os";
import { delimiter, join } from "node:path";
import { BIN, CACHE, ROOT } from "./paths.mjs";

/** Prints an error and ends the script. */
export function fail(message, code = 1) {
  console.error(message);
  process.exit(code);
}

/** The environment of all programs that the scripts run: pinned runtimes first. */
function environment(more = {}) {
  return { ...process.env, PATH: `${BIN}${delimiter}${process.env.PATH ?? ""}`, ...more };
}

/**
 * The additional environment of captured programs. A cache of compiled sources halves the time of a
 * start of Node. Suites share the processors, so threads for garbage save no time and cost a fifth
 * more, and the last optimizer of Bun costs more than it saves. `GOGC` is for `tsc`.
 */
const CAPTURED = {
  ...{ NO_COLOR: "1", FORCE_COLOR: undefined, NODE_COMPILE_CACHE: join(CACHE, "node") },
  ...{ BUN_JSC_numberOfGCMarkers: "1", BUN_JSC_useFTLJIT: "0" },
  ...{ DENO_V8_FLAGS: "--single-threaded-gc", GOGC: "400" },
};

const running = new Set();

/** Ends `child` and its children, by their process group. */
function endGroup(child) {
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has ended already.
  }
}

/** Captured programs are in process groups of their own, so Ctrl-C does not reach them. */
let armed = false;
function arm() {
  if (armed) return;
  armed = true;
  for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]]) {
    process.once(signal, () => {
      for (const child of running) endGroup(child);
      process.exit(code);
    });
  }
}

/**
 * Runs a program to its end and captures what it prints.
 *
 * @returns `{ code, stdout, stderr, output, ms }`, where `output` has both streams in the order of
 * arrival. The code of a program that cannot start or takes too long is 1.
 */
export function capture(command, args, { env = {}, cwd = ROOT, timeoutMs = 300_000 } = {}) {
  return new Promise((resolve) => {
    const start = performance.now();
    const text = { stdout: "", stderr: "", output: "" };
    const child = spawn(command, args, {
      cwd,
      env: environment({ ...CAPTURED, ...env }),
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    arm();
    running.add(child);
    const timer = setTimeout(() => {
      text.output += `\nstopped: it ran longer than ${timeoutMs / 1000} seconds\n`;
      endGroup(child);
    }, timeoutMs);
    const settle = (code) => {
      clearTimeout(timer);
      running.delete(child);
      resolve({ code, ...text, ms: performance.now() - start });
    };
    for (const name of ["stdout", "stderr"]) {
      child[name].setEncoding("utf8").on("data", (part) => {
        text[name] += part;
        text.output += part;
      });
    }
    child.on("error", (error) => {
      text.output += `${error.message}\n`;
      settle(1);
    });
    child.on("close", (code, signal) => {
      if (signal !== null) text.output += `\nended by ${signal}\n`;
      settle(code ?? 1);
    });
  });
}

/** Runs a program attached to the terminal. Signals reach it. */
export function attach(command, args, { env = {}, cwd = ROOT } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: environment(env), stdio: "inherit" });
    // Waits until the program, which handles the signal, has ended.
    const forward = (signal) => child.kill(signal);
    const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
    for (const signal of signals) process.on(signal, forward);
    const settle = (then, value) => {
      for (const signal of signals) process.off(signal, forward);
      then(value);
    };
    child.on("error", (error) => settle(reject, error));
    child.on(
      "close",
      (code, signal) => settle(resolve, code ?? 128 + (constants.signals[signal] ?? 0)),
    );
  });
}
