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
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  rename,
  rmdir,
  unlink,
  utimes,
} from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import type { Transaction } from "../../mod.ts";
import { Folder, openRegular } from "./held.ts";
import { beginJournal, endJournal, type JournalEntry, writeJournal } from "./journal.ts";
import { startTime } from "./marked_processes.ts";
import { isWithin, TRANSACTION_PREFIX, type WorkspacePath } from "./paths.ts";
import { errorCode, fileRefusal, Refusal, systemError } from "./refusal.ts";
import { clearAway, inode, statOrNothing, type Step, undo } from "./undo.ts";

/** Files up to this size can be appended to: they are copied first. */
const MAX_APPEND_BYTES = 268_435_456;
const COPY_BYTES = 1_048_576;
/** How many folders one path may need. Each is held open until the transaction ends. */
const MAX_NEW_FOLDERS = 64;

/** The journals of this process's open transactions, over all workspaces. */
const openJournals = new Set<string>();

/** Whether a transaction of this process still writes the journal. */
export function isOpenJournal(file: string): boolean {
  return openJournals.has(file);
}

/** A transaction's files: its folder, with what it has kept, and the journal about it. */
interface Records {
  readonly name: string;
  readonly folder: Folder;
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
  readonly #steps: Required<Step>[] = [];
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
    return this.#change(path, "write", async (records, folder) => {
      const target = folder.at(basename(path.absolute));
      const before = await statOrNothing(target);
      if (before !== undefined && !before.isFile()) {
        throw new Refusal(
          "invalid_arguments",
          `Cannot write "${path.shown}": it is not a regular file`,
          { pointer: "/path" },
        );
      }
      // A rename over a read-only file would succeed, against its owner's intention.
      if (before !== undefined) await assertWritable(target, path.shown, before);
      if (from === "current" && before !== undefined && before.size > MAX_APPEND_BYTES) {
        throw new Refusal(
          "invalid_arguments",
          `Cannot append to "${path.shown}": it is larger than ${MAX_APPEND_BYTES} bytes`,
          { pointer: "/path" },
        );
      }
      const name = String(this.#count++);
      const fresh = records.folder.at(`${name}.new`);
      const backup = records.folder.at(`${name}.old`);

      const handle = await open(fresh, "wx", 0o666);
      let after: string;
      try {
        if (before !== undefined && from === "current") {
          await copyInto(handle, target, path.shown, before.size);
        }
        await handle.appendFile(data);
        if (before !== undefined) await handle.chmod(Number(before.mode & 0o777n));
        await handle.sync();
        after = inode(await handle.stat({ bigint: true }));
      } finally {
        await handle.close();
      }
      await this.#record(records, folder, {
        kind: "placed",
        path: path.relative,
        before: inode(before),
        after,
        backup: `${name}.old`,
      });
      if (before === undefined) await placeNew(fresh, target);
      else {
        await keep(target, backup, before, path.shown);
        await rename(fresh, target);
      }
      await folder.sync();
    });
  }

  async makeFolders(root: string, path: string, shown: string): Promise<void> {
    const missing: string[] = [];
    for (let folder = path; folder !== root && isWithin(root, folder); folder = dirname(folder)) {
      const stats = await statOrNothing(folder);
      if (stats !== undefined) break;
      missing.unshift(folder);
      if (missing.length > MAX_NEW_FOLDERS) {
        throw new Refusal(
          "invalid_arguments",
          `Cannot make the folders of "${shown}": more than ${MAX_NEW_FOLDERS} are missing`,
          { pointer: "/path" },
        );
      }
    }
    for (const absolute of missing) {
      const relative = absolute.slice(root.length + 1);
      const path = { absolute, relative, shown, exists: false };
      await this.#change(path, "make", async (records, folder) => {
        await this.#record(records, folder, { kind: "folder", path: relative });
        // If another call puts files into it, rollback leaves the folder.
        await mkdir(folder.at(basename(absolute))).catch((error: unknown) => {
          if (errorCode(error) !== "EEXIST") throw error;
        });
      }, false);
    }
  }

  remove(path: WorkspacePath): Promise<void> {
    return this.#change(path, "delete", async (records, folder) => {
      const target = folder.at(basename(path.absolute));
      const before = inode(await lstat(target, { bigint: true }));
      const name = `${this.#count++}.old`;
      const backup = records.folder.at(name);
      await this.#record(records, folder, {
        kind: "removed",
        path: path.relative,
        before,
        backup: name,
      });
      await rename(target, backup);
      if (inode(await lstat(backup, { bigint: true })) !== before) {
        // Something else was put in its place in between. It goes back.
        if (await statOrNothing(target) === undefined) await rename(backup, target);
        throw systemError("EMOVED");
      }
      await folder.sync();
    });
  }

  commit(): Promise<void> {
    return this.#end(async ({ name, journal }) => {
      // This line is the commit: after it nothing can be rolled back, not even by `recover`.
      await writeJournal(journal, { kind: "committed" });
      openJournals.delete(journal);
      // The changes are kept even if this fails; `recover` removes the rest.
      await clearAway(this.#root, name, journal).catch(() => undefined);
    });
  }

  rollback(): Promise<void> {
    return this.#end(async ({ name, folder, journal }) => {
      openJournals.delete(journal);
      const problems = await undo(this.#root, folder, this.#steps);
      // Files that could not be put back stay in the folder, for a person to look at.
      if (problems.length > 0) throw rollbackError(name, problems);
      await clearAway(this.#root, name, journal);
    });
  }

  #change(
    path: WorkspacePath,
    verb: string,
    work: (records: Records, folder: Folder) => Promise<void>,
    isClaimed = true,
  ): Promise<void> {
    const result = this.#last.then(async () => {
      // A tool may go on after its call was aborted: its changes are refused.
      if (!this.#isOpen) {
        throw new Refusal("aborted", `Cannot ${verb} "${path.shown}": its transaction has ended`);
      }
      if (isClaimed) this.#claim(path.absolute, path.shown);
      try {
        const folder = await Folder.open(dirname(path.absolute));
        try {
          await work(this.#records ??= await this.#openRecords(), folder);
        } finally {
          // A rollback needs the folder of a recorded step, wherever it lies by then.
          if (this.#steps.at(-1)?.folder !== folder) await folder.close();
        }
      } catch (error) {
        throw fileRefusal(error, verb, path.shown);
      }
    });
    this.#last = result.catch(() => undefined);
    return result;
  }

  #end(work: (records: Records) => Promise<void>): Promise<void> {
    this.#isOpen = false;
    const result = this.#last.then(async () => {
      if (this.#records === undefined) return;
      try {
        await work(this.#records);
      } finally {
        for (const { folder } of [this.#records, ...this.#steps]) await folder.close();
        this.#records = undefined;
      }
    });
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #openRecords(): Promise<Records> {
    const name = `${TRANSACTION_PREFIX}${this.id}`;
    await using root = await Folder.open(this.#root);
    // The journal comes first: a folder without one would never be cleared away.
    const { pid } = process;
    const head = { pid, started: startTime(pid), root: this.#root, folder: name };
    const journal = await beginJournal(this.#journals, head);
    openJournals.add(journal);
    try {
      await mkdir(root.at(name), { mode: 0o700 });
      return { name, folder: await Folder.open(join(this.#root, name)), journal };
    } catch (error) {
      openJournals.delete(journal);
      await rmdir(root.at(name)).catch(() => undefined);
      await endJournal(journal).catch(() => undefined);
      throw error;
    }
  }

  async #record(records: Records, folder: Folder, entry: JournalEntry): Promise<void> {
    await writeJournal(records.journal, entry);
    this.#steps.push({ entry, folder });
  }
}

/** The error for a transaction that could not be rolled back completely. */
export function rollbackError(name: string, problems: readonly string[]): Error {
  return new Error(
    `Cannot roll back all of transaction "${name}": ${problems.slice(0, 8).join("; ")}`,
  );
}

/** Copies the first bytes of a file. A link is not followed. */
async function copyInto(
  target: FileHandle,
  from: string,
  shown: string,
  size: bigint,
): Promise<void> {
  const source = await openRegular(from, shown);
  try {
    const buffer = new Uint8Array(COPY_BYTES);
    for (let left = Number(size); left > 0;) {
      const { bytesRead } = await source.read(buffer, 0, Math.min(left, COPY_BYTES));
      if (bytesRead === 0) return;
      await target.appendFile(buffer.subarray(0, bytesRead));
      left -= bytesRead;
    }
  } finally {
    await source.close();
  }
}

async function assertWritable(path: string, shown: string, stats: BigIntStats): Promise<void> {
  // `access` lets root write any file, but a file marked read-only must not be changed.
  if ((stats.mode & 0o222n) === 0n) {
    throw new Refusal("denied", `Cannot write "${shown}": it is read-only`, { pointer: "/path" });
  }
  await access(path, constants.W_OK);
}

/** Keeps the file under a second name, or as a copy where the file system has no hard links. */
async function keep(
  path: string,
  backup: string,
  before: BigIntStats,
  shown: string,
): Promise<void> {
  try {
    await link(path, backup);
  } catch (error) {
    if (!hasNoLinks(error)) throw error;
    const copy = await open(backup, "wx", Number(before.mode & 0o777n));
    try {
      await copyInto(copy, path, shown, before.size);
    } finally {
      await copy.close();
    }
    await utimes(backup, before.atime, before.mtime);
    return;
  }
  if (inode(await statOrNothing(backup)) === inode(before)) return;
  // Something else was put in its place in between.
  await unlink(backup);
  throw systemError("EMOVED");
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
