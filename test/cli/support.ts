/** Runs the command in this process, and returns its output and exit code. */

import { mkdtempSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { Readable, Writable } from "node:stream";
import { assertEquals, assertStringIncludes } from "@std/assert";
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
  heard?(text: string): unknown;
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

/** Runs a command line that fails with the exit code 2 and a message with this text. */
export async function rejects(
  words: readonly string[],
  message: string,
  options: RunOptions = {},
): Promise<void> {
  const { code, stderr } = await plue(words, options);
  assertEquals(code, 2);
  assertStringIncludes(stderr, message);
}

/** Sends JSON to a service. */
export function postJson(
  url: string,
  body: object = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const type = { "content-type": "application/json" };
  return fetch(url, {
    ...{ method: "POST", body: JSON.stringify(body) },
    headers: { ...type, ...headers },
  });
}

/** A text that grows, and the functions that wait for a part of it. */
export function growingText() {
  let text = "";
  const waiting = new Set<() => void>();
  return {
    text: () => text,
    add(part: string): void {
      text += part;
      for (const look of waiting) look();
    },
    /** Waits until the text matches. */
    shown: (wanted: RegExp): Promise<void> =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!wanted.test(text)) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
  };
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
  const screen = growingText();
  const decoder = new TextDecoder();
  const { PATH = "", HOME = "", NODE_COMPILE_CACHE = "" } = process.env;
  const program = Bun.spawn([...command], {
    env: { PATH, HOME, NODE_COMPILE_CACHE, TERM: "xterm-256color", ...env },
    terminal: {
      cols: columns,
      rows: 30,
      data: (_terminal, bytes) => screen.add(decoder.decode(bytes, { stream: true })),
    },
  });
  return {
    text: screen.text,
    async shown(wanted) {
      const seen = screen.shown(wanted).then(() => true);
      // The output may arrive after the end.
      const ended = program.exited.then(() => wanted.test(screen.text()));
      if (await Promise.race([seen, ended])) return;
      throw new Error(`It ended without ${wanted}: ${JSON.stringify(screen.text())}`);
    },
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
  /** Writes a text, or an object as JSON, and returns the path of the file. */
  write(name: string, content: string | object): Promise<string>;
}

/** Makes a folder, which is removed after the tests of its file. */
export function folder(): Folder {
  const path = mkdtempSync(join(tmpdir(), "plue-cli-"));
  afterAll(() => rmSync(path, { recursive: true, force: true }));
  return {
    path,
    async write(name, content) {
      const text = typeof content === "string" ? content : JSON.stringify(content);
      await writeFile(join(path, name), text);
      return join(path, name);
    },
  };
}
