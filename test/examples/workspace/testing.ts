/** Temporary folders, and calls to the workspace's tools through a dispatcher. */

import process from "node:process";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, createReadStream, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import {
  type DispatchContext,
  ToolDispatcher,
  type ToolEvent,
  type ToolRegistry,
  type ToolResult,
} from "../../../mod.ts";
import { createWorkspaceRegistry, type WorkspaceOptions } from "../../../examples/workspace/mod.ts";

/** A folder that `await using` removes. */
export interface TemporaryFolder extends AsyncDisposable {
  readonly path: string;
  /** Writes files, by path; folders are made. */
  fill(files: Readonly<Record<string, string | Uint8Array>>): Promise<void>;
  read(path: string): Promise<string>;
  /** The paths in the folder, in code-unit order. The paths of folders end with `/`. */
  list(): Promise<readonly string[]>;
}

/** Makes a folder with these files in it. */
export async function temporaryFolder(
  files: Readonly<Record<string, string | Uint8Array>> = {},
): Promise<TemporaryFolder> {
  const path = await realpath(await mkdtemp(join(tmpdir(), "plue-workspace-")));
  const folder: TemporaryFolder = {
    path,
    async fill(more) {
      for (const [name, data] of Object.entries(more)) {
        await mkdir(dirname(join(path, name)), { recursive: true });
        await writeFile(join(path, name), data);
      }
    },
    read: (name) => readFile(join(path, name), "utf8"),
    async list() {
      const found: string[] = [];
      const walk = async (below: string): Promise<void> => {
        for (const entry of await readdir(join(path, below), { withFileTypes: true })) {
          const name = below === "" ? entry.name : `${below}/${entry.name}`;
          found.push(entry.isDirectory() ? `${name}/` : name);
          if (entry.isDirectory()) await walk(name);
        }
      };
      await walk("");
      return found.sort();
    },
    async [Symbol.asyncDispose]() {
      await rm(path, { recursive: true, force: true });
    },
  };
  await folder.fill(files);
  return folder;
}

/** A named pipe. It ends when every process that held it for writing has ended. */
export function pipe(path: string): {
  readonly line: Promise<unknown>;
  readonly end: Promise<unknown>;
} {
  execFileSync("mkfifo", [path]);
  const stream = createReadStream(path, { encoding: "utf8" });
  return { line: once(stream, "data"), end: once(stream, "end") };
}

/** Returns true if a process runs. Returns false for a zombie. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  if (process.platform !== "linux") return true;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2));
  } catch {
    return false;
  }
}

/** Waits until processes have ended: a process closes its pipes a moment before its end. */
export async function gone(pids: readonly number[]): Promise<void> {
  while (pids.some(isAlive)) await new Promise((resolve) => setImmediate(resolve));
}

/** A workspace in a temporary folder, which `await using` removes. */
export interface TestWorkspace extends AsyncDisposable {
  readonly folder: TemporaryFolder;
  readonly registry: ToolRegistry;
  readonly dispatcher: ToolDispatcher;
  call(name: string, args?: unknown, context?: DispatchContext): Promise<ToolResult>;
  /** The content of a call that must succeed. */
  ok<T = Record<string, unknown>>(name: string, args?: unknown): Promise<T>;
  /** The error of a call that must fail. */
  fails(name: string, args?: unknown): Promise<{ readonly code: string; readonly message: string }>;
  stream(name: string, args?: unknown, context?: DispatchContext): AsyncIterable<ToolEvent>;
}

/** Makes a workspace with these files in it. */
export async function testWorkspace(
  files: Readonly<Record<string, string | Uint8Array>> = {},
  options: Partial<WorkspaceOptions> = {},
): Promise<TestWorkspace> {
  const folder = await temporaryFolder(files);
  const registry = createWorkspaceRegistry({ root: folder.path, ...options });
  const dispatcher = new ToolDispatcher(registry);
  const call: TestWorkspace["call"] = (name, args = {}, context) =>
    dispatcher.dispatch({ name, arguments: args }, context);
  return {
    folder,
    registry,
    dispatcher,
    call,
    async ok<T>(name: string, args?: unknown): Promise<T> {
      const result = await call(name, args);
      if (!result.ok) throw new Error(`${name} failed: ${JSON.stringify(result.error)}`);
      return result.content as T;
    },
    async fails(name, args) {
      const result = await call(name, args);
      if (result.ok) throw new Error(`${name} succeeded: ${JSON.stringify(result.content)}`);
      return result.error;
    },
    stream: (name, args = {}, context) => dispatcher.stream({ name, arguments: args }, context),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

/** Runs git as a person would, in a folder. */
export function git(folder: string, ...args: readonly string[]): string {
  return execFileSync("git", ["-C", folder, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  }).trim();
}

/** Makes a folder a repository, whose first commit contains all files. */
export function makeRepository(folder: string, message = "First\n\nWith a body."): void {
  git(folder, "init", "--quiet", "--initial-branch=main");
  // Appending is faster than a process of git for each setting.
  appendFileSync(
    join(folder, ".git/config"),
    "[user]\n\tname = Ada Lovelace\n\temail = ada@example.org\n",
  );
  git(folder, "add", "--all");
  git(folder, "commit", "--quiet", "--allow-empty", `--message=${message}`);
}
