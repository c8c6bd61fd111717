/**
 * One transaction over the workspace's files.
 *
 * A change goes to a file of its own first, is synced to the disk, and is then renamed into place,
 * so a reader sees the old file or the new one. The previous file is kept in the transaction's
 * folder, by a hard link or a rename, and is renamed back on rollback: the same inode, with its
 * mode, owner and times. The folder lies in the workspace's root, because a rename cannot leave a
 * file system. It is removed after commit and after rollback.
 *
 * @module
 */

import { type BigIntStats, constants } from "node:fs";
import {
  access,
  copyFile,
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  realpath,
  rename,
  rm,
  unlink,
  utimes,
} from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import type { Transaction } from "../../mod.ts";
import {
  beginJournal,
  endJournal,
  inode,
  type JournalEntry,
  statOrNothing,
  undo,
  writeJournal,
} from "./journal.ts";
import { isWithin, openInside, TRANSACTION_PREFIX, type WorkspacePath } from "./paths.ts";
import { errorCode, fileRefusal, Refusal } from "./refusal.ts";

/** Files up to this size can be appended to: they are copied first. */
const MAX_APPEND_BYTES = 268_435_456;
const COPY_BYTES = 1_048_576;

/** The journals of this process's open transactions, over all workspaces. */
const openJournals = new Set<string>();

/** Whether a transaction of this process still writes the journal. */
export function isOpenJournal(file: string): boolean {
  return openJournals.has(file);
}

/** A transaction's files: what it has kept, and the journal about it. */
interface Records {
  readonly folder: string;
  readonly journal: string;
}

/** What a tool can do in a transaction. One change runs at a time. */
export interface FileTransaction extends Transaction {
  /**
   * Creates or replaces a file. `from: "current"` copies the current content and appends.
   */
  write(path: WorkspacePath, data: Uint8Array, from?: "empty" | "current"): Promise<void>;
  /** Makes the folders that are missing down to `path`, outermost first. */
  makeFolders(root: string, path: string, shown: string): Promise<void>;
  /** Removes a file, a link or a folder with everything in it. */
  remove(path: WorkspacePath): Promise<void>;
}

/** A {@linkcode FileTransaction} that keeps a journal. Its manager ends it. */
export class JournaledTransaction implements FileTransaction {
  readonly id: string;
  readonly #root: string;
  readonly #journals: string;
  readonly #claim: (path: string, shown: string) => void;
  readonly #entries: JournalEntry[] = [];
  #records: Records | undefined;
  #count = 0;
  #isOpen = true;
  /** The running change. The next one, and the end of the transaction, wait for it. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    root: string,
    journals: string,
    id: string,
    claim: (path: string, shown: string) => void,
  ) {
    this.#root = root;
    this.#journals = journals;
    this.id = id;
    this.#claim = claim;
  }

  write(path: WorkspacePath, data: Uint8Array, from: "empty" | "current" = "empty"): Promise<void> {
    return this.#change(path, "write", async ({ folder, journal }) => {
      const before = await statOrNothing(path.absolute);
      if (before !== undefined && !before.isFile()) {
        throw new Refusal(
          "invalid_arguments",
          `Cannot write "${path.shown}": it is not a regular file`,
          { pointer: "/path" },
        );
      }
      // A rename over a read-only file would succeed, against its owner's intention.
      if (before !== undefined) await assertWritable(path, before);
      const name = String(this.#count++);
      const fresh = join(folder, `${name}.new`);
      const backup = join(folder, `${name}.old`);

      const handle = await open(fresh, "wx", 0o666);
      try {
        if (before !== undefined && from === "current") await copyInto(handle, path);
        await handle.appendFile(data);
        if (before !== undefined) await handle.chmod(Number(before.mode & 0o777n));
        await handle.sync();
      } finally {
        await handle.close();
      }
      const after = inode(await statOrNothing(fresh));
      if (after === null) throw new Refusal("threw", `Cannot write "${path.shown}": it vanished`);

      await this.#record(journal, path, {
        kind: "placed",
        path: path.relative,
        before: inode(before),
        after,
        backup: `${name}.old`,
      });
      if (before === undefined) await placeNew(fresh, path.absolute);
      else {
        await keep(path.absolute, backup);
        await rename(fresh, path.absolute);
      }
      await syncFolder(dirname(path.absolute));
    });
  }

  async makeFolders(root: string, path: string, shown: string): Promise<void> {
    const missing: string[] = [];
    for (let folder = path; folder !== root && isWithin(root, folder); folder = dirname(folder)) {
      const stats = await statOrNothing(folder);
      if (stats !== undefined) break;
      missing.unshift(folder);
    }
    for (const absolute of missing) {
      const relative = absolute.slice(root.length + 1);
      const path = { absolute, relative, shown, exists: false };
      await this.#change(path, "make", async ({ journal }) => {
        await this.#record(journal, path, { kind: "folder", path: relative });
        // If another call puts files into it, rollback leaves the folder.
        await mkdir(absolute).catch((error: unknown) => {
          if (errorCode(error) !== "EEXIST") throw error;
        });
      }, false);
    }
  }

  remove(path: WorkspacePath): Promise<void> {
    return this.#change(path, "delete", async ({ folder, journal }) => {
      const before = inode(await lstat(path.absolute, { bigint: true }));
      const name = `${this.#count++}.old`;
      await this.#record(journal, path, {
        kind: "removed",
        path: path.relative,
        before,
        backup: name,
      });
      await rename(path.absolute, join(folder, name));
      await syncFolder(dirname(path.absolute));
    });
  }

  commit(): Promise<void> {
    return this.#end(async () => {
      if (this.#records === undefined) return;
      const { folder, journal } = this.#records;
      // This line is the commit: after it nothing can be rolled back, not even by `recover`.
      await writeJournal(journal, { kind: "committed" });
      openJournals.delete(journal);
      this.#records = undefined;
      // The changes are kept even if this fails; `recover` removes the rest.
      await clearAway(folder, journal).catch(() => undefined);
    });
  }

  rollback(): Promise<void> {
    return this.#end(async () => {
      if (this.#records === undefined) return;
      const { folder, journal } = this.#records;
      openJournals.delete(journal);
      const problems = await undo(this.#root, folder, this.#entries);
      // Files that could not be put back stay in the folder, for a person to look at.
      if (problems.length > 0) throw rollbackError(basename(folder), problems);
      await clearAway(folder, journal);
      this.#records = undefined;
    });
  }

  #change(
    path: WorkspacePath,
    verb: string,
    work: (records: Records) => Promise<void>,
    isClaimed = true,
  ): Promise<void> {
    const result = this.#last.then(async () => {
      // A tool may go on after its call was aborted: its changes are refused.
      if (!this.#isOpen) {
        throw new Refusal("aborted", `Cannot ${verb} "${path.shown}": its transaction has ended`);
      }
      if (isClaimed) this.#claim(path.absolute, path.shown);
      try {
        await work(this.#records ??= await this.#openRecords());
      } catch (error) {
        throw fileRefusal(error, verb, path.shown);
      }
    });
    this.#last = result.catch(() => undefined);
    return result;
  }

  #end(work: () => Promise<void>): Promise<void> {
    this.#isOpen = false;
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #openRecords(): Promise<Records> {
    const name = `${TRANSACTION_PREFIX}${this.id}`;
    const folder = join(this.#root, name);
    // The journal comes first: a folder without one would never be cleared away.
    const head = { pid: process.pid, root: this.#root, folder: name };
    const journal = await beginJournal(this.#journals, head);
    openJournals.add(journal);
    try {
      await mkdir(folder, { mode: 0o700 });
    } catch (error) {
      openJournals.delete(journal);
      await endJournal(journal).catch(() => undefined);
      throw error;
    }
    return { folder, journal };
  }

  /**
   * Writes a step to the journal. The path is checked before that, and again right before the step.
   */
  async #record(journal: string, path: WorkspacePath, entry: JournalEntry): Promise<void> {
    await this.#assertInPlace(path);
    await writeJournal(journal, entry);
    this.#entries.push(entry);
    await this.#assertInPlace(path);
  }

  async #assertInPlace(path: WorkspacePath): Promise<void> {
    const folder = dirname(path.absolute);
    if (await realpath(folder) === folder) return;
    throw new Refusal("denied", `Cannot change "${path.shown}": its folder was moved meanwhile`, {
      retryable: true,
    });
  }
}

