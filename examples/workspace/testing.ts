/**
 * What the tests of the workspace share: a folder of their own, and calls that wait on events.
 *
 * @module
 */

import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";

/** A folder that goes away with `await using`. */
export interface TemporaryFolder extends AsyncDisposable {
  readonly path: string;
  /** A place beside it for the journals of transactions. */
  readonly journals: string;
  /** Writes files, by path; folders are made. */
  fill(files: Readonly<Record<string, string | Uint8Array>>): Promise<void>;
  read(path: string): Promise<string>;
  /** Everything in it, with folders marked `/`, in code-unit order. */
  list(): Promise<readonly string[]>;
}

/** Makes a folder with these files in it. */
export async function temporaryFolder(
  files: Readonly<Record<string, string | Uint8Array>> = {},
): Promise<TemporaryFolder> {
  const path = await realpath(await mkdtemp(join(tmpdir(), "plue-workspace-")));
  const folder: TemporaryFolder = {
    path,
    journals: `${path}.journals`,
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
      await rm(folder.journals, { recursive: true, force: true });
    },
  };
  await folder.fill(files);
  return folder;
}

/**
 * Whether a process runs. One that has ended and waits to be collected by its parent does not;
 * orphans wait so for as long as the machine's first process likes.
 */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  if (process.platform !== "linux") return true;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3) !== "Z";
  } catch {
    return false;
  }
}
