/** Runs the command in this process, and returns its output and exit code. */

import { mkdtempSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { Readable, Writable } from "node:stream";
import { assertEquals } from "@std/assert";
import { afterAll } from "bun:test";
import { runCommand } from "../../src/cli/program.ts";
import type { CommandIo, Output } from "../../src/cli/terminal.ts";
import { serve, type Served } from "../runtime/serve.ts";

/** The result of a run. */
export type Ran = { readonly code: number; readonly stdout: string; readonly stderr: string };

/** The options of a run. By default, the command runs in a pipe without input. */
export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** The width of the terminal for the output. By default, the output is a pipe. */
  readonly columns?: number;
  readonly controller?: AbortController;
  /** Receives the output when it is written. */
  heard?(text: string): void;
}

/** Runs the command. */
export async function plue(words: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { env = {}, stdin = "", columns, controller = new AbortController(), heard } = options;
  const texts = { stdout: "", stderr: "" };
  const output = (name: "stdout" | "stderr"): Output =>
    Object.assign(
      new Writable({
        write(part, _encoding, done) {
          texts[name] += String(part);
          heard?.(String(part));
          done();
        },
      }),
      columns === undefined ? {} : { isTTY: true, columns },
    );
  const io: CommandIo = {
    env,
    stdin: Readable.from([stdin]),
    stdout: output("stdout"),
    stderr: output("stderr"),
    signal: controller.signal,
    interrupt: () => controller.abort(),
  };
  const code = await runCommand(words, io);
  return { code, ...texts };
}

/** `plue serve` in this process. */
export interface Service extends AsyncDisposable {
  readonly url: string;
  readonly tools: readonly string[];
}

/** Serves on a free port, and waits for the address. */
export async function service(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Service> {
  const controller = new AbortController();
  const { promise: printed, resolve: heard } = Promise.withResolvers<string>();
  const ended = plue(["serve", ...words, "--port", "0", "--no-watch", "--json"], {
    ...{ controller, env },
    // Warnings come before the address.
    heard: (text) => void (text.startsWith("{") && heard(text)),
  });
  const { url, tools } = JSON.parse(
    await Promise.race([printed, ended.then(({ stderr }) => stderr)]),
  );
  return {
    ...{ url, tools },
    async [Symbol.asyncDispose]() {
      controller.abort();
      assertEquals((await ended).code, 0);
    },
  };
}

/** A server of a test, on a free port. */
export async function serving(
  respond: (request: Request) => Response | Promise<Response>,
): Promise<Served & AsyncDisposable> {
  const served = await serve(respond);
  return { ...served, [Symbol.asyncDispose]: () => served.stop() };
}

/** The address of a server, with a host that does not count as this machine. */
export function elsewhere(served: Served): string {
  return served.url.replace(/\/\/[^:/]+/, "//0.0.0.0");
}

/** The listing of a service. */
export function listing(tools: readonly object[], more: object = {}): Response {
  return Response.json({ tools, ...more });
}

/** The ids of the tools that the command prints as JSON. */
export function idsIn(stdout: string): readonly string[] {
  return JSON.parse(stdout).tools.map(({ id }: { readonly id: string }) => id);
}

/** The output of a terminal, and the program in it. */
export interface Terminal extends AsyncDisposable {
  readonly text: () => string;
  /** Waits until the terminal has shown something. */
  shown(wanted: RegExp): Promise<void>;
  type(keys: string): void;
  readonly ended: Promise<number>;
}

/** Runs a program in a pseudo terminal, which Bun can open. */
export function openTerminal(
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
  columns = 100,
): Terminal {
  let text = "";
  const waiting = new Set<() => void>();
  const decoder = new TextDecoder();
  const { PATH = "", HOME = "", NODE_COMPILE_CACHE = "" } = process.env;
  const program = Bun.spawn([...command], {
    env: { PATH, HOME, NODE_COMPILE_CACHE, TERM: "xterm-256color", ...env },
    terminal: {
      cols: columns,
      rows: 30,
      data(_terminal, bytes) {
        text += decoder.decode(bytes, { stream: true });
        for (const look of waiting) look();
      },
    },
  });
  return {
    text: () => text,
    shown: (wanted) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (!wanted.test(text)) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        void program.exited.then(() => {
          look();
          reject(new Error(`It ended without ${wanted}: ${JSON.stringify(text)}`));
        });
        look();
      }),
    type: (keys) => void program.terminal?.write(keys),
    ended: program.exited,
    async [Symbol.asyncDispose]() {
      program.kill("SIGKILL");
      await program.exited;
    },
  };
}

/** A folder for the tests of one file. */
export interface Folder {
  readonly path: string;
  /** Writes a file, and returns its path. */
  write(name: string, text: string): Promise<string>;
}

/** Makes a folder, which is removed after the tests of its file. */
export function folder(): Folder {
  const path = mkdtempSync(join(tmpdir(), "plue-cli-"));
  afterAll(() => rmSync(path, { recursive: true, force: true }));
  return {
    path,
    async write(name, text) {
      await writeFile(join(path, name), text);
      return join(path, name);
    },
  };
}
