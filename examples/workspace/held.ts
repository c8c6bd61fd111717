/**
 * Opens files and folders before they are checked, so that they cannot be replaced in between.
 *
 * Another program may replace a folder by a link at any moment. So a folder is opened first, and
 * the system returns the path of the open folder. Its entries are then used through the open folder
 * (`/proc/self/fd/…`), where no link can lead elsewhere. This works on Linux only: other systems,
 * and Deno without `--allow-all`, compare paths, which leaves microseconds between check and use.
 */

import { Buffer } from "node:buffer";
import { constants } from "node:fs";
import { type FileHandle, lstat, open, readlink, realpath } from "node:fs/promises";
import process from "node:process";
import type { WorkspacePath } from "./paths.ts";
import { errorCode, fileRefusal, Refusal, systemError } from "./refusal.ts";

/** No link is followed, and opening a named pipe does not wait for a writer. */
const READ: number = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) |
  (constants.O_NONBLOCK ?? 0);

/** A folder that is held open. Its entries are used through it, not by their own paths. */
export class Folder implements AsyncDisposable {
  /** The open folder, as a path for the functions of `node:fs`. */
  readonly path: string;
  readonly #handle: FileHandle | undefined;

  private constructor(path: string, handle: FileHandle | undefined) {
    this.path = path;
    this.#handle = handle;
  }

  /**
   * Opens the folder with this real path.
   *
   * @throws The file system's error if it is not a folder, or `EMOVED` if it was replaced.
   */
  static async open(absolute: string): Promise<Folder> {
    // Windows may fail to open a folder.
    if (process.platform === "win32") {
      if (!(await lstat(absolute)).isDirectory()) throw systemError("ENOTDIR");
      if (await realpath(absolute) !== absolute) throw systemError("EMOVED");
      return new Folder(absolute, undefined);
    }
    const handle = await open(absolute, READ | constants.O_DIRECTORY).catch(async (error) => {
      if (errorCode(error) !== "ENOTDIR") throw error;
      // The entry was a link, and may be a folder again by now.
      const now = await lstat(absolute);
      throw now.isSymbolicLink() || now.isDirectory() ? systemError("EMOVED") : error;
    });
    try {
      return new Folder(await assertIsAt(handle, absolute) ?? absolute, handle);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Returns an entry's path, for functions that do not follow a link in its last part. */
  at(name: string): string {
    return `${this.path}/${name}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle?.close();
  }
}

/**
 * Opens a regular file for reading, and checks that it is the file that was resolved: no link was
 * followed and no folder was replaced on the way. The caller closes the handle.
 *
 * @throws {Refusal} If it cannot be opened, is not a regular file, or was replaced.
 */
export async function openInside(path: WorkspacePath): Promise<FileHandle> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(path.absolute, READ);
    const stats = await handle.stat();
    if (stats.isDirectory()) throw systemError("EISDIR");
    if (!stats.isFile()) {
      throw new Refusal("denied", `Cannot read "${path.shown}": it is not a regular file`, {
        pointer: "/path",
      });
    }
    await assertIsAt(handle, path.absolute);
    return handle;
  } catch (error) {
    await handle?.close();
    throw fileRefusal(error, "read", path.shown);
  }
}

/** Reads at most `count` bytes; fewer at the end of the file. */
export async function readBytes(
  handle: FileHandle,
  offset: number,
  count: number,
): Promise<Buffer> {
  const buffer = Buffer.alloc(count);
  let length = 0;
  while (length < count) {
    const { bytesRead } = await handle.read(buffer, length, count - length, offset + length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}

/** True if this process sees its open files as links. */
let hasDescriptors: Promise<boolean> | undefined;

/**
 * Checks that an open file or folder is the one at this path.
 *
 * @returns The link to the open file, if the system has such links.
 * @throws `EMOVED` if it is not.
 */
async function assertIsAt(handle: FileHandle, absolute: string): Promise<string | undefined> {
  const link = `/proc/self/fd/${handle.fd}`;
  hasDescriptors ??= process.platform === "linux"
    ? readlink(link).then(() => true, () => false)
    : Promise.resolve(false);
  if (await hasDescriptors) {
    if (await readlink(link) !== absolute) throw systemError("EMOVED");
    return link;
  }
  const opened = await handle.stat({ bigint: true });
  const now = await lstat(absolute, { bigint: true });
  const isSame = now.ino === opened.ino && now.dev === opened.dev;
  if (!isSame || await realpath(absolute) !== absolute) throw systemError("EMOVED");
  return undefined;
}
