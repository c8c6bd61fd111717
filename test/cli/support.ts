/**
 * Runs the command in this process, and returns its output and exit code.
 *
 * @module
 */

import { mkdtempSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { Readable, Writable } from "node:stream";
import { runCommand } from "../../src/cli/program.ts";
import type { CommandIo, Output } from "../../src/cli/terminal.ts";

/** The result of a run. */
export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** How a run differs from one in a pipe without input. */
export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** How wide the terminal is that it writes to; absent: it writes to a pipe. */
  readonly columns?: number;
  readonly controller?: AbortController;
  /** Hears what is written, as it comes. */
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

/** A folder for the tests of one file. */
export interface Folder {
  readonly path: string;
  /** Writes a file, and gives its path. */
  write(name: string, text: string): Promise<string>;
}

/** Makes a folder, which is removed when the process ends. */
export function folder(): Folder {
  const path = mkdtempSync(join(tmpdir(), "plue-cli-"));
  process.on("exit", () => rmSync(path, { recursive: true, force: true }));
  return {
    path,
    async write(name, text) {
      await writeFile(join(path, name), text);
      return join(path, name);
    },
  };
}