/** The error for a transaction that could not be rolled back completely. */
export function rollbackError(name: string, problems: readonly string[]): Error {
  return new Error(
    `Cannot roll back all of transaction "${name}": ${problems.slice(0, 8).join("; ")}`,
  );
}

/** Removes a transaction's folder, then the journal that would find it. */
export async function clearAway(folder: string, journal: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await endJournal(journal);
}

/** Copies what is there now, through a handle that was checked: no link is followed. */
async function copyInto(target: FileHandle, path: WorkspacePath): Promise<void> {
  const source = await openInside(path);
  try {
    if ((await source.stat()).size > MAX_APPEND_BYTES) {
      throw new Refusal(
        "invalid_arguments",
        `Cannot append to "${path.shown}": it is larger than ${MAX_APPEND_BYTES} bytes`,
        { pointer: "/path" },
      );
    }
    const buffer = new Uint8Array(COPY_BYTES);
    for (let position = 0;;) {
      const { bytesRead } = await source.read(buffer, 0, COPY_BYTES, position);
      if (bytesRead === 0) return;
      await target.appendFile(buffer.subarray(0, bytesRead));
      position += bytesRead;
    }
  } finally {
    await source.close();
  }
}

async function assertWritable(path: WorkspacePath, stats: BigIntStats): Promise<void> {
  // `access` lets root write any file, but a file marked read-only must not be changed.
  if ((stats.mode & 0o222n) === 0n) {
    throw new Refusal("denied", `Cannot write "${path.shown}": it is read-only`, {
      pointer: "/path",
    });
  }
  await access(path.absolute, constants.W_OK);
}

/** Keeps the file under a second name, or as a copy where the file system has no hard links. */
async function keep(path: string, backup: string): Promise<void> {
  try {
    await link(path, backup);
  } catch (error) {
    if (!hasNoLinks(error)) throw error;
    const { atime, mtime } = await lstat(path);
    await copyFile(path, backup, constants.COPYFILE_EXCL);
    await utimes(backup, atime, mtime);
  }
}

/** Creates a file. A link fails if the path is taken by then; a rename would replace the file. */
async function placeNew(fresh: string, path: string): Promise<void> {
  try {
    await link(fresh, path);
  } catch (error) {
    if (!hasNoLinks(error)) throw error;
    await rename(fresh, path);
    return;
  }
  await unlink(fresh);
}

function hasNoLinks(error: unknown): boolean {
  return ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"].includes(errorCode(error) ?? "");
}

/** Makes a rename last through a power failure, where folders can be synced. */
async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY).catch(() => undefined);
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}
