/**
 * Files and folders that are held open, so that what was checked is what is used.
 *
 * Another program may replace a folder by a link at any moment. So a folder is opened first, and the
 * system says where the open folder lies. Its entries are then used through the open folder
 * (`/proc/self/fd/…`), where no link can lead elsewhere. On Linux only: other systems, and Deno
 * without `--allow-all`, compare paths, which leaves microseconds between the check and the use.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { constants } from "node:fs";
import { type FileHandle, lstat, open, readlink, realpath } from "node:fs/promises";
import process from "node:process";
import type { WorkspacePath } from "./paths.ts";
import { errorCode, fileRefusal, Refusal, systemError } from "./refusal.ts";

/** No link is followed, and a named pipe does not wait for a writer. */
const READ: number = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) |
  (constants.O_NONBLOCK ?? 0);

/** A folder that is held open. Its entries are used through it, and not by their own paths. */
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
   * @throws The file system's error if it is not a folder, or `EMOVED` if it lies elsewhere by now.
   */
  static async open(absolute: string): Promise<Folder> {
    // Windows may refuse to open a folder.
    if (process.platform === "win32") {
      if (!(await lstat(absolute)).isDirectory()) throw systemError("ENOTDIR");
      if (await realpath(absolute) !== absolute) throw systemError("EMOVED");
      return new Folder(absolute, undefined);
    }
    const handle = await open(absolute, READ | constants.O_DIRECTORY).catch(async (error) => {
      if (errorCode(error) !== "ENOTDIR") throw error;
      // It was a link, and may be a folder again by now.
      const now = await lstat(absolute);
      throw now.isSymbolicLink() || now.isDirectory() ? systemError("EMOVED") : error;
    });
    try {
      await assertLiesAt(handle, absolute);
      return new Folder(await descriptor(handle) ?? absolute, handle);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** An entry's path, for functions that do not follow a link in its last part. */
  at(name: string): string {
    return `${this.path}/${name}`;
  }

  /** Makes changes of its entries last through a power failure, where folders can be synced. */
  async sync(): Promise<void> {
    await this.#handle?.sync().catch(() => undefined);
  }

  async close(): Promise<void> {
    await this.#handle?.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/**
 * Opens a regular file for reading, and checks that it is the file that was resolved: no link was
 * followed and no folder was replaced on the way. The caller closes the handle.
 *
 * @throws {Refusal} If it cannot be opened, is not a regular file, or lies elsewhere by now.
 */
export async function openInside(path: WorkspacePath): Promise<FileHandle> {
  let handle: FileHandle | undefined;
  try {
    handle = await openRegular(path.absolute, path.shown);
    await assertLiesAt(handle, path.absolute);
    return handle;
  } catch (error) {
    await handle?.close();
    throw fileRefusal(error, "read", path.shown);
  }
}

/** Opens a regular file for reading. A link in the last part of its path is not followed. */
export async function openRegular(path: string, shown: string): Promise<FileHandle> {
  const handle = await open(path, READ);
  try {
    const stats = await handle.stat();
    if (stats.isFile()) return handle;
    if (stats.isDirectory()) throw systemError("EISDIR");
    throw new Refusal("denied", `Cannot read "${shown}": it is not a regular file`, {
      pointer: "/path",
    });
  } catch (error) {
    await handle.close();
    throw error;
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

async function assertLiesAt(handle: FileHandle, absolute: string): Promise<void> {
  const path = await descriptor(handle);
  if (path !== undefined) {
    if (await readlink(path) !== absolute) throw systemError("EMOVED");
    return;
  }
  const opened = await handle.stat({ bigint: true });
  const now = await lstat(absolute, { bigint: true });
  const isSame = now.ino === opened.ino && now.dev === opened.dev;
  if (!isSame || await realpath(absolute) !== absolute) throw systemError("EMOVED");
}

/** Whether this process sees its open files as links. Looked up once: it cannot change. */
let hasDescriptors: Promise<boolean> | undefined;

/** The link that leads to an open file and says where it lies, if there are such links. */
async function descriptor(handle: FileHandle): Promise<string | undefined> {
  const path = `/proc/self/fd/${handle.fd}`;
  hasDescriptors ??= process.platform === "linux"
    ? readlink(path).then(() => true, () => false)
    : Promise.resolve(false);
  return await hasDescriptors ? path : undefined;
}
